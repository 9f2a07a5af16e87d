import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from glasses.numerics.bfgs import minimize_batch


def batched(f):
    return jax.vmap(jax.value_and_grad(f))


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("dim", [2, 5])
def test_finds_the_minimum_of_rosenbrock(dim):
    starts = np.random.default_rng(0).uniform(-2, 2, (4, dim))
    found = minimize_batch(
        batched(rosenbrock), jnp.asarray(starts), -5 * jnp.ones(dim), 5 * jnp.ones(dim), passes=500, tolerance=1e-14
    )
    assert float(found.f.min()) < 1e-8
    np.testing.assert_allclose(found.x[jnp.argmin(found.f)], 1.0, atol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_bound_constrained_quadratics_match_scipy(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 4))
    A, b = A @ A.T + 0.1 * np.eye(4), 3 * rng.standard_normal(4)

    def f(x):
        return 0.5 * x @ A @ x + b @ x

    exact = optimize.minimize(lambda x: float(f(x)), np.full(4, 0.5), jac=lambda x: A @ x + b, bounds=[(0, 1)] * 4, tol=1e-14)
    found = minimize_batch(batched(f), jnp.full((1, 4), 0.5), jnp.zeros(4), jnp.ones(4), passes=300, tolerance=1e-15)
    assert float(found.f[0]) == pytest.approx(exact.fun, abs=1e-6)
    assert np.all((np.asarray(found.x) >= 0) & (np.asarray(found.x) <= 1))


def test_starts_are_independent_of_each_other():
    starts = jnp.asarray(np.random.default_rng(1).uniform(-2, 2, (3, 2)))
    together = minimize_batch(batched(rosenbrock), starts, -5 * jnp.ones(2), 5 * jnp.ones(2), passes=40)
    for i in range(3):
        alone = minimize_batch(batched(rosenbrock), starts[i : i + 1], -5 * jnp.ones(2), 5 * jnp.ones(2), passes=40)
        np.testing.assert_allclose(alone.x[0], together.x[i], rtol=1e-6)  # 40 passes enlarge the rounding


def test_never_ends_above_its_start_and_survives_nan():
    """A function that is NaN on half the box, and one start where it is NaN already."""

    def f(x):
        return jnp.where(x[0] > 0.5, jnp.nan, -x[0])

    starts = jnp.asarray([[0.1], [0.45], [0.9]])
    found = minimize_batch(batched(f), starts, jnp.zeros(1), jnp.ones(1), passes=60)
    assert 0.45 <= float(found.x[1, 0]) <= 0.5
    assert float(found.f[0]) <= -0.1
    assert float(found.x[2, 0]) == 0.9
    assert not np.isfinite(float(found.f[2]))
    assert int(found.passes) <= 60


def test_running_out_of_passes_is_said():
    found = minimize_batch(batched(rosenbrock), jnp.asarray([[-1.5, 2.0]]), -5 * jnp.ones(2), 5 * jnp.ones(2), passes=3)
    assert not bool(found.converged[0])
