import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import drawn
from problems import hills

from glasses import ExpectedLoss, Optimizer, plot
from glasses.demo import pendulum
from glasses.loop.result import Forecast
from glasses.plot.files import write_forecast, write_run
from glasses.plot.numbers import forecast_data, run_data


def some_run(n=6):
    optimizer = Optimizer({"a": (0, 1), "b": (0, 2)}, budget=9, n_initial=4, seed=0, loss=ExpectedLoss())
    for _ in range(n):
        x = optimizer.ask()
        optimizer.tell(x, hills(tuple(x.values())))
    return optimizer


def test_the_numbers_of_the_picture():
    optimizer = some_run()
    data = run_data(optimizer, optimizer.plan(), resolution=20)
    assert data.names == ["a", "b"]
    assert data.points.shape == (6, 2)
    np.testing.assert_array_equal(data.best, np.minimum.accumulate(data.values))
    assert data.mean.shape == (20, 20)
    assert data.plan.shape == (3, 2)
    assert data.axes[1][-1] == 2.0
    i = int(np.argmin(data.values))
    column, row = (np.abs(axis - value).argmin() for axis, value in zip(data.axes, data.points[i], strict=True))
    assert data.mean[row, column] == pytest.approx(data.values[i], abs=0.3)


def test_the_picture_is_written(tmp_path):
    optimizer = some_run()
    now, end = run_data(optimizer, optimizer.plan()), run_data(optimizer)
    with drawn(tmp_path / "new" / "run.png") as picture:
        write_run([("now", now), ("end", end)], tmp_path / "new" / "run.png")
    assert [panel.get_title() for panel in picture.figure.axes[:3]] == ["now", "end", "Convergence"]
    np.testing.assert_array_equal(picture.curve(0, "evaluated"), now.points)
    np.testing.assert_array_equal(picture.curve(0, "predicted steps"), now.plan[1:])
    np.testing.assert_array_equal(picture.curve(0, "next point"), now.plan[:1])
    np.testing.assert_array_equal(picture.curve(2, "best so far")[:, 1], end.best)


def a_forecast():
    return Forecast(
        best=1.0,
        expected=np.array([0.5, 0.25]),
        low=np.array([0.0, -0.5]),
        high=np.array([1.0, 0.75]),
        open_loop=np.array([0.5, 0.375]),
        clairvoyant=0.125,
        evaluations=np.array([1.0, 2.0]),
    )


def test_the_numbers_of_a_forecast():
    """In the sense of the user: of a study that maximises everything is turned round, and the band with it."""
    down, up = forecast_data(a_forecast()), forecast_data(a_forecast(), maximize=True)
    np.testing.assert_array_equal(down.k, [1, 2])
    np.testing.assert_array_equal(down.expected, [0.5, 0.25])
    np.testing.assert_array_equal(np.stack([down.low, down.high]), [[0.0, -0.5], [1.0, 0.75]])
    assert (down.best, down.clairvoyant) == (1.0, 0.125)
    np.testing.assert_array_equal(np.stack([up.low, up.high]), [[-1.0, -0.75], [0.0, 0.5]])
    np.testing.assert_array_equal(up.expected, [-0.5, -0.25])
    np.testing.assert_array_equal(up.open_loop, [-0.5, -0.375])
    assert (up.best, up.clairvoyant) == (-1.0, -0.125)
    assert (down.within, up.within) == (2, 2)
    assert forecast_data(replace(a_forecast(), left=1)).within == 1


def test_a_forecast_in_words():
    assert str(a_forecast()) == "1 more evaluation is expected to buy 0.5, the next 1 0.25."


def test_the_picture_of_a_forecast_is_written(tmp_path):
    data = forecast_data(a_forecast(), maximize=True)
    with drawn(tmp_path / "new" / "forecast.png") as picture:
        write_forecast(data, tmp_path / "new" / "forecast.png", "$odd_title")
    np.testing.assert_array_equal(picture.curve(0, "expected best"), [[0, -1.0], [1, -0.5], [2, -0.25]])
    assert picture.curve(0, "best now")[0, 1] == data.best
    assert picture.figure.axes[0].get_title() == "$odd_title"


def test_pictures_that_cannot_be_drawn_say_why():
    with pytest.raises(ValueError, match="needs 2 parameters, got 1"):
        run_data(Optimizer([(0, 1)], budget=3, seed=0))
    with pytest.raises(ValueError, match="nothing to draw yet"):
        run_data(some_run(0))


def test_the_pendulum_prefers_moderate_gains():
    assert pendulum(30.0, 6.0) < pendulum(1.0, 1.0)
    assert pendulum(30.0, 6.0) < pendulum(80.0, 0.0)


def test_figures_take_axes_and_return_them():
    optimizer, figure = some_run(), Figure()
    axes = figure.subplots(2, 3).ravel()
    assert plot.convergence(optimizer, axes[0]) is axes[0]
    np.testing.assert_array_equal(axes[0].lines[1].get_ydata(), np.minimum.accumulate(optimizer.values))
    assert plot.convergence(optimizer.result(), axes[1], maximize=True) is axes[1]
    np.testing.assert_array_equal(axes[1].lines[0].get_ydata(), np.negative(optimizer.values))
    assert plot.surface(optimizer, axes[2], plan=optimizer.plan()) is axes[2]
    assert plot.forecast(optimizer.forecast(), axes[3]) is axes[3]
    panels = plot.slices(optimizer, axes[4:])
    assert [panel.get_xlabel() for panel in panels] == ["a", "b"]


def test_without_axes_pyplots_own_are_used_and_no_setting_changes():
    code = """
import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot as plt
from glasses import Optimizer, plot
optimizer = Optimizer([(0, 1)], budget=4, seed=0)
optimizer.tell([[0.1], [0.5]], [1.0, 2.0])
settings = dict(matplotlib.rcParams)
axis = plt.figure().gca()
assert plot.convergence(optimizer) is axis
assert len(plot.slices(optimizer)) == 1
assert dict(matplotlib.rcParams) == settings
assert matplotlib.get_backend() == "svg"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.convergence(some_run(0)), "nothing to draw yet"),
        (lambda: plot.convergence(some_run(5), 3), "ax must be axes of matplotlib"),
        (lambda: plot.slices(some_run(5), [None]), "axes must hold 2 axes"),
        (lambda: plot.surface(Optimizer([(0, 1)], budget=3, seed=0)), "needs 2 parameters"),
    ],
)
def test_figures_refuse_what_they_cannot_draw(call, message):
    with pytest.raises(ValueError, match=message):
        call()
