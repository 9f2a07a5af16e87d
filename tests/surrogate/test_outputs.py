"""Output transforms: each passes the contract of ``glasses.testing`` (add yours to ``TRANSFORMS``), and what each is."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given

from glasses import GaussianProcess, Optimizer
from glasses.surrogate import Compress, Known, Matern52, OutputTransform, Standardize
from glasses.surrogate.outputs import Affine
from glasses.testing import OutputTransformContract
from glasses.testing.outputs import VALUES

TRANSFORMS = [Standardize(), Compress()]


class TestTransforms(OutputTransformContract):
    @pytest.fixture(params=TRANSFORMS, ids=str)
    def transform(self, request):
        return request.param


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
    with pytest.raises(ValueError, match=r"outputs must be an object such as Compress\(\), got 'log'"):
        GaussianProcess(outputs="log")


HEAVY = np.array([0.5, 1.0, 2.0, 3.0, 40.0, 5e3, 1e6])


def test_compression_is_its_formula():
    """[eq:compress], written out number by number."""
    outputs = Compress().fit(HEAVY)
    c = [(y - 3.0) / 2.5 if y <= 3.0 else math.log(1.0 + (y - 3.0) / 2.5) for y in HEAVY]
    z = (np.array(c) - np.mean(c)) / np.std(c)
    np.testing.assert_allclose(outputs.forward(HEAVY), z, rtol=1e-12)
    assert outputs.scale == pytest.approx(2.5 * np.std(c))


@given(y=VALUES)
def test_nothing_changes_below_the_median(y):
    """At and below the median compression is a change of units."""
    y = np.array(y)
    outputs = Compress().fit(y)
    low = np.sort(y[y <= np.median(y)])
    below = np.concatenate([low.min() - np.array([1.0, 1e3]), low])
    straight = outputs.forward(np.median(y)) + (below - np.median(y)) / outputs.scale
    np.testing.assert_allclose(outputs.forward(below), straight, rtol=1e-9, atol=1e-9 * (1 + np.abs(straight).max()))


HARD = [
    [5.0],
    [5.0, 5.0],
    [1.0, 1.0, 1.0, 2.0],
    [0.0, 1e-300],
    [1e300, 1.0, 2.0, 3.0],
    [1e300, 1e-20, 2e-20, 3e-20],
    [-1e300, 1e300, 0.0],
]


@pytest.mark.parametrize("y", HARD, ids=str)
def test_values_that_are_hard_to_compress(y):
    """One value, a constant, two values, huge ones and long tails: finite there and back, with finite moments."""
    y = np.array(y)
    outputs = Compress().fit(y)
    z = outputs.forward(y)
    assert np.all(np.isfinite(z))
    assert 0 < outputs.scale < np.inf
    np.testing.assert_allclose(outputs.inverse(z), y, rtol=1e-9)
    assert np.all(np.isfinite(outputs.moments(z, np.full(z.shape, 0.5))))
    assert np.all(np.diff(outputs.quantile(z[0], 1.0, np.array([0.1, 0.5, 0.9]))) >= 0)


def test_moments_of_a_wide_prediction():
    """Against 1,000,000 draws, where the law of z reaches over the median and beyond the worst value; a tiny sd is kept."""
    outputs = Compress().fit(HEAVY)
    z = np.random.default_rng(0).standard_normal(1_000_000)
    for mean, sd in ((outputs.forward(3.0), 1.0), (outputs.forward(1e6), 0.3), (outputs.forward(40.0), 0.5)):
        draws = outputs.inverse(mean + sd * z)
        m, s = outputs.moments(mean, sd)
        assert m == pytest.approx(draws.mean(), abs=5 * draws.std() / 1e3)
        assert s == pytest.approx(draws.std(), rel=0.02)
        for level in (0.1, 0.9):
            assert outputs.quantile(mean, sd, level) == pytest.approx(np.quantile(draws, level), rel=0.02)
    slope = 2.5 * math.exp(math.log1p(37.0 / 2.5)) * (outputs.scale / 2.5)
    assert outputs.moments(outputs.forward(40.0), 1e-9)[1] == pytest.approx(1e-9 * slope, rel=1e-5)


def test_a_run_is_unchanged_by_shift_and_scale():
    def points(a, b):
        optimizer = Optimizer([(0.0, 1.0)], budget=10, seed=2, noise=0.0)
        for _ in range(8):
            x = optimizer.ask()
            optimizer.tell(x, a * math.exp(9 * (x[0] - 0.3) ** 2) + b)
        return [float(x[0]) for x in optimizer.record().x_iters]

    np.testing.assert_allclose(points(1e6, -7e5), points(1.0, 0.0), atol=1e-6)


def test_known_hyperparameters_hold_in_the_units_of_y():
    model = GaussianProcess(fit=Known(0.2), noise=0.0)
    assert model.outputs == Standardize()
    assert model.kernel == Matern52()
    assert GaussianProcess().outputs == Compress()
    with pytest.raises(ValueError, match="which Compress bends: leave outputs out"):
        GaussianProcess(fit=Known(0.2), noise=0.0, outputs=Compress())
