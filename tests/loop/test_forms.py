"""Points have the form that the bounds say: at run time, and for a type checker.

``make check`` reads this file with mypy: ``assert_type`` compares types, and each ``type: ignore`` below must hide an error, so
a misspelt attribute that mypy would let through fails there.
"""
# mypy: warn-unused-ignores

import inspect
from typing import Any, assert_type

import numpy as np
import pytest
from scipy.optimize import Bounds

from glasses import Choice, Float, Int, Optimizer, maximize, minimize
from glasses.loop.forms import Running, Settings
from glasses.loop.result import Recommendation, Result

NAMED = {"rate": Float(1e-4, 1.0, log=True), "depth": Int(1, 9)}  # a checker infers dict[str, object]
MIXED = [(0.0, 1.0), Choice(["a", "b"])]


def bowl(x: np.ndarray) -> float:
    return float(np.sum(x**2))


def test_floats_are_arrays() -> None:
    for result in (
        minimize(bowl, [(0, 1), (0.0, 1.0)], budget=3, n_initial=3, seed=0),
        maximize(bowl, [[0, 1], [2, 3]], budget=3, n_initial=3, seed=0),
        minimize(bowl, np.array([[0.0, 1.0], [2.0, 3.0]]), budget=3, n_initial=3, seed=0),
        minimize(bowl, [Float(0.1, 1.0, log=True), (0, 1)], budget=3, n_initial=3, seed=0),
    ):
        assert_type(result, Result[np.ndarray])
        assert_type(result.x, np.ndarray)
        assert_type(result.x_iters, list[np.ndarray])
        assert_type(result.recommended, Recommendation[np.ndarray] | None)
        assert isinstance(result.x, np.ndarray)
        assert result.recommended is not None
        assert isinstance(result.recommended.x, np.ndarray)
    assert isinstance(minimize(bowl, Bounds([0, 0], [1, 1]), budget=2, n_initial=2, seed=0).x, np.ndarray)


def test_named_points_are_dicts() -> None:
    result = minimize(lambda rate, depth: rate * depth, NAMED, budget=2, n_initial=2, seed=0)
    assert_type(result.x, dict[str, Any])
    assert list(result.x) == ["rate", "depth"]
    optimizer = Optimizer(NAMED, budget=6, n_initial=3, seed=0)
    assert_type(optimizer, Optimizer[dict[str, Any]])
    assert_type(optimizer.ask(), dict[str, Any])
    assert_type(optimizer.ask(2), list[dict[str, Any]])
    assert_type(optimizer.pending, list[dict[str, Any]])
    assert_type(optimizer.plan().next, dict[str, Any])
    optimizer.tell(optimizer.pending[0], None, reason="spilled")
    assert_type(optimizer.record().failures[0].x, dict[str, Any])
    assert [type(each) for each in (*optimizer.pending, optimizer.plan().next, optimizer.record().failures[0].x)] == [dict] * 4


def test_anything_else_is_a_list() -> None:
    optimizer = Optimizer(MIXED, budget=2, seed=0)
    assert_type(optimizer.ask(), list[Any])
    assert isinstance(optimizer.pending[0], list)
    unknown: Any = MIXED
    assert_type(Optimizer(unknown, budget=2).ask(), Any)


def test_a_checker_finds_what_is_misspelt_or_of_the_wrong_form() -> None:
    """Each line has an error for mypy (``warn-unused-ignores``) and for Python."""
    result = minimize(bowl, [(0.0, 1.0)], budget=2, n_initial=2, seed=0)
    optimizer = Optimizer(NAMED, budget=6, n_initial=2, seed=0)
    with pytest.raises(AttributeError, match="a result has no 'reccomended': it has x, fun,"):
        _ = result.reccomended  # type: ignore[attr-defined]
    assert result.recommended is not None
    with pytest.raises(AttributeError):
        _ = result.recommended.sigma  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        result.x.items()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = optimizer.telll  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        optimizer.ask()[0]  # type: ignore[index]
    with pytest.raises(AttributeError):
        _ = optimizer.plan().next.shape  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="budgett"):
        minimize(bowl, [(0.0, 1.0)], budget=2, budgett=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="budget"):
        Optimizer(NAMED)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="bounds must be"):
        Optimizer(5, budget=3)  # type: ignore[call-overload]


@pytest.mark.parametrize(("call", "settings"), [(Optimizer, Settings), (minimize, Running), (maximize, Running)])
def test_the_settings_of_the_overloads_are_those_of_the_function(call: Any, settings: Any) -> None:
    given = inspect.signature(call).parameters.values()
    named = {each.name: each for each in given if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(named) == set(settings.__annotations__)
    written = {name: each.__forward_arg__ for name, each in settings.__annotations__.items()}
    for name, each in named.items():
        required = each.default is inspect.Parameter.empty
        assert written[name] == (f"Required[{each.annotation}]" if required else each.annotation), name
