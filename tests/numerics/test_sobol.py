"""Our Sobol points are SciPy's, to the last bit."""

import numpy as np
import pytest
from scipy.stats import qmc

from glasses.numerics import sobol


@pytest.mark.parametrize("d", [1, 2, 3, 7, 20, 130])
@pytest.mark.parametrize("exponent", [0, 1, 5, 9])
def test_every_bit_is_scipys(d, exponent):
    ours, theirs = np.random.default_rng([d, exponent]), np.random.default_rng([d, exponent])
    expected = qmc.Sobol(d, scramble=True, rng=theirs).random_base2(exponent)
    np.testing.assert_array_equal(sobol.scrambled(d, exponent, ours), expected)
    assert ours.spawn(1)[0].random() == theirs.spawn(1)[0].random()  # and the generator is left where SciPy leaves it
    assert ours.random() == theirs.random()


def test_without_its_file_scipy_is_asked(monkeypatch):
    expected = sobol.scrambled(3, 4, np.random.default_rng(1))
    sobol._directions.cache_clear()
    monkeypatch.setattr(np, "load", lambda path: (_ for _ in ()).throw(OSError("gone")))
    np.testing.assert_array_equal(sobol.scrambled(3, 4, np.random.default_rng(1)), expected)
    assert sobol._directions(3) is None
    sobol._directions.cache_clear()
