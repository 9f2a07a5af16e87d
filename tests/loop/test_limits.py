"""What no forecast goes beyond: its own bounds, and the best value that is possible."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from glasses import ExpectedLoss, Forecast, GaussianProcess, NoGain, Optimizer, Price, minimize
from glasses.loop.correction import CORRECTION, ForecastCorrection
from glasses.loop.limits import BestPossibleWarning, in_order, limited, limited_mean
from glasses.surrogate import Known

ENDS = ("expected", "low", "high", "open_loop")
corrections = st.builds(ForecastCorrection, st.floats(0.0, 3.0), st.floats(0.0, 5.0), st.integers(0, 20), st.floats(0.0, 3.0))


@st.composite
def forecasts(draw):
    """Any forecast of a model: gains that grow with k, everything else in any order."""
    n = draw(st.integers(1, 30))
    best, scale = draw(st.floats(-1e3, 1e3)), draw(st.floats(1e-6, 1e3))
    steps = st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n)
    expected, low, high, open_loop = (best - scale * np.cumsum(draw(steps)) for _ in ENDS)
    clairvoyant = min(expected[-1], open_loop[-1]) - scale * draw(st.floats(0.0, 1.0))
    values = [best + scale * each for each in draw(st.lists(st.floats(0.0, 9.0), min_size=1, max_size=9))]
    return Forecast(best, expected, low, high, open_loop, clairvoyant, np.arange(1.0, n + 1.0)), values


def check_order(found):
    """[eq:order], to rounding."""
    slack = 1e-9 * (1.0 + abs(found.best) + abs(found.best - found.clairvoyant))
    for name in ENDS:
        assert np.all(np.diff(getattr(found, name)) <= slack), name
        assert np.all(getattr(found, name) <= found.best + slack), name
        assert np.all(getattr(found, name) >= found.clairvoyant - slack), name
    assert np.all(found.low <= found.expected + slack)
    assert np.all(found.expected <= found.high + slack)


@given(forecasts(), corrections, st.integers(0, 5), st.floats(0.0, 2.0))
def test_a_corrected_forecast_is_in_order_and_corrects_the_same_in_any_units(made, correction, pending, share):
    forecast, values = made
    pending_gain = share * (forecast.best - forecast.clairvoyant) if pending else 0.0
    found = in_order(correction.applied(forecast, values, pending, pending_gain))
    check_order(found)
    a, b = 250.0, -3.0
    moved = Forecast(*(a * getattr(forecast, name) + b for name in ("best", *ENDS, "clairvoyant")), forecast.evaluations)
    again = in_order(correction.applied(moved, [a * each + b for each in values], pending, a * pending_gain))
    size = 1e-7 * a * (1.0 + abs(found.best) + found.best - found.clairvoyant)
    for name in (*ENDS, "clairvoyant"):
        np.testing.assert_allclose(getattr(again, name), a * getattr(found, name) + b, atol=size, err_msg=name)


@given(forecasts(), st.floats(0.0, 2.0))
def test_nothing_is_beyond_what_is_possible(made, share):
    forecast, values = made
    floor = forecast.best - share * (forecast.best - forecast.clairvoyant)
    found = in_order(limited(CORRECTION.applied(forecast, values), floor))
    check_order(found)
    for name in (*ENDS, "clairvoyant"):
        assert np.all(getattr(found, name) >= floor), name
    nothing = in_order(limited(forecast, forecast.best + 1.0))
    assert np.all(nothing.gain == 0)
    assert nothing.clairvoyant == forecast.best


@pytest.mark.parametrize("mean", [0.01, 0.3, 1.0, 5.0, 1e4])
def test_a_limited_mean_is_that_of_an_exponential_gain(mean):
    """[eq:limit] against quadrature."""
    gain = stats.expon(scale=mean)
    by_hand = integrate.quad(lambda g: g * gain.pdf(g), 0.0, 0.7, epsabs=0.0, limit=200)[0] + 0.7 * gain.sf(0.7)
    assert limited_mean(mean, 0.7) == pytest.approx(by_hand, rel=1e-8)
    assert limited_mean(0.0, 0.7) == 0.0
    assert limited_mean(mean, 0.0) == 0.0


def begun(budget=10, noise=0.0, told=(0.1, 0.35, 0.6, 0.8, 0.95), **settings):
    optimizer = Optimizer([(0, 1)], budget=budget, loss=ExpectedLoss(), seed=3, noise=noise, **settings)
    for x in told:
        optimizer.tell([x], float(np.sin(9 * x) + x))
    return optimizer


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 9), st.sampled_from(["fitted", "known", "noisy"]))
def test_real_forecasts_are_in_order(seed, told, kind):
    rng = np.random.default_rng(seed)
    model = (
        GaussianProcess(fit=Known(0.3), noise=0.0)
        if kind == "known"
        else GaussianProcess(noise=0.3 if kind == "noisy" else 0.0)
    )
    optimizer = Optimizer([(0, 1)] * 2, budget=told + 7, loss=ExpectedLoss(), seed=seed, model=model, n_initial=4)
    optimizer.tell(rng.random((told, 2)), rng.standard_normal(told))
    found = optimizer.forecast(10)
    check_order(found)
    optimizer.best_possible = found.best - 0.3 * found.gain[-1]
    near = optimizer.forecast(10)
    check_order(near)
    assert min(near.clairvoyant, near.low.min()) >= optimizer.best_possible
    assert np.all(near.expected >= found.expected)


def test_what_is_possible_limits_forecasts_and_plans_and_changes_no_suggestion():
    free, near = begun(), begun(best_possible=-0.5)
    far = begun(best_possible=-1e6)
    np.testing.assert_allclose(far.forecast().expected, free.forecast().expected, rtol=1e-9)
    assert free.forecast().low[-1] < -0.5
    found = near.forecast()
    assert min(found.clairvoyant, *found.low, *found.expected, *found.open_loop) >= -0.5
    assert near.plan().expected_best == found.expected[-1] >= -0.5
    assert np.all(near.plan().mean >= -0.5)
    assert near.forecast(raw=True).clairvoyant == free.forecast(raw=True).clairvoyant
    np.testing.assert_array_equal(free.ask(), near.ask())
    near.best_possible = None
    assert near.best_possible is None


def test_what_is_possible_stops_a_run():
    """Where next to nothing is left to gain, no price is worth it."""
    free = begun()
    best = min(free.values)
    share = 0.01 * free.forecast().gain.max()
    assert Price(share).reason(free) is None
    assert NoGain().reason(free) is None
    near = begun(best_possible=best - 0.5 * share)
    assert "No further evaluations" in Price(share).reason(near)
    assert NoGain(0.01).reason(begun(best_possible=best - 1e-3)) is not None


def test_pending_gains_are_limited_too():
    optimizer = begun(budget=13)
    optimizer.ask(4)
    free = optimizer._planner.pending_gain()
    optimizer.best_possible = min(optimizer.values) - 0.1 * free
    assert 0 < optimizer._planner.pending_gain() <= 0.1 * free


@pytest.mark.parametrize("given", [float("nan"), float("inf"), "0", True, [0.0], 1j])
def test_what_cannot_be_a_best_possible_value(given):
    words = "best_possible must be a finite number in the units of y, got .*: say which value none can beat"
    with pytest.raises(ValueError, match=words):
        begun(best_possible=given)
    with pytest.raises(ValueError, match=words):
        minimize(lambda x: x[0], [(0, 1)], budget=4, best_possible=given)
    optimizer = begun(best_possible=-3)
    with pytest.raises(ValueError, match=words):
        optimizer.best_possible = given
    assert optimizer.best_possible == -3.0


def test_a_value_that_beats_the_best_possible_one_is_kept_and_said():
    """The data win: the forecast leaves the floor out, with a warning, and nothing stops because of it."""
    optimizer, free = begun(best_possible=0.5), begun()
    assert optimizer.values == free.values
    assert min(optimizer.values) < 0.5
    words = rf"best_possible = 0\.5 is to be a value that none can beat, but {min(free.values):.6g} was told: forecasts leave"
    with pytest.warns(BestPossibleWarning, match=words):
        found = optimizer.forecast()
    np.testing.assert_array_equal(found.expected, free.forecast().expected)
    with pytest.warns(BestPossibleWarning):
        assert NoGain().reason(optimizer) is None
    with pytest.warns(BestPossibleWarning):
        assert optimizer.plan().expected_best == free.plan().expected_best
    np.testing.assert_array_equal(optimizer.ask(), free.ask())


def test_noise_may_go_a_little_beyond_what_is_possible():
    """A yield of at most 100 measured as 100.3: no contradiction, and nothing is left to gain."""
    optimizer = Optimizer([(0, 1)], budget=10, loss=ExpectedLoss(), seed=3, noise=0.2, best_possible=-100.0, n_initial=3)
    optimizer.tell([[0.1], [0.4], [0.6], [0.9]], [-98.0, -99.6, -100.3, -98.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = optimizer.forecast()
    assert np.all(found.expected >= min(-100.0, found.best))
    optimizer.tell([0.55], -103.0)
    with pytest.warns(BestPossibleWarning):
        optimizer.forecast()
