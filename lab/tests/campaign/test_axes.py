"""Parameters as the peers see them, and back."""

import numpy as np
import pytest

from glasses import Float, Int
from glasses_lab.campaign.peers.axes import Axes, axis
from glasses_lab.problems import Problem, mixed
from lab.tests.every_kind import PARAMETERS, POINT


def test_there_and_back():
    axes = Axes(mixed("oven", lambda x: x["rate"], PARAMETERS, 1.0, []))
    seen = axes.encode(POINT)
    assert seen == {"rate": 1e-2, "angle": 45.0, "layers": 3, "units": 32, "drop": 3, "kind": "2"}
    assert {name: type(value) for name, value in seen.items()} == {
        "rate": float,
        "angle": float,
        "layers": int,
        "units": int,
        "drop": int,
        "kind": str,
    }
    assert axes.decode(seen) == POINT


def test_ranges_are_in_the_units_of_the_peer():
    assert [(each.kind, each.low, each.high, each.log) for each in map(axis, PARAMETERS.values())] == [
        ("real", 1e-4, 1.0, True),
        ("real", -90.0, 90.0, False),
        ("whole", 1, 5, False),
        ("whole", 4, 256, True),
        ("whole", 0, 5, False),
        ("label", 0, 2, False),
    ]
    assert axis(PARAMETERS["kind"]).labels == ["0", "1", "2"]
    assert [axis(Int(3, 12, step=4)).decode(k) for k in (0, 1, 2)] == [3, 7, 11]
    assert axis(Int(3, 12, step=4)).encode(11) == 2


def test_rounding_outside_the_range_is_clipped():
    assert axis(Float(0.1, 0.3)).decode(np.float32(0.3)) == 0.3
    assert axis(Float(0.1, 0.3)).decode(0.0999999) == 0.1
    assert axis(Int(1, 5)).decode(5.6) == 5


def test_a_box_is_an_array():
    box = Problem("box", lambda x: 0.0, ((0.0, 1.0), (-5.0, 5.0)), 0.0, np.zeros((0, 2)))
    axes = Axes(box)
    assert axes.encode(np.array([0.25, -3.0])) == {"x0": 0.25, "x1": -3.0}
    assert axes.decode({"x1": -3.0, "x0": 0.25}).tolist() == [0.25, -3.0]
    with pytest.raises(ValueError, match="outside"):
        axes.encode(np.array([0.25, -6.0]))
