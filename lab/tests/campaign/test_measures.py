"""Gap and regrets on trajectories made by hand."""

import math

import pytest

from glasses_lab.campaign.measures import gap, measure, normalized, read_rows, write_rows


def record(y, true=None, recommended=None, initial=2, minimum=0.0, evaluations=None, error=None, method="el", seed=0):
    return {
        "key": "k",
        "problem": "Branin",
        "method": method,
        "seed": seed,
        "initial": initial,
        "evaluations": len(y) - initial if evaluations is None else evaluations,
        "minimum": minimum,
        "x": [[0.0, 0.0]] * len(y),
        "y": y,
        "true": true,
        "recommended_true": recommended,
        "seconds": [0.1, 0.3, 0.2],
        "error": error,
    }


def test_gap():
    """[eq:gap]"""
    assert gap(10.0, 4.0, 2.0) == 0.75
    assert gap(2.0, 2.0, 2.0) == 1.0  # began at the minimum
    assert gap(5.0, 5.0, 2.0) == 0.0


def test_exact_values():
    row = measure(record([9.0, 5.0, 7.0, 4.0, 6.0, 1.0], recommended=2.5, minimum=-1.0))
    assert row.gap == pytest.approx((5 - 1) / (5 + 1))
    assert row.observed_gap == row.gap
    assert row.simple_regret == 2.0
    assert row.inference_regret == 3.5
    assert row.seconds == 0.2
    assert (row.d, row.evaluations, row.failed) == (2, 4, False)
    assert row.curve[0] == 0.0
    assert row.curve[5] == pytest.approx(1 / 6)  # half of four evaluations: 4.0 is the best
    assert row.curve[-1] == row.gap


def test_noise_misleads_the_observer_not_the_measure():
    """The best observed value belongs to a point that is worse than another one."""
    row = measure(record([3.0, 5.0, 0.5, 0.9], true=[3.1, 5.0, 1.5, 1.0]))
    assert row.simple_regret == 1.5
    assert row.inference_regret == 1.5  # nothing recommended: the best observed
    assert row.gap == pytest.approx((3.1 - 1.5) / 3.1)
    assert row.observed_gap == pytest.approx((3 - 0.5) / 3)


def test_failures_keep_what_they_reached():
    row = measure(record([4.0, 5.0, 2.0], evaluations=10, error="ValueError: no"))
    assert row.failed
    assert row.gap == 0.5
    assert row.evaluations == 1
    dead = measure(record([], evaluations=10, error="died") | {"minimum": None, "seconds": []})
    assert dead.failed
    assert dead.gap == 0.0
    assert dead.d == 2
    assert math.isnan(dead.simple_regret)


def test_the_papers_normalisation():
    rows = [
        measure(record([4.0, 4.0, -1.0], true=[4.0, 4.0, 0.5], method="a")),  # observed gap 1.25
        measure(record([4.0, 4.0, 2.0], true=[4.0, 4.0, 2.0], method="b")),  # 0.5
        measure(record([4.0, 4.0, 3.0], method="a", seed=1)),
        measure(record([4.0, 4.0, 4.0], method="b", seed=1)),
        measure(record([4.0, 4.0, 4.0], method="b", seed=2)),
    ]
    assert normalized(rows) == pytest.approx([1.0, 0.4, 1.0, 0.0, 0.0])


def test_rows_survive_the_file(tmp_path):
    rows = [measure(record([9.0, 5.0, 1 / 3], recommended=0.25)), measure(record([3.0, 2.0], error="x: y", seed=4))]
    write_rows(rows, tmp_path / "rows.csv", {"suite": "mine", "versions": "a 1, b 2: three"})
    back, about = read_rows(tmp_path / "rows.csv")
    assert about == {"suite": "mine", "versions": "a 1, b 2: three"}
    assert [row.seed for row in back] == [0, 4]
    assert back[0].gap == pytest.approx(rows[0].gap, rel=1e-5)
    assert back[0].curve == pytest.approx(rows[0].curve, abs=1e-4)
    assert (back[1].failed, back[1].problem, back[1].d) == (True, "Branin", 2)
