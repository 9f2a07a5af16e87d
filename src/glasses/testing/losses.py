"""What every loss must do, and what a loss must do that looks ahead (``lookahead.loss``)."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from glasses import tiny
from glasses.lookahead.candidates import CandidateSet, QueryPoint, query_point
from glasses.lookahead.loss import Loss
from glasses.surrogate.kernels import Kernel
from glasses.testing.contract import Contract, check_immutable
from glasses.testing.examples import make_candidates, query_of

POINTS = np.random.default_rng(3).random((60, 2))
QUERIES = [(0.2, 0.3), (0.9, 0.9), (0.5, 0.05)]


def _programs(loss: Loss, kernel: Kernel, size: int) -> tuple[Any, Any, Any]:
    """The steps predicted for x, its value given them, and the derivative of that."""

    def predict(x: jax.Array, candidates: CandidateSet, left: jax.Array) -> Any:
        return loss.predict_steps(candidates, query_point(kernel, candidates, x), left, size)

    def value(x: jax.Array, candidates: CandidateSet, steps: Any, left: jax.Array) -> jax.Array:
        return loss.acquisition_value(candidates, query_point(kernel, candidates, x), steps, left)

    return jax.jit(predict), jax.jit(value), jax.jit(jax.grad(value))


programs: Any = cache(_programs)  # of a loss: one set for all that is asked of it


def acquisition(
    loss: Loss, x: Any, left: int, size: int = 8, *, pending: Any = None, room: int = 2, **settings: Any
) -> tuple[float, CandidateSet, QueryPoint, tiny.Model]:
    """The acquisition value of x with so many evaluations left, and what it was computed from.

    ``room``: for so many pending points, as decisions always have room for some: one program whether there are any or not.
    """
    kernel, candidates, model = make_candidates(POINTS, pending=pending, room=room - len(pending or []), **settings)
    predict, value, _ = programs(loss, kernel, size)
    place, n = jnp.asarray(x), jnp.asarray(left)
    found = value(place, candidates, predict(place, candidates, n), n)
    return float(found), candidates, query_of(kernel, candidates, place), model


def closed_form(model: tiny.Model, x: Any, eta: float) -> float:
    """The expected improvement at x."""
    mu, cov = tiny.posterior(model, np.asarray(x)[None])
    return float(tiny.expected_improvement(mu, np.sqrt(np.diag(cov)), eta)[0])


class LossContract(Contract):
    """Give the loss by a fixture ``loss``. The tolerances are those of its derivative."""

    rtol, atol = 1e-4, 1e-5

    def test_it_is_immutable_and_says_what_it_is(self, loss: Loss) -> None:
        check_immutable("loss", loss)
        assert loss.steps is None or loss.steps == "trusted" or loss.steps >= 1
        assert isinstance(loss.is_gain, bool)
        assert isinstance(loss.looks_ahead, bool)
        assert loss.race is None or all(n >= 1 for n in loss.race)

    @pytest.mark.parametrize("left", [1, 4])
    def test_a_value_is_a_finite_number_and_the_same_again(self, loss: Loss, left: int) -> None:
        values = [acquisition(loss, x, left)[0] for x in [*QUERIES, *QUERIES]]
        assert np.all(np.isfinite(values))
        assert values[: len(QUERIES)] == values[len(QUERIES) :]
        assert len(set(values)) == len(QUERIES)  # and says which point is better

    def test_padding_of_the_pending_points_is_invisible(self, loss: Loss) -> None:
        waiting = [[0.4, 0.6], [0.1, 0.9]]
        plain = acquisition(loss, (0.2, 0.3), 4, pending=waiting)[0]
        assert plain == pytest.approx(acquisition(loss, (0.2, 0.3), 4, pending=waiting, room=4)[0], abs=1e-9)

    @pytest.mark.parametrize("pending", [None, [[0.4, 0.6]]])
    def test_gradient_against_finite_differences(self, loss: Loss, pending: Any) -> None:
        """The derivative by x* with the predicted steps held fixed."""
        kernel, candidates, _ = make_candidates(POINTS, pending=pending, room=2 - len(pending or []))
        predict, value, slope = programs(loss, kernel, 8)
        x, left = jnp.asarray([0.21, 0.33]), jnp.asarray(4)
        steps = predict(x, candidates, left)
        finite = [
            float(value(x + 1e-6 * e, candidates, steps, left) - value(x - 1e-6 * e, candidates, steps, left)) / 2e-6
            for e in jnp.eye(2)
        ]
        gradient = slope(x, candidates, steps, left)
        np.testing.assert_allclose(gradient, finite, rtol=self.rtol, atol=self.atol)


class LookAheadContract(LossContract):
    """Also for a loss that is an expected minimum over the evaluations left."""

    @pytest.mark.parametrize("x", QUERIES)
    def test_one_evaluation_left_is_the_closed_form(self, loss: Loss, x: Any) -> None:
        """Lambda_1 = eta - EI, to 1e-8."""
        value, candidates, _, model = acquisition(loss, x, 1)
        assert np.exp(value) == pytest.approx(closed_form(model, x, float(candidates.eta)), abs=1e-8)

    def test_the_loss_falls_with_every_further_evaluation(self, loss: Loss) -> None:
        values = [acquisition(loss, (0.2, 0.3), left)[0] for left in (1, 2, 3, 5, 8)]
        assert np.all(np.diff(values) > -0.01)
        assert values[-1] > values[0] + 0.05

    def test_padding_of_the_horizon_is_invisible(self, loss: Loss) -> None:
        short, long = (acquisition(loss, (0.2, 0.3), 5, size=size)[0] for size in (8, 16))
        assert short == pytest.approx(long, abs=1e-9)
