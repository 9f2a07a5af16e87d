"""COCO's functions: the minimum that is said is the one that is evaluated, and what is kept for judging is refused."""

import sys

import numpy as np
import pytest

from glasses_lab import problems


@pytest.mark.parametrize("function", range(1, 25))
def test_the_minimum_is_evaluated_at_its_place(function):
    for d, instance in ((2, 1), (3, 3), (5, 5), (10, 4)):
        problem = problems.get(f"BBOB-{function}-d{d}-i{instance}")
        assert problem.bounds == ((-5.0, 5.0),) * d
        assert problem.true(problem.minimizers[0]) == pytest.approx(problem.minimum, abs=1e-9)
        rng = np.random.default_rng(function)
        near = np.clip(problem.minimizers[0] + 0.01 * rng.standard_normal((50, d)), -5, 5)
        for x in [*near, *problem.from_unit(rng.random((200, d)))]:
            assert problem.true(x) >= problem.minimum


def test_values_by_formula():
    """f1 is the sphere around its minimiser; f5 a linear slope with the minimum in a corner."""
    sphere, slope = problems.get("BBOB-1-d3-i2"), problems.get("BBOB-5-d5-i1")
    x = np.array([1.0, -2.0, 0.5])
    assert sphere.true(x) == pytest.approx(np.sum((x - sphere.minimizers[0]) ** 2) + sphere.minimum)
    corner = slope.minimizers[0]
    assert np.abs(corner).tolist() == [5.0] * 5
    weights = np.sign(corner) * 10 ** (np.arange(5) / 4)
    x = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    assert slope.true(x) == pytest.approx(np.sum(5 * np.abs(weights) - weights * x) + slope.minimum)


def test_instances_differ_and_come_again():
    values = [problems.get(f"BBOB-15-d2-i{i}").true([1.0, 2.0]) for i in (1, 2, 1)]
    assert values[0] == values[2] != values[1]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("BBOB-1-d2-i6", "is instance 6, and those from 6 on are kept for judging: use 1 to 5"),
        ("BBOB-1-d2-i71", "is instance 71, and those from 6 on are kept for judging"),
        ("BBOB-25-d2-i1", "functions 1 to 24 in 2, 3, 5, 10, 20, 40 dimensions, got BBOB-25-d2-i1"),
        ("BBOB-2-d4-i1", "got BBOB-2-d4-i1: write for example"),
        ("BBOB-2-d5", "There is no problem 'BBOB-2-d5'"),
        ("BBOB-2-d5-i1-shifted", "has no optimum at the centre"),
    ],
)
def test_names_that_are_refused(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        problems.get(name)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "cocoex", None)
    with pytest.raises(ValueError, match=r"BBOB-1-d2-i1 needs the library cocoex: pip install 'glasses-lab\[elsewhere\]'"):
        problems.get("BBOB-1-d2-i1")
