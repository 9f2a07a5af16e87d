"""What every output transform must do, ours and anybody's: add yours to ``TRANSFORMS``."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasses import GaussianProcess, Optimizer
from glasses.surrogate import OutputTransform, Standardize
from glasses.surrogate.outputs import Affine

TRANSFORMS = [Standardize()]
VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
@given(y=VALUES)
def test_there_and_back(transform, y):
    y = np.array(y)
    outputs = transform.fit(y)
    z = outputs.forward(y)
    assert np.all(np.isfinite(z))
    np.testing.assert_allclose(outputs.inverse(z), y, rtol=1e-9, atol=1e-9 * (1 + np.abs(y).max()))
    order = np.argsort(y, kind="stable")
    assert np.all(np.diff(z[order]) >= 0)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
@given(y=VALUES, below=st.floats(0.0, 100.0))
def test_a_gain_below_the_best_value_is_the_same_gain_in_both_units(transform, y, below):
    y = np.array(y)
    outputs = transform.fit(y)
    best = outputs.forward(y.min())
    lower = outputs.inverse(best - below)
    assert y.min() - lower == pytest.approx(outputs.gain(below), rel=1e-6, abs=1e-6 * (1 + np.abs(y).max()))
    assert outputs.scale > 0


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
@given(y=VALUES, shift=st.floats(-1e5, 1e5), factor=st.floats(1e-3, 1e3))
def test_a_change_of_units_changes_nothing(transform, y, shift, factor):
    y = np.array(y)
    if np.std(y) < 1e-6 * (1 + np.abs(y).max() + abs(shift) / factor):
        return  # a constant up to rounding
    plain, other = transform.fit(y), transform.fit(shift + factor * y)
    np.testing.assert_allclose(other.forward(shift + factor * y), plain.forward(y), atol=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
def test_moments_are_those_of_the_transformed_normal(transform):
    """Against 100,000 draws, within five standard errors: below the best value, where transforms are affine, and far above."""
    y = np.array([3.0, 4.5, 9.0, 4.0, 60.0])
    outputs = transform.fit(y)
    for mean in (outputs.forward(3.0) - 0.5, outputs.forward(9.0), outputs.forward(60.0)):
        draws = outputs.inverse(mean + 0.1 * np.random.default_rng(0).standard_normal(100_000))
        m, s = outputs.moments(mean, 0.1)
        assert m == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(draws.size))
        assert s == pytest.approx(draws.std(), rel=0.05)


def test_a_constant_and_tiny_values_keep_a_scale():
    assert Standardize().fit(np.array([5.0, 5.0])).scale == 1.0
    assert Standardize().fit(np.zeros(3)).scale == 1.0
    assert Standardize().fit(np.array([1e-200, 3e-200])).scale == pytest.approx(1e-200)


@dataclass(frozen=True)
class Falling(Affine):
    def forward(self, y):
        return -y


@dataclass(frozen=True)
class Wrong(OutputTransform):
    outputs: object

    def fit(self, y):
        return self.outputs


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        (None, "must return Outputs, got None"),
        (Falling(0.0, 1.0), "must give finite numbers in the order of the values and a positive scale"),
        (Affine(np.nan, 1.0), "must give finite numbers in the order of the values and a positive scale"),
        (Affine(0.0, -1.0), "must give finite numbers in the order of the values and a positive scale"),
    ],
)
def test_a_transform_that_breaks_what_is_assumed_is_refused_when_it_is_fitted(outputs, sentence):
    optimizer = Optimizer([(0, 1)], budget=9, n_initial=2, model=GaussianProcess(outputs=Wrong(outputs)), seed=0)
    optimizer.tell([[0.1], [0.5], [0.9]], [3.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=sentence):
        optimizer.ask()


def test_a_wrong_transform_gets_a_sentence():
    with pytest.raises(ValueError, match=r"outputs must be an object such as Standardize\(\), got 'log'"):
        GaussianProcess(outputs="log")
