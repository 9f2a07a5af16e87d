"""Constraints from the front door: told, given as functions, kept, corrected, refused."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

from glasses import ExpectedLoss, Optimizer, Target, maximize, minimize
from glasses.loop.constraints import WrongValuesError
from glasses.loop.ledger import TooFewValuesError
from glasses.runtime.ahead import AHEAD
from glasses.runtime.program import forget_programs, programs_in_memory
from glasses.search.decision import Trust
from glasses.surrogate.posterior import incumbent

BOX = [(0.0, 1.0), (0.0, 1.0)]
SETTINGS = {"budget": 8, "n_initial": 4, "seed": 0, "loss": ExpectedLoss()}


def bowl(x):
    """Lowest, 0, at (.3, .8); at or below the line x[1] = .5 it is .09, at (.3, .5)."""
    return float((x[0] - 0.3) ** 2 + (x[1] - 0.8) ** 2)


def below(x):
    return float(x[1] - 0.5)


def played(n=6, constraint=below, **settings):
    optimizer = Optimizer(BOX, **{**SETTINGS, "constraints": 1, **settings})
    for _ in range(n):
        x = optimizer.ask()
        optimizer.tell(x, bowl(x), constraints=[constraint(x)])
    return optimizer


@pytest.fixture(scope="module")
def run():
    return minimize(bowl, BOX, constraints=below, **SETTINGS)


def test_the_best_feasible_point_is_found(run, monkeypatch):
    """The best point violates nothing, what violates something is kept, and the run is that of ask and tell."""
    assert run.success
    assert run.status == 0
    assert below(run.x) <= 0
    assert run.fun == min(y for y, good in zip(run.func_vals, run.feasible, strict=True) if good)
    assert run.fun > min(run.func_vals)  # lower ones that are not feasible are not the best
    assert run.fun < 0.16
    np.testing.assert_allclose(run.constraints[:, 0], [below(x) for x in run.x_iters])
    np.testing.assert_array_equal(run.feasible, run.constraints[:, 0] <= 0)
    assert run.recommended.feasibility > 0.95
    assert below(run.recommended.x) < 0.02
    by_hand = played(8).result()
    np.testing.assert_array_equal(by_hand.x_iters, run.x_iters)
    assert "infeasible:" in repr(run)
    assert "feasible with" in repr(run)
    monkeypatch.setattr("glasses.loop.shown.frame_of", dict)
    assert run.to_frame()["constraints[0]"] == run.constraints[:, 0].tolist()


@pytest.mark.parametrize(
    ("constraints", "names"),
    [
        (NonlinearConstraint(lambda x: x[1], -np.inf, 0.5), (0,)),
        ({"line": below}, ("line",)),
    ],
)
def test_other_ways_to_say_the_same(run, constraints, names):
    """[eq:limits]: x[1] <= .5 is x[1] - .5 <= 0."""
    found = minimize(bowl, BOX, constraints=constraints, **SETTINGS)
    np.testing.assert_allclose(found.x_iters, run.x_iters, atol=1e-9)
    np.testing.assert_allclose(found.constraints, run.constraints, atol=1e-12)


def test_one_evaluation_may_give_everything(run):
    found = minimize(lambda x: (bowl(x), {"line": below(x)}), BOX, constraints=["line"], **SETTINGS)
    np.testing.assert_array_equal(found.x_iters, run.x_iters)
    upwards = maximize(lambda x: (-bowl(x), [below(x)]), BOX, constraints=1, **SETTINGS)
    np.testing.assert_array_equal(upwards.x_iters, run.x_iters)
    np.testing.assert_array_equal(upwards.constraints, run.constraints)  # they keep their sense
    assert upwards.fun == -run.fun
    functions = maximize(lambda x: -bowl(x), BOX, constraints=[below], **SETTINGS)
    np.testing.assert_array_equal(functions.x_iters, run.x_iters)


def test_the_limits_of_a_nonlinear_constraint():
    """[eq:limits]: both sides of each limit that is finite, and in the form that the objective takes."""
    band = NonlinearConstraint(lambda a, b: [a, a + b], [0.2, -np.inf], [0.6, 1.0])
    found = minimize(lambda a, b: bowl([a, b]), {"a": (0, 1), "b": (0, 1)}, constraints=[band], **{**SETTINGS, "budget": 4})
    x = np.array([[each["a"], each["b"]] for each in found.x_iters])
    expected = np.stack([x[:, 0] - 0.6, x.sum(axis=1) - 1.0, 0.2 - x[:, 0]], axis=1)
    np.testing.assert_allclose(found.constraints, expected, atol=1e-12)


def test_the_size_of_a_constraint_does_not_change_a_run():
    plain, scaled = played(6), played(6, lambda x: 3e4 * below(x))
    np.testing.assert_allclose(scaled.record().x_iters, plain.record().x_iters, atol=1e-6)
    np.testing.assert_allclose(scaled.feasibility([0.4, 0.45]), plain.feasibility([0.4, 0.45]), rtol=1e-4)


def test_feasibility_is_near_one_below_the_line_and_near_zero_above():
    low, high = played(6).feasibility([[0.5, 0.2], [0.5, 0.9]])
    assert low > 0.95
    assert high < 0.05


def test_first_something_feasible_is_looked_for():
    """Far from the lowest values; meanwhile nothing is forecast, nothing is the best and every sentence says so."""
    optimizer = played(4, lambda x: x[1] - 0.05)
    record = optimizer.record()
    assert not record.feasible.any()
    assert record.x is None
    assert math.isnan(record.fun)
    assert "nothing feasible was found" in record.message
    known = optimizer._planner.inference
    eta = known.outputs().inverse(float(incumbent(known.model.kernel, known.problem().post)))
    assert eta > max(optimizer.values)
    with pytest.raises(TooFewValuesError, match=r"A forecast needs 4 values|A forecast needs a feasible value, got none"):
        optimizer.forecast()
    with pytest.raises(ValueError, match="The loss is a feasible value, and none is known yet"):
        optimizer.loss_at([0.5, 0.5])
    assert optimizer.plan().expected_best is None
    assert optimizer.ask()[1] < 0.2
    found = optimizer.result().recommended
    assert found.feasibility >= optimizer.feasibility(np.random.default_rng(0).random((50, 2))).max() - 0.05


def test_a_run_without_anything_feasible_says_so():
    result = minimize(bowl, BOX, constraints=lambda x: 1.0 + x[0], **{**SETTINGS, "budget": 5})
    assert not result.success
    assert result.status == 2
    assert result.message.startswith("Budget spent: nothing feasible was found")
    assert result.x is None
    assert result.recommended.feasibility < 0.5
    stopped = minimize(bowl, BOX, constraints=lambda x: 1.0, stop=Target(10.0), **{**SETTINGS, "budget": 4})
    assert stopped.status == 2  # a target is reached by what is feasible


def test_failures_have_no_values_of_constraints():
    """A failure keeps the search away as ever, and an evaluation without a value of a constraint is one."""
    calls = []

    def sometimes(x):
        calls.append(x)
        return math.nan if len(calls) == 2 else below(x)

    with pytest.warns(UserWarning, match=r"constraints\[0\] must be a finite number, got nan"):
        result = minimize(bowl, BOX, constraints=sometimes, **{**SETTINGS, "budget": 6})
    assert len(result.failures) == 1
    assert len(result.func_vals) == len(result.constraints) == 5
    optimizer = played(4)
    optimizer.tell([[0.1, 0.1], [0.2, 0.2]], [None, 1.0], constraints=[None, [-1.0]])
    assert optimizer._ledger.G[-1] == (-1.0,)
    p = optimizer.feasibility([0.1, 0.1])
    assert p < played(4).feasibility([0.1, 0.1])
    assert np.all(np.abs(np.subtract(optimizer.ask(), [0.1, 0.1])) < 1.0)


def test_what_is_told_can_be_corrected_withdrawn_kept_and_copied(tmp_path):
    """From then on everything is as if the corrected values had been told; a file keeps them."""
    optimizer = played(5, constraints=["line"])
    best = optimizer.record().x
    number = optimizer._ledger.best
    optimizer.correct(number, constraints={"line": 0.2}, reason="misread")
    assert not np.array_equal(optimizer.record().x, best)
    optimizer.correct(0, 7.0)  # the values of the constraints stay
    optimizer.withdraw(2)
    optimizer.tell([0.25, 0.35], None)
    change = optimizer.history[0]
    assert (change.what, change.new_constraints) == ("correct", (0.2,))
    assert change.constraints[0] <= 0
    assert optimizer.history[2].new_constraints is None
    optimizer.save(tmp_path / "run.json")
    loaded, copied = Optimizer.load(tmp_path / "run.json"), pickle.loads(pickle.dumps(optimizer))
    assert str(loaded.history) == str(optimizer.history)
    expected = optimizer.ask()
    for each in (loaded, copied):
        np.testing.assert_array_equal(each.record().constraints, optimizer.record().constraints)
        np.testing.assert_array_equal(each.ask(), expected)
        assert each._ledger.constraints == ("line",)
    failed = played(4)
    failed.correct(1, None)
    with pytest.raises(ValueError, match="A value needs those of its constraints 0"):
        failed.correct(1, 2.0)
    failed.correct(1, 2.0, constraints=[0.5])
    assert failed._ledger.G[1] == (0.5,)


def test_evaluations_side_by_side():
    with ThreadPoolExecutor(2) as executor:
        result = minimize(bowl, BOX, constraints=[below], executor=executor, **{**SETTINGS, "budget": 6})
    assert result.success
    np.testing.assert_allclose(result.constraints[:, 0], [below(x) for x in result.x_iters])


@pytest.mark.slow
def test_plans_and_forecasts_are_about_feasible_values():
    """After many values next to nothing is left to gain, however low the values that are not feasible."""
    optimizer = Optimizer(BOX, budget=40, n_initial=20, seed=0, constraints=1)
    for x in np.random.default_rng(0).random((18, 2)):
        optimizer.tell(x, bowl(x), constraints=[below(x)])
    optimizer.tell([0.3, 0.5], bowl([0.3, 0.5]), constraints=[0.0])
    optimizer.tell([0.3, 0.8], 0.0, constraints=[0.3])
    forecast = optimizer.forecast(raw=True)  # the correction, from runs without constraints, is more hopeful
    assert forecast.best == pytest.approx(0.09)
    assert np.all(forecast.expected <= forecast.best + 1e-12)
    assert forecast.expected[-1] > 0.088
    assert 0.088 < forecast.clairvoyant <= forecast.expected[-1]
    assert optimizer.plan().expected_best == optimizer.forecast().expected[-1] < 0.09
    assert optimizer.loss_at([0.3, 0.45])[0] <= 0.09 + 1e-9
    assert below(optimizer.result().recommended.x) < 1e-3
    optimizer._planner._trust = lambda: Trust(8, 0.5)  # a plan that is believed in part
    assert optimizer.ask().shape == (2,)


@pytest.mark.parametrize(
    ("constraints", "told", "sentence"),
    [
        (None, [1.0], r"constraints = \[1.0\] was told but none are declared: say so"),
        (2, None, r"A value needs those of its constraints 0, 1: tell\(x, y, constraints=...\), or y = None"),
        (2, [1.0], r"constraints must hold 2 values, those of 0, 1, got 1: \[1.0\]"),
        (["a", "b"], {"a": 1.0}, r"constraints must have the values of 'a', 'b', got \{'a': 1.0\}"),
        (1, [math.nan], r"constraints\[0\] must be a finite number, got nan: tell y = None"),
        (1, math.inf, r"constraints\[0\] must be a finite number, got inf"),
        (["a"], ["low"], r"constraints\['a'\] must be a number, got 'low'"),
    ],
)
def test_what_cannot_be_told(constraints, told, sentence):
    optimizer = Optimizer(BOX, constraints=constraints, **SETTINGS)
    with pytest.raises(ValueError, match=sentence):
        optimizer.tell([0.5, 0.5], 1.0, constraints=told)
    assert optimizer.values == []
    assert optimizer._ledger.told == 0


def test_values_for_several_points():
    optimizer = Optimizer(BOX, constraints=1, **SETTINGS)
    with pytest.raises(ValueError, match=r"constraints must hold the values of each of the 2 points, got 1\.0"):
        optimizer.tell([[0.1, 0.1], [0.2, 0.2]], [1.0, 2.0], constraints=1.0)
    with pytest.raises(ValueError, match=r"constraints\[1\]\[0\] must be a finite number, got nan"):
        optimizer.tell([[0.1, 0.1], [0.2, 0.2]], [1.0, 2.0], constraints=[1.0, [math.nan]])
    with pytest.raises(ValueError, match="y0 lacks the values of the constraints"):
        Optimizer(BOX, constraints=1, x0=[[0.1, 0.1]], y0=[1.0], **SETTINGS)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([5.0], r"constraints\[0\] must be a function g\(x\), feasible where g\(x\) <= 0, .*got 5.0"),
        ({"a": None}, r"constraints\['a'\] must be a function g\(x\)"),
        ({"type": "ineq", "fun": below}, r"constraints\[0\] must be a function g\(x\).*returns -fun\(x\)"),
        ([], r"constraints must be functions g\(x\), feasible where g\(x\) <= 0, got \[\]: leave it out"),
        (0, "constraints must be a whole number of at least 1, got 0"),
        (["a", "a"], "constraints must be a number of them or different names such as .*, got"),
        (NonlinearConstraint(below, 0.0, 0.0), "must leave room between lb = 0.0 and ub = 0.0"),
    ],
)
def test_what_are_no_constraints(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        minimize(bowl, BOX, constraints=given, **SETTINGS)


def test_an_optimizer_evaluates_nothing():
    for given in (below, [below], NonlinearConstraint(below, -1.0, 0.0)):
        with pytest.raises(ValueError, match="An Optimizer evaluates nothing, got the function"):
            Optimizer(BOX, constraints=given, **SETTINGS)


@pytest.mark.parametrize(
    ("fun", "constraints", "sentence"),
    [
        (bowl, lambda x: [1.0, 2.0], r"constraints\[0\] must give 1 value, got 2 \(\[1.0, 2.0\]\)"),
        (bowl, NonlinearConstraint(lambda x: x, [0.0, 0.0, 0.0], 1.0), r"constraints\[0\] must give 3 values, got 2"),
        (bowl, 1, r"the objective must return its value and theirs, such as \(y, \[0\]\), got 0\."),
        (lambda x: (1.0, [1.0, 2.0]), ["a"], "constraints must hold 1 values, those of 'a', got 2"),
        (lambda x: (1.0, {"a": 1.0}), None, r"must return one number, got \(1.0, \{'a': 1.0\}\): .* say their names"),
        (bowl, lambda x: np.bool_(True), r"Values of constraints must be numbers, .* got \[.*True.*\]: return how far"),
        (lambda x: (1.0, {"a": False}), ["a"], r"must be numbers, .* got \{'a': False\}"),
    ],
)
def test_a_wrong_number_of_values_ends_the_run(fun, constraints, sentence):
    """At once, and not as a failed evaluation."""
    with pytest.raises(WrongValuesError, match=sentence) as caught:
        minimize(fun, BOX, constraints=constraints, **SETTINGS)
    assert caught.value.result.nfev == 0


def test_the_warning_of_a_failure_names_the_line_of_the_user():
    def broken(x):
        return None

    with pytest.warns(UserWarning, match="is kept as failed") as warned:
        minimize(broken, BOX, **{**SETTINGS, "budget": 1, "n_initial": 1})
    assert warned[0].filename == __file__


def test_an_executor_that_was_not_made():
    with pytest.raises(ValueError, match=r"executor must be a pool, got the class ThreadPoolExecutor: make one"):
        minimize(bowl, BOX, executor=ThreadPoolExecutor, **SETTINGS)


@pytest.mark.slow
def test_a_rehearsal_makes_the_programs_of_a_run_with_constraints(monkeypatch):
    """What is rehearsed before the data outgrow their size is what is needed then: nothing is compiled."""
    begun = []
    monkeypatch.setattr(AHEAD, "is_on", lambda: True)
    monkeypatch.setattr(AHEAD, "begin", lambda key, rehearse: begun.append(rehearse))
    optimizer = Optimizer(BOX, **{**SETTINGS, "budget": 60, "constraints": 1})
    points = np.random.default_rng(0).random((40, 2))
    for x in points[:30]:
        optimizer.tell(x, bowl(x), constraints=[below(x)])
    optimizer.ask()
    optimizer.cancel(optimizer.pending[0])
    assert len(begun) == 1
    begun[0]()
    programs = programs_in_memory()
    for x in points[30:33]:
        optimizer.tell(x, bowl(x), constraints=[below(x)])
    optimizer.ask()
    assert programs_in_memory() == programs


@pytest.mark.slow
def test_a_run_with_constraints_needs_one_program_of_each_stage():
    """That of the objective's fit fits the constraints too; those of feasibility and of the recommendation are its own."""
    forget_programs()
    played(8, constraints=1).result()
    assert programs_in_memory() == {
        "surrogate.fit._fit": 1,
        "search.predict._marginals": 1,
        "search.predict._feasibility": 1,
        "search.propose._climb": 1,
        "search.recommend._penalized": 1,
    }
