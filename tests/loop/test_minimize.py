import re
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from problems import hills
from scipy.optimize import Bounds

from glasses import PAPER, ExpectedLoss, Glasses, minimize, tiny

BOX = [(0.0, 1.0), (0.0, 1.0)]
LOWEST = min(hills(x) for x in np.stack(np.meshgrid(np.linspace(0, 1, 400), np.linspace(0, 1, 400)), -1).reshape(-1, 2))


def test_finds_the_minimum():
    result = minimize(hills, BOX, budget=22, seed=0)
    assert result.success
    assert result.nfev == len(result.func_vals) == 22
    assert result.fun - LOWEST < 2e-3
    assert result.recommended.mean == pytest.approx(LOWEST, abs=0.02)


@pytest.mark.slow
def test_the_paper_preset_runs_to_the_letter():
    calls = []

    def objective(x):
        calls.append(x)
        return hills(x)

    result = minimize(objective, BOX, budget=10, n_initial=5, seed=0, preset=PAPER)
    assert len(calls) == 10
    assert result.fun - LOWEST < 0.3


@pytest.mark.slow
def test_the_tiny_version_runs():
    X, y = tiny.minimize(lambda x: hills(x), BOX, budget=8, initial=5)
    assert X.shape == (8, 2)
    assert y.min() < y[:5].min() + 1e-12
    with open(tiny.__file__) as file:
        assert len(file.readlines()) <= 200


@pytest.mark.parametrize(
    "bounds", [BOX, Bounds([0, 0], [1, 1]), np.array(BOX), ((0, 1), (0, 1))], ids=lambda b: type(b).__name__
)
def test_bounds_of_every_kind(bounds):
    result = minimize(hills, bounds, budget=6, seed=0, loss=ExpectedLoss())
    assert result.x.shape == (2,)


def test_named_bounds_call_with_keywords():
    result = minimize(lambda *, a, b: hills((a, b)), {"a": (0, 1), "b": (0, 1)}, budget=6, seed=0, loss=ExpectedLoss())
    assert set(result.x) == set(result.recommended.x) == {"a", "b"}


def test_what_is_known_already_counts():
    X = np.random.default_rng(0).random((4, 2))
    calls = []
    result = minimize(
        lambda x: calls.append(x) or hills(x),
        BOX,
        budget=7,
        x0=X,
        y0=[hills(x) for x in X],
        seed=0,
        n_initial=4,
        loss=ExpectedLoss(),
    )
    assert len(calls) == 3
    assert result.nfev == 7


def test_callback_sees_every_evaluation_and_may_stop():
    seen = []

    def watch(intermediate_result):
        seen.append(intermediate_result.nfev)
        if len(seen) == 4:
            raise StopIteration

    result = minimize(hills, BOX, budget=9, n_initial=9, seed=0, callback=watch)
    assert seen == [1, 2, 3, 4]
    assert not result.success
    assert "StopIteration" in result.message
    assert result.nfev == 4
    plain = []
    minimize(hills, BOX, budget=3, n_initial=3, seed=0, callback=lambda r: plain.append(r.fun))
    assert len(plain) == 3


@pytest.mark.parametrize("value", [np.float32(1.5), np.array(1.5), np.array([1.5]), 1, np.int64(2)], ids=str)
def test_any_kind_of_number_is_a_value(value):
    assert minimize(lambda x: value, [(0, 1)], budget=2, n_initial=2, seed=0).nfev == 2


def test_one_evaluation_is_a_run():
    result = minimize(hills, BOX, budget=1, seed=0)
    assert result.success
    assert result.nfev == 1


@pytest.mark.slow
def test_many_dimensions():
    result = minimize(lambda x: float(np.sum((x - 0.4) ** 2)), [(0, 1)] * 12, budget=28, seed=0, loss=Glasses(steps=8))
    assert result.fun < 0.9 * min(result.func_vals[:14])


def wrong(x):
    return undefined_name + x[0]  # noqa: F821


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor], ids=str)
def test_a_broken_objective_ends_the_run_with_its_traceback(executor):
    pool = executor and executor(1)
    with pytest.warns(UserWarning, match="failed"), pytest.raises(RuntimeError) as raised:
        minimize(wrong, [(0, 1)], budget=14, n_initial=14, executor=pool, seed=0)
    assert re.match(
        r"The first 3 evaluations failed in the same way \(NameError in .*test_minimize.py, line \d+\), so the objective "
        r"seems to be broken: mend it, or say catch=Exception to go on whatever fails\.",
        str(raised.value),
    )
    assert isinstance(raised.value.__cause__, NameError)
    assert "undefined_name + x[0]" in "".join(traceback.format_exception(raised.value))
    assert raised.value.result.nfev == 3


def test_what_is_not_broken_runs_on():
    with pytest.warns(UserWarning, match="failed"):
        result = minimize(wrong, [(0, 1)], budget=5, n_initial=5, catch=NameError, seed=0)
    assert (result.nfev, result.success) == (5, False)

    def sometimes(x):
        if x[0] > 0.2:
            raise ValueError("too hot")
        return x[0]

    with pytest.warns(UserWarning, match="failed"):  # one success before, told with y0
        result = minimize(sometimes, [(0, 1)], budget=5, n_initial=5, x0=[[0.1]], y0=[0.1], seed=0)
    assert len(result.failures) >= 3
    with pytest.raises(NameError):
        minimize(wrong, [(0, 1)], budget=5, catch=())
