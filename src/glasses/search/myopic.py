"""The best point of a myopic loss: valued at every candidate, the best well-separated ones polished by gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, query_candidate, query_point
from glasses.lookahead.loss import Loss, value_for
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.decision import Problem, Valued
from glasses.search.exclusion import is_excluded, is_known
from glasses.search.propose import separated_best
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel


def best_myopic(candidates: CandidateSet, problem: Problem, n: int, kernel: Kernel, loss: Loss, *, polished: int) -> Valued:
    """The polished points first, then all candidates; what the remaining budget does not afford has no value."""
    found = _best_myopic(candidates, np.asarray(n), kernel=kernel, loss=loss, polished=polished)
    cost = problem.cost_at(found.x)
    if cost is None:
        return found
    return found._replace(value=np.where(cost <= problem.budget, np.asarray(found.value), -np.inf))


@program
def _best_myopic(candidates: CandidateSet, remaining: jax.Array, *, kernel: Kernel, loss: Loss, polished: int) -> Valued:
    points, C = candidates.candidates, candidates.n_candidates
    batch = None if candidates.n_pending else 64  # an expectation over pending points factorises: one matrix at a time

    def at(x: jax.Array) -> jax.Array:
        return value_for(loss, candidates, lambda each: query_point(kernel, each, x), (), remaining)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        return batched_map(jax.value_and_grad(lambda x: -at(x)), X, batch)

    value = batched_map(
        lambda i: value_for(loss, candidates, lambda each: query_candidate(each, i), (), remaining), jnp.arange(C), batch
    )
    mu, var = candidates.mu[:C], jnp.diagonal(candidates.cov)[:C]
    value = _with_known(loss, candidates, value, mu, var)
    value = jnp.where(is_excluded(candidates, points) | jnp.isnan(value), -jnp.inf, value)
    d = points.shape[1]
    choice = None if candidates.lattice is None else candidates.lattice.is_choice
    first = points[separated_best(value, points, polished, choice)]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=30, first_step=0.01)
    best, best_value = found.x, -found.f
    if candidates.lattice is not None:
        best = snap(candidates.lattice, found.x)
        best_value = batched_map(at, best, batch)
    best_mu, best_var = jax.lax.map(lambda x: query_point(kernel, candidates, x)[1:3], best)
    best_value = _with_known(loss, candidates, best_value, best_mu, best_var)
    after = jnp.where(is_excluded(candidates, best) | jnp.isnan(best_value), -jnp.inf, best_value)
    return Valued(
        jnp.concatenate([best, points]),
        jnp.concatenate([after, value]),
        jnp.concatenate([best_mu, mu]),
        jnp.sqrt(jnp.concatenate([best_var, var])),
        jnp.zeros((C + best.shape[0], 0), int),
    )


def _with_known(loss: Loss, candidates: CandidateSet, value: jax.Array, mu: jax.Array, var: jax.Array) -> jax.Array:
    """The values, where a point is known those of its mean."""
    if not loss.is_gain or candidates.lattice is None:
        return value
    return jnp.where(is_known(candidates, var), jnp.log(jnp.maximum(candidates.eta - mu, 0.0)), value)
