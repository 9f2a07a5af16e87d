"""Every padded size: which shapes get compiled, and how arrays are filled up to them.

Programs are compiled for these sizes only, so a run of 30 evaluations compiles a handful of programs. What is padded is masked
by counts (``Posterior.n``) or flags, and a test proves that padding never changes a result. Growth: data is doubled (a
decision at N costs what one at the next size costs), the horizon and the pending points are padded to a few sizes. Predicting
the steps costs what the true horizon costs (its loop ends there); only the expectation is computed for the padded one.
"""

from __future__ import annotations

import numpy as np

MAX_HORIZON = 128  # evaluations planned ahead; a longer budget is planned for its next 128
_SMALLEST_DATA = 32
_HORIZONS = (8, 16, 32, 48, 64, 96, MAX_HORIZON)
MAX_PENDING = 128
# The first five need no other programs; room for them costs the default 2 %, a plan of everything left 15 %.
_PENDING = (5, 9, 25, 57, MAX_PENDING)


def data_size(n: int) -> int:
    """Rows for n observations."""
    size = _SMALLEST_DATA
    while size < n:
        size *= 2
    return size


def horizon_size(n: int) -> int:
    """Steps for a horizon of n, which must not exceed ``MAX_HORIZON``."""
    return next(size for size in _HORIZONS if size >= n)


def pending_size(n: int) -> int:
    """Rows for n pending points."""
    for size in _PENDING:
        if size >= n:
            return size
    raise ValueError(
        f"At most {_PENDING[-1]} evaluations can be pending at once, got {n}: tell some results before asking for more."
    )


def pad_rows(a: np.ndarray, rows: int) -> np.ndarray:
    """``a`` with zero rows appended up to ``rows``."""
    a = np.asarray(a, dtype=float)
    filled = np.zeros((rows, *a.shape[1:]))
    filled[: a.shape[0]] = a
    return filled
