"""A space does not depend on the order of its parameters, nor a choice on the order of its values."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from parameter_strategies import parameters

from glasses import Choice
from glasses.space.snapping import snap
from glasses.space.space import Space

some_parameters = st.lists(parameters, min_size=1, max_size=5)


@given(some_parameters, st.randoms(use_true_random=False), st.booleans())
def test_permuted_parameters_permute_the_columns(given, random, named):
    order = list(range(len(given)))
    random.shuffle(order)
    names = [f"p{i}" for i in order]
    there = Space({f"p{i}": each for i, each in enumerate(given)} if named else given)
    here = Space({name: given[i] for name, i in zip(names, order, strict=True)} if named else [given[i] for i in order])
    unit = np.array([[random.random() for _ in given] for _ in range(4)])
    raw = there.from_unit(unit)
    np.testing.assert_array_equal(here.from_unit(unit[:, order]), raw[:, order])
    np.testing.assert_array_equal(here.to_unit(raw[:, order]), there.to_unit(raw)[:, order])
    compiled = np.asarray(snap(there.lattice, jnp.asarray(unit)))
    np.testing.assert_array_equal(np.asarray(snap(here.lattice, jnp.asarray(unit[:, order]))), compiled[:, order])
    assert here.size == there.size
    np.testing.assert_array_equal(here.lower, there.lower[order])
    np.testing.assert_array_equal(here.upper, there.upper[order])
    for x in raw:
        formed, other = there.form(x), here.form(x[order])
        assert formed == other if named else [formed[i] for i in order] == list(other)
        np.testing.assert_array_equal(here.read(other)[0][0], there.read(formed)[0][0][order])
    if named:
        np.testing.assert_array_equal(here.read(there.form(raw[0]))[0][0], raw[0][order])  # names say which is which


@given(some_parameters, st.randoms(use_true_random=False))
def test_permuted_parameters_have_the_same_configurations(given, random):
    order = list(range(len(given)))
    random.shuffle(order)
    there, here = Space(given).every(2000), Space([given[i] for i in order]).every(2000)
    assert (there is None) == (here is None)
    if there is not None:
        assert sorted(map(tuple, there[:, order])) == sorted(map(tuple, here))


@given(st.integers(2, 40), st.randoms(use_true_random=False))
def test_relabelled_choices_are_the_same_values_elsewhere(count, random):
    """Listed in another order, the values exchange their places in the cube and nothing else changes."""
    values = [("value", i) if i % 3 else f"value {i}" for i in range(count)]
    order = list(range(count))
    random.shuffle(order)
    there, here = Space([Choice(values), (0, 1)]), Space([Choice([values[i] for i in order]), (0, 1)])
    for place, i in enumerate(order):
        raw, _ = here.read([values[i], 0.5])
        np.testing.assert_array_equal(raw[0], [place, 0.5])
        assert here.form(raw[0]) == there.form(there.read([values[i], 0.5])[0][0]) == [values[i], 0.5]
        assert here.form(here.from_unit(here.to_unit(raw[0]))) == [values[i], 0.5]
    assert here.size == there.size
    np.testing.assert_array_equal(here.choice, there.choice)
    shares = [here.to_unit(here.read([value, 0.5])[0])[0, 0] for value in values]
    np.testing.assert_allclose(np.sort(shares), there.to_unit(there.read([[value, 0.5] for value in values])[0])[:, 0])
