import pickle

import numpy as np
import pytest

from glasses import Choice, ExhaustedError, ExpectedLoss, Forecast, GaussianProcess, Int, NoGain, Optimizer, Price
from glasses.lookahead.forecast import forecast_gains
from glasses.loop.correction import CORRECTION, ForecastCorrection, stretched
from glasses.loop.ledger import TooFewValuesError
from glasses.surrogate import Known


def begun(budget=10, units=(0.0, 1.0), n=5, **settings):
    optimizer = Optimizer([(0, 1)], budget=budget, loss=ExpectedLoss(), seed=3, noise=0.0, **settings)
    for x in (0.1, 0.35, 0.6, 0.8, 0.95)[:n]:
        optimizer.tell([x], units[0] + units[1] * float(np.sin(9 * x) + x))
    return optimizer


def test_in_the_users_units():
    plain, moved = begun().forecast(), begun(units=(50.0, 1000.0)).forecast()
    np.testing.assert_allclose(moved.gain, 1000.0 * plain.gain, rtol=1e-6)
    assert moved.best == pytest.approx(50.0 + 1000.0 * plain.best)
    assert len(plain) == 5
    assert plain.clairvoyant <= plain.expected[-1] <= plain.expected[0] <= plain.best
    assert np.all(plain.low <= plain.high)


def test_the_first_step_is_the_loss_of_the_next_point():
    """Exact at k = 1: eta - EI at the point that ask will give."""
    optimizer = begun()
    forecast = optimizer.forecast(steps=1)
    x = optimizer.plan().next
    assert forecast.expected[0] == pytest.approx(float(optimizer.loss_at([x], left=1)[0]), abs=1e-6)


def test_asks_for_nothing_and_is_the_same_twice():
    optimizer = begun()
    first, second = optimizer.forecast(steps=3), begun().forecast(steps=3)
    assert optimizer.pending == []
    np.testing.assert_array_equal(first.expected, second.expected)
    np.testing.assert_allclose(first.expected[0], begun().forecast().expected[0], rtol=1e-9)


def test_in_words():
    assert str(begun().forecast(steps=1)).startswith("1 more evaluation is expected to buy ")
    assert "2 more evaluations are expected to buy " in str(begun().forecast())


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (0, "steps must be a whole number of at least 1"),
        (129, "At most 128 evaluations can be forecast at once"),
        (2.5, "steps must be"),
        (True, "steps"),
    ],
)
def test_wrong_horizons_are_refused(steps, words):
    with pytest.raises(ValueError, match=words):
        begun().forecast(steps=steps)


@pytest.mark.parametrize(("n", "more"), [(0, 3), (1, 2), (2, 1)])
def test_too_few_values_are_refused_in_one_sentence(n, more):
    """d + 2 values are needed, pending points and failures do not count; everything else works as before."""
    optimizer = begun(n=n, n_initial=1)
    optimizer.ask()
    optimizer.tell([0.5], None)
    words = rf"^A forecast needs 3 values, two more than there are parameters, got {n}: tell {more} more first\.$"
    for raw in (False, True):
        with pytest.raises(TooFewValuesError, match=words):
            optimizer.forecast(raw=raw)
    assert optimizer.plan().expected_best is None
    assert (Price(1e9) | NoGain(0.999)).reason(optimizer) is None  # not yet
    assert isinstance(TooFewValuesError("as others"), ValueError)


def test_enough_values_are_enough():
    assert len(begun(n=3, n_initial=1).forecast()) == 7
    assert Price(1e9).reason(begun(n=3, n_initial=1)) is not None


def test_beyond_the_budget():
    """What more evaluations would buy: the budget's part is the forecast without them; five more where nothing is left."""
    optimizer = begun(budget=8)
    short, long = optimizer.forecast(), optimizer.forecast(12)
    assert (len(short), short.within, len(long), long.within) == (3, 3, 12, 3)
    for name in ("expected", "low", "high", "open_loop"):
        np.testing.assert_allclose(getattr(long, name)[:3], getattr(short, name), rtol=1e-9, err_msg=name)
    assert long.gain[-1] > short.gain[-1]
    gain = long.gain
    inside = f"1 more evaluation is expected to buy {gain[0]:.3g}, the next 2 {gain[2] - gain[0]:.3g}."
    beyond = f"5 more evaluations are expected to buy {gain[7] - gain[2]:.3g}, the next 4 {gain[11] - gain[7]:.3g}."
    assert str(long) == f"{inside} Beyond the budget, {beyond}"
    raised = begun(budget=17)
    np.testing.assert_allclose(raised.forecast(x=optimizer.plan().next).expected, long.expected, rtol=1e-9)


