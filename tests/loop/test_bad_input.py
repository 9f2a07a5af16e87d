"""Every refusal is one sentence that names the thing and the remedy, and leaves the optimiser as it was."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds

from glasses import ExpectedLoss, GaussianProcess, Optimizer, Preset, TwoStage, minimize
from glasses.lookahead.myopic import Myopic
from glasses.search import Direct, MultiStart

BOX = [(0.0, 1.0), (-2.0, 3.0)]


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ([(0, 1), (np.nan, 2)], r"bounds\[1\] = \(nan, 2\) must be finite"),
        ([(0, np.inf)], r"bounds\[0\] = \(0, inf\) must be finite: give the range"),
        ([(2, 1)], r"bounds\[0\] = \(2, 1\) has lower above upper: swap them"),
        ([(0, 1), (1, 1)], r"bounds\[1\] = \(1, 1\) has no width: leave"),
        ([(0, 1, 2)], r"bounds\[0\] must be a \(lower, upper\) pair"),
        ([("a", "b")], r"bounds\[0\] must be a \(lower, upper\) pair of numbers"),
        (["ab"], r"bounds\[0\] must be a \(lower, upper\) pair"),
        ([], "at least one"),
        (5, "bounds must be"),
        ({"rate": (3, 3)}, r"bounds\['rate'\] = \(3, 3\) has no width"),
        ({1: (0, 1)}, "Names of bounds must be text"),
        (Bounds([0, 5], [1, 2]), r"bounds\[1\] = \(5, 2\) has lower above upper"),
        ([(1e9, 1e9 + 1)], "cannot be resolved"),
        ([(-1e308, 1e308)], "cannot be resolved"),
    ],
)
def test_bounds(bounds, sentence):
    with pytest.raises(ValueError, match=sentence):
        Optimizer(bounds, budget=5)


class OnlyPosterior:
    def posterior(self):
        return None


class Unfrozen(Myopic):
    """Everything that a loss has, but not immutable."""

    is_gain = True

    def acquisition_value(self, candidates, query, steps, remaining):
        return query.mu


@dataclass(frozen=True)
class Listing(ExpectedLoss):
    expectation: list


def ready():
    optimizer = Optimizer(BOX, budget=6, seed=0)
    asked = optimizer.ask(2)
    optimizer.tell(asked[0], 1.0)
    return optimizer


def state(optimizer):
    told = optimizer.record()
    books = [[x.tolist() for x in some] for some in (told.x_iters, optimizer.pending, [each.x for each in told.failures])]
    return books, told.func_vals.tolist(), optimizer.budget, optimizer.remaining


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        ([0.5, 0.5], "low", "y must be a number, got 'low'"),
        ([0.5, 0.5], True, "y must be a number"),
        ([0.5, 0.5], 1j, "y must be a number"),
        ([0.5, 0.5], 10**400, "y must be one number per point"),
        ([0.5, 0.5], [1.0, 2.0], r"y must be one number per point, got \[1.0, 2.0\]"),
        ([[0.5, 0.5]], [1.0, 2.0], "x holds 1 points and y 2 values"),
        ([0.5, 0.5], 1e300, r"y = 1e\+300 is beyond 1e\+100"),
        ([0.5, 9.0], 1.0, r"x\[1\] = 9 lies outside \[-2, 3\]: move the point or widen bounds\[1\]"),
        ([0.5], 1.0, "x must hold 2 numbers per point"),
        ([0.5, 0.5, 0.5], 1.0, "x must hold 2 numbers per point"),
        ([0.5, np.nan], 1.0, r"x\[1\] is nan"),
        ("ab", 1.0, "x must be numbers, got the text 'ab'"),
        ([[0.5, 0.5], [0.1]], [1.0, 2.0], "ragged"),
        ({"a": 1}, 1.0, "the bounds have no names"),
        ([[0.5, 0.5], [0.1, 7.0]], [1.0, 2.0], r"x\[1\]\[1\] = 7 lies outside"),
        ([[0.5, 0.5], [0.1, 0.7]], [1.0, "2"], r"y\[1\] must be a number"),
        (np.full((5, 2), 0.5), np.ones(5), "budget = 6 is below the 7 evaluations this would make"),
    ],
)
def test_tell(x, y, sentence):
    optimizer = ready()
    before = state(optimizer)
    with pytest.raises(ValueError, match=sentence):
        optimizer.tell(x, y)
    assert state(optimizer) == before
    optimizer.tell([0.9, 0.9], 2.0)
    assert np.isfinite(optimizer.ask()).all()


def test_named_points():
    optimizer = Optimizer({"a": (0, 1), "b": (0, 1)}, budget=5, seed=0)
    for x, sentence in (
        ({"a": 0.5}, "x must name exactly a, b, got a"),
        ({"a": 0.5, "b": 3.0}, r"x\['b'\] = 3 lies outside"),
        ({"a": 0.5, "b": "c"}, r"x\['b'\] must be a number, got 'c'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            optimizer.tell(x, 1.0)
    assert optimizer.remaining == 5


def test_budget():
    for budget in (0, -3, 2.5, "ten", True, None):
        with pytest.raises(ValueError, match="budget must be a whole number of at least 1"):
            Optimizer(BOX, budget=budget)
    optimizer = ready()
    with pytest.raises(
        ValueError, match=r"budget = 1 is below what is already used \(1 told, 1 pending\): the least possible is 2"
    ):
        optimizer.budget = 1
    assert optimizer.budget == 6
    with pytest.raises(ValueError, match="budget = 2 is below the 3 evaluations"):
        Optimizer(BOX, budget=2, x0=np.full((3, 2), 0.5), y0=[1, 2, 3])


def test_ask():
    optimizer = ready()
    with pytest.raises(ValueError, match=r"5 asked but 4 of 6 evaluations remain \(1 told, 1 pending\)"):
        optimizer.ask(5)
    with pytest.raises(ValueError, match="n must be a whole number"):
        optimizer.ask(0)
    assert optimizer.remaining == 4


def test_a_batch_that_fails_midway_leaves_nothing_pending(monkeypatch):
    optimizer = Optimizer(BOX, budget=9, n_initial=3, seed=0)
    optimizer.tell(optimizer.ask(), 1.0)

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(MultiStart, "decide", broken)
    with pytest.raises(KeyboardInterrupt):
        optimizer.ask(4)
    assert optimizer.pending == []
    assert optimizer.remaining == 8


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_initial": 9}, "n_initial = 9 but the budget of 6 pays for 6 evaluations: lower it"),
        ({"n_initial": 0}, "n_initial must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"y0": [1.0]}, "y0 needs x0"),
        ({"x0": [[0.5, 0.5]], "y0": [1.0, 2.0]}, "x0 holds 1 points and y0 2 values"),
        ({"noise": -1.0}, "noise must be a standard deviation"),
        ({"noise": 1.0, "model": GaussianProcess()}, "noise = 1.0 is given twice"),
        ({"count_failures": 1}, "count_failures must be True or False"),
        ({"x0": np.full((7, 2), 0.5)}, "x0 holds 7 points but the budget is 6"),
        ({"x0": [[0.5, 8.0]]}, r"x0\[0\]\[1\] = 8 lies outside"),
        ({"loss": "ei"}, "loss must be an object such as TwoStage"),
        ({"model": dict}, "model must be an object such as GaussianProcess"),
        ({"search": 3}, "search must be an object such as MultiStart"),
        ({"loss": TwoStage}, r"loss must be an object such as TwoStage.*: write TwoStage\(\)"),
        ({"model": OnlyPosterior()}, "model must be an object such as GaussianProcess.*: it lacks kernel, fit, noise, outputs"),
        (
            {"loss": Unfrozen()},
            "loss must not change, because programs are compiled for it.* make Unfrozen a dataclass with frozen=True",
        ),
        ({"loss": Listing([1])}, r"loss must not change.* got \[1\]: use a tuple or a number"),
        ({"preset": "paper"}, "preset must be glasses.DEFAULT, glasses.PAPER or a Preset of your own, got 'paper'"),
        ({"preset": Preset(3, GaussianProcess(), MultiStart())}, "loss must be an object such as TwoStage"),
    ],
)
def test_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Optimizer(BOX, budget=6, **settings)


def test_searches():
    with pytest.raises(ValueError, match="polished <= screened <= candidates"):
        MultiStart(screened=1000)
    with pytest.raises(ValueError, match="candidates must be a whole number"):
        MultiStart(candidates=2)
    with pytest.raises(ValueError, match="evaluations must be a whole number"):
        Direct(evaluations=0)


def test_executors():
    with pytest.raises(ValueError, match="workers = 2 needs an executor"):
        minimize(sum, BOX, budget=3, workers=2)
    with pytest.raises(ValueError, match=r"executor must be a concurrent.futures.Executor"):
        minimize(sum, BOX, budget=3, executor=5, workers=2)


@given(
    x=st.one_of(
        st.none(), st.text(), st.floats(), st.lists(st.one_of(st.floats(), st.none(), st.text()), max_size=4), st.binary()
    ),
    y=st.one_of(st.none(), st.text(), st.floats(), st.lists(st.floats(), max_size=3), st.complex_numbers()),
)
def test_any_input_is_told_or_refused_with_a_sentence(x, y):
    optimizer = ready()
    before = state(optimizer)
    refusal = None
    try:
        optimizer.tell(x, y)
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        assert optimizer.record().nfev > 1
    else:
        assert refusal.endswith(".")
        assert state(optimizer) == before
