"""Spaces where some parameters exist beside certain values of others: which are there is learned, and a point has one place."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasses import Choice, Float, Int, Optimizer
from glasses.loop.ledger import ExhaustedError
from glasses.space.conditional import ConditionalSpace
from glasses.space.presence import learned
from glasses.space.snapping import snap

PARAMETERS = {
    "kind": Choice(["a", "b", "c"]),
    "layers": Int(1, 4),
    "rate": Float(1e-3, 1.0, log=True),
    "of_a": Float(-1.0, 1.0),
    "second": Int(1, 64, log=True),
    "both": Choice(["u", "v", "w"]),
    "fast": Float(0, 1, step=0.25),
}
NAMES = list(PARAMETERS)
seeds = st.integers(0, 2**32 - 1)


def point_of(u):
    """A point of an objective that asks for one parameter after the other; u holds a number in [0, 1) for each."""
    value = {
        name: each.value(float(each.from_unit(np.array([v]))[0])) for (name, each), v in zip(PARAMETERS.items(), u, strict=True)
    }
    there = {"kind", "layers", "rate"}
    there |= {"of_a"} if value["kind"] == "a" else set()
    there |= {"second"} if value["layers"] >= 2 else set()
    there |= {"both"} if value["kind"] == "b" and value["layers"] <= 2 else set()
    there |= {"fast"} if value["rate"] > 0.1 else set()
    return {name: value[name] for name in NAMES if name in there}


def space_of(seed, count=30):
    examples = [point_of(u) for u in np.random.default_rng(seed).random((count, len(NAMES)))]
    return ConditionalSpace(PARAMETERS, examples), examples


@given(seeds)
def test_what_is_known_is_learned_whatever_stands_for_an_absent_parameter(seed):
    rng = np.random.default_rng(seed)
    space, examples = space_of(seed)
    rows = np.array([space._row(each) for each in examples])
    for filling in (np.full(rows.shape, 0.5), rng.random(rows.shape)):
        found = space.presence.of(np.where(np.isnan(rows), filling, rows))
        np.testing.assert_array_equal(found, ~np.isnan(rows))
    assert space.together == max(len(each) for each in examples)
    assert [space.names_of(each) for each in examples] == [list(each) for each in examples]


def test_enough_examples_teach_the_rules():
    space, _ = space_of(3, count=600)
    fresh = [point_of(u) for u in np.random.default_rng(4).random((400, len(NAMES)))]
    right = [space.names_of(each) == list(each) for each in fresh]
    assert np.mean(right) > 0.97  # the threshold of the rate lies between two known points


@given(seeds)
def test_a_point_has_one_place(seed):
    """Folding twice is folding once; what stands for an absent parameter is forgotten; a point reads back as itself."""
    rng = np.random.default_rng(seed)
    space, _ = space_of(seed)
    unit = rng.random((20, space.d))
    folded = snap(space.lattice, unit)
    np.testing.assert_array_equal(snap(space.lattice, folded), folded)
    has = space.presence.of(folded)
    np.testing.assert_array_equal(snap(space.lattice, np.where(has, folded, rng.random(folded.shape))), folded)
    for row, own in zip(folded, has, strict=True):
        raw = space.from_unit(row)
        shown = space.form(raw)
        assert [name in shown for name in NAMES] == own.tolist()
        again, single = space.read(shown)
        assert single
        np.testing.assert_array_equal(again[0], raw)
        np.testing.assert_allclose(space.to_unit(raw), row, atol=3e-9)


def test_two_points_without_a_parameter_do_not_differ_in_it():
    """And with everything else the same, all that lack it are equally far from one that has it."""
    space, _ = space_of(3, count=600)
    lacking = [{"kind": kind, "layers": 1, "rate": 0.01} for kind in ("c", "c")]
    having = {"kind": "a", "layers": 1, "rate": 0.01, "of_a": -0.8}
    X = space.to_unit(space.read([*lacking, having])[0])
    column = NAMES.index("of_a")
    assert X[0, column] == X[1, column] == 0.5
    assert X[2, column] == pytest.approx(0.1)


@given(seeds, st.integers(1, 4), st.integers(0, 40))
def test_within_what_is_known(seed, layers, low):
    """What is known is held, what is asked for is there and in its range, and points inside the range stay where they are."""
    space, _ = space_of(seed)
    part = Int(max(low, 1), max(low, 1) + 20, log=True)
    decided = space.within({"kind": "b", "layers": layers, "rate": 0.02}, {"second": part})
    unit = np.random.default_rng(seed).random((20, space.d))
    folded = snap(decided.lattice, unit)
    np.testing.assert_array_equal(snap(decided.lattice, folded), folded)
    for row in folded:
        shown = decided.form(decided.from_unit(row))
        assert (shown["kind"], shown["layers"]) == ("b", layers)
        assert shown["rate"] == pytest.approx(0.02)
        assert part.low <= shown["second"] <= part.high
    free = snap(space.lattice, unit)
    assert not np.array_equal(free, folded)
    np.testing.assert_array_equal(snap(space.lattice, unit), free)  # the space itself is as it was


def test_a_range_within_another_is_covered_evenly():
    space = ConditionalSpace({"n": Int(1, 40), "x": Float(0, 10)}, [{"n": 3, "x": 1.0}])
    part = space.within({}, {"n": Int(5, 8), "x": Float(2, 3)})
    unit = (np.arange(40_000) + 0.5) / 40_000
    raw = part.from_unit(np.column_stack([unit, unit]))
    values, share = np.unique(raw[:, 0], return_counts=True)
    assert values.tolist() == [5, 6, 7, 8]
    np.testing.assert_array_equal(share, 10_000)
    np.testing.assert_allclose(np.histogram(raw[:, 1], bins=10, range=(2, 3))[0], 4_000, atol=1)


def test_a_value_that_was_never_seen_has_what_all_have():
    space = ConditionalSpace(
        PARAMETERS, [{"kind": "a", "layers": 1, "rate": 0.1, "of_a": 0.0}, {"kind": "b", "layers": 1, "rate": 0.1}]
    )
    assert space.names_of({"kind": "c", "layers": 4, "rate": 1.0}) == ["kind", "layers", "rate"]
    assert space.together == 4


def test_the_simplest_question_is_asked():
    """A choice before a number that separates as well; of two choices the one with fewer values."""
    X = np.array([[0.25, 0.1, 1 / 6, 0.5], [0.25, 0.2, 0.5, 0.7], [0.75, 0.8, 5 / 6, np.nan], [0.75, 0.9, 5 / 6, np.nan]])
    choice = np.array([True, False, True, False])
    assert learned(X, choice, np.zeros(4, bool)).column == 0
    assert learned(X[:, 1:], choice[1:], np.zeros(3, bool)).column == 1
    numbers = learned(X, np.zeros(4, bool), np.array([False, False, True, False]))
    assert numbers.column == 2
    assert numbers.threshold == pytest.approx(2 / 3)


def test_examples_that_contradict_each_other():
    """A parameter that is there or not without a reason is not counted on."""
    space = ConditionalSpace(
        PARAMETERS, [{"kind": "a", "layers": 1, "rate": 0.1, "of_a": 0.0}, {"kind": "a", "layers": 1, "rate": 0.1}]
    )
    assert space.names_of({"kind": "a", "layers": 1, "rate": 0.1}) == ["kind", "layers", "rate"]
    assert space.presence.varies


def test_a_finite_space_counts_each_configuration_once():
    parameters = {"kind": Choice(["a", "b"]), "n": Int(1, 3)}
    examples = [{"kind": "a", "n": 2}, {"kind": "b"}]
    space = pickle.loads(pickle.dumps(ConditionalSpace(parameters, examples)))
    assert space.size == 4
    assert [space.form(space.from_unit(row)) for row in space.every(10)] == [
        {"kind": "a", "n": 1},
        {"kind": "a", "n": 2},
        {"kind": "a", "n": 3},
        {"kind": "b"},
    ]
    assert space.every(3) is None
    optimizer = Optimizer(space, budget=9, n_initial=9, seed=0, noise=0.0)
    asked = [optimizer.ask() for _ in range(4)]
    assert sorted(map(str, asked)) == sorted(map(str, [space.form(space.from_unit(row)) for row in space.every(10)]))
    with pytest.raises(ExhaustedError, match="All 4 configurations"):
        optimizer.ask()


def test_points_name_nothing_else():
    space, _ = space_of(0)
    with pytest.raises(ValueError, match="must name exactly kind, layers"):
        space.read({"kind": "a", "layers": 1, "rate": 0.1, "speed": 1})
