"""What every search must do (``search.decision``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasses.lookahead import ExpectedLoss, Glasses, LowerConfidenceBound
from glasses.lookahead.loss import Loss
from glasses.loop.minimize import minimize
from glasses.search.decision import Decision, Problem, Search
from glasses.space.parameters import Int
from glasses.surrogate import GaussianProcess
from glasses.surrogate.outputs import Affine
from glasses.surrogate.posterior import Posterior
from glasses.testing.contract import Contract, check_immutable
from glasses.testing.examples import hills

MODEL = GaussianProcess()


def fitted(n: int = 10, seed: int = 0) -> Posterior:
    """The default model of a function on the unit square."""
    X = np.random.default_rng(seed).random((n, 2))
    y = np.array([hills(x) for x in X])
    return MODEL.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))


def problem(left: int, pending: Any = None, seed: int = 0) -> Problem:
    """What a search is given when so many evaluations are left."""
    post = fitted(seed=seed)
    begun = np.zeros((0, 2)) if pending is None else np.asarray(pending)
    return Problem(post=post, fitted=post, pending=begun, remaining=left)


def decide(loss: Loss, search: Search, left: int = 6, pending: Any = None, seed: int = 0) -> Decision:
    """One decision of the search."""
    return search.decide(loss, MODEL.kernel, problem(left, pending, seed), np.random.default_rng(1))


class SearchContract(Contract):
    """Give the search by a fixture ``search``."""

    def test_it_is_immutable(self, search: Search) -> None:
        check_immutable("search", search)
        assert search.candidates >= 1

    @pytest.mark.parametrize("loss", [ExpectedLoss(), Glasses()], ids=str)
    def test_a_decision_is_a_point_of_the_cube_with_the_steps_after_it(self, search: Search, loss: Loss) -> None:
        """And the same again, whatever else was decided in between."""
        found = decide(loss, search)
        assert found.x.shape == (2,)
        assert np.all((found.x >= 0) & (found.x <= 1))
        assert np.isfinite(found.value)
        assert np.all((found.steps >= 0) & (found.steps <= 1))
        assert found.mean.shape == found.sd.shape == (1 + len(found.steps),)
        assert np.all(found.sd > 0)
        again = decide(loss, search)
        np.testing.assert_array_equal(found.x, again.x)
        assert found.value == again.value

    @pytest.mark.parametrize("loss", [ExpectedLoss(), Glasses(), LowerConfidenceBound()], ids=str)
    def test_pending_points_move_the_decision(self, search: Search, loss: Loss) -> None:
        alone = decide(loss, search)
        beside = decide(loss, search, pending=[alone.x])
        assert np.abs(beside.x - alone.x).max() > 1e-3

    def test_a_finite_space_is_visited_once(self, search: Search) -> None:
        """What is evaluated without noise is not proposed again, and what is proposed can be run."""
        space = [Int(0, 3), Int(0, 1)]
        result = minimize(
            lambda x: abs(x[0] - 2.2) + x[1],
            space,
            budget=12,
            noise=0.0,
            n_initial=3,
            loss=ExpectedLoss(),
            search=search,
            seed=0,
        )
        assert result.status == 3
        assert sorted(map(tuple, result.x_iters)) == [(a, b) for a in range(4) for b in range(2)]
        assert result.x == [2, 0]
