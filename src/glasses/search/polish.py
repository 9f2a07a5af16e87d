"""Moving points uphill: a loss by its gradient, with the predicted steps held fixed.

The gradient is taken in two parts. ``_slope`` is that of the loss by what the candidates see of the point, compiled once
whatever the data; ``look`` carries it back to the point. The iteration runs outside (``numerics.bfgs``).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, QueryPoint
from glasses.lookahead.loss import Loss, value_for
from glasses.numerics.bfgs import minimize_outside
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.look import look_at, pulled_back
from glasses.surrogate.kernels import Kernel


def polished(
    candidates: CandidateSet,
    X: np.ndarray,
    steps: Any,
    cost: np.ndarray | None,
    n: int,
    kernel: Kernel,
    loss: Loss,
    *,
    rows: int,
    passes: int,
) -> np.ndarray:
    """The points X moved uphill, n evaluations remaining; ``rows``: how many are looked at in one call."""
    alone, left = candidates.alone(), np.asarray(n)

    def descend(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        queries = jax.tree.map(lambda a: np.asarray(a)[: len(X)], look_at(candidates, X, cost, rows, kernel=kernel))
        value, slope = _slope(alone, queries, steps, left, loss=loss)
        return -np.asarray(value), -pulled_back(candidates, X, slope, kernel=kernel)

    return minimize_outside(descend, X, passes=passes, first_step=0.01).x


@program
def _slope(
    candidates: CandidateSet, queries: QueryPoint, steps: Any, remaining: jax.Array, *, loss: Loss
) -> tuple[jax.Array, QueryPoint]:
    """The value of each query point with its steps, and the gradient by its moving part."""

    def one(i: jax.Array) -> tuple[jax.Array, QueryPoint]:
        query, own = jax.tree.map(lambda a: a[i], (queries, steps))

        def value(part: QueryPoint) -> jax.Array:
            return value_for(loss, candidates, query.moved_to(part), own, remaining)

        return jax.value_and_grad(value)(query.moving())

    return batched_map(one, jnp.arange(queries.mu.shape[0]))
