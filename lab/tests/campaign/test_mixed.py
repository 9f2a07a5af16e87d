"""Problems with whole numbers and choices: points are dicts from the initial design to the record."""

import json

import numpy as np
import pytest

from glasses import Choice, Float, Int
from glasses_lab.campaign import run as running
from glasses_lab.campaign.forecasts import forecast_run
from glasses_lab.campaign.measures import measure
from glasses_lab.campaign.methods import METHODS
from glasses_lab.campaign.one_hot import OneHot
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import mixed, shifted

PARAMETERS = {
    "rate": Float(1e-4, 1.0, log=True),
    "layers": Int(1, 4),
    "units": Int(4, 256, log=True),
    "drop": Float(0.0, 0.5, step=0.1),
    "kind": Choice(["a", "b", "c"]),
}


def cost(x):
    kind = {"a": 0.5, "b": 0.0, "c": 1.0}[x["kind"]]
    return (np.log10(x["rate"]) + 2) ** 2 + (x["layers"] - 3) ** 2 + np.log2(x["units"] / 32) ** 2 + x["drop"] + kind


BEST = {"rate": 1e-2, "layers": 3, "units": 32, "drop": 0.0, "kind": "b"}
PROBLEM = mixed("oven", cost, PARAMETERS, 0.0, [BEST])


@pytest.fixture
def oven(monkeypatch):
    def get(name, *, seed=0):
        return PROBLEM

    for place in ("run", "forecasts"):
        monkeypatch.setattr(f"glasses_lab.campaign.{place}.get", get)


def test_a_point_is_a_dict():
    assert PROBLEM.d == 5
    assert PROBLEM.true(BEST) == 0.0
    assert PROBLEM.true(dict(reversed(BEST.items()))) == 0.0
    assert PROBLEM.true({**BEST, "kind": "c", "layers": np.int64(2)}) == 2.0
    point = PROBLEM.from_unit(PROBLEM.to_unit(BEST))
    assert point == pytest.approx(BEST | {"rate": point["rate"]}, abs=0)
    assert point["rate"] == pytest.approx(1e-2, rel=1e-7)
    assert [type(v) for v in point.values()] == [float, int, int, float, str]
    several = PROBLEM.from_unit(np.random.default_rng(0).random((4, 5)))
    assert np.allclose(PROBLEM.to_unit(several), [PROBLEM.to_unit(each) for each in several])
    assert PROBLEM.minimizers.tolist() == [[1e-2, 3, 32, 0, 1]]
    assert PROBLEM.bounds == ((1e-4, 1.0), (1, 4), (4, 256), (0.0, 0.5), (0, 2))


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ([0.01, 3, 32, 0.0, "b"], "oven takes a dict of rate, layers, units, drop, kind, got"),
        ({"rate": 0.1}, "must name exactly rate, layers, units, drop, kind"),
        ({**BEST, "kind": "d"}, "must be one of 'a', 'b', 'c', got 'd'"),
        ({**BEST, "layers": 2.5}, "must be a whole number, got 2.5"),
    ],
)
def test_points_that_are_none(x, sentence):
    with pytest.raises(ValueError, match=sentence):
        PROBLEM.true(x)


def test_parameters_have_no_box_to_move():
    with pytest.raises(ValueError, match="oven has parameters and no box that could be moved"):
        shifted(PROBLEM)


@pytest.mark.parametrize("method", ["default", "el", "random", "sobol"])
def test_a_whole_game(method, oven):
    task = Task("oven", method, 0, "fair", 4, 3)
    record = json.loads(json.dumps(running.run(task)))
    assert record["error"] is None
    assert record["x"][:4] == running.initial_design(Task("oven", "other", 0, "fair", 4, 9))
    assert len(record["x"]) == 7
    assert len({json.dumps(x) for x in record["x"]}) == 7
    assert record["y"] == [PROBLEM.true(x) for x in record["x"]]
    if record["recommended"] is not None:
        assert record["recommended_true"] == PROBLEM.true(record["recommended"])
    row = measure(record)
    assert (row.d, row.evaluations, row.simple_regret) == (5, 3, min(record["y"]))


def test_runs_are_replayed(oven):
    record = running.run(Task("oven", "random", 1, "exact", 7, 3))
    found = forecast_run(record, [0.0])["forecasts"]
    assert found[0]["steps"] == [1, 2, 3]
    assert found[0]["best"] == pytest.approx(min(record["y"][:7]))


def test_the_initial_design_has_no_point_twice(monkeypatch):
    few = mixed("few", lambda x: x["n"], {"n": Int(1, 3), "c": Choice(["a", "b"])}, 1.0, [])
    monkeypatch.setattr("glasses_lab.campaign.run.get", lambda name, *, seed=0: few)
    for seed in range(5):
        points = running.initial_design(Task("few", "random", seed, "fair", 6, 1))
        assert len({(x["n"], x["c"]) for x in points}) == 6
    with pytest.raises(ValueError, match="few has 6 configurations and cannot start with 7 different ones"):
        running.initial_design(Task("few", "random", 0, "fair", 7, 1))


def test_one_hot_rows():
    code = OneHot(PROBLEM)
    assert code.width == 7
    row = code.encode(BEST)
    assert row[-3:].tolist() == [0, 1, 0]
    assert row[0] == pytest.approx(0.5, abs=1e-9)
    assert row[1] == 2.5 / 4
    decoded = code.decode(row)
    assert decoded == pytest.approx(BEST | {"rate": decoded["rate"]}, abs=0)
    loose = np.array([0.5, 0.74, 0.515, 0.1, 0.2, 0.3, 0.9])
    assert code.decode(loose) | {"rate": 0} == {"rate": 0, "layers": 3, "units": 32, "drop": 0.0, "kind": "c"}
    again = code.rounded(loose[None])
    assert np.array_equal(code.rounded(again), again)
    assert np.array_equal(again[0], code.encode(code.decode(loose)))


def test_the_default_is_told_that_evaluations_are_exact():
    from glasses import DEFAULT
    from glasses_lab.campaign.methods import Start
    from glasses_lab.campaign.protocols import PROTOCOLS

    X = [PROBLEM.from_unit(u) for u in np.random.default_rng(0).random((4, 5))]
    y = np.array([PROBLEM.true(x) for x in X])
    exact, noisy = (METHODS["default"].start(Start(PROBLEM, PROTOCOLS[p], X, y, 9, 0)) for p in ("fair", "paper"))
    assert exact.optimizer.model.noise == 0.0
    assert noisy.optimizer.model == DEFAULT.model
    assert exact.optimizer.loss == noisy.optimizer.loss == DEFAULT.loss
    assert exact.optimizer.search == DEFAULT.search
