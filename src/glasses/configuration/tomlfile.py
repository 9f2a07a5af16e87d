"""A TOML file written by hand: every error in it is reported with the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn


class TomlFile:
    """The ``content`` of a file, which is ``what`` it is meant to be ("a study")."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        try:
            self.text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not text in UTF-8: {what} is a TOML file.") from None
        try:
            self.content: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            lines = self.text.splitlines()
            line = int(place[1]) if place else len(lines)
            shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            reason = re.sub(r" \(at .*\)", "", str(error))
            raise ValueError(f"{path}, line {line}: {reason} in {shown!r}; {what} is a TOML file.") from None
        except RecursionError:
            raise ValueError(f"{path} is nested too deeply: {what} is a plain TOML file.") from None

    def refuse(self, key: str, why: str, table: str = "", index: int = 0) -> NoReturn:
        """Raise an error about a key at the top, or in the index-th of the tables of that name."""
        raise ValueError(f"{self.path}, line {self.line(key, table, index)}, key {key!r}: {why}")

    def line(self, key: str, table: str = "", index: int = 0) -> int:
        """Where the key stands; else where its table begins."""
        here, seen, begins = "", -1, 1
        for number, text in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$", text)
            if header:
                here = header[1].strip("\"'")
                if here == table:
                    seen += 1
                    begins = number if seen == index else begins
            inside = here == table and (table == "" or seen == index)
            if inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*(=|\.)", text):
                return number
            if here == f"{table}.{key}".strip("."):
                return number
        return begins if table == "" or seen >= index else self.line(table)  # a table within one line
