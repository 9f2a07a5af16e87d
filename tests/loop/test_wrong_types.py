"""Anything at all at every public entry point: it is taken, or refused with one sentence, and nothing is evaluated for it."""

import copy
import inspect
import math
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasses import (
    Choice,
    ExpectedLoss,
    Float,
    GaussianProcess,
    Int,
    NoGain,
    Optimizer,
    Preset,
    Price,
    Target,
    maximize,
    minimize,
    plot,
)
from glasses.search import MultiStart

matplotlib.use("agg")
ODD = [
    None,
    True,
    1j,
    math.nan,
    math.inf,
    -1,
    2.5,
    10**400,
    Fraction(1, 2),
    Decimal("0.5"),
    np.float32(2),
    np.array(3.0),
    np.array([]),
    np.array("x"),
    np.array([1.0, math.nan]),
    np.array([[0.5, 0.5]]),
    range(3),
    {"a": 1},
    {1: 2},
    {1, 2},
    object(),
    int,
    print,
    Ellipsis,
    slice(3),
    datetime(2026, 1, 1),
    ExpectedLoss,
    ExpectedLoss(),
    Price(0.1),
    [[1, 2], [3]],
    [0.5, [0.5]],
]
ANYTHING = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.floats(),
    st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=2)), max_size=3),
)
DATA = [[0.1, 0.2], [0.4, 0.9], [0.7, 0.5], [0.3, 0.3]]
READY = Optimizer([(0, 1), (0, 1)], budget=9, n_initial=3, seed=0, loss=ExpectedLoss(), x0=DATA, y0=[1.0, 2.0, 3.0, 0.5])
TWO = {"budget": 2, "n_initial": 2, "seed": 0, "loss": ExpectedLoss()}


def ready():
    found = copy.copy(READY)
    found.__setstate__({**READY.__dict__, "_ledger": READY._ledger.snapshot()})
    return found


def bowl(x):
    return float(np.sum(np.asarray(x) ** 2))


def never(x):
    raise AssertionError("evaluated although an argument is wrong")


def of_optimizer(name):
    return lambda odd: Optimizer([(0, 1), (0, 1)], **{"budget": 3, "n_initial": 3, "seed": 0, name: odd})


def of_run(call, name):
    return lambda odd: call(bowl, [(0, 1), (0, 1)], **{**TWO, name: odd})


ENTRIES = {
    **{
        f"Optimizer {name}": of_optimizer(name)
        for name in inspect.signature(Optimizer).parameters
        if name not in ("bounds", "cost")
    },
    "Optimizer bounds": lambda odd: Optimizer(odd, budget=3),
    "Optimizer preset's loss": lambda odd: Optimizer([(0, 1)], budget=3, preset=Preset(odd, GaussianProcess(), MultiStart())),
    "ask": lambda odd: ready().ask(odd),
    "tell x": lambda odd: ready().tell(odd, 1.0),
    "tell y": lambda odd: ready().tell([0.5, 0.5], odd),
    "tell reason": lambda odd: ready().tell([0.5, 0.5], None, reason=odd),
    "tell outside": lambda odd: ready().tell([0.5, 0.5], 1.0, outside=odd),
    "correct x": lambda odd: ready().correct(odd, 1.0),
    "correct y": lambda odd: ready().correct(0, odd),
    "correct at": lambda odd: ready().correct(0, at=odd),
    "correct reason": lambda odd: ready().correct(0, 1.0, reason=odd),
    "withdraw x": lambda odd: ready().withdraw(odd),
    "withdraw reason": lambda odd: ready().withdraw(0, odd),
    "cancel": lambda odd: ready().cancel(odd),
    "mark_pending": lambda odd: ready().mark_pending(odd),
    "predict": lambda odd: READY.predict(odd),
    "quantiles levels": lambda odd: READY.quantiles([0.5, 0.5], odd),
    "loss_at left": lambda odd: odd is None or READY.loss_at([0.5, 0.5], odd),
    "forecast steps": lambda odd: odd is None or READY.forecast(odd),
    "save": lambda odd: isinstance(odd, str) or READY.save(odd),
    "load": lambda odd: isinstance(odd, str) or Optimizer.load(odd),
    "plot.convergence": plot.convergence,
    "plot.convergence ax": lambda odd: odd is None or plot.convergence(READY, odd),
    "plot.forecast": plot.forecast,
    "plot.surface": plot.surface,
    "plot.surface plan": lambda odd: odd is None or plot.surface(READY, plan=odd),
    "plot.slices": plot.slices,
    "plot.slices plan": lambda odd: odd is None or plot.slices(READY, plan=odd),
    "Price": Price,
    "Target": Target,
    "NoGain": NoGain,
    "Float low": lambda odd: Float(odd, 1.0),
    "Float high": lambda odd: Float(0.0, odd),
    "Float step": lambda odd: Float(0.0, 1.0, step=odd),
    "Int low": lambda odd: Int(odd, 9),
    "Int high": lambda odd: Int(0, odd),
    "Choice": Choice,
    "GaussianProcess noise": lambda odd: GaussianProcess(noise=odd),
    "GaussianProcess kernel": lambda odd: GaussianProcess(kernel=odd),
    "GaussianProcess outputs": lambda odd: GaussianProcess(outputs=odd),
    "GaussianProcess hyperparameter_samples": lambda odd: GaussianProcess(hyperparameter_samples=odd),
}
POINTS = ("x", "x0", "at", "cancel", "mark_pending", "predict")


