import numpy as np
import pytest
from problems import hills

from glasses import ExpectedLoss, Optimizer
from glasses.demo import pendulum
from glasses.plot import draw_run, run_data


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
    draw_run([("now", run_data(optimizer, optimizer.plan())), ("end", run_data(optimizer))], tmp_path / "new" / "run.png")
    assert (tmp_path / "new" / "run.png").stat().st_size > 10_000


def test_pictures_that_cannot_be_drawn_say_why():
    with pytest.raises(ValueError, match="needs 2 parameters, got 1"):
        run_data(Optimizer([(0, 1)], budget=3, seed=0))
    with pytest.raises(ValueError, match="nothing to draw yet"):
        run_data(some_run(0))


def test_the_pendulum_prefers_moderate_gains():
    assert pendulum(30.0, 6.0) < pendulum(1.0, 1.0)
    assert pendulum(30.0, 6.0) < pendulum(80.0, 0.0)
