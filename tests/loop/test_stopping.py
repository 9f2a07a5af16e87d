"""Criteria to stop: when they speak, when they keep silent, what they say, and what ``minimize`` makes of it."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from problems import hills

from glasses import Int, NoGain, Optimizer, Price, Target, minimize
from glasses.loop.stopping import AllOf, AnyOf, Criterion, for_maximizing
from glasses.search.pending import pending_gain
from glasses.surrogate.posterior import incumbent, joint
from glasses.testing import StoppingCriterionContract
from glasses.testing.criteria import SETTINGS, told, wave


class TestCriteria(StoppingCriterionContract):
    @pytest.fixture(params=[Price(0.02), NoGain(0.2), Target(-9.0) | Price(1e-9)], ids=str)
    def criterion(self, request):
        return request.param


@dataclass(frozen=True)
class Says(Criterion):
    words: str | None

    def reason(self, optimizer):
        return self.words


@dataclass(frozen=True)
class NeverAsked(Criterion):
    def reason(self, optimizer):
        raise AssertionError("there was nothing to ask")


@pytest.mark.parametrize("b", [None, "B."])
@pytest.mark.parametrize("a", [None, "A."])
def test_compositions(a, b):
    """The truth table, with the words of those that say something."""
    assert (Says(a) | Says(b)).reason(None) == (a or b)
    assert (Says(a) & Says(b)).reason(None) == (f"{a} {b}" if a and b else None)


def test_compositions_are_lazy_nest_and_compare():
    a, b, c = Says("A."), Says(None), Says("C.")
    assert (a | NeverAsked()).reason(None) == "A."
    assert (b & NeverAsked()).reason(None) is None
    assert ((a & b) | c).reason(None) == "C."
    assert (a & (b | c)).reason(None) == "A. C."
    assert a | b | c == AnyOf((a, b, c)) == a | (b | c)
    assert a & b & c == AllOf((a, b, c))
    assert {Price(1.0) | Target(2.0), Price(1.0) | Target(2.0)} == {AnyOf((Price(1.0), Target(2.0)))}
    for wrong in (3, None, Price):
        with pytest.raises(TypeError, match="unsupported operand"):
            Price(1.0) | wrong
        with pytest.raises(TypeError, match="unsupported operand"):
            Price(1.0) & wrong


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Price(0.0), "price must be a positive number of units of y per evaluation, got 0.0: say what"),
        (lambda: Price(-1), "price must be a positive number"),
        (lambda: Price(float("nan")), "price must be a positive number .* got nan"),
        (lambda: Price(float("inf")), "price must be a positive number .* got inf"),
        (lambda: Price("1"), "price must be a positive number .* got '1'"),
        (lambda: Price(True), "price must be a positive number .* got True"),
        (lambda: Target(float("nan")), "target must be a finite number in the units of y, got nan: say which"),
        (lambda: Target(-float("inf")), "target must be a finite number"),
        (lambda: Target(None), "target must be a finite number"),
        (lambda: NoGain(0), "share must be a number between 0 and 1, got 0: 0.001 is"),
        (lambda: NoGain(1.0), "share must be a number between 0 and 1"),
        (lambda: NoGain(float("nan")), "share must be a number between 0 and 1, got nan"),
        (lambda: minimize(wave, [(0, 1)], budget=3, stop=3), r"stop must be a criterion such as Price\(price=0.1\), got 3"),
        (lambda: minimize(wave, [(0, 1)], budget=3, stop=Price), "stop must be a criterion"),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("n", [3, 5])
def test_a_price_stops_when_nothing_ahead_is_worth_it(n):
    """[eq:price]: just above the highest gain per evaluation it stops, just below it goes on."""
    optimizer = told(n)
    gain = optimizer.forecast().gain
    k = 1 + int(np.argmax(gain / np.arange(1, len(gain) + 1)))
    critical = gain[k - 1] / k
    assert Price(0.999 * critical).reason(optimizer) is None
    reason = Price(1.001 * critical).reason(optimizer)
    assert f"worth {1.001 * critical:.3g} each" in reason
    assert f"{k} more would buy {gain[k - 1]:.3g}, and cost {1.001 * critical * k:.3g}." in reason


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_is_under_way_is_paid_for(noise):
    """[eq:pending] against draws of the outcomes, and [eq:price] counts only what comes on top of it."""
    optimizer = told(3, noise=noise)
    optimizer.ask(2)
    problem, kernel = optimizer._planner.inference.problem(), optimizer.model.kernel
    mu, S = (np.asarray(each) for each in joint(kernel, problem.post, problem.pending))
    variance = float(problem.post.noise)
    rng = np.random.default_rng(0)
    outcomes = rng.multivariate_normal(mu, S + variance * np.eye(2), 200_000)
    means = mu + (outcomes - mu) @ np.linalg.solve(S + variance * np.eye(2), S)
    gains = np.maximum(float(incumbent(kernel, problem.post)) - means.min(axis=1), 0.0)
    error = gains.std() / np.sqrt(len(gains))
    expected = pending_gain(kernel, problem)
    assert expected == pytest.approx(gains.mean(), abs=4 * error + 0.01 * gains.mean())
    assert gains.mean() > 20 * error
    gain = optimizer.forecast().gain - optimizer._planner.inference.outputs().gain(expected)
    critical = np.max(gain / np.arange(1, len(gain) + 1))
    assert Price(0.999 * critical).reason(optimizer) is None
    assert "besides what the 2 under way bring" in Price(1.001 * critical).reason(optimizer)
    assert pending_gain(kernel, told(3)._planner.inference.problem()) == 0.0


def test_a_price_per_unit_of_cost():
    """Where every evaluation costs 2, a price per unit is half the price per evaluation; [eq:price] over the plan elsewhere."""
    counted, paid = told(5), told(5, budget=20.0, cost=lambda x: 2.0)
    gain = counted.forecast().gain
    np.testing.assert_allclose(paid.forecast().gain, gain, rtol=1e-6)
    critical = np.max(gain / np.arange(1, len(gain) + 1))
    assert Price(0.999 * critical / 2).reason(paid) is None
    assert "per unit of cost" in Price(1.001 * critical / 2).reason(paid)

    def cost(x):
        return 1.0 + 3.0 * float(x[0])

    paid = told(3, budget=16.0, cost=cost)
    plan, gain = paid.plan().points, paid.forecast().gain
    each = [cost(x) for x in plan] + [1.0] * (len(gain) - len(plan))
    critical = np.max(gain / np.cumsum(each))
    assert len(plan) > 1
    assert Price(0.999 * critical).reason(paid) is None
    assert Price(1.001 * critical).reason(paid) is not None


def test_no_gain_compares_with_the_spread_of_the_values():
    """[eq:nogain]: both the expected gain and the optimistic end must be below the share."""
    optimizer = told(6)
    forecast, values = optimizer.forecast(), optimizer.values
    hoped = max(forecast.gain[-1], forecast.best - forecast.low[-1])
    assert hoped > forecast.gain[-1]  # it is the band that decides here
    critical = hoped / (max(values) - min(values))
    assert NoGain(0.999 * critical).reason(optimizer) is None
    reason = NoGain(1.001 * critical).reason(optimizer)
    assert f"4 more evaluations are expected to buy {forecast.gain[-1]:.2g}, with luck {hoped:.2g}" in reason
    assert NoGain(0.999).reason(told(4, fun=lambda x: 2.0)) is None  # no spread, nothing to compare with


def test_a_change_of_units_changes_no_mind():
    """Prices, targets and values in other units: the same decision."""
    here, there = told(5), told(5, fun=lambda x: 7.0 + 100.0 * wave(x))
    for criterion, scaled in (
        (Price(0.001), Price(0.1)),
        (Price(0.03), Price(3.0)),
        (Target(-0.66), Target(-59.0)),
        (Target(-0.67), Target(-60.0)),
        (NoGain(0.01), NoGain(0.01)),
        (NoGain(0.9), NoGain(0.9)),
    ):
        assert (criterion.reason(here) is None) == (scaled.reason(there) is None), criterion
    assert [Price(p).reason(here) is None for p in (0.001, 0.03)] == [True, False]
    assert [NoGain(s).reason(here) is None for s in (0.01, 0.9)] == [True, False]


def test_only_a_target_stops_before_the_initial_evaluations_are_told():
    opinions = Price(1e9), NoGain(0.999)
    for n in range(3):
        assert [each.reason(told(n)) for each in opinions] == [None, None]
    waiting = told(2)
    waiting.ask()  # the last initial one: asked for and not told
    assert [each.reason(waiting) for each in opinions] == [None, None]
    wanted = told(3, x0=[[0.1], [0.2], [0.3], [0.4]])  # one more that the user wants tried
    assert [each.reason(wanted) for each in opinions] == [None, None]
    assert None not in [each.reason(told(3)) for each in opinions]
    assert Target(0.0).reason(told(0)) is None
    assert Target(wave([0.1])).reason(told(1, x0=[[0.1], [0.2]])) is not None


def test_targets():
    optimizer = told(3)
    best = min(optimizer.values)
    assert Target(best).reason(optimizer) == f"The best value, {best:.6g}, has reached the target, {best:.6g}."
    assert Target(np.nextafter(best, -1)).reason(optimizer) is None
    upwards = told(3, fun=lambda x: -wave(x))
    top = max(-value for value in upwards.values)
    criterion = for_maximizing(Price(1e-9) & NoGain(1e-9) | Target(top))
    assert criterion == Price(1e-9) & NoGain(1e-9) | Target(top, maximize=True)
    assert criterion.reason(upwards) == f"The best value, {top:.6g}, has reached the target, {top:.6g}."
    assert Target(np.nextafter(top, 9), maximize=True).reason(upwards) is None


def test_silence_where_there_is_nothing_to_say():
    opinions = Price(1e9) | NoGain(0.999)
    failing = told(4, fun=lambda x: None)
    assert (opinions | Target(9.0)).reason(failing) is None  # no value yet
    assert opinions.reason(told(10)) is None  # the budget is spent
    finite = Optimizer([Int(0, 3)], **SETTINGS)
    for k in range(4):
        finite.tell([k], float(k))
    assert opinions.reason(finite) is None  # exhausted
    again = Optimizer([Int(0, 3)], **SETTINGS)
    again.tell([[1]] * 4, [1.0] * 4)
    assert opinions.reason(again) is not None  # as many evaluations as configurations, but three of those are new
    some = told(3)
    some.tell([0.5], None)
    assert Price(1e9).reason(some) is not None  # failures are no obstacle


@pytest.mark.parametrize(
    ("stop", "nfev", "status", "words"),
    [
        (Price(1e9), 3, 5, "No further evaluations are expected to be worth 1e+09 each"),
        (Price(1e-12), 10, 0, "Budget spent: 10 of 10"),
        (Target(-0.66), 4, 5, "The best value, -0.661037, has reached the target, -0.66"),
        (Target(-9.0) | NoGain(0.2), 5, 5, "No realistic gain is left: 5 more evaluations"),
        (Target(-9.0) & Price(1e9), 10, 0, "Budget spent"),
    ],
    ids=str,
)
def test_a_run_that_stops(stop, nfev, status, words):
    result = minimize(wave, [(0.0, 1.0)], stop=stop, **SETTINGS)
    assert result.success
    assert (result.nfev, result.status) == (nfev, status)
    assert words in result.message
    assert result.recommended is not None
    np.testing.assert_array_equal(result.func_vals, told(10).values[:nfev])  # the same run, but for its end


def test_what_is_under_way_is_awaited_and_kept():
    """Two workers; the first result says stop while the second is evaluated: nothing third begins, the second is kept."""
    decided, numbers, begun = threading.Event(), itertools.count(), []

    @dataclass(frozen=True)
    class AfterTheFirst(Criterion):
        def reason(self, optimizer):
            if not optimizer.values:
                return None
            decided.set()
            return "Enough."

    def objective(x):
        number = next(numbers)
        begun.append(number)
        if number > 0:
            assert decided.wait(timeout=30)
        return hills((x[0], 0.5))

    with ThreadPoolExecutor(2) as pool:
        result = minimize(objective, [(0.0, 1.0)], stop=AfterTheFirst(), executor=pool, **SETTINGS)
    assert begun == [0, 1]
    assert (result.nfev, result.status, result.success, result.message) == (2, 5, True, "Enough.")


def test_a_price_ends_a_parallel_run_too():
    with ThreadPoolExecutor(2) as pool:
        result = minimize(wave, [(0.0, 1.0)], stop=Price(1e9), executor=pool, **SETTINGS)
    assert result.status == 5
    assert 3 <= result.nfev <= 4  # one more may have begun before the last initial one was told
