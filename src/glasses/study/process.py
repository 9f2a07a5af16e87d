"""One command, run to its end: with a time limit, in bounded memory, with nothing of its process group left behind.

The command has ended when the process that was started has ended. Its descendants may still hold its pipes open then, such as
a ``tee`` that passes on the last line: they are given ``_GRACE`` seconds to close them. Then the process group is killed.

Ended with the command: every descendant in its process group. Not ended: a descendant that has left the group (``setsid``, a
daemon), and a program of another user (``sudo``) that may not be killed. Neither can hold an evaluation up. It runs on, and
what it prints later is not read. If this process itself is killed (SIGKILL), the command runs on as well.

Pipes and one loop rather than temporary files, which a command that prints without end would let grow until the disk is full,
or threads, which could not be ended while a descendant holds a pipe open.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

KEPT = 2**20  # bytes of each stream that are kept, the last ones
_CHUNK = 2**16
_CHUNKS = 16  # a pipe holds at most 1 MiB on Linux, 64 KiB by default
_GRACE = 0.5  # seconds for descendants to close the pipes
_POLL = 0.1  # seconds between two looks at a process whose pipes say nothing
_REAP = 1.0  # seconds for a killed process to end


class Tail:
    """The last ``KEPT`` bytes of a stream."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        self._bytes += data
        if len(self._bytes) > 2 * KEPT:  # not at every call, which would copy all of them each time
            del self._bytes[:-KEPT]

    @property
    def cut(self) -> bool:
        """Whether the beginning of the stream is missing, so that the first line may not be whole."""
        return self._size > KEPT

    def lines(self) -> list[str]:
        """Its lines, without blank ones at the end."""
        return self._bytes[-KEPT:].decode(errors="replace").rstrip().splitlines()


@dataclass(frozen=True)
class Ended:
    """How a command ended, and the end of what it printed."""

    status: int | None  # as of ``subprocess``, negative for a signal; None: it took longer than it might
    output: Tail
    errors: Tail


def run(arguments: Sequence[str], folder: Path, timeout: float | None) -> Ended:
    """Run a command in a folder, without a shell and without input, for at most ``timeout`` seconds.

    Raises ``OSError`` if it does not start. An exception that interrupts it, such as one of a signal handler, ends it too.
    """
    deadline = time.monotonic() + (math.inf if timeout is None else timeout)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr, _Pipes(process.stdout, process.stderr) as pipes:
        try:
            in_time = _ended(process, pipes, deadline)
            if in_time:
                pipes.read_to_the_end(_GRACE)
        finally:
            _kill(process)
        pipes.read_what_is_there()
    output, errors = pipes.tails
    return Ended(process.returncode if in_time else None, output, errors)


class _Pipes:
    """Pipes that are read as they fill."""

    def __init__(self, *pipes: IO[bytes]) -> None:
        self.tails = [Tail() for _ in pipes]
        self._open = selectors.DefaultSelector()
        for pipe, tail in zip(pipes, self.tails, strict=True):
            self._open.register(pipe, selectors.EVENT_READ, tail)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def closed(self) -> bool:
        """Whether all writers have closed them."""
        return not self._open.get_map()

    def read(self, seconds: float) -> bool:
        """Read once what is there, or comes within so many seconds; False if there was nothing."""
        ready = self._open.select(seconds)
        for key, _ in ready:
            data = os.read(key.fd, _CHUNK)
            if data:
                key.data.add(data)
            else:
                self._open.unregister(key.fileobj)
        return bool(ready)

    def read_to_the_end(self, seconds: float) -> None:
        """Read until they are closed, for so many seconds at most."""
        deadline = time.monotonic() + seconds
        while not self.closed and (left := deadline - time.monotonic()) > 0:
            self.read(left)

    def read_what_is_there(self) -> None:
        """Read what full pipes can hold, however busy this process was before; not for ever if a descendant goes on writing."""
        for _ in range(_CHUNKS):
            if self.closed or not self.read(0.0):
                return


def _ended(process: subprocess.Popen[bytes], pipes: _Pipes, deadline: float) -> bool:
    """Read until the process has ended; False if the deadline came first."""
    while process.poll() is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        if pipes.closed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(left, 1.0))
        else:
            pipes.read(min(left, _POLL))
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group, or what is left of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # no process is left, or none that this user may kill
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP)
