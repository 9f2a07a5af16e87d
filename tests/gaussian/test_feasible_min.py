"""The expected feasible minimum [eq:feasible] against enumeration, simulation and the closed form."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import gp_problem
from scipy import stats

from glasses.gaussian import EP, QMC
from glasses.gaussian.feasible_min import expected_largest, log_feasible_gain, log_gain_of

log_gain = jax.jit(partial(log_feasible_gain, samples=256))
ROOM = 4  # one shape for all: the rest is padding


def gain(m, S, eta, p):
    n = len(m)
    mean, cov, chance = np.zeros(ROOM), np.eye(ROOM), np.zeros(ROOM)
    mean[:n], cov[:n, :n] = m, S
    with np.errstate(divide="ignore"):
        chance[:n] = np.log(p)
    return float(np.exp(log_gain(mean, cov, np.asarray(eta), np.arange(ROOM) < n, chance)))


def simulated(m, S, eta, p, samples=2**16):
    """The mean of the gain over draws of y and of what is feasible, and its standard error."""
    rng = np.random.default_rng(3)
    y = rng.multivariate_normal(m, S, samples)
    feasible = rng.random(y.shape) < p
    gains = np.maximum(eta - np.min(np.where(feasible, y, np.inf), axis=1), 0.0)
    return gains.mean(), gains.std() / np.sqrt(samples)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=ROOM, max_size=ROOM))
def test_the_chance_of_feasibility_is_summed_out_exactly(pairs):
    """[eq:chance] against the sum over all subsets."""
    g, p = np.array(pairs).T
    total = 0.0
    for kept in product([False, True], repeat=ROOM):
        kept = np.array(kept)
        total += np.prod(np.where(kept, p, 1 - p)) * np.max(np.where(kept, g, 0.0))
    assert float(expected_largest(jnp.asarray(g), jnp.asarray(p), axis=0)) == pytest.approx(total, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", ["spread", "clustered", "duplicated"])
@pytest.mark.parametrize("p", [(0.9, 0.5, 0.2, 0.7), (1.0, 1.0, 0.3, 0.0), (0.02, 0.05, 0.01, 0.03)])
def test_against_simulation(kind, p):
    """[eq:feasible], the tolerance four standard errors and the one per cent of the quasi-random points."""
    m, S, eta = gp_problem(ROOM, kind, 1)
    eta = eta + 0.5  # so that plain simulation sees improvements
    expected, error = simulated(m, S, eta, np.array(p))
    assert gain(m, S, eta, p) == pytest.approx(expected, rel=0.01, abs=4 * error)


@given(st.floats(-30, 3), st.floats(1e-3, 10), st.floats(1e-12, 1.0))
def test_one_point_is_expected_improvement_times_feasibility(z, sd, p):
    found = gain(np.array([-z * sd]), np.array([[sd**2]]), 0.0, np.array([p]))
    improvement = sd * (stats.norm.pdf(z) + z * stats.norm.cdf(z)) if z > -6 else None
    if improvement is not None:
        assert found == pytest.approx(p * improvement, rel=1e-6)
    else:  # far in the tail, where the closed form cancels: by its asymptotic series
        assert found == pytest.approx(p * sd * stats.norm.pdf(z) / z**2, rel=3.5 / z**2)


@pytest.mark.slow
def test_certain_feasibility_is_the_expected_minimum():
    m, S, eta = gp_problem(ROOM, "spread", 2)
    every = np.ones(ROOM, bool)
    plain = QMC(256).log_gain(*map(jnp.asarray, (m, S, eta, every)))
    assert np.log(gain(m, S, eta, np.ones(ROOM))) == pytest.approx(float(plain), abs=1e-9)
    certain = log_gain_of(EP(fallback=QMC(256)), *map(jnp.asarray, (m, S, eta, every)), jnp.zeros(ROOM))
    assert float(certain) == pytest.approx(float(QMC().log_gain(*map(jnp.asarray, (m, S, eta, every)))), abs=1e-9)


@given(st.permutations(range(ROOM)), st.floats(0.01, 100), st.floats(-10, 10))
def test_units_and_order_do_not_matter(order, scale, shift):
    m, S, eta = gp_problem(ROOM, "spread", 3)
    p, order = np.array([0.9, 0.4, 0.6, 0.1]), np.array(order)
    moved = gain(scale * m + shift, scale**2 * S, scale * eta + shift, p)
    assert moved == pytest.approx(scale * gain(m, S, eta, p), rel=1e-6)
    shuffled = gain(m[order], S[np.ix_(order, order)], eta, p[order])
    assert shuffled == pytest.approx(gain(m, S, eta, p), rel=0.02)  # other quasi-random points


def test_more_feasible_is_more_and_what_cannot_be_is_padding():
    m, S, eta = gp_problem(ROOM, "spread", 4)
    gains = [gain(m, S, eta, np.array([p, 0.5, 0.5, 0.5])) for p in (0.0, 1e-9, 0.3, 0.9, 1.0)]
    assert np.all(np.diff(gains) > 0)
    assert gains[0] == pytest.approx(gain(m[1:], S[1:, 1:], eta, np.full(3, 0.5)), rel=0.02)


def test_gradients_against_finite_differences():
    m, S, eta = gp_problem(ROOM, "spread", 5)
    every, log_p = np.ones(ROOM, bool), np.log([0.9, 0.5, 0.3, 0.8])

    def value(m, log_p):
        return log_gain(m, S, np.asarray(eta), every, log_p)

    slopes = jax.grad(value, argnums=(0, 1))(m, log_p)
    for which, slope in enumerate(slopes):
        for i in range(ROOM):
            step = [np.zeros(ROOM), np.zeros(ROOM)]
            step[which][i] = 1e-6
            finite = (value(m + step[0], log_p + step[1]) - value(m - step[0], log_p - step[1])) / 2e-6
            assert float(slope[i]) == pytest.approx(float(finite), rel=1e-4, abs=1e-6)
