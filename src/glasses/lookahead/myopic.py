"""The myopic losses and their closed forms: one evaluation, then the budget is spent.

    expected loss     Lambda_1(x) = E[min(y, eta)] = eta - EI(x)          [eq:el]     EI = s h((eta - mu) / s)
    prob. of improv.  P(y < eta)  = Phi((eta - mu) / s)                   [eq:mpi]
    confidence bound  mu - kappa s                                        [eq:lcb]    kappa = 1 in the paper

Pending points enter the expectation of ``ExpectedLoss``; the other two use the variance that is left once the pending
points are evaluated at their means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from glasses.gaussian.expected_min import Expectation
from glasses.gaussian.feasible_min import log_gain_of
from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, QueryPoint, joint_of_steps, log_chances


class Myopic:
    """What all losses of one evaluation have in common: no steps follow."""

    steps: ClassVar[int | None] = 1
    looks_ahead: ClassVar[bool] = False
    race: ClassVar[tuple[int, ...] | None] = None

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class ExpectedLoss(Myopic):
    """[eq:el], the paper's EL: expected improvement in log space.

    Examples
    --------
    >>> from glasses import ExpectedLoss, minimize
    >>> minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], budget=6, loss=ExpectedLoss(), noise=0, seed=1).success
    True
    """

    expectation: Expectation = field(default_factory=QMC)
    is_gain: ClassVar[bool] = True

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: tuple[()], remaining: jax.Array
    ) -> jax.Array:
        if candidates.n_pending == 0:
            return log_expected_improvement(query.mu, jnp.sqrt(query.var), candidates.eta)
        alone = jnp.zeros(0, int)
        mu, S, active = joint_of_steps(candidates, query, alone, remaining)
        return log_gain_of(self.expectation, mu, S, candidates.eta, active, log_chances(candidates, alone))


@dataclass(frozen=True)
class ProbabilityOfImprovement(Myopic):
    """[eq:mpi], the paper's MPI, as a logarithm."""

    is_gain: ClassVar[bool] = False

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: tuple[()], remaining: jax.Array
    ) -> jax.Array:
        return log_ndtr((candidates.eta - query.mu) / jnp.sqrt(query.later_var))


@dataclass(frozen=True)
class LowerConfidenceBound(Myopic):
    """[eq:lcb], the paper's GP-LCB."""

    kappa: float = 1.0
    is_gain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.kappa < float("inf"):
            raise ValueError(f"kappa must be a finite number of at least 0, got {self.kappa!r}: the paper uses 1.")

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: tuple[()], remaining: jax.Array
    ) -> jax.Array:
        return self.kappa * jnp.sqrt(query.later_var) - query.mu
