"""Liveness by the observer's own clock.

Clocks of other machines, and of the database, may be set back or forward. So nothing is concluded from a stored time. A sign of
life is anything that its owner keeps changing, and the observer measures with its own monotonic clock for how long it has not
changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from time import monotonic
from typing import Any


class Watch:
    """Remembers signs as last seen, and since when. Pickles empty: the monotonic clock of another process means nothing."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[Any, float]] = {}

    def __reduce__(self) -> tuple[type[Watch], tuple[()]]:
        return Watch, ()

    def unchanged(self, key: Hashable, sign: Any, already: float = 0.0) -> float:
        """Seconds for which the sign has been the same; ``already`` is the result when it is new."""
        now = monotonic()
        seen = self._seen.get(key)
        if seen is None or seen[0] != sign:
            seen = self._seen[key] = sign, now - already
        return now - seen[1]

    def forget(self) -> None:
        """Begin anew: every sign is new at the next look."""
        self._seen = {}
