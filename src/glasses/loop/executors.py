"""Executors: which of them ``minimize`` takes, and what is said of those that cannot work.

Processes must not be forked from this one once JAX was used: they inherit the locks of its threads but not the threads, so an
objective that uses JAX, or any library with such locks, may wait for ever. Processes that are spawned start afresh. They import
the module of the objective, so that must be a file, whose start of everything is under ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

SPAWNING = 'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
NEVER_STARTED = (
    " None had ended: processes that start afresh import the file of the objective, so it must be a file, and what starts the "
    'run must stand under `if __name__ == "__main__":`.'
)


def check_executor(executor: Any, fun: Callable[..., Any]) -> None:
    """Refuse what is no executor, processes that fork, and a function that cannot be sent to a pool of processes."""
    if isinstance(executor, type):
        raise ValueError(f"executor must be a pool, got the class {executor.__name__}: make one, {executor.__name__}(4).")
    if not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must be a concurrent.futures.Executor, got {executor!r}.")
    if start_method(executor) == "fork":
        raise ValueError(
            f"executor must not fork its processes, because JAX is used in this one and theirs could hang, got a "
            f"{type(executor).__name__} whose start method is fork: use {SPAWNING}."
        )
    if _is_pool_of_processes(executor):
        try:
            pickle.dumps(fun)
        except Exception as error:
            raise ValueError(
                f"fun cannot be sent to another process ({str(error).rstrip('.')}): define it with def at the top of a "
                "module, or use a ThreadPoolExecutor."
            ) from None


def start_method(executor: Any) -> str | None:
    """How a pool of processes starts them; None where nothing tells."""
    found = getattr(getattr(executor, "_mp_context", None), "get_start_method", None)  # nothing public tells
    return None if found is None else str(found())


def workers_of(executor: Executor, workers: int | None) -> int:
    """How many evaluations run side by side."""
    if workers is not None:
        return workers
    known = getattr(executor, "_max_workers", None)
    if not isinstance(known, int):
        raise ValueError("workers must say how many evaluations to run side by side: this executor does not tell.")
    return known


def _is_pool_of_processes(executor: Any) -> bool:
    """The standard library's, which pickles; those of other libraries have means of their own."""
    module = sys.modules.get("concurrent.futures.process")  # not loaded, not used
    return module is not None and isinstance(executor, module.ProcessPoolExecutor)
