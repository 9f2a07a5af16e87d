"""Correcting, withdrawing, cancelling: afterwards everything is as if the corrected results had been told from the start."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import hills

from glasses import Choice, ExpectedLoss, Int, Optimizer

SQUARE = [(0.0, 1.0), (0.0, 1.0)]
SETTINGS = {"budget": 16, "n_initial": 3, "seed": 4}
POINTS = np.random.default_rng(2).random((9, 2))
VALUES = [hills(x) for x in POINTS]


def told(results, **settings):
    """A fresh optimiser, told these results one by one."""
    optimizer = Optimizer(SQUARE, **{**SETTINGS, **settings})
    for x, y in results:
        optimizer.tell(x, y)
    return optimizer


def all_it_says(optimizer):
    """A decision, the predictions and the forecast, as numbers."""
    mean, sd = optimizer.predict(POINTS)
    forecast = optimizer.forecast()
    found = optimizer.result()
    plan = optimizer.plan()
    return np.concatenate(
        [
            mean,
            sd,
            forecast.expected,
            forecast.low,
            [forecast.clairvoyant, found.fun, found.nfev],
            *plan.points,
            optimizer.ask(),
        ]
    )


def test_a_corrected_run_is_the_one_that_was_told_the_corrected_results():
    results = list(zip(POINTS, VALUES, strict=True))
    optimizer = told(results)
    before = all_it_says(optimizer)  # everything is computed, and remembered
    optimizer.cancel(optimizer.pending[0])
    np.testing.assert_array_equal(all_it_says(optimizer), before)
    optimizer.cancel(optimizer.pending[0], reason="no flask left")
    optimizer.correct(POINTS[2], -3.0, reason="34 for 3.4")
    results[2] = POINTS[2], -3.0
    after = all_it_says(optimizer)
    assert not np.allclose(after, before)
    np.testing.assert_array_equal(after, all_it_says(told(results)))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["value", "failed", "point", "both", "withdraw", "cancel", "ask"]),
        st.integers(0, 8),
        st.floats(-2.0, 2.0).map(lambda y: round(y, 3)),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(changes=CHANGES, failing=st.sets(st.integers(0, 8), max_size=2), copied=st.sampled_from(["", "pickle", "deepcopy"]))
def test_any_series_of_changes_gives_the_run_of_the_corrected_results(changes, failing, copied):
    results = {i: (x, None if i in failing else y) for i, (x, y) in enumerate(zip(POINTS, VALUES, strict=True))}
    optimizer = told(results.values())
    optimizer.predict(POINTS)
    optimizer.ask()
    asked = 1
    for what, i, y in changes:
        if what == "ask":
            optimizer.ask()
            asked += 1
        elif what == "cancel" and asked:
            optimizer.cancel(optimizer.pending[-1])
            asked -= 1
        elif i in results:
            x = np.array([0.5 + 0.1 * y, 0.02 * i])
            if what == "withdraw":
                optimizer.withdraw(i)
                del results[i]
            elif what == "failed":
                optimizer.correct(i, None)
                results[i] = results[i][0], None
            elif what == "value":
                optimizer.correct(i, y)
                results[i] = results[i][0], y
            elif what == "point":
                optimizer.correct(i, at=x)
                results[i] = x, results[i][1]
            elif what == "both":
                optimizer.correct(i, y, at=x)
                results[i] = x, y
    if copied:
        optimizer = pickle.loads(pickle.dumps(optimizer)) if copied == "pickle" else copy.deepcopy(optimizer)
    fresh = told(results.values(), loss=ExpectedLoss())
    optimizer.loss = ExpectedLoss()
    if not fresh.values:
        return
    for x in optimizer.pending:
        fresh.mark_pending(x)
    np.testing.assert_array_equal(optimizer.predict(POINTS), fresh.predict(POINTS))
    assert optimizer.values == fresh.values
    assert [each.x.tolist() for each in optimizer.result().failures] == [each.x.tolist() for each in fresh.result().failures]
    np.testing.assert_array_equal(optimizer.ask(), fresh.ask())


def test_a_plan_made_before_a_correction_keeps_its_own_forecast():
    results = list(zip(POINTS, VALUES, strict=True))
    plan, other = told(results).plan(), told(results)
    earlier = other.plan()
    other.correct(0, -50.0)
    assert earlier.expected_best == plan.expected_best
    assert other.plan().expected_best < earlier.expected_best


def test_what_was_is_kept():
    optimizer = Optimizer({"x": (0.0, 10.0), "how": Choice(["a", "b"])}, budget=6, seed=1)
    optimizer.tell({"x": 1.0, "how": "a"}, 5.0)
    optimizer.tell({"x": 2.0, "how": "b"}, None, reason="spilled")
    asked = optimizer.ask()
    optimizer.correct({"x": 1.0, "how": "a"}, 6.0, at={"x": 1.5, "how": "b"}, reason="read again")
    optimizer.correct(1, at={"x": 3.0, "how": "b"})
    optimizer.withdraw(0)
    optimizer.cancel(asked, "no time")
    said = [(each.what, each.number, each.x, each.y, each.new_x, each.new_y, each.reason) for each in optimizer.history]
    assert said == [
        ("correct", 0, {"x": 1.0, "how": "a"}, 5.0, {"x": 1.5, "how": "b"}, 6.0, "read again"),
        ("correct", 1, {"x": 2.0, "how": "b"}, None, {"x": 3.0, "how": "b"}, None, None),
        ("withdraw", 0, {"x": 1.5, "how": "b"}, 6.0, None, None, None),
        ("cancel", None, asked, None, None, None, "no time"),
    ]
    assert optimizer.result().failures[0].reason == "spilled"  # the reason stays with the failure that was moved
    optimizer.history.clear()
    assert len(optimizer.history) == 4
    assert optimizer.remaining == 5
    optimizer.tell(asked, 1.0)  # it arrived after all
    assert optimizer.remaining == 4
    optimizer.correct(2, 2.0)  # numbers do not move up
    assert optimizer.values == [2.0]


def test_what_costs_and_what_does_not():
    optimizer = Optimizer([Int(1, 9)], budget=10.0, cost={0: 1.0}, seed=1)
    optimizer.tell([[2], [3]], [0.1, 0.2])
    optimizer.correct([2], at=[6])
    assert optimizer._ledger.spent == 9.0
    with pytest.raises(ValueError, match="budget = 10 is below the 13 that are used once this is corrected"):
        optimizer.correct([3], at=[7])
    assert len(optimizer.history) == 1
    assert optimizer._ledger.spent == 9.0
    optimizer.withdraw([6])
    assert optimizer._ledger.spent == 3.0
    free = told([(POINTS[0], 1.0), (POINTS[1], 2.0)], count_failures=False)
    free.correct(0, float("nan"))
    assert free.remaining == 15


def test_what_cannot_be_changed():
    optimizer = told([(POINTS[0], 1.0), (POINTS[1], 2.0), (POINTS[0], None), (POINTS[2], 3.0)])
    asked = optimizer.ask()
    for change in (optimizer.withdraw, lambda x: optimizer.correct(x, 1.0)):
        with pytest.raises(ValueError, match="was told 2 times, as numbers 0, 2: say which by its number"):
            change(POINTS[0])
        with pytest.raises(ValueError, match="is pending and has no result yet: tell it, or cancel it"):
            change(asked)
        with pytest.raises(ValueError, match="Nothing was told at"):
            change([0.5, 0.5])
        for number in (4, -1):
            with pytest.raises(ValueError, match=f"There is no result number {number}: 4 results were told, numbers 0 to 3 so"):
                change(number)
    with pytest.raises(ValueError, match="is not pending: it was told: withdraw it"):
        optimizer.cancel(POINTS[1])
    with pytest.raises(ValueError, match=r"is not pending: optimizer\.pending lists those that are"):
        optimizer.cancel([0.5, 0.5])
    with pytest.raises(ValueError, match="x must be one point, got 2: change them one after the other"):
        optimizer.cancel([asked, asked])
    with pytest.raises(ValueError, match="There is nothing to correct"):
        optimizer.correct(0)
    with pytest.raises(ValueError, match=r"at\[0\] = 3 lies outside"):
        optimizer.correct(0, at=[3.0, 0.0])
    with pytest.raises(ValueError, match="y must be a number, got 'three'"):
        optimizer.correct(0, "three")
    assert optimizer.history == []
    assert optimizer._ledger.revision == 0
    optimizer.withdraw(1)
    with pytest.raises(ValueError, match="Result number 1 was withdrawn: tell it again to have it back"):
        optimizer.correct(1, 2.0)
    with pytest.raises(ValueError, match="There is no result number 0: nothing was told so far"):
        Optimizer(SQUARE, budget=4).withdraw(0)


def test_in_one_dimension_an_int_is_a_number():
    optimizer = Optimizer([(0.0, 5.0)], budget=5)
    optimizer.tell([[3.0], [0.0]], [1.0, 2.0])
    optimizer.correct(0, 7.0)
    optimizer.correct([0], 8.0)
    optimizer.correct(0.0, 9.0)
    assert optimizer.values == [7.0, 9.0]


def test_a_withdrawn_point_may_be_asked_for_again():
    optimizer = Optimizer([Int(1, 3)], budget=9, noise=0.0, seed=2)
    for k in (1, 2, 3):
        optimizer.tell([k], float(k))
    with pytest.raises(ValueError, match="All 3 configurations"):
        optimizer.ask()
    optimizer.withdraw([2])
    assert optimizer.ask() == [2]
