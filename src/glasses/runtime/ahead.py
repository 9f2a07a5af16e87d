"""Programs compiled ahead: on a spare thread, while the user's evaluation runs.

What a later decision will need is known before it is made: the programs that plan, those for the next size of the data. So
that decision is rehearsed here (``loop.rehearsal``), and its programs are compiled, or loaded from disk, by then. Nothing that
happens here reaches the user's program: a rehearsal that fails is forgotten, one that is not finished when the process ends is
left at the next program, and results never depend on whether there was one. ``GLASSES_COMPILE_AHEAD=off`` turns it off.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any


class StoppedError(Exception):
    """The process ends, or a rehearsal is no longer wanted."""


class Ahead:
    """A queue of rehearsals and the one thread that makes them."""

    def __init__(self) -> None:
        self.forget()
        self.enabled = True

    def forget(self) -> None:
        """As in a new process."""
        self._lock = threading.Lock()
        self._begun: OrderedDict[Hashable, threading.Event] = OrderedDict()
        self._queue: list[tuple[Hashable, Callable[[], Any]]] = []
        self._thread: threading.Thread | None = None
        self._stopping = False

    def is_on(self) -> bool:
        return self.enabled and os.environ.get("GLASSES_COMPILE_AHEAD", "on").lower() not in ("off", "0", "no")

    def begin(self, key: Hashable, rehearse: Callable[[], Any]) -> None:
        """Rehearse it soon, once per process."""
        if not self.is_on():
            return
        with self._lock:
            if key in self._begun or self._stopping:
                return
            self._begun[key] = threading.Event()
            self._queue.append((key, rehearse))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="glasses-compile-ahead", daemon=True)
                self._thread.start()

    def wait(self, keys: Iterable[Hashable], seconds: float) -> None:
        """Until those of these rehearsals that were begun are over, but not longer than this in all."""
        with self._lock:
            events = [self._begun[key] for key in keys if key in self._begun]
        deadline = time.monotonic() + seconds
        for event in events:
            event.wait(max(0.0, deadline - time.monotonic()))

    def check(self) -> None:
        """Between two programs of a rehearsal: leave it if the process ends."""
        if self._stopping and threading.current_thread() is self._thread:
            raise StoppedError

    def stop(self) -> None:
        """At the end of the process: the program being compiled is finished, no other is begun."""
        with self._lock:
            self._stopping = True
            self._queue.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._thread = None
                    return
                key, rehearse = self._queue.pop(0)
                event = self._begun[key]
            try:
                with suppress(Exception):
                    rehearse()
            finally:
                event.set()


AHEAD = Ahead()
atexit.register(AHEAD.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=AHEAD.forget)
