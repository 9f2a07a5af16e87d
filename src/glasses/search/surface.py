"""A loss at given points: what the searches minimise, for looking at it."""

from __future__ import annotations

import jax
import numpy as np

from glasses.compilation import program
from glasses.lookahead.loss import Loss, worth
from glasses.lookahead.scene import Scene, look
from glasses.padding import horizon_size, pad_rows
from glasses.search.cascade import planned, prepare_for_failure
from glasses.surrogate.kernels import Kernel

_TOGETHER = 16


def gains_at(loss: Loss, kernel: Kernel, scene: Scene, X: np.ndarray, left: int) -> tuple[float, np.ndarray]:
    """eta and the expected gain below it at the rows of X, for a loss that is one (``is_gain``)."""
    n = min(planned(loss, left), scene.points.shape[0] - scene.pending)
    scene = prepare_for_failure(scene, n, kernel, loss)
    parts = []
    for first in range(0, len(X), _TOGETHER):
        part = X[first : first + _TOGETHER]
        merit = _merits(scene, pad_rows(part, _TOGETHER), np.asarray(n), kernel=kernel, loss=loss, size=horizon_size(n))
        parts.append(np.asarray(merit)[: len(part)])
    return float(scene.eta), np.exp(np.concatenate(parts))


@program
def _merits(scene: Scene, X: jax.Array, left: jax.Array, *, kernel: Kernel, loss: Loss, size: int) -> jax.Array:
    def merit(x: jax.Array) -> jax.Array:
        star = look(kernel, scene, x)
        return worth(loss, scene, star, loss.futures(scene, star, left, size), left)

    return jax.lax.map(merit, X)
