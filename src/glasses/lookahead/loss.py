"""What every loss of the library is, myopic or not.

``futures`` predicts the steps that follow a star (nothing, for a myopic loss) and ``merit`` values the star with those steps
held fixed: a differentiable scalar, larger is better. For losses that are an expected minimum the merit is the logarithm of the
gain eta - Lambda, which orders points exactly as -Lambda does and does not underflow.
"""

from __future__ import annotations

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


def worth(loss: Loss, scene: Scene, star: Star, futures: Any, left: jax.Array) -> jax.Array:
    """What a search maximises: the merit, lowered by the risk that the evaluation fails.

    With p the probability of success and G the gain, p G(x*) + (1 - p) G_rest [eq:risk]: a failure costs one evaluation, not
    what the later ones will bring.
    """
    merit = if_it_succeeds(loss.merit(scene, star, futures, left), star.safe)
    if star.safe is None or scene.rest is None or not loss.is_gain:
        return merit
    return jnp.logaddexp(merit, scene.rest + jnp.log1p(-jnp.exp(jnp.minimum(star.safe, -1e-12))))
