"""What every output transform must do (``surrogate.outputs``)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glasses.surrogate.outputs import OutputTransform, fitted_outputs
from glasses.testing.contract import PROPERTY, Contract, check_immutable

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


class OutputTransformContract(Contract):
    """Give the transform by a fixture ``transform``."""

    def test_it_is_immutable(self, transform: OutputTransform) -> None:
        check_immutable("outputs", transform)

    @PROPERTY
    @given(y=VALUES)
    def test_there_and_back(self, transform: OutputTransform, y: list[float]) -> None:
        """Finite, in the order of the values, and inverted."""
        values = np.array(y)
        outputs = fitted_outputs(transform, values)
        z = outputs.forward(values)
        assert np.all(np.isfinite(z))
        np.testing.assert_allclose(outputs.inverse(z), values, rtol=1e-9, atol=1e-9 * (1 + np.abs(values).max()))
        assert np.all(np.diff(z[np.argsort(values, kind="stable")]) >= 0)

    @PROPERTY
    @given(y=VALUES, below=st.floats(0.0, 100.0))
    def test_a_gain_below_the_best_value_is_the_same_gain_in_both_units(
        self, transform: OutputTransform, y: list[float], below: float
    ) -> None:
        values = np.array(y)
        outputs = transform.fit(values)
        lower = outputs.inverse(outputs.forward(values.min()) - below)
        expected = outputs.gain(below)
        assert values.min() - lower == pytest.approx(expected, rel=1e-6, abs=1e-6 * (1 + np.abs(values).max()))
        assert outputs.scale > 0

    @PROPERTY
    @given(y=VALUES, shift=st.floats(-1e5, 1e5), factor=st.floats(1e-3, 1e3))
    def test_a_change_of_units_changes_nothing(
        self, transform: OutputTransform, y: list[float], shift: float, factor: float
    ) -> None:
        values = np.array(y)
        assume(np.std(values) >= 1e-6 * (1 + np.abs(values).max() + abs(shift) / factor))  # no constant up to rounding
        plain, other = transform.fit(values), transform.fit(shift + factor * values)
        np.testing.assert_allclose(other.forward(shift + factor * values), plain.forward(values), atol=1e-6)

    def test_moments_are_those_of_the_transformed_normal(self, transform: OutputTransform) -> None:
        """Against 100,000 draws, within five standard errors: below the best value, where transforms are affine, and far
        above."""
        outputs = transform.fit(np.array([3.0, 4.5, 9.0, 4.0, 60.0]))
        for mean in (outputs.forward(3.0) - 0.5, outputs.forward(9.0), outputs.forward(60.0)):
            draws = outputs.inverse(mean + 0.1 * np.random.default_rng(0).standard_normal(100_000))
            m, s = outputs.moments(mean, 0.1)
            assert m == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(draws.size))
            assert s == pytest.approx(draws.std(), rel=0.05)

    def test_arrays_keep_their_shape(self, transform: OutputTransform) -> None:
        """Numbers and arrays of any shape: plots and quantiles pass whole tables."""
        outputs = transform.fit(np.array([3.0, 4.5, 9.0, 4.0, 60.0]))
        table = np.array([[3.0, 5.0, 8.0], [4.0, 40.0, 90.0]])
        each = [[float(outputs.forward(y)) for y in row] for row in table]
        np.testing.assert_allclose(outputs.forward(table), each, rtol=1e-12)
        np.testing.assert_allclose(outputs.inverse(np.array(each)), table, rtol=1e-9)
        mean, sd = outputs.moments(np.array(each), np.full(table.shape, 0.1))
        assert mean.shape == sd.shape == table.shape
