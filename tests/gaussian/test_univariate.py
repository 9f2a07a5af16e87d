import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from glasses.gaussian.univariate import improvement_quantiles, improvement_table, log_expected_improvement, log_h

Z = [-1e8, -1e5, -300.0, -38.5, -20.0, -5.0, -1.0, -1e-3, -1e-9, 0.0, 1e-9, 0.3, 2.0, 9.0, 40.0, 1e6]


def log_h_by_quadrature(z):
    """[eq:h], [eq:G]: h(-x) / phi(x) is the integral of u exp(-u x - u^2 / 2), positive everywhere."""
    x = abs(z)
    scale = 1.0 / max(x, 1.0)
    integral = integrate.quad(lambda v: v * np.exp(-v * scale * x - 0.5 * (v * scale) ** 2), 0, 60, epsabs=0, epsrel=1e-13)[0]
    log_small = np.log(integral) + 2 * np.log(scale) - 0.5 * x * x - 0.5 * np.log(2 * np.pi)
    return log_small if z <= 0 else np.log(z + np.exp(log_small))


@pytest.mark.parametrize("z", Z)
def test_log_h_matches_quadrature(z):
    assert float(log_h(jnp.asarray(z))) == pytest.approx(log_h_by_quadrature(z), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("z", [-40.0, -5.0, -1.0, -1.1e-2, -9e-3, -2e-4, -1e-5, 0.0, 1e-5, 9e-3, 1.1e-2, 0.7, 5.0])
def test_log_h_derivative_is_phi_over_h(z):
    slope = float(jax.grad(log_h)(jnp.asarray(z)))
    expected = np.exp(stats.norm.logcdf(z) - log_h_by_quadrature(z))
    assert slope == pytest.approx(expected, rel=1e-11)


def test_log_h_derivative_is_finite_in_the_far_tail():
    slopes = jax.vmap(jax.grad(log_h))(jnp.asarray([-1e100, -1e10, -1e4]))
    np.testing.assert_allclose(slopes, [1e100, 1e10, 1e4], rtol=1e-6)


def test_log_expected_improvement_is_an_expectation():
    """E[(eta - y)+] by quadrature."""
    m, s, eta = 0.7, 0.4, 0.2
    exact = integrate.quad(lambda y: (eta - y) * stats.norm.pdf(y, m, s), -10, eta)[0]
    assert float(log_expected_improvement(m, s, eta)) == pytest.approx(np.log(exact), rel=1e-8)


@pytest.mark.parametrize("z", [-5e3, -99.0, -10.0, -1.3, 0.0, 0.77, 6.0, 99.0, 5e3])
def test_improvement_quantiles_invert_the_distribution(z):
    """[eq:p], [eq:sf]: the distribution function at each quantile is its level."""
    levels = np.array([1e-4, 0.03, 0.3, 0.5, 0.9, 0.999])
    q = np.asarray(improvement_quantiles(jnp.asarray(z), improvement_table(tuple(levels))))
    if z > 50:  # the law is N(z, 1) up to 1 / z
        np.testing.assert_allclose(q - z, stats.norm.ppf(levels), atol=0.012)
        return

    def log_density(t):
        return np.log(t) + z * t - 0.5 * t * t  # phi(t - z) up to a constant

    size = 2.0 / (np.sqrt(z * z + 4) - z)
    total = integrate.quad(lambda v: np.exp(log_density(v * size) - log_density(size)), 0, 60, points=[1.0], limit=200)[0]
    for level, each in zip(levels, q, strict=True):
        part = integrate.quad(lambda v: np.exp(log_density(v * size) - log_density(size)), 0, each / size, limit=200)[0]
        assert part / total == pytest.approx(level, rel=2e-4, abs=1e-6)


@pytest.mark.slow
def test_improvement_quantiles_are_smooth():
    table = improvement_table((0.2, 0.8))
    z = jnp.linspace(-4.0, 4.0, 4001)
    slope = jax.vmap(jax.jacfwd(lambda z: improvement_quantiles(z, table)))(z)
    finite = (improvement_quantiles(z + 1e-6, table) - improvement_quantiles(z - 1e-6, table)) / 2e-6
    np.testing.assert_allclose(slope, finite, rtol=1e-5, atol=1e-6)
