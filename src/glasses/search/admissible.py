"""Which points may be proposed: no failed experiment again, no exact one twice, nothing that costs more than there is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.scene import Scene, Star, is_close
from glasses.search.decision import Valued
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE


def forbidden(scene: Scene, X: jax.Array, price: jax.Array | None = None) -> jax.Array:
    """Which rows of X repeat an experiment that failed, or while evaluations are exact one that is done or pending; and which
    cost more than the purse holds."""
    done = jnp.arange(scene.post.X.shape[0]) < scene.post.observed
    again = is_close(X, scene.post.X, done)
    if scene.pending:
        again = again | is_close(X, scene.points[-scene.pending :], scene.real[-scene.pending :])
    again = again & (scene.noise < NEGLIGIBLE_NOISE)
    if scene.success is not None:
        again = again | is_close(X, scene.success.X, scene.success.failed)
    return again if price is None or scene.purse is None else again | (price > scene.purse)


def priced(star: Star, price: jax.Array | None, i: jax.Array) -> Star:
    """The star with its price, row i of ``price``."""
    return star if price is None else star._replace(price=price[i])


def affordable(valued: Valued, price: np.ndarray | None, purse: float) -> Valued:
    """Without the points that cost more than the purse holds."""
    if price is None:
        return valued
    return valued._replace(merit=np.where(price <= purse, np.asarray(valued.merit), -np.inf))
