"""The parser of a command that takes a study file: help with examples, completion of the file's name."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

_NEGATIVE = re.compile(r"^-(\d|\.\d|inf|nan)")  # -1e-3 is a value and not an option


def add_file_command(commands: Any, name: str, words: str, examples: str, action: Any) -> argparse.ArgumentParser:
    """Add it; ``action(options)`` is called with ``options.file``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=words,
        description=f"{words[0].upper()}{words[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    file = parser.add_argument("file", type=Path, help="the study file")
    file.complete = {"bash": "_shtab_compgen_files", "zsh": "_files -g '*.toml'", "tcsh": "f"}  # type: ignore[attr-defined]
    parser.set_defaults(action=action)
    parser._negative_number_matcher = _NEGATIVE
    return parser