def is_beyond_numpy(name, odd):
    """What NumPy refuses in its own words: an integer that no float holds as a point, an array without an axis as a list."""
    huge = isinstance(odd, int) and abs(odd) > 1e300 and name.split()[-1] in POINTS
    return huge or (name == "Choice" and isinstance(odd, np.ndarray) and odd.ndim == 0)


def check(entry, odd):
    try:
        entry(odd)
    except ValueError as error:
        said = str(error)
        assert said.endswith("."), said
        assert "\n" not in said.replace(repr(odd), "")
        assert len(said.split()) > 4


@pytest.mark.parametrize("name", ENTRIES)
@settings(max_examples=40)
@given(odd=ANYTHING)
def test_anything_is_taken_or_refused_with_a_sentence(name, odd):
    if not is_beyond_numpy(name, odd):
        check(ENTRIES[name], odd)


@pytest.mark.parametrize("call", [minimize, maximize])
@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("fun", "simulate.py", "fun must be a function of a point, got 'simulate.py'"),
        ("catch", "ValueError", "catch must be an exception class such as ValueError, or a tuple of them, got 'ValueError'"),
        ("catch", [ValueError], "catch must be an exception class"),
        ("catch", ValueError("x"), "catch must be an exception class"),
        ("catch", (ValueError, KeyboardInterrupt), "catch must be an exception class"),
        ("callback", [print], r"callback must be a function of the result so far, got \[<built-in"),
        ("verbose", 2, "verbose must be True or False, got 2"),
        ("verbose", "yes", "verbose must be True or False, got 'yes'"),
        ("workers", 2, "workers = 2 needs an executor"),
        ("executor", 4, "executor must be a concurrent.futures.Executor, got 4"),
        ("stop", 0.1, r"stop must be a criterion such as Price\(price=0.1\), got 0.1"),
        ("noise", "0.1", "noise must be a standard deviation of at least 0, or None to learn it, got '0.1'"),
        ("noise", True, "noise must be a standard deviation of at least 0"),
        ("y0", 3.0, "x0 holds 2 points and y0 1 values"),
        ("y0", ["low", 1.0], r"y0\[0\] must be a number, got 'low'"),
        ("y0", "ab", "y0 must be a number, got the text 'ab'"),
        ("budget", 10**400, "budget must be a number of evaluations that can be done, got one of 401 digits"),
        ("best_possible", 10**400, "best_possible must be a finite number"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_evaluated(call, name, wrong, sentence):
    arguments = {"fun": never, "bounds": [(0, 1), (0, 1)], **TWO, "x0": [[0.1, 0.1], [0.2, 0.2]], "budget": 4, name: wrong}
    with pytest.raises(ValueError, match=sentence):
        call(**arguments)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: plot.convergence("run"), "run must be what minimize returns or an Optimizer, got 'run'"),
        (lambda: plot.forecast(READY), r"found must be optimizer.forecast\(\), got Optimizer: "),
        (lambda: plot.surface(minimize), "optimizer must be an Optimizer, got <function minimize"),
        (lambda: plot.slices(READY, plan=[1]), r"plan must be optimizer.plan\(\), got \[1\]"),
        (lambda: plot.slices(READY, [1, 2]), "ax must be axes of matplotlib, got 1"),
        (lambda: READY.save(3), "path must name a file such as 'run.json', got 3"),
        (lambda: Optimizer.load(b"run.json"), "path must name a file such as 'run.json', got b'run.json'"),
        (lambda: Optimizer.load(""), "path must name a file such as 'run.json', got ''"),
        (lambda: ready().tell([0.5, 0.5], None, reason=7), "reason must be a text such as 'spilled', got 7"),
        (lambda: ready().tell([0.5, 0.5], 1.0, outside="yes"), "outside must be True or False, got 'yes'"),
    ],
)
def test_what_is_said_of_a_wrong_type(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
