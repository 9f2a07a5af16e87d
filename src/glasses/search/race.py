"""Racing a rollout: many candidates with few futures, few candidates with many.

Round r values the best m_r candidates of the round before with futures up to race[r], keeping what was simulated:

    m_1 = all,   m_r = max(2, m_1 race[1] / race[r]),   G^(x) = 1/race[r] sum of the gains of its futures         [eq:race]

so that every round simulates about as many futures. All candidates of a round see the same futures.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.lookahead.loss import at_risk
from glasses.lookahead.rollout import Rollout
from glasses.lookahead.scene import Scene, look
from glasses.runtime.batching import side_by_side
from glasses.runtime.program import program
from glasses.search.admissible import forbidden, priced
from glasses.search.decision import Valued
from glasses.surrogate.kernels import Kernel


@program
def race(
    scene: Scene, X: jax.Array, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, loss: Rollout, size: int
) -> Valued:
    """The candidates of the last round, valued with all futures."""

    def gains(scene: Scene, x: jax.Array, price: jax.Array | None, first: int, last: int) -> jax.Array:
        def one(each: Scene) -> jax.Array:
            return loss.total(each, look(kernel, each, x)._replace(price=price), left, size, first, last)

        return one(scene) if scene.doubt is None else jnp.mean(jax.lax.map(one, scene.doubt))

    repeated = forbidden(scene, X, price)
    runners, sums, done = jnp.arange(X.shape[0]), jnp.zeros(X.shape[0]), 0
    valued = None
    for round_, futures in enumerate(loss.race):
        if valued is not None:
            best = jax.lax.top_k(valued.merit, entrants(X.shape[0], loss.race, round_))[1]
            runners, sums = runners[best], sums[best]

        def go_on(runner: tuple[jax.Array, jax.Array], done: int = done, futures: int = futures) -> tuple[jax.Array, Valued]:
            i, sum_ = runner
            star = priced(look(kernel, scene, X[i]), price, i)
            sum_ = sum_ + gains(scene, X[i], None if price is None else price[i], done, futures)
            merit = at_risk(loss, scene, star, jnp.log(sum_ / futures))
            merit = jnp.where(repeated[i] | jnp.isnan(merit), -jnp.inf, merit)
            return sum_, Valued(X[i], merit, star.mu, jnp.sqrt(star.var), loss.futures(scene, star, left, size))

        sums, valued = side_by_side(go_on, (runners, sums))
        done = futures
    assert valued is not None
    return valued


def entrants(candidates: int, race: tuple[int, ...], round_: int) -> int:
    """m_r of [eq:race]."""
    return max(min(2, candidates), candidates * race[0] // race[round_])