def test_beyond_a_budget_that_is_spent():
    optimizer = begun(budget=5)
    five, more = optimizer.forecast(), optimizer.forecast(7)
    assert (len(five), five.within) == (5, 0)
    assert str(five) == f"Beyond the budget, 5 more evaluations are expected to buy {five.gain[-1]:.3g}."
    np.testing.assert_allclose(more.expected[:5], five.expected, rtol=1e-9)
    assert np.all(five.gain > 0)
    assert optimizer.remaining == 0  # nothing was changed
    assert optimizer.pending == []
    np.testing.assert_allclose(begun(budget=10).forecast(x=begun(budget=10).ask()).expected, five.expected, rtol=1e-9)


def test_a_long_way_beyond_the_budget_in_words():
    gains = np.arange(1.0, 61.0)
    far = Forecast(0.0, -gains, -gains, -gains, -gains, -60.0, gains, left=10)
    words = str(far)
    assert words.count("the next 5 5") == 5
    assert words.endswith("the next 5 5, the next 25 25.")


def test_costs_end_a_forecast_where_the_money_does():
    settings = {"cost": lambda x: 1.0, "n_initial": 3}
    for budget, words in ((5.0, "Nothing is left to forecast"), (7.0, "steps = 4 but 2 at most fit into the 2 left")):
        optimizer = Optimizer([(0, 1)], budget=budget, loss=ExpectedLoss(), seed=3, noise=0.0, **settings)
        for x in (0.1, 0.35, 0.6, 0.8, 0.95):
            optimizer.tell([x], float(np.sin(9 * x) + x))
        with pytest.raises(ValueError, match=words):
            optimizer.forecast(4)


def test_no_more_steps_than_a_finite_space_holds():
    optimizer = Optimizer({"a": Choice(list("abcdefgh"))}, budget=20, loss=ExpectedLoss(), seed=1, noise=0.0, n_initial=3)
    for k, name in enumerate("abcde"):
        optimizer.tell({"a": name}, float(k * k % 7))
    assert len(optimizer.forecast()) == 3
    assert optimizer.forecast(steps=1).clairvoyant == optimizer.forecast().clairvoyant
    with pytest.raises(ValueError, match="only 3 configurations of this space are new"):
        optimizer.forecast(steps=4)


def test_repetitions_do_not_use_up_a_finite_space():
    optimizer = Optimizer([Int(0, 3)], budget=10, loss=ExpectedLoss(), seed=1, noise=0.0, n_initial=2)
    for k in (0, 0, 1, 2):
        optimizer.tell([k], float(k))
    assert len(optimizer.forecast()) == 1
    optimizer.tell([3], 4.0)
    with pytest.raises(ExhaustedError):
        optimizer.forecast()


def test_the_risk_of_a_failure_lowers_the_forecast():
    """k = 1 is the probability of success times EI, as the loss of the point says."""
    optimizer = begun(budget=20)
    for x in (0.42, 0.44, 0.46, 0.48):
        optimizer.tell([x], None)
    forecast = optimizer.forecast(steps=4, x=[0.5])
    gain = forecast.best - float(optimizer.loss_at([0.5], left=1)[0])
    assert forecast.gain[0] == pytest.approx(gain, rel=1e-6)
    assert np.all(np.diff(forecast.gain) >= 0)
    assert forecast.open_loop[0] == pytest.approx(forecast.expected[0], abs=0.1 * (forecast.best - forecast.clairvoyant))


