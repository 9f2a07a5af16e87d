import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from glasses.surrogate import Constant, Matern52, SquaredExponential
from glasses.surrogate.posterior import (
    NEGLIGIBLE_NOISE,
    NUGGET,
    Hyper,
    condition,
    grow,
    incumbent,
    joint,
    marginals,
    mean,
    posterior,
)

KERNELS = [Matern52(), SquaredExponential()]


def hyper(d=2, noise=1e-3, c=0.3, variance=1.7):
    theta = {"lengthscale": jnp.linspace(0.3, 0.8, d), "variance": jnp.asarray(variance)}
    return Hyper(theta, jnp.asarray(noise), jnp.asarray(c))


def data(n, d=2, rows=None, seed=0):
    rng = np.random.default_rng(seed)
    rows = n if rows is None else rows
    X, y = np.full((rows, d), 0.77), np.full(rows, 9.9)
    X[:n], y[:n] = rng.random((n, d)), rng.standard_normal(n)
    return jnp.asarray(X), jnp.asarray(y), jnp.asarray(n)


def sklearn_twin(kernel, h, X, y, bias):
    shape = Matern if isinstance(kernel, Matern52) else RBF
    shape = shape(h.theta["lengthscale"], **({"nu": 2.5} if shape is Matern else {}))
    twin = ConstantKernel(float(h.theta["variance"])) * shape
    if bias:
        twin = twin + ConstantKernel(bias)
    noise = float(h.noise) + NUGGET * float(h.theta["variance"])
    return GaussianProcessRegressor(twin, alpha=noise, optimizer=None).fit(X, y - float(h.mean))


@pytest.mark.parametrize("bias", [0.0, 0.6])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_mean_and_covariance_match_scikit_learn(kernel, bias):
    """[eq:mean], [eq:cov], [eq:matern52], [eq:se], [eq:compose]: also with the bias kernel as a second term."""
    h = hyper()
    X, y, n = data(12)
    twin = sklearn_twin(kernel, h, X, y, bias)
    if bias:
        kernel, h = kernel + Constant(), h._replace(theta=(h.theta, {"variance": jnp.asarray(bias)}))
    A = np.random.default_rng(9).random((7, 2))
    post = posterior(kernel, h, X, y, n)
    assert float(post.variance) == 1.7
    m, C = joint(kernel, post, jnp.asarray(A))
    exact_m, exact_C = twin.predict(A, return_cov=True)
    np.testing.assert_allclose(m, exact_m + 0.3, atol=1e-9)
    np.testing.assert_allclose(C, exact_C, atol=1e-8)
    sd = marginals(kernel, post, jnp.asarray(A))[1]
    np.testing.assert_allclose(sd**2, np.diag(exact_C), atol=1e-8)


@jax.jit
def predicted(data, A):
    return joint(Matern52(), posterior(Matern52(), hyper(), *data), A)


@pytest.mark.slow
@given(n=st.sampled_from([1, 4, 9]), seed=st.integers(0, 99))
def test_padding_is_invisible(n, seed):
    A = jnp.asarray(np.random.default_rng(1).random((4, 2)))
    plain, padded = predicted(data(n, seed=seed), A), predicted(data(n, rows=10, seed=seed), A)
    np.testing.assert_allclose(plain[0], padded[0], atol=1e-10)
    np.testing.assert_allclose(plain[1], padded[1], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_conditioning_step_by_step_is_conditioning_at_once(kernel):
    h = hyper()
    X, y, _ = data(9)
    A = jnp.asarray(np.random.default_rng(2).random((5, 2)))
    step = jax.tree.map(jnp.asarray, grow(posterior(kernel, h, X[:4], y[:4], jnp.asarray(4)), 16))
    for i in range(4, 9):
        step = condition(kernel, step, X[i], y[i])
    once = posterior(kernel, h, X, y, jnp.asarray(9))
    assert int(step.n) == 9
    np.testing.assert_allclose(joint(kernel, step, A)[0], joint(kernel, once, A)[0], atol=1e-8)
    np.testing.assert_allclose(joint(kernel, step, A)[1], joint(kernel, once, A)[1], atol=1e-8)


@pytest.mark.slow
def test_an_observation_at_the_mean_changes_only_the_variance():
    h = hyper(noise=1e-6)
    post = jax.tree.map(jnp.asarray, grow(posterior(Matern52(), h, *data(6)), 8))
    A = jnp.asarray(np.random.default_rng(2).random((5, 2)))
    later = condition(Matern52(), post, A[0], mean(Matern52(), post, A[:1])[0])
    np.testing.assert_allclose(mean(Matern52(), later, A), mean(Matern52(), post, A), atol=1e-7)
    assert np.all(marginals(Matern52(), later, A)[1] <= marginals(Matern52(), post, A)[1] + 1e-9)
    assert float(marginals(Matern52(), later, A)[1][0]) < 2e-3


def test_repeated_inputs_with_and_without_noise():
    X = jnp.asarray([[0.2, 0.2], [0.2, 0.2], [0.9, 0.1]])
    y = jnp.asarray([1.0, 1.0, -1.0])
    for noise in (0.0, 0.1):
        post = posterior(Matern52(), hyper(noise=noise), X, y, jnp.asarray(3))
        assert np.all(np.isfinite(post.L))
        assert float(mean(Matern52(), post, X[:1])[0]) == pytest.approx(1.0, abs=0.1)


def test_eta_is_the_best_observation_or_the_best_mean():
    X, y, n = data(6)
    exact = posterior(Matern52(), hyper(noise=0.5 * NEGLIGIBLE_NOISE), X, y, n)
    assert float(incumbent(Matern52(), exact)) == float(jnp.min(y))
    noisy = posterior(Matern52(), hyper(noise=0.2), X, y, n)
    assert float(incumbent(Matern52(), noisy)) == float(jnp.min(mean(Matern52(), noisy, X)))
    assert float(incumbent(Matern52(), noisy)) > float(jnp.min(y))
