import numpy as np
import pytest

from glasses.runtime import padding


@pytest.mark.parametrize("n", [1, 5, 32, 33, 100, 1000, 1025])
def test_data_sizes_hold_their_data_and_at_most_double(n):
    assert n <= padding.data_size(n) <= max(32, 2 * n)


@pytest.mark.parametrize("n", range(1, 129))
def test_horizons_fit(n):
    assert n <= padding.horizon_size(n) <= max(8, 2 * n)


def test_few_shapes_serve_a_run():
    assert len({padding.data_size(n) for n in range(1, 31)}) == 1
    assert len({padding.horizon_size(n) for n in range(1, 31)}) == 3


def test_too_many_pending_points_get_a_sentence():
    assert padding.pending_size(0) == padding.pending_size(5) == 5
    assert padding.pending_size(128) == 128
    with pytest.raises(ValueError, match="At most 128 evaluations can be pending at once, got 129: tell some results"):
        padding.pending_size(129)


def test_rows_are_filled_with_zeros():
    filled = padding.pad_rows(np.ones((2, 3)), 4)
    np.testing.assert_array_equal(filled, [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]])