def test_with_noise_there_is_one_best_value():
    """The first entry does not depend on how far is looked, nothing jumps at the end, the fixed plan promises no more."""
    optimizer = Optimizer([(0, 1)], budget=14, loss=ExpectedLoss(), seed=3, noise=0.5)
    for x in (0.1, 0.35, 0.6, 0.8, 0.95, 0.5, 0.2, 0.7):
        optimizer.tell([x], float(np.sin(9 * x) + x))
    far, near = optimizer.forecast(), optimizer.forecast(steps=1)
    assert far.expected[0] == pytest.approx(near.expected[0], rel=1e-9)
    steps = np.diff(far.gain)
    assert steps[-1] < 2 * steps[-2]
    assert np.all(far.open_loop >= far.expected - 0.1 * far.gain)


def test_hindsight_moves_a_forecast_of_a_fitted_model_and_leaves_the_next_evaluation_alone():
    """[eq:stretch], by hand: 5 values told, so t_k = (5 + k) / 6."""
    optimizer = begun()
    raw, moved = optimizer.forecast(raw=True), optimizer.forecast()
    t, r = (5 + np.arange(1, 6)) / 6, np.median(optimizer.values) - min(optimizer.values)
    mean = CORRECTION.gain, CORRECTION.saturation
    for end, share, saturation in (("expected", *mean), ("open_loop", *mean), ("low", CORRECTION.most, 0.0)):
        gain, by_hand = raw.best - getattr(raw, end), []
        for k in range(5):
            h = gain[k] + share * (k + 1) / 10 * np.log(t[k]) * np.sqrt(gain[k] * r)
            by_hand.append(h / (1 + saturation * np.sqrt(1 - 1 / t[k]) * min(h / r, 4)))
        by_hand = np.maximum.accumulate(by_hand)
        if end == "low":
            by_hand = np.maximum(by_hand, moved.gain)
        np.testing.assert_allclose(moved.best - getattr(moved, end), by_hand, rtol=1e-9)
    assert moved.gain[0] == pytest.approx(raw.gain[0], rel=1e-12)
    for never_up in (moved.expected, moved.low, moved.high, moved.open_loop):
        assert np.all(np.diff(never_up) <= 1e-12)
    assert moved.clairvoyant <= moved.expected[-1]


def test_the_cautious_end_lets_some_evaluations_come_to_nothing():
    """[eq:idle], by hand; never less than the next evaluation is sure to bring."""
    high = 1.0 - np.array([0.1, 0.2, 0.4, 0.8])
    told = Forecast(1.0, high - 0.2, high - 0.3, high, high, -2.0, np.array([1.0, 6.0, 12.0, 24.0]))
    moved = ForecastCorrection(0.0, 0.0, 6).applied(told, [1.0, 5.0, 9.0])
    np.testing.assert_allclose(1.0 - moved.high, [0.1, 0.1, 0.5 * 0.4, 0.75 * 0.8])


def test_the_correction_grows_with_the_steps_up_to_fifty_and_then_with_the_data_alone():
    """[eq:stretch] at k = 40, 50 and 90, by hand."""
    gain, k = np.full(3, 0.25), np.array([40.0, 50.0, 90.0])
    by_hand = 0.25 + 0.5 * np.array([4.0, 5.0, 5.0]) * np.log((9 + k) / 10) * np.sqrt(0.25 * 4.0)
    np.testing.assert_allclose(stretched(gain, 0.5, 9, 4.0, k), by_hand, rtol=1e-12)


def test_where_the_model_sees_nothing_to_gain_nothing_is_promised():
    flat = Forecast(1.0, *(np.ones(4) for _ in range(4)), 1.0, np.arange(1.0, 5.0))
    moved = CORRECTION.applied(flat, [1.0, 5.0, 9.0])
    assert np.all(moved.gain == 0)
    assert moved.clairvoyant == 1.0
    assert np.all(moved.low == 1.0)


def test_known_hyperparameters_need_no_correction():
    model = GaussianProcess(fit=Known(0.3), noise=0.0)
    known = Optimizer([(0, 1)], budget=10, loss=ExpectedLoss(), seed=3, model=model)
    for x in (0.1, 0.6, 0.95):
        known.tell([x], float(np.sin(9 * x)))
    np.testing.assert_array_equal(known.forecast().expected, known.forecast(raw=True).expected)


