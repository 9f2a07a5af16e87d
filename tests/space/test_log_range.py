"""Logarithmic ranges of any width that floats can hold; ordinary ones keep their numbers to the last bit."""

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glasses import ExpectedLoss, Float, Optimizer
from glasses.space.space import Space

TINY, SMALLEST_NORMAL, LARGEST = 5e-324, sys.float_info.min, sys.float_info.max
exponents = st.floats(math.log10(TINY), math.log10(LARGEST))
ranges = (
    st.tuples(exponents, exponents)
    .map(lambda pair: tuple(min(max(10.0**e, TINY), LARGEST) if e < 308.25 else LARGEST for e in sorted(pair)))
    .filter(lambda pair: pair[1] > 1.001 * pair[0])
)
places = st.lists(st.floats(0, 1), min_size=1, max_size=5).map(np.array)


@settings(max_examples=400)
@given(ranges, places)
@example((1e-200, 1e200), np.array([0.0, 0.25, 0.5, 1.0]))
@example((TINY, LARGEST), np.array([0.0, 1e-9, 0.5, 1.0]))
@example((TINY, 1e-320), np.array([0.0, 0.3, 1.0]))
@example((SMALLEST_NORMAL, 1.0), np.array([0.0, 0.3, 1.0]))
@example((1.0, LARGEST), np.array([0.0, 0.3, 1.0]))
def test_there_and_back_over_any_range(pair, unit):
    low, high = pair
    space = Space([Float(low, high, log=True)])
    raw = space.from_unit(unit[:, None])
    assert np.all((raw >= low) & (raw <= high))
    again, _ = space.read(raw)
    np.testing.assert_array_equal(again, raw)
    place = space.to_unit(raw)
    assert np.all((place >= 0) & (place <= 1))
    if low >= SMALLEST_NORMAL:  # below, floats lie far apart
        np.testing.assert_allclose(place[:, 0], unit, atol=2e-9)
    np.testing.assert_allclose(space.from_unit(place), raw, rtol=2e-6 if low >= SMALLEST_NORMAL else 1e-5, atol=TINY)
    order = np.argsort(unit, kind="stable")
    assert np.all(np.diff(raw[order, 0]) >= 0)


@given(st.floats(1e-150, 1e150), st.floats(1.001, 1e150), places)
def test_ordinary_ranges_keep_their_numbers(low, ratio, unit):
    """Recorded runs are reproduced to the last bit: the arithmetic is the one they were made with."""
    high = low * ratio
    parameter = Float(low, high, log=True)
    raw = np.clip(low * np.exp(unit * math.log(high / low)), low, high)
    np.testing.assert_array_equal(parameter.from_unit(unit), raw)
    np.testing.assert_array_equal(parameter.to_unit(raw), np.log(raw / low) / math.log(high / low))


@pytest.mark.parametrize("low", [1e-200, TINY])
def test_a_wide_range_is_searched_and_not_stuck_at_a_bound(low):
    optimizer = Optimizer([Float(low, 1e200, log=True)], budget=8, n_initial=4, loss=ExpectedLoss(), seed=0)
    while optimizer.remaining:
        x = optimizer.ask()
        optimizer.tell(x, abs(math.log10(x[0]) - 50))
    tried = np.log10(optimizer.record().x_iters)[:, 0]
    assert len(set(tried)) == 8
    assert min(abs(tried - 50)) < 20  # of 400


def test_tiny_ranges_are_a_matter_of_scale():
    """On a logarithmic scale the relative width is what floats must resolve."""
    assert Float(1e-300, 1e-295, log=True).from_unit(np.array([0.5]))[0] == pytest.approx(10**-297.5, rel=1e-9)
    with pytest.raises(ValueError, match="cannot be resolved in floating point"):
        Float(1e-300, 1e-295)
    with pytest.raises(ValueError, match="cannot be resolved in floating point"):
        Float(1e-300, 1e-300 * (1 + 1e-10), log=True)
    with pytest.raises(ValueError, match="needs low above 0"):
        Float(0, 1e-295, log=True)
    with pytest.raises(ValueError, match="needs low above 0"):
        Float(-1, 1, log=True)
