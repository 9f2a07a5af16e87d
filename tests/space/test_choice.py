"""Values of a choice: which are the same, found quickly whatever they are."""

import math
import pickle
import re
import subprocess
import sys
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glasses import Choice
from glasses.space.parameters import _same

numbers = st.sampled_from([0, 1, 2, -1, 0.0, -0.0, 0.1, 1.0, 2.5, math.nan, float("nan"), math.inf, 2**53 + 1, 1 + 0j])
plain = st.one_of(st.booleans(), st.none(), numbers, st.sampled_from(["", "a", "1", "nan", b"a"]))
nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.lists(inner, max_size=2).map(tuple), max_leaves=4)
unhashable = st.sampled_from([{"a": 1}, {}, {1}, np.array([1]), np.array([1, 2]), np.array(1.0)])
scalars = st.sampled_from(
    [
        np.bool_(True),
        np.int64(1),
        np.uint8(2),
        np.float32(0.1),
        np.float64(0.1),
        np.float64("nan"),
        np.float32("nan"),
        np.str_("a"),
    ]
)
hashable = st.sampled_from([frozenset({1}), frozenset(), np.float64, np.dtype("float64"), "float64", int, math.sin])
values = st.one_of(nested, unhashable, scalars, hashable, st.tuples(scalars), st.lists(scalars, max_size=2))


def first_twin(given):
    """The first value that is the same as one before it, by comparing every pair."""
    return next((i for i, each in enumerate(given) if any(_same(each, other) for other in given[:i])), None)


@settings(max_examples=500)
@given(st.lists(values, min_size=2, max_size=8))
def test_repeated_values_are_refused_as_every_pair_says(given):
    bare = [each.item() if isinstance(each, np.generic) else each for each in given]
    twin = first_twin(bare)
    if twin is None:
        assert [type(each) for each in Choice(given).values] == [type(each) for each in bare]
    else:
        sentence = f"Choice holds {bare[twin]!r} twice: every value must be different."
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            Choice(given)


@settings(max_examples=500)
@given(st.lists(values, min_size=2, max_size=8), values)
@example([0.2, 0.1], np.float32(0.1))
@example([0.1, math.nan], np.float32("nan"))
@example([[1], [2]], np.int64(2))
@example([True, 1.5], np.int64(1))
def test_a_value_is_read_as_comparing_it_with_all_says(given, value):
    kept = []
    for each in given:
        if not any(_same(each, other) for other in kept):
            kept.append(each.item() if isinstance(each, np.generic) else each)
    if len(kept) < 2 or first_twin(kept) is not None:
        return
    choice = Choice(kept)
    for asked in (value, *given):
        matches = [float(i) for i, each in enumerate(kept) if _same(each, asked)]
        if matches:
            found = choice.read(asked, "x", "bounds")
            assert found in matches
            assert found == matches[0] or isinstance(asked, np.generic)  # np.int64(1) == [1] and == 1: the number is meant
        else:
            with pytest.raises(ValueError, match="x must be one of"):
                choice.read(asked, "x", "bounds")


@pytest.mark.parametrize(
    "make",
    [int, str, lambda i: [i, "a"], lambda i: (i, None), lambda i: (i, math.nan), lambda i: i / 7, lambda i: frozenset({i})],
    ids=["int", "str", "list", "tuple", "tuple with nan", "float", "frozenset"],
)
def test_the_largest_choice_takes_no_longer_than_its_size_says(make):
    """Ten times the values take about ten times as long, and not a hundred times."""
    given = [make(i) for i in range(10_000)]

    def seconds(some):
        start = time.perf_counter()
        choice = Choice(some)
        assert [choice.read(each, "x", "bounds") for each in some] == list(range(len(some)))
        return time.perf_counter() - start

    small = min(seconds(given[:1000]) for _ in range(3))
    assert min(seconds(given) for _ in range(3)) < 40 * small


def test_a_numpy_scalar_is_found_quickly_too():
    choice = Choice(np.arange(10_000) / 7)
    start = time.perf_counter()
    assert [choice.read(each, "x", "bounds") for each in np.arange(10_000) / 7] == list(range(10_000))
    assert time.perf_counter() - start < 2.0  # one by one: 20 s


def test_a_choice_is_a_value():
    """Equality, hash, text and pickle follow the values alone, read from or not, also in another process."""
    choice, other = Choice(["a", ("b", 1), None]), Choice(("a", ("b", 1), None))
    assert choice.read("a", "x", "bounds") == 0.0
    assert choice == other
    assert hash(choice) == hash(other)
    assert repr(choice) == "Choice(values=('a', ('b', 1), None))"
    assert choice != Choice(["a", None, ("b", 1)])
    with pytest.raises(FrozenInstanceError):
        choice.values = ()
    assert pickle.dumps(choice) == pickle.dumps(other)
    again = pickle.loads(pickle.dumps(choice))
    assert again == choice
    assert again.read(("b", 1), "x", "bounds") == 1.0
    code = f"import pickle; print(pickle.loads({pickle.dumps(choice)!r}).read('a', 'x', 'bounds'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.0"
