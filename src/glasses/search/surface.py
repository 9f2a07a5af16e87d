"""A loss at given points: what the searches minimise, for looking at it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.loss import Loss, foreseen, worth
from glasses.lookahead.scene import Scene, Star, look
from glasses.runtime.batching import TOGETHER, on_accelerator, side_by_side
from glasses.runtime.padding import horizon_size, pad_rows
from glasses.runtime.program import program
from glasses.search.admissible import priced
from glasses.search.cascade import planned, prepare_for_failure, prices_of
from glasses.search.decision import Price
from glasses.surrogate.kernels import Kernel

_IN_TURN = 16


def gains_at(
    loss: Loss, kernel: Kernel, scene: Scene, X: np.ndarray, left: int, price: Price | None = None
) -> tuple[float, np.ndarray]:
    """eta and the expected gain below it at the rows of X, for a loss that is one (``is_gain``)."""
    n = min(planned(loss, left), scene.points.shape[0] - scene.pending)
    scene = prepare_for_failure(scene, price, n, kernel, loss)
    prices = prices_of(price)
    parts = []
    together = TOGETHER if on_accelerator() else _IN_TURN
    for first in range(0, len(X), together):
        part = X[first : first + together]
        padded = pad_rows(part, together)
        merit = _merits(scene, padded, prices(padded), np.asarray(n), kernel=kernel, loss=loss, size=horizon_size(n))
        parts.append(np.asarray(merit)[: len(part)])
    return float(scene.eta), np.exp(np.concatenate(parts))


@program
def _merits(
    scene: Scene, X: jax.Array, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, loss: Loss, size: int
) -> jax.Array:
    def merit(i: jax.Array) -> jax.Array:
        def seen(each: Scene) -> Star:
            return priced(look(kernel, each, X[i]), price, i)

        return worth(loss, scene, seen, foreseen(loss, scene, seen, left, size), left)

    return side_by_side(merit, jnp.arange(X.shape[0]))
