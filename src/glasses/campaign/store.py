"""A file of results: one JSON line per run, appended and never rewritten, shared safely by several processes.

- A line is written whole, under a lock, and reaches the disk before the next run is taken.
- A run is claimed by a lock on one byte of ``<file>.lock``, at an offset that is the digest of the run's key. The kernel
  drops the lock when the process dies, however it dies, so nothing stale is left behind. A run that another process
  finished meanwhile is seen before the claim is granted. So two processes never write the same run.
- A line cut at the end of the file (a full disk, a power cut) is moved to ``<file>.cut``, said, and its run is done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any


class Store:
    """The results file of a campaign, open for work. ``say`` receives a sentence when the file had to be repaired."""

    def __init__(self, path: Path, say: Callable[[str], None] = print) -> None:
        self.path, self.say = Path(path), say
        self.records: dict[str, dict[str, Any]] = {}
        self._seen = 0

    def __enter__(self) -> Store:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        self._claims = self.path.with_name(self.path.name + ".lock").open("a+b")
        with _Locked(self._file):
            self._repair()
            self._catch_up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._claims.close()
        self._file.close()

    def claim(self, key: str) -> bool:
        """Whether this process may do the run: nobody has done it and nobody else is at it."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
        except OSError:
            return False
        with _Locked(self._file):
            self._catch_up()
        if key in self.records:
            self.release(key)
            return False
        return True

    def release(self, key: str) -> None:
        fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _offset(key))

    def append(self, record: dict[str, Any]) -> None:
        """Write a claimed run, once, and release it."""
        with _Locked(self._file):
            self._catch_up()
            if record["key"] not in self.records:
                self._file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
                self._catch_up()
        self.release(record["key"])

    def _catch_up(self) -> None:
        """Read what was appended since the last look."""
        self._file.seek(self._seen)
        for line in self._file.read().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            self._seen += len(line)
            record = _parsed(line)
            if record is not None:
                self.records.setdefault(record["key"], record)

    def _repair(self) -> None:
        """Move a line cut at the end of the file out of the way; name any other line that is not a record."""
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            cut = lines.pop()
            aside = self.path.with_name(self.path.name + ".cut")
            with aside.open("ab") as file:
                file.write(cut + b"\n")
                os.fsync(file.fileno())
            self._file.truncate(sum(map(len, lines)))
            self.say(
                f"{self.path}, line {len(lines) + 1} was cut in the middle: moved to {aside.name}, "
                f"the {len(lines)} lines before it are kept and its run will be done again."
            )
        _name_strangers(self.path, lines, self.say)


def read_records(path: Path, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """The whole records of a file, without changing it; lines that are not are named."""
    if not Path(path).is_file():
        raise ValueError(f"There is no results file {path}: run the campaign first, or give its path.")
    lines = Path(path).read_bytes().splitlines()
    _name_strangers(path, lines, say)
    records = [record for record in map(_parsed, lines) if record is not None]
    return list({record["key"]: record for record in reversed(records)}.values())[::-1]


def _name_strangers(path: Path, lines: list[bytes], say: Callable[[str], None]) -> None:
    strangers = [str(number) for number, line in enumerate(lines, start=1) if _parsed(line) is None]
    if strangers:
        say(f"{path}, line {', '.join(strangers)}: not a whole record; kept in the file and left out of everything.")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def _offset(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big")


class _Locked:
    """An exclusive lock on an open file for the length of a block."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __enter__(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self.file, fcntl.LOCK_UN)