def test_evaluations_that_cannot_be_paid_for_bring_nothing():
    """The forecast ends where the money is gone in every simulated future, and so does what may be asked of it."""
    settings = {"cost": lambda x: 1.0 if x[0] > 0.02 else 0.05, "n_initial": 3}
    optimizer = Optimizer([(0, 1)], budget=8.0, loss=ExpectedLoss(), seed=3, noise=0.0, **settings)
    for x in (0.1, 0.35, 0.6, 0.8, 0.95):
        optimizer.tell([x], float(np.sin(9 * x) + x))
    raw, moved = optimizer.forecast(raw=True), optimizer.forecast()
    assert optimizer.remaining == 60
    assert 3 <= len(moved) == len(raw) < 60
    assert np.all(np.diff(moved.evaluations) > 0)
    with pytest.raises(ValueError, match=f"steps = 60 but {len(raw)} can be paid for: look less far"):
        optimizer.forecast(60)


def test_what_is_under_way_is_not_stretched():
    """Pending points explain all of the gain: with or without the correction nothing comes on top of them."""
    optimizer = begun(budget=13)
    optimizer.ask(6)  # fills the interesting region
    pending_gain = optimizer._planner.inference.pending_gain()
    raw, moved = optimizer.forecast(raw=True), optimizer.forecast()
    on_top = np.maximum(raw.gain - pending_gain, 0.0)
    t = (5 + 6 + np.arange(1, len(raw) + 1)) / (5 + 6 + 1)
    r = np.median(optimizer.values) - raw.best
    assert pending_gain > 0
    h = on_top + CORRECTION.gain * np.arange(1, len(raw) + 1) / 10 * np.log(t) * np.sqrt(on_top * r)
    by_hand = np.minimum(raw.gain, pending_gain) + h / (1 + CORRECTION.saturation * np.sqrt(1 - 1 / t) * np.minimum(h / r, 4))
    np.testing.assert_allclose(moved.gain, np.maximum.accumulate(by_hand), rtol=1e-9)


def test_with_noise_the_spread_is_measured_from_the_best_mean():
    optimizer = Optimizer([(0, 1)], budget=30, loss=ExpectedLoss(), seed=3, noise=0.5)
    for k, x in enumerate(np.linspace(0.05, 0.95, 12)):
        optimizer.tell([x], float(np.sin(9 * x) + 0.5 * (-1) ** k))
    raw, moved = optimizer.forecast(raw=True), optimizer.forecast()
    r = np.median(optimizer.values) - raw.best
    assert r < np.median(optimizer.values) - min(optimizer.values)
    t = (12 + np.arange(1, len(raw) + 1)) / 13
    h = raw.gain + CORRECTION.gain * np.arange(1, len(raw) + 1) / 10 * np.log(t) * np.sqrt(raw.gain * r)
    by_hand = h / (1 + CORRECTION.saturation * np.sqrt(1 - 1 / t) * np.minimum(h / r, 4))
    np.testing.assert_allclose(moved.gain, np.maximum.accumulate(by_hand), rtol=1e-9)


def test_a_shorter_forecast_is_the_beginning_of_the_longer_one():
    optimizer = begun()
    short, long = optimizer.forecast(steps=2), optimizer.forecast()
    np.testing.assert_array_equal(short.expected, long.expected[:2])
    np.testing.assert_array_equal(short.low, long.low[:2])
    assert short.clairvoyant == long.clairvoyant


def test_a_plan_forecasts_when_it_is_read_and_for_its_own_moment(monkeypatch):
    """Asking and planning pay for no forecast; what is told later does not change what the plan expected."""
    from glasses.search import plan as planned

    optimizer = begun()
    expected = optimizer.forecast().expected[-1]
    counted = []
    monkeypatch.setattr(planned, "forecast_gains", lambda *args, **kw: counted.append(1) or forecast_gains(*args, **kw))
    fresh = begun()
    plan = fresh.plan()
    x = fresh.ask()
    fresh.tell(x, -50.0)
    fresh.budget = 20
    assert counted == []
    assert plan.expected_best == expected
    assert plan.expected_best == expected
    assert counted == [1]
    kept = pickle.loads(pickle.dumps(begun().plan()))
    assert kept.expected_best == expected
    np.testing.assert_array_equal(kept.points, plan.points)
    assert fresh.plan().expected_best < -50.0
