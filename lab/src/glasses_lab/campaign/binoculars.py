"""BINOCULARS on our model: a whole batch optimised at once, of which one point is evaluated (Jiang et al. 2020).

    X^ = argmax over q points of  eta - E[min(y_1..y_q, eta)],  q = min(12, left); then the point of X^ of highest EI   [eq:qei]

The batch is moved as one vector of q d coordinates by gradients, from three starts: the kriging believer's plan, the greedy
mode of a determinantal process and the penalised maxima of EI. Same model, survey and expectation as our own methods, so that
what is compared is the rule. (BoTorch's qEI does the same with its own model: ``peers``.)
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Loss
from glasses.lookahead.oracles import KrigingBeliever, LocalPenalization, Oracle, unseen
from glasses.lookahead.scene import Scene, star_at
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.program import program
from glasses.search.admissible import forbidden
from glasses.search.cascade import open_scene
from glasses.search.decision import Decision, Situation, Valued, conclude
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import joint, marginals

BATCH = 12
_PASSES = 40
_STARTS: tuple[Oracle, ...] = (KrigingBeliever(), DeterminantalPoints(), LocalPenalization(hard=True))


@dataclass(frozen=True)
class Binoculars:
    """A search that ignores the loss it is given: [eq:qei] is its own."""

    places: int = 256

    def decide(self, loss: Loss, kernel: Kernel, situation: Situation, rng: np.random.Generator) -> Decision:
        scene = open_scene(kernel, situation, self.places, rng)
        return conclude(scene, _best_of_batch(scene, np.asarray(min(BATCH, situation.left)), kernel=kernel))


@program
def _best_of_batch(scene: Scene, left: jax.Array, *, kernel: Kernel) -> Valued:
    """The points of the best batch, with log EI as their merit; those that repeat an experiment or do not count have none."""
    log_ei = log_expected_improvement(scene.mu, jnp.sqrt(jnp.diagonal(scene.cov)), scene.eta)
    star = star_at(scene, jnp.argmax(jnp.where(forbidden(scene, scene.points), -jnp.inf, log_ei)))
    d, counts = star.x.size, jnp.arange(BATCH) < left
    starts = [jnp.concatenate([star.x[None], scene.points[o.steps(scene, unseen(scene, star), left, BATCH)]]) for o in _STARTS]

    def value(flat: jax.Array) -> jax.Array:
        mu, S = joint(kernel, scene.post, flat.reshape(BATCH, d))
        return -QMC(64).log_gain(mu, S, scene.eta, counts)

    def descend(batches: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.map(jax.value_and_grad(value), batches)

    flat = jnp.stack(starts).reshape(len(starts), -1)
    found = minimize_batch(descend, flat, jnp.zeros(BATCH * d), jnp.ones(BATCH * d), passes=_PASSES, first_step=0.01)
    batch = found.x[jnp.argmin(found.f)].reshape(BATCH, d)
    mu, sd = marginals(kernel, scene.post, batch)
    merit = log_expected_improvement(mu, sd, scene.eta)
    merit = jnp.where(counts & ~forbidden(scene, batch), merit, -jnp.inf)
    return Valued(batch, merit, mu, sd, jnp.zeros((BATCH, 0), int))
