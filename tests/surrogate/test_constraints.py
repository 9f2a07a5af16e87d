"""Models of constraints: the probability of feasibility against scikit-learn's GP, their units, and the incumbent."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from glasses.surrogate import GaussianProcess, Known, SquaredExponential
from glasses.surrogate.constraints import ConstraintFits, fit_constraints, model_of_constraints, units_of, with_allowed
from glasses.surrogate.feasibility import fit_failures, nothing_failed
from glasses.surrogate.fit import conditioned
from glasses.surrogate.posterior import Hyper, grow, incumbent

KERNEL = SquaredExponential()
X = np.random.default_rng(0).random((9, 2))
G = np.stack([X[:, 0] - 0.4, np.sin(5 * X[:, 1])], axis=1)
NEW = np.random.default_rng(1).random((20, 2))


def known(lengthscale, y, noise=1e-6):
    theta = {"lengthscale": np.full(2, lengthscale), "variance": np.asarray(1.0)}
    return conditioned(KERNEL, Hyper(theta, np.asarray(noise), np.zeros(())), X, y)


def test_feasibility_is_the_product_over_the_constraints():
    """[eq:satisfied], with one factor for failures."""
    fits = ConstraintFits([known(0.3, G[:, 0]), known(0.5, G[:, 1])], np.array([0.1, -0.2]))
    expected = np.zeros(len(NEW))
    for lengthscale, g, limit in zip((0.3, 0.5), G.T, fits.limits, strict=True):
        theirs = GaussianProcessRegressor(RBF(lengthscale, "fixed"), alpha=1e-6, optimizer=None).fit(X, g)
        mu, sd = theirs.predict(NEW, return_std=True)
        expected += stats.norm.logcdf((limit - mu) / sd)
    found = fits.with_failures(nothing_failed((32, 2)))
    np.testing.assert_allclose(found.log_probability(jnp.asarray(NEW), KERNEL), expected, rtol=1e-3, atol=1e-6)
    failures = fit_failures(X, np.arange(9) == 3)
    both = fits.with_failures(failures)
    more = np.asarray(failures.log_probability(jnp.asarray(NEW)))
    np.testing.assert_allclose(both.log_probability(jnp.asarray(NEW), KERNEL), expected + more, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(both.log_value(jnp.asarray(NEW)), more)
    assert np.asarray(both.is_infeasible(jnp.asarray(X))).tolist() == (np.arange(9) == 3).tolist()


def test_room_for_more_observations_changes_nothing():
    fits = ConstraintFits([known(0.3, G[:, 0])], np.array([0.1]))
    found = fits.with_failures(nothing_failed((32, 2)))
    grown = found.grown(64)
    assert grown.posts.X.shape == (1, 64, 2)
    np.testing.assert_allclose(
        grown.log_probability(jnp.asarray(NEW), KERNEL), found.log_probability(jnp.asarray(NEW), KERNEL), rtol=1e-9
    )


@given(st.floats(1e-6, 1e6), st.booleans())
def test_the_size_of_a_constraint_does_not_matter(factor, constant):
    """What is zero, in the units of the model, is the same: so are the values that it is fitted to."""
    g = np.full(5, -0.3) if constant else np.array([0.3, -1.2, 5.0, 0.0, 2.5])
    plain, scaled = units_of(g), units_of(factor * g)
    assert scaled.forward(0.0) == pytest.approx(plain.forward(0.0), rel=1e-9)
    np.testing.assert_allclose(scaled.forward(factor * g), plain.forward(g), rtol=1e-9, atol=1e-9)
    if constant:
        assert plain.forward(0.0) == pytest.approx(1.0)  # a standard deviation of the prior away


def test_values_that_are_not_known_are_left_out():
    gappy = G.copy()
    gappy[:4, 1] = np.nan
    model = GaussianProcess()
    whole, some = fit_constraints(model, X, G, None), fit_constraints(model, X, gappy, None)
    alone = fit_constraints(model, X[4:], G[4:, 1:], None)
    assert [int(post.n) for post in some.posts] == [9, 5]
    np.testing.assert_array_equal(some.posts[0].alpha, whole.posts[0].alpha)
    np.testing.assert_array_equal(some.posts[1].alpha, alone.posts[0].alpha)
    assert some.limits[1] == alone.limits[0]


def test_constraints_have_the_objectives_model_with_hyperparameters_of_their_own():
    model = GaussianProcess(kernel=KERNEL, fit=Known(0.2), noise=0.0)
    own = model_of_constraints(model)
    assert own.kernel == KERNEL
    assert not isinstance(own.fit, Known)  # those of the objective hold in the units of y
    assert own.noise == 0.0
    assert model_of_constraints(GaussianProcess(noise=0.3)).noise is None  # in the units of y


def test_the_incumbent_is_feasible():
    y = np.array([3.0, -1.0, 0.5, 2.0, 1.0, 7.0, 4.0, 5.0, 6.0])
    feasible = y > 0.7
    for noise, exact in ((1e-6, True), (0.3, False)):
        post = grow(with_allowed(known(0.3, y, noise), feasible), 64)
        eta = float(incumbent(KERNEL, post))
        if exact:
            assert eta == 1.0
        else:  # the smallest posterior mean at feasible data
            theirs = GaussianProcessRegressor(RBF(0.3, "fixed"), alpha=noise, optimizer=None).fit(X, y)
            assert eta == pytest.approx(theirs.predict(X)[feasible].min(), rel=1e-4)


def test_while_nothing_is_feasible_a_value_above_all_is_the_incumbent():
    """[eq:reference]: the spread, or where all are the same the sd of the prior, above the largest value."""
    y = np.array([3.0, -1.0, 0.5, 2.0, 1.0, 7.0, 4.0, 5.0, 6.0])
    none = np.zeros(9, bool)
    assert float(incumbent(KERNEL, with_allowed(known(0.3, y), none))) == 7.0 + 8.0
    assert float(incumbent(KERNEL, with_allowed(known(0.3, np.full(9, 2.0)), none))) == 3.0
