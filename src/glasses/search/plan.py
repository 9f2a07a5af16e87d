"""The plan after a decision of a loss that looks less far ahead than the budget allows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, query_point
from glasses.lookahead.loss import value_for
from glasses.lookahead.losses import Glasses
from glasses.runtime.padding import MAX_HORIZON, horizon_size
from glasses.runtime.program import program
from glasses.search.decision import Decision, Problem, Valued, decide
from glasses.search.propose import candidates_for
from glasses.surrogate.kernels import Kernel

_CANDIDATES = 256


def plan_after(kernel: Kernel, problem: Problem, x: np.ndarray, rng: np.random.Generator) -> Decision:
    """The steps a kriging believer predicts after x, for all evaluations that remain."""
    candidates = candidates_for(kernel, problem, _CANDIDATES, rng)
    n = min(problem.remaining, MAX_HORIZON)
    cost = problem.cost_at(x[None])
    return decide(candidates, _plan(candidates, x, cost, np.asarray(n), kernel=kernel, size=horizon_size(n)))


@program
def _plan(
    candidates: CandidateSet, x: jax.Array, cost: jax.Array | None, remaining: jax.Array, *, kernel: Kernel, size: int
) -> Valued:
    loss, query = Glasses(), query_point(kernel, candidates, x).costing(cost)
    steps = loss.predict_steps(candidates, query, remaining, size)
    value = value_for(loss, candidates._replace(samples=None), lambda _: query, steps, remaining)
    return Valued(x[None], value[None], query.mu[None], jnp.sqrt(query.var)[None], steps[None])
