"""What every stopping criterion must do (``loop.stopping``)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glasses.lookahead.myopic import ExpectedLoss
from glasses.loop.minimize import minimize
from glasses.loop.optimizer import Optimizer
from glasses.loop.stopping import Criterion, Target, for_maximizing, is_criterion
from glasses.space.parameters import Int
from glasses.testing.contract import Contract, check_immutable

SETTINGS: Any = {"budget": 10, "n_initial": 3, "seed": 0, "loss": ExpectedLoss(), "noise": 0.0}


def wave(x: Any) -> float:
    """Something to minimise over [0, 1]."""
    return float(np.sin(7 * x[0]) + 0.5 * x[0])


def told(n: int, fun: Callable[[Any], float | None] = wave, **settings: Any) -> Optimizer[Any]:
    """An optimiser over [0, 1] that has been told n evaluations."""
    optimizer = Optimizer([(0.0, 1.0)], **{**SETTINGS, **settings})
    for _ in range(n):
        x = optimizer.ask()
        optimizer.tell(x, fun(x))
    return optimizer


def _waiting() -> Optimizer[Any]:
    optimizer = told(4)
    optimizer.ask(2)
    return optimizer


def _finite() -> Optimizer[Any]:
    optimizer = Optimizer([Int(0, 3)], **SETTINGS)
    for k in range(4):
        optimizer.tell([k], float(k))
    return optimizer


MOMENTS: dict[str, Callable[[], Optimizer[Any]]] = {
    "nothing told": lambda: told(0),
    "initial": lambda: told(2),
    "all failed": lambda: told(4, fun=lambda x: None),
    "all equal": lambda: told(4, fun=lambda x: 2.0),
    "model": lambda: told(5),
    "pending": _waiting,
    "costs": lambda: told(3, budget=20.0, cost=lambda x: 2.0),
    "exhausted": _finite,
    "budget spent": lambda: told(10),
}


class StoppingCriterionContract(Contract):
    """Give the criterion by a fixture ``criterion``."""

    def test_it_is_immutable_and_survives_a_pickle(self, criterion: Criterion) -> None:
        check_immutable("stop", criterion)
        assert is_criterion(criterion)
        assert pickle.loads(pickle.dumps(criterion)) == criterion

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_at_any_moment_it_gives_a_sentence_or_none_and_changes_nothing(self, criterion: Criterion, moment: str) -> None:
        """The same each time it is asked; nothing is asked for, told or spent."""
        optimizer = MOMENTS[moment]()
        before = repr(optimizer), repr(optimizer.record()), str(optimizer.pending), optimizer.budget, optimizer.remaining
        reason = criterion.reason(optimizer)
        assert criterion.reason(optimizer) == reason
        after = repr(optimizer), repr(optimizer.record()), str(optimizer.pending), optimizer.budget, optimizer.remaining
        assert before == after
        if reason is not None:
            assert isinstance(reason, str)
            assert len(reason.split()) > 1
            assert reason.endswith(".")
            assert "\n" not in reason

    def test_it_composes(self, criterion: Criterion) -> None:
        """With one that always speaks, and with one that never does."""
        optimizer = told(5)
        always, never, alone = Target(1e9), Target(-1e9), criterion.reason(optimizer)
        assert (always | criterion).reason(optimizer) == always.reason(optimizer)
        assert (never & criterion).reason(optimizer) is None
        assert (never | criterion).reason(optimizer) == alone
        assert ((always & criterion).reason(optimizer) is None) == (alone is None)
        assert is_criterion(for_maximizing(criterion))

    def test_a_run_ends_with_its_reason_or_with_the_budget(self, criterion: Criterion) -> None:
        """And up to there it is the run that it would be without."""
        result = minimize(wave, [(0.0, 1.0)], stop=criterion, **SETTINGS)
        assert result.success
        assert result.status in (0, 5)
        assert (result.nfev == 10) == (result.status == 0)
        np.testing.assert_array_equal(result.func_vals, told(10).values[: result.nfev])
        if result.status == 5:
            assert result.message == criterion.reason(told(result.nfev))
