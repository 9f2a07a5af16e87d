"""A loss at given points: what the searches minimise, for ``Optimizer.loss_at`` and plots."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, QueryPoint, query_point
from glasses.lookahead.loss import Loss, steps_for, value_for
from glasses.runtime.batching import BATCH, batched_map
from glasses.runtime.device import on_accelerator
from glasses.runtime.padding import horizon_size, pad_rows
from glasses.runtime.program import program
from glasses.search.decision import Problem, horizon
from glasses.search.value import with_gain_after_failure
from glasses.surrogate.kernels import Kernel

_IN_TURN = 16


def gains_at(
    loss: Loss, kernel: Kernel, candidates: CandidateSet, problem: Problem, X: np.ndarray, remaining: int
) -> tuple[float, np.ndarray]:
    """The incumbent and the expected gain below it at the rows of X, for a loss that is one (``is_gain``)."""
    n = min(horizon(loss, remaining), candidates.n_candidates)
    candidates = with_gain_after_failure(candidates, problem, n, kernel, loss)
    parts = []
    batch = BATCH if on_accelerator() else _IN_TURN
    for first in range(0, len(X), batch):
        part = X[first : first + batch]
        padded = pad_rows(part, batch)
        cost, size = problem.cost_at(padded), horizon_size(n)
        values = _values(candidates, padded, cost, np.asarray(n), kernel=kernel, loss=loss, size=size)
        parts.append(np.asarray(values)[: len(part)])
    return float(candidates.eta), np.exp(np.concatenate(parts))


@program
def _values(
    candidates: CandidateSet,
    X: jax.Array,
    cost: jax.Array | None,
    remaining: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    size: int,
) -> jax.Array:
    def value(i: jax.Array) -> jax.Array:
        def query(each: CandidateSet) -> QueryPoint:
            return query_point(kernel, each, X[i]).costing(cost, i)

        return value_for(loss, candidates, query, steps_for(loss, candidates, query, remaining, size), remaining)

    return batched_map(value, jnp.arange(X.shape[0]))
