"""What every loss of the library is, myopic or not.

``futures`` predicts the steps that follow a star (nothing, for a myopic loss) and ``merit`` values the star with those steps
held fixed: a differentiable scalar, larger is better. For losses that are an expected minimum the merit is the logarithm of the
gain eta - Lambda, which orders points exactly as -Lambda does and does not underflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from glasses.lookahead.scene import Scene, Star, if_it_succeeds


class Loss(Protocol):
    """What a decision minimises. ``left`` counts the evaluations left including the one being decided."""

    @property
    def steps(self) -> int | None:
        """How many evaluations the loss looks ahead at most, the current one included; None means all that are left."""

    @property
    def is_gain(self) -> bool:
        """Whether the merit is log(eta - Lambda) of an expected minimum Lambda."""

    @property
    def looks_ahead(self) -> bool:
        """Whether ``futures`` are places of the scene; a myopic loss has ``()``."""

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> Any: ...

    def merit(self, scene: Scene, star: Star, futures: Any, left: jax.Array) -> jax.Array: ...


Seen = Callable[[Scene], Star]  # the star of one point, as a scene sees it


def foreseen(loss: Loss, scene: Scene, seen: Seen, left: jax.Array, size: int) -> Any:
    """The futures of a star; under doubt those of every member, stacked."""

    def one(scene: Scene) -> Any:
        return loss.futures(scene, seen(scene), left, size)

    return one(scene) if scene.doubt is None else jax.lax.map(one, scene.doubt)


def worth(loss: Loss, scene: Scene, seen: Seen, futures: Any, left: jax.Array) -> jax.Array:
    """What a search maximises: the merit, averaged over what is doubted and lowered by the risk that the evaluation fails.

    The average over hyperparameters theta is that of the gain, 1/M sum_m G(x*; theta_m) [eq:doubt].
    """

    def one(given: tuple[Scene, Any]) -> jax.Array:
        scene, futures = given
        return loss.merit(scene, seen(scene), futures, left)

    if scene.doubt is None:
        merit = one((scene, futures))
    else:
        each = jax.lax.map(one, (scene.doubt, futures))
        merit = jax.scipy.special.logsumexp(each) - jnp.log(each.size) if loss.is_gain else jnp.mean(each)
    return at_risk(loss, scene, seen(scene), merit)


def at_risk(loss: Loss, scene: Scene, star: Star, merit: jax.Array) -> jax.Array:
    """With p the probability of success and G the gain, p G(x*) + (1 - p) G_rest [eq:risk]: a failure costs one evaluation,
    not what the later ones will bring. In money it costs c(x*): G_rest is then between what the whole purse and what the purse
    without the largest price would bring, in proportion to c(x*).
    """
    merit = if_it_succeeds(merit, star.safe)
    if star.safe is None or scene.rest is None or not loss.is_gain:
        return merit
    rest = scene.rest
    if scene.spared is not None and scene.price is not None and star.price is not None:
        share = jnp.minimum(star.price / dearest(scene), 1.0)
        rest = jnp.logaddexp(rest + jnp.log(share), scene.spared + jnp.log1p(-share))
    return jnp.logaddexp(merit, rest + jnp.log1p(-jnp.exp(jnp.minimum(star.safe, -1e-12))))


def dearest(scene: Scene) -> jax.Array:
    """The largest price of a place that can be paid for."""
    assert scene.price is not None
    assert scene.purse is not None
    return jnp.max(jnp.where(scene.price <= scene.purse, scene.price, jnp.min(scene.price)))
