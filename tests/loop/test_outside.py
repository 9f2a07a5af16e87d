"""Data outside the ranges: the model uses them, nothing is suggested there, and none of them is ever the incumbent."""

import numpy as np
import pytest
from problems import hills

from glasses import Choice, Float, GaussianProcess, Int, Optimizer, Target
from glasses.plot.numbers import overview_data
from glasses.space.space import Space
from glasses.surrogate import Compress, Matern52, Standardize, Warped
from glasses.surrogate.inducing import INDUCING, inducing_points

POINTS = np.random.default_rng(7).random((14, 2))
BASIN = [(0.15, 0.55), (0.4, 0.8)]  # a part of the square


def narrowed(points, values, **settings):
    optimizer = Optimizer(BASIN, **{"budget": 20, "n_initial": 3, "seed": 3, **settings})
    optimizer.tell(points, values, outside=True)
    return optimizer


def inside(points):
    low, high = np.array(BASIN).T
    return np.all((points >= low) & (points <= high), axis=1)


def test_data_outside_make_better_predictions_inside_than_none():
    rng = np.random.default_rng(0)
    gained = []
    for seed in range(5):
        points = np.random.default_rng(seed).random((14, 2))
        values = np.array([hills(x) for x in points])
        within = inside(points)
        if not 1 <= within.sum() <= 6:
            continue
        low, high = np.array(BASIN).T
        where = low + (high - low) * rng.random((60, 2))
        truth = np.array([hills(x) for x in where])
        errors = [
            np.sqrt(np.mean((narrowed(points[kept], values[kept]).predict(where)[0] - truth) ** 2))
            for kept in (np.ones(14, bool), within)
        ]
        gained.append(errors[1] / errors[0])
    assert len(gained) >= 3
    assert np.median(gained) > 1.5
    assert min(gained) > 0.8


def test_decisions_forecasts_and_plans_stay_inside():
    values = np.array([hills(x) for x in POINTS])
    values[np.argmin(inside(POINTS))] = values.min() - 2.0  # the best of all lies outside
    optimizer = narrowed(POINTS, values)
    least = values[inside(POINTS)].min()
    assert values.min() < least
    result = optimizer.result()
    assert result.fun == least
    np.testing.assert_array_equal(result.x, POINTS[values == least][0])
    assert inside(np.array([result.recommended.x]))[0]
    forecast = optimizer.forecast()
    assert forecast.best == pytest.approx(least, abs=1e-2)
    assert np.all(forecast.expected <= forecast.best)
    assert np.all(inside(np.array(optimizer.plan().points)))
    for _ in range(2):
        x = optimizer.ask()
        assert inside(x[None])[0]
        optimizer.tell(x, hills(x))
    assert Target(values.min()).reason(optimizer) is None
    assert Target(optimizer.result().fun).reason(optimizer) is not None
    data = overview_data(optimizer)
    assert len(data.values) == 16
    assert np.nanmin(data.best) == optimizer.result().fun
    with pytest.raises(ValueError, match="lies outside"):
        optimizer.tell(POINTS[~inside(POINTS)][0], 1.0)


def test_with_nothing_inside_the_initial_design_comes_first():
    away = POINTS[~inside(POINTS)][:6]
    optimizer = narrowed(away, [hills(x) for x in away])
    assert optimizer.result().x is None
    assert np.isnan(optimizer.result().fun)
    assert optimizer.plan().expected_best is None
    with pytest.raises(ValueError, match="A forecast needs a value inside today's ranges, got none"):
        optimizer.forecast()
    assert Target(1e9).reason(optimizer) is None
    x = optimizer.ask()
    assert inside(x[None])[0]
    assert np.all(np.isfinite(optimizer.predict(x)[0]))
    optimizer.tell(x, 1.0)
    assert optimizer.forecast().best == pytest.approx(1.0, abs=0.1)


def test_pending_and_failed_points_outside():
    optimizer = narrowed(POINTS, [hills(x) for x in POINTS])
    away = POINTS[~inside(POINTS)][0] + 0.01
    optimizer.mark_pending([away], outside=True)
    assert optimizer.remaining == 5
    assert optimizer._planner.inference.problem().pending.shape == (0, 2)
    optimizer.tell(away, None, outside=True)
    assert inside(optimizer.ask()[None])[0]
    with pytest.raises(ValueError, match="lies outside"):
        optimizer.mark_pending([away])


