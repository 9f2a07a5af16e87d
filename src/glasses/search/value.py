"""Valuing points with a loss, each with its own predicted steps; and what the later evaluations are worth after a failure."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.feasible_min import log_feasible_gain
from glasses.gaussian.qmc import QMC
from glasses.lookahead.candidates import CandidateSet, QueryPoint
from glasses.lookahead.loss import Loss, steps_for, value_for
from glasses.runtime.batching import batched_map
from glasses.runtime.device import on_accelerator
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program, quickly_compiled
from glasses.search.decision import Problem, Valued
from glasses.search.exclusion import is_known
from glasses.search.look import look_at
from glasses.search.race import race
from glasses.search.screen import screen
from glasses.surrogate.kernels import Kernel

SCREENED = 48  # points that a look-ahead loss values for one decision
_AFTER_FAILURE = 8  # points that are valued for what follows a failure


def value_points(
    candidates: CandidateSet, X: Any, problem: Problem, n: int, kernel: Kernel, loss: Loss, *, rows: int, size: int
) -> Valued:
    """The rows of X, ``rows`` at most, valued with n evaluations remaining: by simulation where the loss has a race.

    What is excluded has the value -inf.
    """
    X = np.asarray(X)
    queries = look_at(candidates, X, problem.cost_at(X), rows, kernel=kernel)
    if loss.race is not None:
        assert len(X) == rows
        entrants, valued = race(candidates.alone(), queries, np.asarray(n), loss=loss, rounds=loss.race, size=size)
        return Valued(X[np.asarray(entrants)], *valued)
    value, steps = values_of(candidates, queries, len(X), n, loss, size=size)
    mean, var, excluded = (np.asarray(a)[: len(X)] for a in (queries.mu, queries.var, queries.excluded))
    if candidates.costs is not None:
        excluded = excluded | (np.asarray(queries.cost)[: len(X)] > np.asarray(candidates.costs.budget))
    if candidates.copies is not None:
        excluded = excluded | is_known(var, np.asarray(candidates.noise), np.asarray(candidates.nugget))
    return Valued(X, np.where(excluded | np.isnan(value), -np.inf, value), mean, np.sqrt(var), steps)


def values_of(
    candidates: CandidateSet, queries: QueryPoint, count: int, n: int, loss: Loss, *, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The values of the first ``count`` query points with n evaluations remaining, and their steps."""
    value, steps = _value(candidates.alone(), queries, np.asarray(count), np.asarray(n), loss=loss, size=size)
    return np.asarray(value)[:count], np.asarray(steps)[:count]


@program
def _value(
    candidates: CandidateSet, queries: QueryPoint, count: jax.Array, remaining: jax.Array, *, loss: Loss, size: int
) -> tuple[jax.Array, jax.Array]:
    """Value and steps of the first ``count`` query points; nothing for the rest."""

    def value(i: jax.Array) -> tuple[jax.Array, jax.Array]:
        query = jax.tree.map(lambda a: a[i], queries)
        steps = steps_for(loss, candidates, query, remaining, size)
        kept = jnp.zeros(0, int) if isinstance(steps, tuple) else steps
        return value_for(loss, candidates, query, steps, remaining), kept

    M = queries.mu.shape[0]
    if on_accelerator():
        return batched_map(value, jnp.arange(M))
    shapes = jax.eval_shape(value, jnp.asarray(0))
    blank = jax.tree.map(lambda a: jnp.zeros((M, *a.shape), a.dtype), shapes)

    def fill(i: jax.Array, kept: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return jax.tree.map(lambda all_, one: all_.at[i].set(one), kept, value(i))

    return jax.lax.fori_loop(0, count, fill, blank)


def with_gain_after_failure(
    candidates: CandidateSet, problem: Problem, n: int, kernel: Kernel, loss: Loss, screened: Any = None
) -> CandidateSet:
    """The candidate set with the gain of the n - 1 later evaluations if this one fails; unchanged if nothing has failed.

    With constraints what is pending counts even where nothing comes later.

    ``screened``: points worth valuing, if they are known already. The gain is that of a plan which is believed: how much of it
    counts where the model is trusted in part is for ``loss.with_risk``, since all of it comes later.
    """
    if problem.feasibility is None or candidates.failures is None:
        return candidates
    if n < 2 or not loss.looks_ahead:
        if not candidates.is_constrained or not candidates.n_pending:
            return candidates
        return candidates._replace(failures=candidates.failures._replace(log_gain=_of_pending(candidates.alone())))
    size = horizon_size(n)
    points = screen(candidates, n, size=size, count=SCREENED) if screened is None else np.asarray(screened)
    rows = len(points)
    few = points if loss.race is not None else points[:_AFTER_FAILURE]

    def best(candidates: CandidateSet) -> Any:
        if candidates.trust is not None:
            candidates = candidates._replace(trust=np.asarray(1.0))
        after = value_points(candidates, few, problem, n - 1, kernel, loss, rows=rows, size=size)
        return np.max(np.asarray(after.value))

    if candidates.costs is None:
        return candidates._replace(failures=candidates.failures._replace(log_gain=best(candidates)))
    found = candidates.failures._replace(log_gain=best(_having_paid(candidates)), log_gain_unpaid=best(candidates))
    return candidates._replace(failures=found)


@quickly_compiled
def _of_pending(candidates: CandidateSet) -> jax.Array:
    """What the pending evaluations bring by themselves."""
    C, log_p = candidates.n_candidates, candidates.log_feasibility
    assert log_p is not None
    each = candidates.mu[C:], candidates.cov[C:, C:], candidates.eta, candidates.pending_active, log_p[C:]
    gain = log_feasible_gain(*each, QMC().samples)
    return jnp.where(jnp.any(candidates.pending_active), gain, -jnp.inf)


def _having_paid(candidates: CandidateSet) -> CandidateSet:
    """The candidate set once the dearest candidate has been paid for."""
    assert candidates.costs is not None
    costs, samples = candidates.costs, candidates.samples
    cost = np.asarray(costs.cost)
    budget = np.asarray(costs.budget - np.max(np.where(cost <= costs.budget, cost, np.min(cost))))
    if samples is not None and samples.costs is not None:
        samples = samples._replace(costs=samples.costs._replace(budget=np.broadcast_to(budget, np.shape(samples.eta))))
    return candidates._replace(costs=costs._replace(budget=budget), samples=samples)
