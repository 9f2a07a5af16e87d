"""One BLAS thread while a program runs.

The factorisations inside a program are BLAS calls on small matrices. Threads of OpenBLAS gain nothing there and wait for each
other on every call: with the cores busy a decision took up to 5 s instead of 0.3 s. So they are limited to one while a program
runs, and have their number back when none does.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController


class OneBlasThread:
    """One thread from the first program that enters to the last that leaves, in all threads of the process.

    Limited is the library that XLA calls, SciPy's; NumPy's own is left alone where it is another one. A library on OpenMP
    counts threads per thread and is not touched.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                if self._libraries is None:  # what XLA calls is loaded by now
                    self._libraries = _limited_libraries()
                self._before = [library.num_threads for library in self._libraries]
                self._set([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def forked(self) -> None:
        """In the child of a fork no program runs, whatever ran in the parent."""
        was_inside, self._lock, self._inside = self._inside, threading.Lock(), 0
        if was_inside:
            self._restore()

    def _restore(self) -> None:
        now = [library.num_threads for library in self._libraries or ()]
        self._set([was if is_ == 1 else is_ for was, is_ in zip(self._before, now, strict=True)])

    def _set(self, numbers: list[int]) -> None:
        """threadpoolctl lets only the thread that set a number first set it again; here any thread may be the last to leave."""
        OpenBLASController.clear_controlling_thread(force=True)
        for library, number in zip(self._libraries or (), numbers, strict=True):
            library.set_num_threads(number)
        OpenBLASController.clear_controlling_thread(force=True)


def _limited_libraries() -> list[Any]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    found = [library for library in found if getattr(library, "threading_layer", None) != "openmp"]
    return [library for library in found if "scipy.libs" in Path(library.filepath).parts] or found


ONE_BLAS_THREAD = OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_BLAS_THREAD.forked)