def test_numbers_of_every_kind():
    space = Space([Float(1e-2, 1.0, log=True), Int(2, 5), Float(0, 1, step=0.25), Int(1, 8, log=True), Choice(["a", "b"])])
    assert space.is_inside(space.read([0.5, 3, 0.25, 4, "a"])[0])[0]
    raw, _ = space.read([10.0, 9, -0.5, 30, "b"], outside=True)
    unit = space.to_unit(raw)
    assert unit[0, 0] == pytest.approx(1.5, abs=1e-8)
    assert unit[0, 1] == pytest.approx((9 - 2 + 0.5) / 4, abs=1e-8)
    assert unit[0, 2] == pytest.approx((-2 + 0.5) / 5, abs=1e-8)
    assert not space.is_inside(raw)[0]
    assert space.form(raw[0]) == [10.0, 9, -0.5, 30, "b"]
    for wrong, sentence in (
        ([0.0, 3, 0.25, 4, "a"], r"x\[0\] = 0 lies outside"),
        ([0.5, 3, 0.25, 0, "a"], r"x\[3\] = 0 lies outside"),
        ([0.5, 3, 2e3, 4, "a"], r"x\[2\] = 2000 lies 1000 times the width of the range away from it"),
        ([0.5, 3.5, 0.25, 4, "a"], "must be a whole number"),
        ([0.5, 3, 0.25, 4, "c"], "must be one of 'a', 'b'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            space.read(wrong, outside=True)


def test_outputs_do_not_bend_below_the_incumbent():
    """Compress bends values above the median: if all inside are worse than that, a gain there would not be a gain in y."""
    x = np.linspace(-3.0, 1.0, 9)[:, None]
    y = np.exp(1.5 * x[:, 0])
    optimizer = Optimizer([(0.0, 1.0)], budget=15, model=GaussianProcess(outputs=Compress()), n_initial=2, seed=0)
    optimizer.tell(x, y, outside=True)
    outputs = optimizer._planner.inference.outputs()
    assert outputs == Standardize().fit(y)
    usual = Optimizer([(0.0, 1.0)], budget=15, model=GaussianProcess(outputs=Compress()), n_initial=2, seed=0)
    usual.tell(x, -y, outside=True)
    assert usual._planner.inference.outputs() == Compress().fit(-y)


def test_a_warped_kernel_goes_straight_on_outside():
    x = np.linspace(-1.0, 2.0, 10)[:, None]
    optimizer = Optimizer([(0.0, 1.0)], budget=15, model=GaussianProcess(kernel=Warped(Matern52())), seed=0, noise=None)
    optimizer.tell(x, np.sin(3 * x[:, 0]), outside=True)
    mean, _ = optimizer.predict([[0.1], [0.5], [0.9]])
    np.testing.assert_allclose(mean, np.sin([0.3, 1.5, 2.7]), atol=0.1)


def test_inducing_points_are_the_best_inside():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (2 * INDUCING, 2)), rng.standard_normal(2 * INDUCING)
    chosen = inducing_points(X, y, np.ones(2))
    within = np.flatnonzero(np.all(X >= 0, axis=1))
    best = within[np.argsort(y[within])][: INDUCING // 4]
    assert np.isin(best, chosen).all()


def test_beyond_the_last_step_but_within_the_range_is_inside():
    optimizer = Optimizer([Float(0.0, 1.19, step=0.3), Int(1, 12, step=4)], budget=6, seed=0)
    optimizer.tell([1.19, 12], -1.0)
    assert optimizer.result().x == [1.19, 12]


def test_results_outside_are_corrected_like_others():
    optimizer = narrowed(POINTS, [hills(x) for x in POINTS])
    away = POINTS[~inside(POINTS)][0]
    optimizer.correct(away, 7.0)
    assert 7.0 in optimizer.values
    with pytest.raises(ValueError, match="lies outside"):
        optimizer.correct(away, at=away + 0.01)
