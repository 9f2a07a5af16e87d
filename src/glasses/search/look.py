"""Points as a candidate set sees them, many at once, and how that moves with the points.

The two programs here are the only ones between a point and its value that depend on the data and the kernel. What values a
query point (``value``) takes arrays over the candidates alone.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from glasses.lookahead.candidates import CandidateSet, QueryPoint, query_point
from glasses.runtime.padding import pad_rows
from glasses.runtime.program import quickly_compiled
from glasses.surrogate.kernels import Kernel


def look_at(candidates: CandidateSet, X: Any, cost: Any, rows: int, *, kernel: Kernel) -> QueryPoint:
    """The query points at the rows of X, stacked, up to ``rows`` of them; the rest repeats the first."""
    X = np.asarray(X)
    padded = pad_rows(X, rows)
    padded[len(X) :] = X[0]
    found = _look(candidates, padded, kernel=kernel)
    if cost is None:
        return found
    return found._replace(cost=np.concatenate([cost, np.full(rows - len(X), cost[0])]))


def pulled_back(candidates: CandidateSet, X: np.ndarray, slope: QueryPoint, *, kernel: Kernel) -> np.ndarray:
    """The gradient by x at each row of X, from that by what moves with it."""
    return np.asarray(_pull(candidates, X, slope, kernel=kernel))


@quickly_compiled
def _look(candidates: CandidateSet, X: jax.Array, *, kernel: Kernel) -> QueryPoint:
    return jax.vmap(lambda x: query_point(kernel, candidates, x))(X)


@quickly_compiled
def _pull(candidates: CandidateSet, X: jax.Array, slope: QueryPoint, *, kernel: Kernel) -> jax.Array:
    def moving(X: jax.Array) -> QueryPoint:
        return jax.vmap(lambda x: query_point(kernel, candidates, x).moving())(X)

    return jax.vjp(moving, X)[1](slope)[0]
