"""What follows a decision: the plan of a loss that looks less far ahead than the budget allows, and the forecast."""

from __future__ import annotations

import jax
import numpy as np

from glasses.lookahead.forecast import ForecastGains, forecast_gains
from glasses.lookahead.losses import Glasses
from glasses.lookahead.satisfaction import joint_constraints
from glasses.runtime.padding import MAX_HORIZON, horizon_size
from glasses.search.decision import Decision, Problem, Valued, decide
from glasses.search.look import look_at
from glasses.search.propose import candidates_for, candidates_over, propose
from glasses.search.value import values_of
from glasses.surrogate.constraints import ConstrainedFeasibility
from glasses.surrogate.kernels import Kernel

_CANDIDATES = 256


def plan_after(kernel: Kernel, problem: Problem, x: np.ndarray, rng: np.random.Generator) -> Decision:
    """The steps a kriging believer predicts after x, for all evaluations that remain."""
    candidates = candidates_for(kernel, problem, _CANDIDATES, rng)._replace(samples=None)
    n = min(problem.remaining, MAX_HORIZON)
    query = look_at(candidates, x[None], problem.cost_at(x[None]), 1, kernel=kernel)
    value, steps = values_of(candidates, query, 1, n, Glasses(), size=horizon_size(n))
    return decide(candidates, candidates.eta, Valued(x[None], value, query.mu, np.sqrt(np.asarray(query.var)), steps))


def forecast_after(
    kernel: Kernel, problem: Problem, x: np.ndarray, n: int, count: int, rng: np.random.Generator
) -> ForecastGains:
    """What n evaluations bring, the first of them at x, over ``count`` candidates and some more."""
    points, feasibility = propose(kernel, problem, count, rng).points, problem.feasibility
    if isinstance(feasibility, ConstrainedFeasibility):
        points = np.concatenate([x[None], points[1:]])  # constraints are drawn over the candidates, so x is one of them
    candidates = candidates_over(kernel, problem, points)._replace(samples=None)
    query = jax.tree.map(lambda a: np.asarray(a)[0], look_at(candidates, x[None], problem.cost_at(x[None]), 1, kernel=kernel))
    if feasibility is None:
        candidates, query = candidates._replace(failures=None), query._replace(log_feasibility=None)
    joint = None
    if isinstance(feasibility, ConstrainedFeasibility):
        joint = joint_constraints(feasibility, np.asarray(candidates.points), 0, kernel=kernel)
    return forecast_gains(candidates.alone(), query, np.asarray(n), joint, size=horizon_size(n))
