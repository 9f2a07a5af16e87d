"""What every loss of the library is, myopic or not.

``predict_steps`` predicts the evaluations that follow a query point (none, for a myopic loss) and ``acquisition_value`` values
the query point with those steps held fixed: a differentiable scalar, larger is better. For losses that are an expected minimum
it is the logarithm of the gain eta - Lambda, which orders points exactly as -Lambda does and does not underflow.

``steps_for`` and ``value_for`` are what searches call: they also average over hyperparameter samples, believe a plan as far as
the model is trusted, and count the risk that the evaluation fails.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

import jax
import jax.numpy as jnp

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, QueryPoint, incumbent_after_pending, times_feasibility
from glasses.lookahead.myopic import Myopic

Steps = int | Literal["trusted"] | None


class Loss(Protocol):
    """What a decision minimises: a frozen dataclass. ``remaining`` counts the evaluations left, this one included."""

    @property
    def steps(self) -> Steps:
        """How many evaluations the loss looks ahead at most, the current one included.

        None means all that remain, "trusted" as many as the model is trusted for (``loop.trust``).
        """

    @property
    def is_gain(self) -> bool:
        """Whether the acquisition value is log(eta - Lambda) of an expected minimum Lambda."""

    @property
    def looks_ahead(self) -> bool:
        """Whether ``predict_steps`` returns indices of candidates; a myopic loss has ``()``."""

    @property
    def race(self) -> tuple[int, ...] | None:
        """Numbers of simulated futures, round by round, for a loss that is valued by simulation; None for all others."""

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> Any: ...

    def acquisition_value(self, candidates: CandidateSet, query: QueryPoint, steps: Any, remaining: jax.Array) -> jax.Array: ...


def steps_for(loss: Loss, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> Any:
    """The steps that follow a point; with hyperparameter samples those under each, stacked."""

    def one(given: tuple[CandidateSet, QueryPoint]) -> Any:
        return loss.predict_steps(*given, remaining, size)

    if candidates.samples is None:
        return one((candidates, query))
    return jax.lax.map(one, (candidates.samples, _of_samples(query)))


def value_for(loss: Loss, candidates: CandidateSet, query: QueryPoint, steps: Any, remaining: jax.Array) -> jax.Array:
    """What a search maximises: the acquisition value, averaged over hyperparameter samples, with trust and the risk of failure.

    The average over hyperparameters theta is that of the gain, 1/M sum_m G(x*; theta_m) [eq:samples].
    """
    value = _averaged(loss, candidates, query, steps, remaining)
    if loss.is_gain and loss.looks_ahead:
        value = with_trust(candidates, query, value, remaining)
    return with_risk(loss, candidates, query, value)


def with_trust(candidates: CandidateSet, query: QueryPoint, value: jax.Array, remaining: jax.Array) -> jax.Array:
    """With tau the trust, the gain (1 - tau) EI(x*) + tau G(x*) [eq:trust]: the next evaluation counts in full, what a plan
    says that the later ones bring with the probability that the model it is made with lasts so long. EI is that of x* once
    what is pending has come out at its mean: a closed form, and what the pending evaluations bring is the same for every x*.
    """
    if candidates.trust is None:
        return value
    alone = _averaged(_Now(), candidates, query, (), remaining)
    return jnp.logaddexp(alone + jnp.log1p(-candidates.trust), value + jnp.log(candidates.trust))


class _Now(Myopic):
    """EI of the next evaluation once what is pending has come out at its mean."""

    is_gain: ClassVar[bool] = True

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: tuple[()], remaining: jax.Array
    ) -> jax.Array:
        eta = incumbent_after_pending(candidates, candidates.mu, candidates.eta)
        return log_expected_improvement(query.mu, jnp.sqrt(query.later_var), eta)


def _averaged(loss: Loss, candidates: CandidateSet, query: QueryPoint, steps: Any, remaining: jax.Array) -> jax.Array:
    def one(given: tuple[CandidateSet, QueryPoint, Any]) -> jax.Array:
        return loss.acquisition_value(*given, remaining)

    if candidates.samples is None:
        return one((candidates, query, steps))
    each = jax.lax.map(one, (candidates.samples, _of_samples(query), steps))
    return jax.scipy.special.logsumexp(each) - jnp.log(each.size) if loss.is_gain else jnp.mean(each)


def _of_samples(query: QueryPoint) -> QueryPoint:
    """The query point under each sample; what it costs is the same under all."""
    assert query.samples is not None
    if query.cost is None:
        return query.samples
    return query.samples._replace(cost=jnp.broadcast_to(query.cost, query.samples.mu.shape))


def with_risk(loss: Loss, candidates: CandidateSet, query: QueryPoint, value: jax.Array) -> jax.Array:
    """With p the feasibility and G the gain, p G(x*) + (1 - p) G_after [eq:risk]: a failure costs one evaluation, not what the
    later ones will bring. All of G_after comes later, so with trust tau it counts as tau G_after. With costs a failure takes
    c(x*) from the budget: G_after is then between what the whole budget and what the budget less the largest cost would bring,
    in proportion to c(x*).
    """
    value = times_feasibility(value, query.log_feasibility)
    failures, costs = candidates.failures, candidates.costs
    if query.log_feasibility is None or failures is None or not loss.is_gain:
        return value
    after = failures.log_gain
    if costs is not None and query.cost is not None:
        share = jnp.minimum(query.cost / costs.largest, 1.0)
        after = jnp.logaddexp(after + jnp.log(share), failures.log_gain_unpaid + jnp.log1p(-share))
    if candidates.trust is not None:
        after = after + jnp.log(candidates.trust)
    return jnp.logaddexp(value, after + jnp.log1p(-jnp.exp(jnp.minimum(query.log_feasibility, -1e-12))))
