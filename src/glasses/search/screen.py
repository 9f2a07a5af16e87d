"""Which candidates are worth valuing: those of highest EI, the predicted plan, the best by a coarse value given that plan.

Where there are choices, the candidates of highest EI with different choices are among them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import (
    CandidateSet,
    Failures,
    Pending,
    incumbent_after_pending,
    is_excluded,
    query_candidate,
    times_feasibility,
)
from glasses.lookahead.loss import value_for
from glasses.lookahead.losses import Glasses
from glasses.lookahead.oracles import KrigingBeliever
from glasses.runtime.batching import batched_map
from glasses.runtime.program import quickly_compiled

_DIFFERENT = 4  # candidates with different choices that are valued whatever their EI
_SAME_CHOICE = 1e-5  # values of a choice lie at least 1e-4 apart


def screen(candidates: CandidateSet, n: int, *, size: int, count: int) -> np.ndarray:
    """(count, d): a third by EI, the common plan itself, the rest by their value under the common plan."""
    origin = candidates.origin
    assert origin is not None
    points, third = np.asarray(candidates.points)[: candidates.n_candidates], max(1, count // 3)
    found = _survey(candidates._replace(samples=None).alone(), np.asarray(n), size=size)
    log_ei, value, plan = (np.asarray(a) for a in found)
    excluded = np.isneginf(log_ei)
    forced = np.zeros(len(points), bool)
    forced[plan[: min(n - 1, third)]] = True  # a step that is not planned is -1: the last candidate, as good as any
    if origin.lattice is not None and np.any(origin.lattice.is_choice):
        forced[_different(log_ei, points[:, np.asarray(origin.lattice.is_choice)])] = True
    score = np.maximum(value, -900.0) + np.where(_best(log_ei, third), 2e3, 0.0) + np.where(forced, 1e3, 0.0)
    hopeful = _best(np.where(forced & ~excluded, np.inf, log_ei), min(4 * count, len(points)))
    score = np.where(excluded | ~hopeful | np.isnan(score), -np.inf, score)
    return points[np.argsort(-score, kind="stable")[:count]]


def _best(score: np.ndarray, count: int) -> np.ndarray:
    """Which scores are among the ``count`` largest, the first on a tie."""
    chosen = np.zeros(len(score), bool)
    chosen[np.argsort(-score, kind="stable")[:count]] = True
    return chosen


def _different(log_ei: np.ndarray, choices: np.ndarray) -> list[int]:
    """The best candidate of each of the ``_DIFFERENT`` combinations of choices with the highest EI."""
    kinds: set[bytes] = set()
    found: list[int] = []
    for i in np.argsort(-log_ei, kind="stable"):
        kind = np.round(choices[i] / _SAME_CHOICE).tobytes()
        if kind not in kinds and len(found) < _DIFFERENT:
            kinds.add(kind)
            found.append(int(i))
    return found


@quickly_compiled
def _survey(candidates: CandidateSet, remaining: jax.Array, *, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of every candidate, log EI (per unit of cost; -inf for what may not be proposed) and its value under the common plan;
    and that plan: what the kriging believer predicts after the candidate of highest EI."""
    C = candidates.n_candidates
    cost = None if candidates.costs is None else candidates.costs.cost[:C]
    eta = incumbent_after_pending(candidates, candidates.mu, candidates.eta)
    log_ei = log_expected_improvement(candidates.mu, jnp.sqrt(jnp.diagonal(candidates.pending.cov)), eta)[:C]
    if candidates.log_feasibility is not None:
        log_ei = times_feasibility(log_ei, candidates.log_feasibility[:C])
    excluded = is_excluded(candidates)[:C]
    if cost is not None and candidates.costs is not None:
        log_ei, excluded = log_ei - jnp.log(cost), excluded | (cost > candidates.costs.budget)
    log_ei = jnp.where(excluded, -jnp.inf, log_ei)
    coarse = Glasses(KrigingBeliever(), QMC(16))
    plan = coarse.predict_steps(candidates, query_candidate(candidates, jnp.argmax(log_ei)), remaining, size)
    later = _after_pending(candidates, eta)
    value = batched_map(lambda i: value_for(coarse, later, query_candidate(later, i), plan, remaining), jnp.arange(C))
    return log_ei, value, plan


def _after_pending(candidates: CandidateSet, eta: jax.Array) -> CandidateSet:
    """The candidates alone, once the pending evaluations have come out at their means: enough for a coarse value."""
    C, cov = candidates.n_candidates, candidates.pending.cov
    if not candidates.n_pending:
        return candidates
    failures, costs = candidates.failures, candidates.costs
    return candidates._replace(
        mu=candidates.mu[:C],
        var=jnp.diagonal(cov)[:C],
        cov=cov[:C, :C],
        active=candidates.active[:C],
        eta=eta,
        apart=candidates.apart[:C, :C],
        done=candidates.done[:C],
        begun=candidates.begun[:C],
        infeasible=candidates.infeasible[:C],
        copies=None if candidates.copies is None else candidates.copies[:C, :C],
        pending=Pending(jnp.zeros((0, C)), cov[:C, :C]),
        failures=None if failures is None else _of_first(failures, C),
        costs=None if costs is None else costs._replace(cost=costs.cost[:C]),
    )


def _of_first(failures: Failures, count: int) -> Failures:
    log_value = None if failures.log_value is None else failures.log_value[:count]
    return failures._replace(log_feasibility=failures.log_feasibility[:count], log_value=log_value)
