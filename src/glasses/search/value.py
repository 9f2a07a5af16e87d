"""Valuing points with a loss, each with its own predicted steps; and what the later evaluations are worth after a failure."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, QueryPoint, query_point
from glasses.lookahead.loss import Loss, steps_for, value_for
from glasses.runtime.batching import batched_map
from glasses.runtime.device import on_accelerator
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program
from glasses.search.decision import Problem, Valued
from glasses.search.exclusion import is_excluded, is_known
from glasses.search.race import race
from glasses.search.screen import screen
from glasses.surrogate.kernels import Kernel

SCREENED = 48  # points that a look-ahead loss values for one decision
_AFTER_FAILURE = 8  # points that are valued for what follows a failure


def value_points(
    candidates: CandidateSet, X: Any, problem: Problem, n: int, kernel: Kernel, loss: Loss, *, count: int, size: int
) -> Valued:
    """The first ``count`` rows of X valued with n evaluations remaining: by simulation where the loss has a race."""
    if loss.race is not None:
        few = X[:count]
        rounds = loss.race
        return race(candidates, few, problem.cost_at(few), np.asarray(n), kernel=kernel, loss=loss, rounds=rounds, size=size)
    cost = problem.cost_at(X)
    return _value(candidates, X, cost, np.asarray(count), np.asarray(n), kernel=kernel, loss=loss, size=size)


@program
def _value(
    candidates: CandidateSet,
    X: jax.Array,
    cost: jax.Array | None,
    count: jax.Array,
    remaining: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    size: int,
) -> Valued:
    """The first ``count`` rows of X, each with its own steps; -inf for the rest and for what is excluded."""

    def value(i: jax.Array) -> Valued:
        def query(each: CandidateSet) -> QueryPoint:
            return query_point(kernel, each, X[i]).costing(cost, i)

        at, steps = query(candidates), steps_for(loss, candidates, query, remaining, size)
        return Valued(X[i], value_for(loss, candidates, query, steps, remaining), at.mu, jnp.sqrt(at.var), steps)

    M = X.shape[0]
    shapes = jax.eval_shape(value, jnp.asarray(0))
    blank = jax.tree.map(lambda a: jnp.zeros((M, *a.shape), a.dtype), shapes)

    def fill(i: jax.Array, kept: Valued) -> Valued:
        return jax.tree.map(lambda all_, one: all_.at[i].set(one), kept, value(i))

    valued = batched_map(value, jnp.arange(M)) if on_accelerator() else jax.lax.fori_loop(0, count, fill, blank)
    excluded = is_excluded(candidates, X, cost) | is_known(candidates, valued.sd**2)
    worthless = (jnp.arange(M) >= count) | excluded | jnp.isnan(valued.value)
    return valued._replace(x=X, value=jnp.where(worthless, -jnp.inf, valued.value))


def with_gain_after_failure(
    candidates: CandidateSet, problem: Problem, n: int, kernel: Kernel, loss: Loss, screened: Any = None
) -> CandidateSet:
    """The candidate set with the gain of the n - 1 later evaluations if this one fails; unchanged if nothing has failed.

    ``screened``: points worth valuing, if they are known already. The gain is that of a plan which is believed: how much of it
    counts where the model is trusted in part is for ``loss.with_risk``, since all of it comes later.
    """
    if candidates.failures is None or n < 2 or not loss.looks_ahead:
        return candidates
    size = horizon_size(n)
    points = screen(candidates, np.asarray(n), size=size, count=SCREENED) if screened is None else screened
    few = min(_AFTER_FAILURE, len(points))

    def best(candidates: CandidateSet) -> Any:
        if candidates.trust is not None:
            candidates = candidates._replace(trust=np.asarray(1.0))
        after = value_points(candidates, points, problem, n - 1, kernel, loss, count=few, size=size)
        return np.max(np.asarray(after.value))

    if candidates.costs is None:
        return candidates._replace(failures=candidates.failures._replace(log_gain=best(candidates)))
    found = candidates.failures._replace(log_gain=best(_having_paid(candidates)), log_gain_unpaid=best(candidates))
    return candidates._replace(failures=found)


@program
def _having_paid(candidates: CandidateSet) -> CandidateSet:
    """The candidate set once the dearest candidate has been paid for."""
    assert candidates.costs is not None
    costs, samples = candidates.costs, candidates.samples
    budget = costs.budget - costs.largest
    if samples is not None and samples.costs is not None:
        samples = samples._replace(costs=samples.costs._replace(budget=jnp.broadcast_to(budget, samples.eta.shape)))
    return candidates._replace(costs=costs._replace(budget=budget), samples=samples)
