"""Hooks of the documentation site (``make site``): the command line's own help becomes its reference page.

Links to files of the repository that are no pages (``../lab/README.md``) become plain text, because the site holds pages only.
"""

import argparse
import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:lab|src|examples|tests|benchmarks|README|CONTRIBUTING|CHANGELOG)[^)]*\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    if page.file.src_uri == "reference/commands.md":
        markdown += commands()
    return _OUTSIDE.sub(lambda found: found[1], markdown)


def commands() -> str:
    """One section per command, in its own words."""
    from glasses.cli import _parser

    parser = _parser()
    parser.prog = "glasses"
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    sections = []
    for name, command in actions[0].choices.items():
        sections.append(f"\n## glasses {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "".join(sections)
