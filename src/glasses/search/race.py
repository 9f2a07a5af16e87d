"""Racing by simulation: many query points with few futures, few query points with many.

Round r values the best m_r points of the round before with futures up to rounds[r], keeping what was simulated:

    m_1 = all,   m_r = max(2, m_1 rounds[1] / rounds[r]),   G^(x) = 1/rounds[r] sum of the gains of its futures     [eq:race]

so that every round simulates about as many futures. All points of a round see the same futures.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.lookahead.candidates import CandidateSet, query_point
from glasses.lookahead.loss import Loss, with_risk, with_trust
from glasses.lookahead.rollout import total_gain
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.decision import Valued
from glasses.search.exclusion import is_excluded
from glasses.surrogate.kernels import Kernel


@program
def race(
    candidates: CandidateSet,
    X: jax.Array,
    cost: jax.Array | None,
    remaining: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    rounds: tuple[int, ...],
    size: int,
) -> Valued:
    """The points of the last round, valued with all futures."""

    def gains(x: jax.Array, cost: jax.Array | None, first: int, last: int) -> jax.Array:
        def one(each: CandidateSet) -> jax.Array:
            query = query_point(kernel, each, x)._replace(cost=cost)
            return total_gain(each, query, remaining, size, rounds[-1], first, last)

        return one(candidates) if candidates.samples is None else jnp.mean(jax.lax.map(one, candidates.samples))

    excluded = is_excluded(candidates, X, cost)
    entrants, sums, done = jnp.arange(X.shape[0]), jnp.zeros(X.shape[0]), 0
    valued = None
    for round_, futures in enumerate(rounds):
        if valued is not None:
            best = jax.lax.top_k(valued.value, entrants_of(X.shape[0], rounds, round_))[1]
            entrants, sums = entrants[best], sums[best]

        def go_on(entrant: tuple[jax.Array, jax.Array], done: int = done, futures: int = futures) -> tuple[jax.Array, Valued]:
            i, sum_ = entrant
            query = query_point(kernel, candidates, X[i]).costing(cost, i)
            sum_ = sum_ + gains(X[i], None if cost is None else cost[i], done, futures)
            value = with_trust(candidates, lambda each: query_point(kernel, each, X[i]), jnp.log(sum_ / futures), remaining)
            value = with_risk(loss, candidates, query, value)
            value = jnp.where(excluded[i] | jnp.isnan(value), -jnp.inf, value)
            steps = loss.predict_steps(candidates, query, remaining, size)
            return sum_, Valued(X[i], value, query.mu, jnp.sqrt(query.var), steps)

        sums, valued = batched_map(go_on, (entrants, sums))
        done = futures
    assert valued is not None
    return valued


def entrants_of(points: int, rounds: tuple[int, ...], round_: int) -> int:
    """m_r of [eq:race]."""
    return max(min(2, points), points * rounds[0] // rounds[round_])
