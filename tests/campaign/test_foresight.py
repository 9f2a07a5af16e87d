"""Forecasts beside what came of them."""

import numpy as np
import pytest

from glasses.campaign.foresight import AHEAD, calibration, foresee_run
from glasses.campaign.run import run
from glasses.campaign.suite import Task


@pytest.fixture(scope="module")
def played():
    record = run(Task("SinCos", "el", 0, "fair", 3, 6))
    return record, foresee_run(record)


def test_a_run_is_played_again_from_its_record(played):
    record, found = played
    assert [each["done"] for each in found["forecasts"]] == list(range(6))
    for each in found["forecasts"]:
        done = 3 + each["done"]
        assert each["best"] == pytest.approx(min(record["y"][:done]))
        assert each["steps"][-1] == 6 - each["done"]
        assert each["realised"] == [min(record["y"][: done + k]) for k in each["steps"]]
        assert np.all(np.diff(each["expected"]) <= 1e-12)
        assert each["clairvoyant"] <= each["expected"][-1] + 1e-12
    again = foresee_run(record, moments=(0, 0.5))
    assert [each["done"] for each in again["forecasts"]] == [0, 3]
    assert again["forecasts"][1] == found["forecasts"][3]


def fake(problem, seed, *forecasts):
    """(best, expected, low, high, realised), one step ahead, scale 2."""
    names = ("best", "expected", "low", "high", "realised")
    return {
        "problem": problem,
        "seed": seed,
        "forecasts": [
            {"scale": 2.0, "steps": [1], **{n: v if n == "best" else [v] for n, v in zip(names, each, strict=True)}}
            for each in forecasts
        ],
    }


def test_bias_and_coverage_by_hand():
    """[eq:bias], [eq:coverage]: two runs, three forecasts."""
    runs = [fake("a", 0, (10, 8, 7, 10, 9), (9, 8, 7, 9, 5)), fake("b", 1, (4, 4, 3, 4, 4))]
    (found,) = calibration(runs)
    assert (found.steps, found.count) == (1, 3)
    assert found.expected == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    assert found.realised == pytest.approx((0.5 + 2.0 + 0.0) / 3)
    assert found.bias == pytest.approx(((-0.5 + 1.5) / 2 + 0.0) / 2)
    assert found.coverage == pytest.approx(2 / 3)
    assert AHEAD[0] == 1
