"""Many observations: [eq:fitc] and [eq:pseudo] against their formulas, and against the exact posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from glasses.search.predict import predict
from glasses.surrogate import Matern52
from glasses.surrogate import inducing as module
from glasses.surrogate.fit import conditioned
from glasses.surrogate.inducing import inducing_points, inducing_posterior
from glasses.surrogate.posterior import Hyper, condition, grow

KERNEL = Matern52()
HYPER = Hyper({"lengthscale": np.full(2, 0.4), "variance": np.asarray(1.3)}, np.asarray(1e-3), np.asarray(0.2))
A = np.random.default_rng(5).random((20, 2))


def waves(n):
    X = np.random.default_rng(2).random((n, 2))
    return X, np.sin(6 * X[:, 0]) + np.cos(4 * X[:, 1])


def small(monkeypatch, inducing=24):
    monkeypatch.setattr(module, "INDUCING", inducing)
    monkeypatch.setattr(module, "_BEST", inducing // 2)


def covariance(P, Q):
    return np.asarray(KERNEL.covariance(HYPER.theta, P, Q))


def test_the_posterior_is_that_of_the_formulas(monkeypatch):
    """Mean and variance with plain matrix algebra, the pseudo-observations nowhere in sight."""
    small(monkeypatch)
    X, y = waves(80)
    mean, sd = predict(KERNEL, inducing_posterior(KERNEL, HYPER, X, y), A)
    chosen = inducing_points(X, y, np.full(2, 0.4))
    Z = X[chosen]
    K, Kx, Ka = covariance(Z, Z), covariance(Z, X), covariance(Z, A)
    explained = np.sum(Kx * np.linalg.solve(K, Kx), axis=0)
    weight = 1.0 / (1.3 - explained + 1e-3)
    S = K + (Kx * weight) @ Kx.T
    np.testing.assert_allclose(mean, 0.2 + Ka.T @ np.linalg.solve(S, (Kx * weight) @ (y - 0.2)), atol=1e-5)
    variance = 1.3 - np.sum(Ka * (np.linalg.solve(K, Ka) - np.linalg.solve(S, Ka)), axis=0)
    np.testing.assert_allclose(sd**2, variance, atol=1e-5)


def test_with_every_observation_chosen_it_is_exact(monkeypatch):
    X, y = waves(40)
    small(monkeypatch, 40)
    found = predict(KERNEL, inducing_posterior(KERNEL, HYPER, X, y), A)
    exact = predict(KERNEL, conditioned(KERNEL, HYPER, X, y), A)
    np.testing.assert_allclose(found[0], exact[0], atol=1e-5)
    np.testing.assert_allclose(found[1], exact[1], atol=1e-5)


def test_the_best_values_and_a_cover_are_chosen(monkeypatch):
    small(monkeypatch, 20)
    X, y = waves(300)
    chosen = inducing_points(X, y, np.full(2, 0.4))
    assert len(set(chosen.tolist())) == 20
    assert set(np.argsort(y)[:10].tolist()) <= set(chosen.tolist())
    nearest = np.min(np.max(np.abs(X[:, None] - X[chosen][None]), axis=2), axis=1)
    assert nearest.max() < 0.35


def test_it_can_be_conditioned_further(monkeypatch):
    """As any posterior: an exact observation is then predicted, and the variance falls there."""
    small(monkeypatch)
    X, y = waves(80)
    post = inducing_posterior(KERNEL, HYPER, X, y)
    post = grow(post, 32)
    more = jax.jit(condition, static_argnums=0)(KERNEL, jax.tree.map(jnp.asarray, post), A[0], 3.0)
    before, after = predict(KERNEL, post, A[:1]), predict(KERNEL, more, A[:1])
    expected = before[0] + before[1] ** 2 / (before[1] ** 2 + 1e-3) * (3.0 - before[0])
    assert after[0] == pytest.approx(expected, rel=1e-6)
    assert after[1] < before[1]


@pytest.mark.slow
def test_two_thousand_observations_are_close_to_exact_near_the_best():
    """Within a twentieth of the function's standard deviation everywhere, a hundredth near the best value."""
    X, y = waves(2000)
    hyper = HYPER._replace(noise=np.asarray(1e-6))
    found = inducing_posterior(KERNEL, hyper, X, y)
    near = np.clip(X[np.argmin(y)] + 0.03 * np.random.default_rng(0).standard_normal((50, 2)), 0, 1)
    for where, most in ((A, 0.05), (near, 0.01)):
        truth = np.sin(6 * where[:, 0]) + np.cos(4 * where[:, 1])
        assert np.max(np.abs(predict(KERNEL, found, where)[0] - truth)) < most * y.std()
