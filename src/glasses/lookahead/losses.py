"""Look-ahead losses: the expected minimum over all evaluations that remain.

    open loop   Lambda_n(x*) = E[min(y*, y_2, ..., y_n, eta)],  (x_2..x_n) = F_n(x*)                          [eq:open]
    marginal    Gamma_n(x*)  = 1/S sum_s Lambda_n(x*; F_n^s),  F_n^s steps drawn from an oracle               [eq:marginal]
    two-stage   Lambda_n(x*) = eta - EI(x*) - sum_q w_q G_{n-1}(y_q)                                          [eq:two]
                G_{n-1}(y_q): the open-loop gain of the n - 1 steps predicted after seeing y* = y_q,
                below min(eta, y_q), under the posterior conditioned on it

n counts the remaining evaluations, the current one included; n = 1 is the closed form in all. The nodes y_q are evenly spaced
over the law of y*, weighted by its density: the integrand has kinks (where y* becomes the best value, where the plan
changes), on which even nodes do better than as many Gauss-Hermite nodes. The first term of [eq:two] is exact, so the
quadrature only carries the later steps. Pending evaluations are part of the vector y in all. With noise, what the later steps
must beat is the posterior mean at x*, whose sd after observing y* is var / sqrt(var + noise); the first term is then the EI of
that mean, so that nothing is counted twice. With constraints every minimum is that over the feasible evaluations
(``gaussian.feasible_min``): x* is taken to be feasible here, and [eq:risk] says what it is worth if it is not.

The paper is the open loop with ``LocalPenalization`` and ``EP``; EL-k is ``Glasses(steps=k)``. The paper's Algorithm 1
plans one evaluation too many; here n is what remains. Its second equation, the loss with the future integrated out, is the
marginal one: draws number 1..S use the same random numbers for every x*.

Cost per query point: one oracle call and one expected minimum (open loop), one of each per draw (marginal) or node
(two-stage). Next: ``rollout`` closes the loop at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.expected_min import Expectation
from glasses.gaussian.feasible_min import log_gain_of
from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, QueryPoint, active_steps, joint_of_steps, log_chances
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Steps
from glasses.lookahead.oracles import Belief, KrigingBeliever, Oracle, before_outcome


class LookAhead:
    """What all look-ahead losses have in common."""

    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True
    race: ClassVar[tuple[int, ...] | None] = None
    steps: Steps

    def __post_init__(self) -> None:
        check_steps(self.steps)
        for name, method, example in (("oracle", "predict", KrigingBeliever()), ("expectation", "log_gain", QMC())):
            given = getattr(self, name, example)
            if isinstance(given, type) or not callable(getattr(given, method, None)):
                raise ValueError(f"{name} must be an object such as {example!r}, got {given!r}.")


@dataclass(frozen=True)
class Glasses(LookAhead):
    """[eq:open]: the GLASSES loss over all remaining evaluations, or over ``steps`` of them (EL-k).

    Examples
    --------
    >>> from glasses import Glasses
    >>> Glasses(steps=3).steps  # the paper's EL-3
    3
    """

    oracle: Oracle = field(default_factory=KrigingBeliever)
    expectation: Expectation = field(default_factory=QMC)
    steps: Steps = None

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> jax.Array:
        return self.oracle.predict(candidates, before_outcome(candidates, query), remaining, size)

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
    ) -> jax.Array:
        mu, S, active = joint_of_steps(candidates, query, steps, remaining)
        return log_gain_of(self.expectation, mu, S, candidates.eta, active, log_chances(candidates, steps))


@dataclass(frozen=True)
class Marginalized(LookAhead):
    """[eq:marginal]: the open loop averaged over ``samples`` draws of an oracle that samples."""

    oracle: Oracle = field(default_factory=lambda: DeterminantalPoints(sample=True))
    samples: int = 8
    expectation: Expectation = field(default_factory=lambda: QMC(32))
    steps: Steps = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.samples, int) and self.samples >= 1):
            raise ValueError(f"samples must be a whole number of at least 1, got {self.samples!r}: 8 is the default.")

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> jax.Array:
        belief = before_outcome(candidates, query)
        return jax.lax.map(lambda s: self.oracle.predict(candidates, belief, remaining, size, s), jnp.arange(self.samples))

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
    ) -> jax.Array:
        alone = Glasses(self.oracle, self.expectation)
        each = jax.lax.map(lambda one: alone.acquisition_value(candidates, query, one, remaining), steps)
        return jax.scipy.special.logsumexp(each) - float(np.log(self.samples))


@dataclass(frozen=True)
class TwoStage(LookAhead):
    """[eq:two]: see one outcome, then plan the rest. ``nodes`` outcomes of the next evaluation are considered.

    ``steps``: how far to look ahead; "trusted" as far as the model's record allows, None to the end of the budget.

    Examples
    --------
    >>> from glasses import Optimizer, TwoStage
    >>> optimizer = Optimizer([(0, 1)], budget=30, loss=TwoStage(steps=None))  # plans everything left, and believes it
    """

    nodes: int = 9
    oracle: Oracle = field(default_factory=KrigingBeliever)
    expectation: Expectation = field(default_factory=lambda: QMC(32))
    steps: Steps = "trusted"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.nodes, int) and 1 <= self.nodes <= 64):
            raise ValueError(f"nodes must be a whole number between 1 and 64, got {self.nodes!r}: 9 is the default.")

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> jax.Array:
        t, _ = self._rule()
        after = jnp.sqrt(query.later_var + candidates.noise)

        def one(t: jax.Array) -> jax.Array:
            belief = Belief(
                query,
                candidates.mu + query.later_cov / after * t,
                jnp.minimum(candidates.eta, query.mu + query.later_var / after * t),
                jnp.asarray(True),
            )
            return self.oracle.predict(candidates, belief, remaining, size)

        return jax.lax.map(one, t)

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
    ) -> jax.Array:
        t, log_w = self._rule()
        total = jnp.sqrt(query.var + candidates.noise)
        some_later = jnp.any(active_steps(steps, remaining)) | jnp.any(candidates.pending_active)
        sd = jnp.where(some_later, query.var / total, jnp.sqrt(query.var))
        now = log_expected_improvement(query.mu, sd, candidates.eta)

        def one(args: tuple[jax.Array, jax.Array]) -> jax.Array:
            t, steps = args
            mu, S, active = joint_of_steps(candidates, query, steps, remaining)
            c, log_p = S[0, 1:] / total, log_chances(candidates, steps)
            some = jnp.any(active[1:])
            later = active[1:].at[0].set(active[1] | ~some)
            eta = jnp.minimum(candidates.eta, mu[0] + S[0, 0] / total * t)
            mu, S = mu[1:] + c * t, S[1:, 1:] - c[:, None] * c[None, :]
            gain = log_gain_of(self.expectation, mu, S, eta, later, None if log_p is None else log_p[1:])
            return jnp.where(some, jnp.where(some, gain, 0.0), -jnp.inf)

        rest = jax.lax.map(one, (t, steps))
        return jax.scipy.special.logsumexp(jnp.concatenate([now[None], log_w + rest]))

    def _rule(self) -> tuple[jax.Array, jax.Array]:
        """Nodes and the logarithms of their weights."""
        reach = min(5.5, 2.5 * ((self.nodes - 1) / 8) ** 0.6)
        t = np.linspace(-reach, reach, self.nodes) if self.nodes > 1 else np.zeros(1)
        w = np.exp(-0.5 * t * t)
        return jnp.asarray(t), jnp.asarray(np.log(w / w.sum()))


def check_steps(steps: Any) -> None:
    whole = isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1
    if not (steps is None or whole or (isinstance(steps, str) and steps == "trusted")):
        raise ValueError(
            'steps must be a whole number of at least 1, None for all evaluations left or "trusted" for as many as the model '
            f"is trusted for, got {steps!r}."
        )
