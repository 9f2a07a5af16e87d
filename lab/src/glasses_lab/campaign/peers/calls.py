"""A call into a peer: BLAS and OpenMP on one thread, its warnings left out.

Several of these libraries start as many threads as there are cores, for matrices of a few dozen rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def peer_call() -> Iterator[None]:
    """For everything that happens inside."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
