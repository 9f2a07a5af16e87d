"""Predicting the rest of the run for a loss that does not look that far itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.loss import worth
from glasses.lookahead.losses import Glasses
from glasses.lookahead.scene import Scene, look
from glasses.runtime.padding import MAX_HORIZON, horizon_size
from glasses.runtime.program import program
from glasses.search.admissible import priced
from glasses.search.cascade import open_scene, prices_of
from glasses.search.decision import Decision, Situation, Valued, conclude
from glasses.surrogate.kernels import Kernel


def foresee(kernel: Kernel, situation: Situation, x: np.ndarray, rng: np.random.Generator) -> Decision:
    """The steps a kriging believer predicts after x, for all evaluations left."""
    scene = open_scene(kernel, situation, 256, rng)
    n = min(situation.left, MAX_HORIZON)
    price = prices_of(situation.price)(x[None])
    return conclude(scene, _foresee(scene, x, price, np.asarray(n), kernel=kernel, size=horizon_size(n)))


@program
def _foresee(scene: Scene, x: jax.Array, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, size: int) -> Valued:
    loss, star = Glasses(), priced(look(kernel, scene, x), price, jnp.asarray(0))
    futures = loss.futures(scene, star, left, size)
    merit = worth(loss, scene._replace(doubt=None), lambda _: star, futures, left)
    return Valued(x[None], merit[None], star.mu[None], jnp.sqrt(star.var)[None], futures[None])
