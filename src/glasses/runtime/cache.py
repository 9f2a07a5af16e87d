"""Files that can be made again: compiled programs, what a model said of a study.

``GLASSES_CACHE_DIR`` moves the folder (default: in the user's own cache folder); ``GLASSES_CACHE_DIR=off`` turns it off.
Nothing here ever fails: a file that cannot be read is made again, one that cannot be written is not kept.

Loading a program runs what its file holds, so a file is read only if no other user can have written it: a plain file (a link,
a pipe or a device is refused) of this user's, in a folder of this user's, neither of which others may write. Each file begins
with a digest of the rest; one that was cut or damaged is not used. A file is written under a temporary name and then renamed.
While one process makes a file, others that need it wait for it (``alone``), for five seconds at most.
When the folder has grown beyond ``GLASSES_CACHE_MB`` megabytes (500), the files that were not used for longest are deleted.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: two processes may make the same file there
    fcntl = None  # type: ignore[assignment]

LARGEST_MB = 500.0  # of one folder: about a thousand programs
_MAGIC = b"glasses 1\n"
_DIGEST = hashlib.sha256().digest_size
_ABANDONED = 3600.0  # seconds: a temporary file this old belongs to a process that is gone
_TEMPORARY = ".writing-"
_PATIENCE = 5.0  # seconds: whoever makes the file may have been stopped


def cache_folder() -> Path | None:
    """The folder, or None when nothing is to be kept or the user has no home folder."""
    chosen = os.environ.get("GLASSES_CACHE_DIR")
    if chosen is not None and chosen.lower() in ("off", "0", "none", ""):
        return None
    base = chosen if chosen is not None else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(base).expanduser()
    except RuntimeError:  # a user without a home folder
        return None
    return folder if chosen is not None else folder / "glasses" / "programs"


def read(path: Path) -> bytes | None:
    """What ``write`` has written there; None if there is nothing that can be trusted."""
    try:
        if not _is_private(path.parent):
            return None
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(file, "rb") as stream:
            if not _only_mine(os.fstat(stream.fileno()), stat.S_ISREG):
                return None
            content = stream.read()
    except OSError:
        return None
    begin = len(_MAGIC) + _DIGEST
    payload = content[begin:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : begin] != hashlib.sha256(payload).digest():
        return None
    with suppress(OSError):
        os.utime(path)  # used now: the last to be deleted
    return payload


def write(path: Path, payload: bytes, most: float = math.inf) -> None:
    """Keep these bytes, whole or not at all. ``most``: how many files the folder may hold."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_private(path.parent):
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_TEMPORARY, delete=False) as file:
            temporary = Path(file.name)
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)  # two processes may write the same file: the last one wins
        temporary = None
        _prune(path.parent, most)
    except OSError:  # a read-only home, a full disk
        return
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Hold what others wait for before they make this file too; whether it was necessary to wait.

    The system lets go of it when this process ends, however it ends. Where there are no such locks, nobody waits.
    """
    waited = False
    lock = path.with_name(f"{_TEMPORARY}{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_private(path.parent):
            raise PermissionError(path.parent)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        yield waited
        return
    try:
        until = time.monotonic() + _PATIENCE
        while fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = True
                if time.monotonic() > until:
                    break
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        yield waited
    finally:
        os.close(file)
        with suppress(OSError):
            os.unlink(lock)


def _prune(folder: Path, most: float) -> None:
    """Delete what was not used for longest, down to three quarters of what may be kept, and what was never finished."""
    found = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process may be pruning too
            facts = entry.stat(follow_symlinks=False)
            if entry.name.startswith(_TEMPORARY):
                if time.time() - facts.st_mtime > _ABANDONED:
                    os.unlink(entry.path)
            elif stat.S_ISREG(facts.st_mode):
                found.append((facts.st_mtime, facts.st_size, entry.path))
    total, count = sum(size for _, size, _ in found), len(found)
    largest = _largest()
    if total <= largest and count <= most:
        return
    for _, size, path in sorted(found):
        if total <= 0.75 * largest and count <= 0.75 * most:
            return
        with suppress(OSError):
            os.unlink(path)
            total, count = total - size, count - 1


def _largest() -> float:
    """Bytes that the folder may hold."""
    try:
        return 1e6 * float(os.environ.get("GLASSES_CACHE_MB", LARGEST_MB))
    except ValueError:  # nothing here ever fails
        return 1e6 * LARGEST_MB


def _is_private(folder: Path) -> bool:
    """Whether only this user can write into the folder; said once if not."""
    facts = folder.stat()
    if _only_mine(facts, stat.S_ISDIR):
        return True
    _warn_of(str(folder))
    return False


def _only_mine(facts: os.stat_result, is_kind: object) -> bool:
    assert callable(is_kind)
    if not is_kind(facts.st_mode):
        return False
    return os.name != "posix" or (facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@cache
def _warn_of(folder: str) -> None:
    warnings.warn(
        f"The cache folder {folder} is not used, because others can write into it or own it: run `chmod go-w {folder}`, or set "
        "GLASSES_CACHE_DIR to a folder of your own. Programs are compiled again until then.",
        stacklevel=2,
    )
