"""Which candidates are worth valuing: those of highest EI, the predicted plan, the best by a coarse value given that plan.

Where there are choices, the candidates of highest EI with different choices are among them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import (
    CandidateSet,
    active_steps,
    incumbent_after_pending,
    query_candidate,
    times_feasibility,
)
from glasses.lookahead.loss import value_for
from glasses.lookahead.losses import Glasses
from glasses.lookahead.oracles import KrigingBeliever
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.exclusion import is_excluded
from glasses.search.propose import separated_best

_DIFFERENT = 4  # candidates with different choices that are valued whatever their EI


@program
def screen(candidates: CandidateSet, remaining: jax.Array, *, size: int, count: int) -> jax.Array:
    """(count, d): a third by EI, the common plan itself, the rest by their value under the common plan."""
    points, C = candidates.candidates, candidates.n_candidates
    cost = None if candidates.costs is None else candidates.costs.cost[:C]
    excluded = is_excluded(candidates, points, cost)
    eta = incumbent_after_pending(candidates, candidates.mu, candidates.eta)
    log_ei = log_expected_improvement(candidates.mu, jnp.sqrt(jnp.diagonal(candidates.pending.cov)), eta)[:C]
    if candidates.log_feasibility is not None:
        log_ei = times_feasibility(log_ei, candidates.log_feasibility[:C])
    if cost is not None:
        log_ei = log_ei - jnp.log(cost)
    log_ei = jnp.where(excluded, -jnp.inf, log_ei)
    coarse = Glasses(KrigingBeliever(), QMC(16))
    plan = coarse.predict_steps(candidates, query_candidate(candidates, jnp.argmax(log_ei)), remaining, size)
    third = max(1, count // 3)
    on_plan = jnp.zeros(C).at[plan].add(active_steps(plan, jnp.minimum(remaining, 1 + third))) > 0
    if candidates.lattice is not None:
        choice = candidates.lattice.is_choice
        different = separated_best(log_ei, points, 2 * _DIFFERENT, choice)[:_DIFFERENT]
        on_plan = on_plan.at[different].set(on_plan[different] | jnp.any(choice))
    hopeful = jax.lax.top_k(jnp.where(on_plan & ~excluded, jnp.inf, log_ei), min(4 * count, C))[1]
    fitted = candidates._replace(samples=None)
    value = batched_map(lambda i: value_for(coarse, fitted, lambda each: query_candidate(each, i), plan, remaining), hopeful)
    best_by_ei = log_ei[hopeful] >= jax.lax.top_k(log_ei, third)[0][-1]
    bonus = jnp.where(best_by_ei, 2e3, 0.0) + jnp.where(on_plan[hopeful], 1e3, 0.0)
    best = jax.lax.top_k(jnp.where(excluded[hopeful], -jnp.inf, jnp.maximum(value, -900.0) + bonus), count)[1]
    return points[hopeful[best]]
