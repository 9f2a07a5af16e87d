"""A file of results: one JSON line per run, appended and never rewritten, shared safely by several processes.

- A line is written whole, in one call, under a lock, and reaches the disk before its claim is given up.
- A run is claimed by a lock on one byte of ``<file>.lock``, at an offset that is the digest of the run's key. The kernel
  drops the lock when the process dies, however it dies, so nothing stale is left behind. A run that another process
  finished meanwhile is seen before the claim is granted. So two processes never write the same run.
- A line cut at the end of the file (a full disk, a power cut) is moved to ``<file>.cut``, said, and its run is done again.
- Of two records of one run the first counts, unless it is a failure that was tried again.

A ``Store`` may be used from several threads: joblib takes new tasks in a thread of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any


class Store:
    """The results file of a campaign, open for work. ``say`` receives a sentence when the file had to be repaired."""

    def __init__(self, path: Path, say: Callable[[str], None] = print) -> None:
        self.path, self.say = Path(path), say
        self.records: dict[str, dict[str, Any]] = {}
        self._seen = 0
        self._mutex = threading.RLock()

    def __enter__(self) -> Store:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b", buffering=0)
        self._claims = self.path.with_name(self.path.name + ".lock").open("a+b", buffering=0)
        with self._locked():
            self._catch_up()
            _name_strangers(self.path, self.path.read_bytes().splitlines(), self.say)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._claims.close()
        self._file.close()

    def claim(self, key: str, *, again: bool = False) -> bool:
        """Whether this process may do the run: it is not done (``again``: or it failed) and no other process is doing it."""
        with self._mutex:
            try:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
            except (BlockingIOError, PermissionError):  # which of them a held lock raises depends on the system
                return False
            with self._locked():
                self._catch_up()
            if key in self.records and not (again and self.records[key].get("error")):
                self.release(key)
                return False
            return True

    def release(self, key: str) -> None:
        with self._mutex:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _offset(key))

    def append(self, record: dict[str, Any]) -> None:
        """Write a claimed run, once, and release it."""
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        with self._mutex:
            with self._locked():
                self._catch_up()
                before = self.records.get(record["key"])
                if before is None or before.get("error"):
                    written = self._file.write(line)
                    if written != len(line):
                        raise OSError(
                            f"Only {written} of {len(line)} bytes of a run could be written to {self.path}: is the disk full?"
                        )
                    os.fsync(self._file.fileno())
                    self._catch_up()
            self.release(record["key"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the file, among threads and among processes."""
        with self._mutex:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Read what was appended since the last look; move a line cut at the end out of the way."""
        self._file.seek(self._seen)
        for line in self._file.readall().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                self._move_aside(line)
                break
            self._seen += len(line)
            record = _parsed(line)
            if record is not None:
                _enter(self.records, record)

    def _move_aside(self, cut: bytes) -> None:
        aside = self.path.with_name(self.path.name + ".cut")
        with aside.open("ab") as file:
            file.write(cut + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._file.truncate(self._seen)
        self.say(
            f"{self.path} ends in the middle of a line: what there is of it was moved to {aside.name}, "
            f"the {len(self.records)} runs before it are kept and its run will be done again."
        )


def read_records(path: Path, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """The whole records of a file, without changing it; lines that are not are named."""
    if not Path(path).is_file():
        raise ValueError(f"There is no results file {path}: run the campaign first, or give its path.")
    lines = Path(path).read_bytes().splitlines()
    _name_strangers(path, lines, say)
    records: dict[str, dict[str, Any]] = {}
    for record in map(_parsed, lines):
        if record is not None:
            _enter(records, record)
    return list(records.values())


def _enter(records: dict[str, dict[str, Any]], record: dict[str, Any]) -> None:
    before = records.get(record["key"])
    if before is None or before.get("error"):
        records[record["key"]] = record


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
