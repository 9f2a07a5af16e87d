"""DIRECT, the paper's search: dividing rectangles over the loss itself (Jones et al. 1993, through SciPy).

The loss is deterministic given the survey, so DIRECT sees a function and not noise. An expected minimum is given as its
value, not as the logarithm of its gain: unlike an argmax, DIRECT's choices are not invariant under monotone transformations.
Its first sample is the
centre of the box, which flatters problems with their optimum there. One compiled call per sample: slower than ``Cascade``,
kept as the paper's option.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.loss import Loss, foreseen, worth
from glasses.lookahead.scene import Scene, Star, look
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program
from glasses.search.admissible import forbidden, priced
from glasses.search.cascade import open_scene, planned, prepare_for_failure, prices_of
from glasses.search.decision import Decision, Situation, Valued, conclude
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel

_WORST = 1e12


@dataclass(frozen=True)
class Direct:
    """``evaluations`` samples of the loss per decision; ``locally_biased=False`` is Jones's original."""

    evaluations: int = 400
    locally_biased: bool = False
    places: int = 256

    def __post_init__(self) -> None:
        if not (isinstance(self.evaluations, int) and self.evaluations >= 1):
            raise ValueError(f"evaluations must be a whole number of at least 1, got {self.evaluations!r}.")
        if not (isinstance(self.places, int) and self.places >= 16):
            raise ValueError(f"places must be a whole number of at least 16, got {self.places!r}.")

    def decide(self, loss: Loss, kernel: Kernel, situation: Situation, rng: np.random.Generator) -> Decision:
        from scipy.optimize import direct

        scene = open_scene(kernel, situation, self.places, rng)
        n = np.asarray(min(planned(loss, situation.left), self.places))
        size = horizon_size(int(n))
        scene = prepare_for_failure(scene, situation.price, int(n), kernel, loss)
        prices = prices_of(situation.price)

        def look_at(x: np.ndarray) -> tuple[jax.Array, Valued]:
            return _loss_at(scene, x, prices(x[None]), n, kernel=kernel, loss=loss, size=size)

        def value(x: np.ndarray) -> float:
            return float(look_at(x)[0])

        d = situation.post.X.shape[1]
        samples = self.evaluations
        found = direct(
            value, [(0.0, 1.0)] * d, maxfun=samples, maxiter=samples, locally_biased=self.locally_biased, vol_tol=0.0
        )
        return conclude(scene, look_at(found.x)[1])


@program
def _loss_at(
    scene: Scene, x: jax.Array, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, loss: Loss, size: int
) -> tuple[jax.Array, Valued]:
    """The loss at one point (of the lattice, the nearest), up to a constant, and the point as a valued one."""
    x = snap(scene.lattice, x)

    def seen(each: Scene) -> Star:
        return priced(look(kernel, each, x), price, jnp.asarray(0))

    star, futures = seen(scene), foreseen(loss, scene, seen, left, size)
    merit = worth(loss, scene, seen, futures, left)
    value = -jnp.exp(merit) if loss.is_gain else -merit
    value = jnp.where(jnp.isfinite(value) & ~forbidden(scene, x[None], price)[0], value, _WORST)
    steps = jnp.zeros((1, 0), int) if isinstance(futures, tuple) else futures[None]
    return value, Valued(x[None], merit[None], star.mu[None], jnp.sqrt(star.var)[None], steps)
