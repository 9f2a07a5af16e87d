"""Racing by simulation: many query points with few futures, few query points with many.

Round r values the best m_r points of the round before with futures up to rounds[r], keeping what was simulated:

    m_1 = all,   m_r = max(2, m_1 rounds[1] / rounds[r]),   G^(x) = 1/rounds[r] sum of the gains of its futures     [eq:race]

so that every round simulates about as many futures. All points of a round see the same futures.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.lookahead.candidates import CandidateSet, QueryPoint
from glasses.lookahead.loss import Loss, with_risk, with_trust
from glasses.lookahead.rollout import total_gain
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.exclusion import too_dear


@program
def race(
    candidates: CandidateSet, queries: QueryPoint, remaining: jax.Array, *, loss: Loss, rounds: tuple[int, ...], size: int
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Which points came to the last round, and their values with all futures, means, sds and steps."""

    def gains(query: QueryPoint, first: int, last: int) -> jax.Array:
        def one(given: tuple[CandidateSet, QueryPoint]) -> jax.Array:
            return total_gain(*given, remaining, size, rounds[-1], first, last)

        if candidates.samples is None or query.samples is None:
            return one((candidates, query))
        samples = query.samples
        if query.cost is not None:
            samples = samples._replace(cost=jnp.broadcast_to(query.cost, samples.mu.shape))
        return jnp.mean(jax.lax.map(one, (candidates.samples, samples)))

    assert queries.excluded is not None
    excluded, M = too_dear(candidates, queries.cost, queries.excluded), queries.mu.shape[0]
    entrants, sums, done = jnp.arange(M), jnp.zeros(M), 0
    valued = None
    for round_, futures in enumerate(rounds):
        if valued is not None:
            best = jax.lax.top_k(valued[0], entrants_of(M, rounds, round_))[1]
            entrants, sums = entrants[best], sums[best]

        def go_on(
            entrant: tuple[jax.Array, jax.Array], done: int = done, futures: int = futures
        ) -> tuple[jax.Array, tuple[jax.Array, ...]]:
            i, sum_ = entrant
            query = jax.tree.map(lambda a: a[i], queries)
            sum_ = sum_ + gains(query, done, futures)
            value = with_trust(candidates, query, jnp.log(sum_ / futures), remaining)
            value = with_risk(loss, candidates, query, value)
            value = jnp.where(excluded[i] | jnp.isnan(value), -jnp.inf, value)
            return sum_, (value, query.mu, jnp.sqrt(query.var), loss.predict_steps(candidates, query, remaining, size))

        sums, valued = batched_map(go_on, (entrants, sums))
        done = futures
    assert valued is not None
    return entrants, valued


def entrants_of(points: int, rounds: tuple[int, ...], round_: int) -> int:
    """m_r of [eq:race]."""
    return max(min(2, points), points * rounds[0] // rounds[round_])
