"""Parameters and the unit cube: there and back, equal cells, what is refused; the compiled lattice against the plain one."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parameter_strategies import parameters

from glasses import Choice, Float, Int
from glasses.space.snapping import moved, snap
from glasses.space.space import Space


@given(st.lists(parameters, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_there_and_back(given, random):
    """Whatever comes out of the cube can be run, reads back as itself, and has one place in the cube."""
    space = Space(given)
    unit = np.array([random.random() for _ in given])
    raw = space.from_unit(unit)
    shown = space.form(raw)
    again, single = space.read(shown)
    assert single
    np.testing.assert_array_equal(again[0], raw)
    for parameter, value in zip(given, shown, strict=True):
        if isinstance(parameter, Choice):
            assert value in parameter.values
        else:
            assert parameter.low <= value <= parameter.high
            assert isinstance(value, int if isinstance(parameter, Int) else float)
    place = space.to_unit(raw)
    assert np.all((place >= 0) & (place <= 1))
    np.testing.assert_allclose(space.to_unit(space.from_unit(place)), place, atol=2e-9)


@pytest.mark.slow
@given(st.lists(parameters, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_compiled_programs_snap_to_the_same_values(given, random):
    space = Space(given)
    unit = np.array([[random.random() for _ in given] for _ in range(5)])
    compiled = np.asarray(snap(space.lattice, jnp.asarray(unit)))
    np.testing.assert_allclose(compiled, space.to_unit(space.from_unit(unit)), atol=3e-9)
    np.testing.assert_array_equal(space.from_unit(compiled), space.from_unit(unit))


@pytest.mark.parametrize("parameter", [Int(3, 9), Int(0, 20, step=4), Float(0, 1, step=0.1), Choice(list("abc"))], ids=str)
def test_every_value_has_an_equal_share_of_the_cube(parameter):
    raw = parameter.from_unit((np.arange(10_000 * parameter.count) + 0.5) / (10_000 * parameter.count))
    _, share = np.unique(raw, return_counts=True)
    np.testing.assert_array_equal(share, 10_000)


def test_steps_are_the_numbers_people_write():
    assert Float(0, 1, step=0.1).from_unit(np.array([0.35])).tolist() == [0.3]
    assert Float(0.1, 0.75, step=0.2).count == 4
    assert Float(0.1, 0.75, step=0.2).top == 0.7
    assert Int(1, 10, step=4).top == 9


def test_a_point_between_two_steps_is_where_it_was_run():
    space = Space([Float(0, 1, step=0.5), Float(0, 1)])
    raw, _ = space.read([0.25, 0.5])
    assert raw[0, 0] == 0.25
    assert space.to_unit(raw)[0, 0] == pytest.approx((0.25 / 0.5 + 0.5) / 3)


def test_all_configurations_of_a_finite_space():
    space = Space({"a": Int(1, 3), "b": Choice(["x", "y"]), "c": Int(1, 4, log=True)})
    every = space.every(100)
    assert space.size == 24
    assert len({tuple(space.form(x).values()) for x in space.from_unit(every)}) == 24
    assert space.every(23) is None
    assert Space([(0, 1), Int(1, 2)]).size == math.inf


def test_the_form_follows_the_space():
    assert isinstance(Space([(0, 1), Float(0, 1)]).form(np.array([0.5, 0.5])), np.ndarray)
    assert Space([(0, 1), Int(0, 3)]).form(np.array([0.5, 2.0])) == [0.5, 2]
    assert Space({"a": Choice([None, True, 1.5])}).form(np.array([0.0])) == {"a": None}


def test_neighbours_on_a_lattice_are_other_values():
    """Around a point, steps and integers move by at least one value and choices are exchanged: not all back to itself."""
    space = Space([Int(0, 9), Choice(list("abcd")), Int(1, 1000, log=True), (0, 1)])
    rng = np.random.default_rng(0)
    x = space.to_unit(np.array([4.0, 2.0, 30.0, 0.5]))
    around = np.asarray(
        moved(
            space.lattice, jnp.asarray(x), jnp.asarray(1e-3 * rng.standard_normal((200, 4))), jnp.asarray(rng.random((200, 4)))
        )
    )
    raw = space.from_unit(around)
    assert set(raw[:, 0]) == {3.0, 4.0, 5.0}
    assert set(raw[:, 1]) == {0.0, 1.0, 2.0, 3.0}
    assert {29.0, 30.0, 31.0} <= set(raw[:, 2])
    assert np.all(np.abs(raw[:, 3] - 0.5) < 0.01)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Float(1, 0), "has lower above upper"),
        (lambda: Float(0, 1, log=True), "needs low above 0"),
        (lambda: Float(1, 2, log=True, step=0.1), "both log and step"),
        (lambda: Float(0, 1, step=0), "step must be positive and at most 1"),
        (lambda: Float(0, 1, step=2), "step must be positive"),
        (lambda: Float(0, 1, log="yes"), "log of Float must be True or False"),
        (lambda: Float("0", 1), "pair of numbers"),
        (lambda: Int(0, 1.5), "high of an Int must be a whole number, got 1.5: use Float"),
        (lambda: Int(3, 3), "has no width"),
        (lambda: Int(3, 1), "has low above high: swap"),
        (lambda: Int(0, 9, log=True), "needs low of at least 1"),
        (lambda: Int(1, 9, log=True, step=2), "both log and step"),
        (lambda: Int(0, 9, step=20), "step must be between 1 and 9"),
        (lambda: Int(0, 2**60), "within 2\\^53"),
        (lambda: Choice("abc"), "takes a list of values"),
        (lambda: Choice({"a", "b"}), "a set has no fixed order"),
        (lambda: Choice(["a"]), "at least 2 values"),
        (lambda: Choice([1, 2, 1]), "holds 1 twice"),
        (lambda: Choice(range(20_000)), "at most 10,000"),
        (lambda: Space(Int(0, 3)), "write \\[Int"),
        (lambda: Space({"a": ["x", "y"]}), r"bounds\['a'\] must be a .* write Choice\(\['x', 'y'\]\)"),
        (lambda: Space([Int]), "must be a \\(lower, upper\\) pair of numbers, Float, Int or Choice"),
        (lambda: Space([Int(0, 3), (0, 1)]).read([1.5, 0.5]), r"x\[0\] must be a whole number, got 1.5"),
        (lambda: Space([Int(0, 3)]).read([7]), r"x\[0\] = 7 lies outside \[0, 3\]"),
        (lambda: Space({"a": Choice(["x", "y"])}).read({"a": "z"}), r"x\['a'\] must be one of 'x', 'y', got 'z'"),
        (lambda: Space([Int(0, 3), (0, 1)]).read([1]), "must hold 2 values per point"),
        (lambda: Space([Int(0, 3), (0, 1)]).read(3), "must hold 2 values per point"),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        make()
    assert str(caught.value).endswith(".")


def test_choices_may_be_lists_themselves():
    space = Space([Choice([(1, 2), (3, 4)]), Choice([[5], [6, 7]])])
    raw, single = space.read([(3, 4), [5]])
    assert single
    assert raw.tolist() == [[1.0, 0.0]]
    raw, single = space.read([[(3, 4), [5]], [(1, 2), [6, 7]], [(1, 2), [5]]])
    assert not single
    assert raw.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_true_is_not_one():
    choice = Choice([True, 1, "1"])
    assert [choice.read(value, "x", "b") for value in (True, 1, "1")] == [0.0, 1.0, 2.0]
