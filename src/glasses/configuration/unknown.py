"""The message about an unknown name: of a parameter, a method, a key."""

from __future__ import annotations

import difflib


def unknown(kind: str, name: str, known: list[str]) -> str:
    """The message about an unknown name: the known ones, nearest first."""
    nearness = {each: difflib.SequenceMatcher(None, name.lower(), each.lower()).ratio() for each in known}
    return f"There is no {kind} {name!r}; known, nearest first: {', '.join(sorted(known, key=lambda k: -nearness[k]))}."
