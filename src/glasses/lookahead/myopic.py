"""The myopic losses and their closed forms: one evaluation, then the game is over.

    expected loss     Lambda_1(x) = E[min(y, eta)] = eta - EI(x)          [eq:el]     EI = s h((eta - mu) / s)
    prob. of improv.  P(y < eta)  = Phi((eta - mu) / s)                   [eq:mpi]
    confidence bound  mu - kappa s                                        [eq:lcb]    kappa = 1 in the paper

Pending points enter the expectation of ``ExpectedLoss``; the other two use the variance that is left once the pending
points are known (their mean believed).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from glasses.gaussian.expected_min import Expectation
from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.scene import Scene, Star, future_law


@dataclass(frozen=True)
class ExpectedLoss:
    """[eq:el], the paper's EL: expected improvement in log space."""

    expectation: Expectation = field(default_factory=QMC)
    steps: int | None = field(default=1, init=False)
    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = False

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> Any:
        return ()

    def merit(self, scene: Scene, star: Star, futures: Any, left: jax.Array) -> jax.Array:
        if scene.pending == 0:
            return log_expected_improvement(star.mu, jnp.sqrt(star.var), scene.eta)
        mu, S, valid = future_law(scene, star, jnp.zeros(0, int), left)
        return self.expectation.log_gain(mu, S, scene.eta, valid)


@dataclass(frozen=True)
class ProbabilityOfImprovement:
    """[eq:mpi], the paper's MPI, as a logarithm."""

    steps: int | None = field(default=1, init=False)
    is_gain: ClassVar[bool] = False
    looks_ahead: ClassVar[bool] = False

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> Any:
        return ()

    def merit(self, scene: Scene, star: Star, futures: Any, left: jax.Array) -> jax.Array:
        return log_ndtr((scene.eta - star.mu) / jnp.sqrt(star.believed_var))


@dataclass(frozen=True)
class LowerConfidenceBound:
    """[eq:lcb], the paper's GP-LCB."""

    kappa: float = 1.0
    steps: int | None = field(default=1, init=False)
    is_gain: ClassVar[bool] = False
    looks_ahead: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.kappa < float("inf"):
            raise ValueError(f"kappa must be a finite number of at least 0, got {self.kappa!r}: the paper uses 1.")

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> Any:
        return ()

    def merit(self, scene: Scene, star: Star, futures: Any, left: jax.Array) -> jax.Array:
        return self.kappa * jnp.sqrt(star.believed_var) - star.mu
