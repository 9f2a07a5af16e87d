"""The model of failures [eq:success] against scikit-learn's classifier, and what it is for."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from glasses.surrogate.feasibility import LENGTHSCALES, VARIANCE, fit_failures, laplace


def labelled(n=25, seed=0):
    X = np.random.default_rng(seed).random((n, 2))
    return X, X[:, 0] + 0.3 * X[:, 1] > 0.8


def test_laplace_agrees_with_scikit_learn():
    """[eq:success] with zero prior mean: mode, gradient and evidence."""
    X, failed = labelled()
    kernel = ConstantKernel(VARIANCE, "fixed") * Matern(0.3, "fixed", nu=2.5)
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(X, ~failed).base_estimator_
    evidence, weights = laplace(kernel(X), ~failed, 0.0)
    np.testing.assert_allclose(kernel(X) @ weights, theirs.f_cached, atol=1e-4)
    assert evidence == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)


def test_probabilities_tell_the_two_regions_apart():
    X, failed = labelled()
    model = fit_failures(X, failed)
    new, truth = labelled(200, seed=1)
    p = np.exp(np.asarray(model.log_probability(jnp.asarray(new))))
    assert np.all((p > 0) & (p < 1))
    assert np.mean((p < 0.5) == truth) > 0.9


def test_one_failure_lowers_its_surroundings_and_little_else():
    X = np.random.default_rng(3).random((10, 2))
    X[0] = 0.5
    model = fit_failures(X, np.arange(10) == 0)
    near, far = np.exp(np.asarray(model.log_probability(jnp.array([[0.5, 0.5], [0.0, 0.0]]))))
    assert near < 0.6 < far


def test_the_lengthscale_has_the_best_evidence():
    X, failed = labelled(40)
    model = fit_failures(X, failed)
    p = (np.sum(~failed) + 1.5) / (len(X) + 2)
    evidences = [
        laplace(VARIANCE * Matern(factor * np.sqrt(2), nu=2.5)(X), ~failed, np.log(p / (1 - p)))[0] for factor in LENGTHSCALES
    ]
    assert model.lengthscale[0] == pytest.approx(LENGTHSCALES[int(np.argmax(evidences))] * np.sqrt(2))


def test_a_point_that_failed_is_infeasible_and_its_neighbours_are_not():
    X, failed = labelled()
    model = fit_failures(X, failed)
    assert np.asarray(model.is_infeasible(jnp.asarray(X))).tolist() == failed.tolist()
    assert not np.any(model.is_infeasible(jnp.asarray(X + 1e-4)))
