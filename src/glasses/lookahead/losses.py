"""Look-ahead losses: the expected minimum over everything that is left.

    open loop   Lambda_n(x*) = E[min(y*, y_2, ..., y_n, eta)],  (x_2..x_n) = F_n(x*)                          [eq:open]
    marginal    Gamma_n(x*)  = 1/S sum_s Lambda_n(x*; F_n^s),  F_n^s futures drawn from an oracle             [eq:marginal]
    two-stage   Lambda_n(x*) = eta - EI(x*) - sum_q w_q G_{n-1}(y_q)                                          [eq:two]
                G_{n-1}(y_q): the open-loop gain of the n - 1 steps predicted after seeing y* = y_q,
                below min(eta, y_q), under the posterior conditioned on it

n counts the evaluations left including the current one; n = 1 is the closed form in all. The nodes y_q are evenly spaced
over the law of y*, weighted by its density: the integrand has kinks (where y* becomes the best value, where the plan
changes), on which even nodes do better than as many Gauss-Hermite nodes. The first term of [eq:two] is exact, so the
quadrature only carries the later steps. Pending
evaluations are part of the vector y in all. With noise, what the later steps must beat is the posterior mean at x*, whose sd
after observing y* is var / sqrt(var + noise); the first term is then the EI of that mean, so that nothing is counted twice.

The paper is the open loop with ``LocalPenalization`` and ``EP``; EL-k is ``Glasses(steps=k)``. The paper's Algorithm 1
plans one evaluation too many; here n is what is left. Its second equation, the loss with the future integrated out, is the
marginal one: futures number 1..S are the same random numbers for every x*.

Cost per star: one oracle call and one expected minimum (open loop), one of each per future (marginal) or node (two-stage).
Next: ``rollout`` closes the loop at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.expected_min import Expectation
from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.oracles import KrigingBeliever, Oracle, World, unseen
from glasses.lookahead.scene import Scene, Star, future_law, happening


@dataclass(frozen=True)
class Glasses:
    """[eq:open]: the GLASSES loss over all evaluations left, or over ``steps`` of them (EL-k)."""

    oracle: Oracle = field(default_factory=KrigingBeliever)
    expectation: Expectation = field(default_factory=QMC)
    steps: int | None = None
    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_steps(self.steps)

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> jax.Array:
        return self.oracle.steps(scene, unseen(scene, star), left, size)

    def merit(self, scene: Scene, star: Star, futures: jax.Array, left: jax.Array) -> jax.Array:
        mu, S, valid = future_law(scene, star, futures, left)
        return self.expectation.log_gain(mu, S, scene.eta, valid)


@dataclass(frozen=True)
class Marginalized:
    """[eq:marginal]: the open loop averaged over ``samples`` futures of an oracle that draws them."""

    oracle: Oracle = field(default_factory=lambda: DeterminantalPoints(sample=True))
    samples: int = 8
    expectation: Expectation = field(default_factory=lambda: QMC(32))
    steps: int | None = None
    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_steps(self.steps)
        if not (isinstance(self.samples, int) and self.samples >= 1):
            raise ValueError(f"samples must be a whole number of at least 1, got {self.samples!r}: 8 is the default.")

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> jax.Array:
        world = unseen(scene, star)
        return jax.lax.map(lambda s: self.oracle.steps(scene, world, left, size, s), jnp.arange(self.samples))

    def merit(self, scene: Scene, star: Star, futures: jax.Array, left: jax.Array) -> jax.Array:
        alone = Glasses(self.oracle, self.expectation)
        each = jax.lax.map(lambda steps: alone.merit(scene, star, steps, left), futures)
        return jax.scipy.special.logsumexp(each) - float(np.log(self.samples))


@dataclass(frozen=True)
class TwoStage:
    """[eq:two]: see one outcome, then plan the rest. ``nodes`` outcomes of the next evaluation are considered."""

    nodes: int = 9
    oracle: Oracle = field(default_factory=KrigingBeliever)
    expectation: Expectation = field(default_factory=lambda: QMC(32))
    steps: int | None = None
    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_steps(self.steps)
        if not (isinstance(self.nodes, int) and 1 <= self.nodes <= 64):
            raise ValueError(f"nodes must be a whole number between 1 and 64, got {self.nodes!r}: 9 is the default.")

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> jax.Array:
        t, _ = self._rule()
        after = jnp.sqrt(star.believed_var + scene.noise)

        def one(t: jax.Array) -> jax.Array:
            world = World(
                star,
                scene.mu + star.believed_cov / after * t,
                jnp.minimum(scene.eta, star.mu + star.believed_var / after * t),
                jnp.asarray(True),
            )
            return self.oracle.steps(scene, world, left, size)

        return jax.lax.map(one, t)

    def merit(self, scene: Scene, star: Star, futures: jax.Array, left: jax.Array) -> jax.Array:
        t, log_w = self._rule()
        total = jnp.sqrt(star.var + scene.noise)
        some_later = jnp.any(happening(futures, left)) | jnp.any(scene.real[scene.points.shape[0] - scene.pending :])
        sd = jnp.where(some_later, star.var / total, jnp.sqrt(star.var))
        now = log_expected_improvement(star.mu, sd, scene.eta)

        def one(args: tuple[jax.Array, jax.Array]) -> jax.Array:
            t, steps = args
            mu, S, valid = future_law(scene, star, steps, left)
            c = S[0, 1:] / total
            some = jnp.any(valid[1:])
            later = valid[1:].at[0].set(valid[1] | ~some)
            eta = jnp.minimum(scene.eta, mu[0] + S[0, 0] / total * t)
            gain = self.expectation.log_gain(mu[1:] + c * t, S[1:, 1:] - c[:, None] * c[None, :], eta, later)
            return jnp.where(some, jnp.where(some, gain, 0.0), -jnp.inf)

        rest = jax.lax.map(one, (t, futures))
        return jax.scipy.special.logsumexp(jnp.concatenate([now[None], log_w + rest]))

    def _rule(self) -> tuple[jax.Array, jax.Array]:
        reach = min(5.5, 2.5 * ((self.nodes - 1) / 8) ** 0.6)
        t = np.linspace(-reach, reach, self.nodes) if self.nodes > 1 else np.zeros(1)
        w = np.exp(-0.5 * t * t)
        return jnp.asarray(t), jnp.asarray(np.log(w / w.sum()))


def check_steps(steps: Any) -> None:
    if steps is not None and not (isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1):
        raise ValueError(f"steps must be a whole number of at least 1, or None for all evaluations left, got {steps!r}.")
