"""What is the rest of the budget worth? The best value after k more evaluations, k = 1..n, as the model sees it.

    expected   eta - E[ sum_{j<=k} EI(x_j | D_{j-1}) ]     futures simulated with EI as the policy, ``rollout`` [eq:rollout]
    band       quantiles of the best value of the same futures after k steps; of k = 1 those of min(eta, y*), exact
    open loop  the first k steps of the kriging believer's plan, nothing learnt on the way [eq:open]: less gain than a policy
               that learns can have
    all-seeing eta - E[min(eta, min over the places of f)]: more gain than any policy can have           [eq:clairvoyant]

The expected best value never rises with k, and k = 1 is the closed form. With noise, the best value is the lowest posterior
mean at a point after its outcomes, for every k and for the open loop; where evaluations have failed, steps fail with their
probability. The hyperparameters are believed, also where decisions doubt them. The bounds bound what the best policy can do on
these places; the simulated policy is one policy. What a model does not know of itself is put right in ``loop.hindsight``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from scipy import special

from glasses.gaussian.qmc import QMC, correlations
from glasses.lookahead.losses import Glasses
from glasses.lookahead.rollout import Rollout, normals, succeeds
from glasses.lookahead.scene import Scene, future_law, look
from glasses.runtime.program import program
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE

FUTURES = 256
BAND = 0.8
_LOW, _HIGH = 0.5 - BAND / 2, 0.5 + BAND / 2
_PATHS = 1024


class Foretold(NamedTuple):
    """Gains below eta in standardised units, (size,) each: entry k - 1 after k more evaluations."""

    eta: jax.Array
    gain: jax.Array
    least: jax.Array  # quantiles of the gain, the band
    most: jax.Array
    open_loop: jax.Array
    clairvoyant: jax.Array  # ()
    made: jax.Array  # how many of the k evaluations happen, on average: all of them, or those that can be paid for


@program
def foretell(scene: Scene, x: jax.Array, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, size: int) -> Foretold:
    """The forecast when the next evaluation is at x."""
    star = look(kernel, scene, x)._replace(price=price)
    rollout = Rollout(race=(FUTURES,))
    blocks = jax.lax.map(
        lambda block: rollout.simulate(scene, star, left, size, block, whole_story=True), jnp.arange(FUTURES // 16)
    )
    gains = jnp.mean(blocks.gains.reshape(FUTURES, size), axis=0)
    happens = jnp.arange(size) < left
    paid = jnp.mean(blocks.steps.reshape(FUTURES, size - 1) >= 0, axis=0)
    made = jnp.cumsum(jnp.concatenate([jnp.ones(1), paid]))
    best = jnp.where(happens[None], blocks.best.reshape(FUTURES, size), jnp.inf)
    after = scene.eta - jax.lax.cummin(best, axis=1)
    least, most = (jnp.quantile(after, q, axis=0) for q in (_LOW, _HIGH))
    if scene.pending == 0 and star.safe is None:
        sd = star.var / jnp.sqrt(star.var + scene.noise)
        z = jnp.asarray(special.ndtri([_LOW, _HIGH]))
        low, high = jnp.maximum(scene.eta - (star.mu - sd * z), 0.0)
        least, most = least.at[0].set(low), most.at[0].set(high)

    U, P = scene.points.shape[0], scene.pending
    plan = Glasses().futures(scene, star, left, size)

    def planned(k: jax.Array) -> jax.Array:
        mu, S, valid = future_law(scene, star, plan, jnp.minimum(k, left))
        both = valid[:, None] & valid[None, :]
        observed = jnp.where(both, S, 0.0) + jnp.diag(jnp.where(valid, scene.noise + 1e-10 * scene.post.hyper.signal, 1.0))
        L = jnp.linalg.cholesky(observed)
        V = jax.scipy.linalg.solve_triangular(L, jnp.where(both, S, 0.0), lower=True)
        learnt = jnp.where(scene.noise < NEGLIGIBLE_NOISE, S, V.T @ V)
        if star.safe is None or scene.safe is None:
            return jnp.exp(QMC(64).log_gain(mu, learnt, scene.eta, valid))
        _, _, factor = correlations(learnt, valid, jnp.zeros(()))
        sd = jnp.sqrt(jnp.maximum(jnp.diagonal(learnt), 1e-300))
        safe = jnp.concatenate([star.safe[None], scene.safe[jnp.concatenate([plan, jnp.arange(U - P, U)])]])
        t = jnp.asarray(normals(FUTURES))
        y = mu[:, None] + sd[:, None] * (factor @ t[:, : mu.size].T)
        went = valid[:, None] & succeeds(safe[:, None], t[:, -mu.size :].T)
        return jnp.mean(jnp.maximum(scene.eta - jnp.min(jnp.where(went, y, jnp.inf), axis=0), 0.0))

    open_loop = jax.lax.cummax(jax.lax.map(planned, jnp.arange(1, size + 1)))
    expected = jnp.cumsum(jnp.where(happens, gains, 0.0))
    sd, _, factor = correlations(scene.cov, scene.real, jnp.zeros(()))
    paths = scene.mu[:, None] + sd[:, None] * factor @ jax.random.normal(jax.random.key(0), (U, _PATHS))
    lowest = jnp.min(jnp.where(scene.real[:, None], paths, jnp.inf), axis=0)
    clairvoyant = jnp.mean(jnp.maximum(scene.eta - lowest, 0.0))
    clairvoyant = jnp.maximum(clairvoyant, jnp.maximum(expected[-1], open_loop[-1]))  # a bound, also for few paths
    return Foretold(scene.eta, expected, jnp.maximum(least, 0.0), jnp.maximum(most, 0.0), open_loop, clairvoyant, made)
