"""Tables as text: CSV written so that spreadsheets run nothing of it, and CSV read as people have it.

A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break would be a formula to a spreadsheet, so it is written
with an apostrophe before it; numbers are not. Reading takes one apostrophe off again where it stands before such a character.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST = 10_000_000  # bytes
SEPARATORS = (",", ";", "\t")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)


def guarded(text: str) -> str:
    """A text as no spreadsheet takes it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text that was guarded."""
    return text[1:] if _GUARDED.match(text) else text


def as_csv(rows: Sequence[Mapping[str, Any]], order: Sequence[str] = ()) -> str:
    """Rows as CSV; every column that any row has, those of ``order`` after the common ones, then ``extra:...`` by name."""
    found = dict.fromkeys(key for row in rows for key in row)
    extras = sorted(key for key in found if key.startswith("extra:"))
    columns = [key for key in found if key not in order and key not in extras]
    columns += [*(key for key in order if key in found), *extras]
    lines = [columns, *([_cell(row.get(key)) for key in columns] for row in rows)]
    return "".join(f"{','.join(map(_quoted, line))}\n" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return guarded(value)
    return repr(value) if isinstance(value, float) else json.dumps(value, default=str)


def _quoted(cell: str) -> str:
    """csv.writer leaves a lone carriage return unquoted, which no strict reader takes."""
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if re.search(r'[,;\t"\r\n]', cell) else cell


def value_of(cell: str) -> Any:
    """What ``as_csv`` wrote: a number, true or false, a list, an object, or else a text; None for an empty cell."""
    if not cell:
        return None
    text = unguarded(cell)
    if text != cell:
        return text
    for read, write in ((int, str), (float, repr), (json.loads, json.dumps)):
        try:
            found = read(cell)
            if write(found) == cell:
                return found
        except (ValueError, RecursionError):
            continue
    return cell


def number_of(text: str) -> str:
    """A number with a decimal comma as one with a point; any other text as it is."""
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text


def read_table(path: Path) -> tuple[str, str | None]:
    """The text of a file, and what is to be said about its encoding."""
    with path.open("rb") as file:
        return decoded(file.read(LARGEST + 1), str(path))


def decoded(data: bytes, name: str = "The table") -> tuple[str, str | None]:
    """Bytes as text, and what is to be said about their encoding."""
    if len(data) > LARGEST:
        raise ValueError(f"{name} has more than {LARGEST // 1_000_000} MB: give a smaller table.")
    note = None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text, note = data.decode("utf-16"), f"{name} was read as UTF-16."
        except UnicodeDecodeError:
            text = "\0"
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text, note = data.decode("latin-1"), f"{name} is not in UTF-8 and was read as Latin-1: check letters with accents."
    if "\0" in text:
        raise ValueError(f"{name} is not a text in UTF-8, UTF-16 or Latin-1: expected a CSV file.")
    return text, note


def records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV text with their numbers, empty ones left out; a cell in quotes keeps its line breaks as they are."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(f"{name} is not a CSV file: {error}.") from None
