"""Losses under constraints: closed forms, and the expected feasible minimum over everything left against simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_candidates
from scipy import stats

from glasses import ExpectedLoss, Glasses, TwoStage
from glasses.gaussian import QMC
from glasses.lookahead.candidates import Failures, query_candidate
from glasses.lookahead.forecast import forecast_gains
from glasses.lookahead.loss import steps_for, value_for
from glasses.lookahead.myopic import ProbabilityOfImprovement
from glasses.lookahead.oracles import believed
from glasses.lookahead.rollout import simulate_block
from glasses.lookahead.satisfaction import JointConstraints, are_met, at_first

POINTS = np.random.default_rng(3).random((40, 2))
NOTHING = jnp.asarray(-jnp.inf)


def constrained(log_p, log_gain=NOTHING, **settings):
    log_p = jnp.asarray(log_p)
    return unconstrained(**settings)._replace(failures=Failures(log_p, log_gain, NOTHING, jnp.zeros_like(log_p)))


def unconstrained(**settings):
    """With an incumbent so high that plain simulation sees improvements."""
    _, candidates, _ = make_candidates(POINTS, **settings)
    return candidates._replace(eta=candidates.eta + 0.5)


def chances(seed=0, n=40):
    return np.log(np.random.default_rng(seed).uniform(0.05, 0.95, n))


def simulated(candidates, rows, p, eta, samples=2**16):
    """E[max(eta - min over those that are feasible of y, 0)] and its standard error."""
    rng = np.random.default_rng(1)
    m, S = np.asarray(candidates.mu)[rows], np.asarray(candidates.cov)[np.ix_(rows, rows)]
    y = rng.multivariate_normal(m, S, samples)
    y = np.where(rng.random(y.shape) < p, y, np.inf)
    gains = np.maximum(eta - y.min(axis=1), 0.0)
    return gains.mean(), gains.std() / np.sqrt(samples)


@pytest.mark.parametrize("loss", [ExpectedLoss(), TwoStage()], ids=str)
def test_the_last_evaluation_is_worth_its_improvement_times_its_feasibility(loss):
    """[eq:feasible] with n = 1: EI, a closed form, times the probability of feasibility."""
    log_p = chances()
    candidates, one = constrained(log_p), jnp.asarray(1)
    for i in (3, 17):
        query = query_candidate(candidates, jnp.asarray(i))
        value = value_for(loss, candidates, query, steps_for(loss, candidates, query, one, 8), one)
        plain = ExpectedLoss().acquisition_value(candidates, query, (), one)
        assert float(value) == pytest.approx(float(plain) + log_p[i], abs=1e-9)


@pytest.mark.slow
def test_the_plan_is_valued_by_its_feasible_minimum():
    """[eq:open] over the feasible of four points; [eq:risk] with the same steps is the minimum with x* only likely too."""
    log_p, left = chances(), jnp.asarray(4)
    loss = Glasses(expectation=QMC(512))
    candidates, start = constrained(log_p), 17
    query = query_candidate(candidates, jnp.asarray(start))
    steps = loss.predict_steps(candidates, query, left, 8)
    rows = [start, *np.asarray(steps)[:3]]
    p = np.exp(log_p)[rows]
    given = float(loss.acquisition_value(candidates, query, steps, left))
    expected, error = simulated(candidates, rows, np.append(1.0, p[1:]), float(candidates.eta))
    assert np.exp(given) == pytest.approx(expected, rel=0.005, abs=4 * error)
    without, _ = simulated(candidates, rows[1:], p[1:], float(candidates.eta))
    after = candidates._replace(failures=candidates.failures._replace(log_gain=jnp.log(without)))
    whole, error = simulated(candidates, rows, p, float(candidates.eta))
    value = value_for(loss, after, query, steps, left)
    assert np.exp(float(value)) == pytest.approx(whole, rel=0.01, abs=6 * error)


def test_two_stages_count_the_feasible_only():
    """Later evaluations that cannot be feasible bring nothing; that are for certain, what they bring without constraints."""
    left = jnp.asarray(4)

    @jax.jit
    def value(candidates):
        query, loss = query_candidate(candidates, jnp.asarray(3)), TwoStage()
        return loss.acquisition_value(candidates, query, loss.predict_steps(candidates, query, left, 8), left)

    never, always = np.full(40, -1e6), np.zeros(40)
    alone = query_candidate(constrained(always), jnp.asarray(3))
    ei = float(ExpectedLoss().acquisition_value(constrained(always), alone, (), left))
    assert float(value(constrained(never))) == pytest.approx(ei, abs=1e-3)  # the noise makes the difference
    assert float(value(constrained(always))) == pytest.approx(float(value(unconstrained())), abs=1e-9)


@pytest.mark.slow
def test_pending_evaluations_count_as_far_as_they_are_feasible():
    """One evaluation left and one pending: the feasible minimum of the pair, x* taken to be feasible."""
    waiting = [[0.4, 0.6]]
    log_p = chances(n=41)
    candidates = constrained(log_p, pending=waiting)
    query, one = query_candidate(candidates, jnp.asarray(5)), jnp.asarray(1)
    value = float(ExpectedLoss(QMC(512)).acquisition_value(candidates, query, (), one))
    expected, error = simulated(candidates, [5, 40], np.array([1.0, np.exp(log_p[40])]), float(candidates.eta))
    assert np.exp(value) == pytest.approx(expected, rel=0.01, abs=4 * error)


def test_what_is_likely_to_violate_a_constraint_is_not_believed_to_be_the_best():
    log_p = np.log(np.where(np.arange(40) < 20, 0.4, 0.6))
    candidates = constrained(log_p)
    found = [float(believed(candidates, candidates.mu, i)) for i in (3, 30)]
    assert found == [np.inf, float(candidates.mu[30])]


def test_the_probability_of_improvement_is_that_of_a_feasible_one():
    log_p = chances()
    candidates, one, loss = constrained(log_p), jnp.asarray(1), ProbabilityOfImprovement()
    query = query_candidate(candidates, jnp.asarray(3))
    alone = loss.acquisition_value(candidates, query, (), one)
    assert float(value_for(loss, candidates, query, (), one)) == pytest.approx(float(alone) + log_p[3])


def test_a_simulated_evaluation_that_violates_a_constraint_teaches_and_brings_nothing():
    """A failure leaves the model as it was, so that the next step is another; both leave the incumbent."""
    never = np.full(40, -1e6)
    teaching = constrained(never)
    failing = teaching._replace(failures=teaching.failures._replace(log_value=None))

    @jax.jit
    def future(candidates):
        query = query_candidate(candidates, jnp.asarray(3))._replace(log_feasibility=jnp.asarray(0.0))
        query = query._replace(log_value=None if candidates.failures.log_value is None else jnp.asarray(0.0))
        return simulate_block(candidates, query, jnp.asarray(8), 8, 16, jnp.asarray(0), for_forecast=True)

    found, other = future(teaching), future(failing)
    np.testing.assert_allclose(found.gains[:, 1:], 0.0)  # nothing later is feasible
    np.testing.assert_array_equal(found.best[:, 0], found.best[:, -1])
    assert np.any(np.asarray(found.steps) != np.asarray(other.steps))


@pytest.mark.slow
def test_a_simulated_value_of_a_constraint_is_learnt_from_as_by_the_model():
    """[eq:learnt]: after drawn values at three points, the posterior given those values, from plain linear algebra."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((2, 12, 12))
    cov, mu, noise = A @ A.transpose(0, 2, 1) / 12 + 0.1 * np.eye(12), rng.standard_normal((2, 12)), np.array([1e-3, 0.2])
    given = JointConstraints(mu, cov, noise, np.full(2, 1e-10), np.array([0.3, -0.1]), np.asarray(0))
    known, chosen, u = at_first(given, 4), [3, 7, 1], rng.standard_normal((3, 2))
    values, yes = [], jnp.asarray(True)
    for row, (i, each) in enumerate(zip(chosen, u, strict=True)):
        values.append(known.mu[:, i] + np.sqrt(known.rest[:, i] + noise) * each)
        met = np.all(known.mu[:, i] + np.sqrt(known.rest[:, i]) * each <= given.limit)
        assert bool(known.is_met(given, jnp.asarray(i), jnp.asarray(each))) == met
        known = known.after(given, jnp.asarray(i), jnp.asarray(each), row, yes)
    again = known.after(given, jnp.asarray(5), jnp.asarray(u[0]), 3, ~yes)  # a failure tells nothing
    np.testing.assert_array_equal(again.mu, known.mu)
    expected = np.zeros(12)
    for j in range(2):
        K = cov[j][np.ix_(chosen, chosen)] + noise[j] * np.eye(3)
        weights = np.linalg.solve(K, cov[j][chosen])
        mean = mu[j] + weights.T @ (np.array(values)[:, j] - mu[j][chosen])
        variance = np.diag(cov[j]) - np.sum(weights * cov[j][chosen], axis=0)
        np.testing.assert_allclose(known.mu[j], mean, atol=1e-9)
        np.testing.assert_allclose(known.rest[j], variance, atol=1e-8)
        expected += stats.norm.logcdf((given.limit[j] - mean) / np.sqrt(variance))
    np.testing.assert_allclose(known.log_probability(given), expected, rtol=1e-6, atol=1e-8)


def test_constraints_drawn_together_are_met_as_often_as_they_are():
    """Two points of which one is a copy of the other are feasible together; each as often as its probability says."""
    cov = np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]])
    given = JointConstraints(np.array([[0.5, 0.5, -1.0]]), cov, np.zeros(1), np.full(1, 1e-10), np.zeros(1), np.asarray(0))
    u = np.random.default_rng(0).standard_normal((1, 3, 20_000))
    met = np.asarray(are_met(given, jnp.arange(3), jnp.asarray(u)))
    assert np.mean(met[0] == met[1]) > 0.98
    p = stats.norm.cdf([-0.5, -0.5, 0.5])
    np.testing.assert_allclose(met.mean(axis=1), p, atol=4 * np.sqrt(0.25 / 20_000))


@pytest.mark.slow
def test_a_forecast_of_one_evaluation_is_its_improvement_times_its_feasibility():
    """And no number of evaluations brings more than to know where what is feasible is lowest."""
    log_p = np.full(40, np.log(0.5))
    candidates = constrained(log_p)
    cov = np.broadcast_to(np.eye(40), (1, 40, 40))
    given = JointConstraints(np.zeros((1, 40)), cov, np.zeros(1), np.full(1, 1e-10), np.zeros(1), np.asarray(17))
    query = query_candidate(candidates, jnp.asarray(17))
    found = forecast_gains(candidates.alone(), query, np.asarray(8), given, size=8)
    ei = float(ExpectedLoss().acquisition_value(candidates, query, (), jnp.asarray(1)))
    assert float(found.expected[0]) == pytest.approx(0.5 * np.exp(ei), rel=1e-3)  # the noise makes the difference
    assert np.all(np.diff(found.expected) >= 0)
    m, S = np.asarray(candidates.mu), np.asarray(candidates.cov)
    rng = np.random.default_rng(0)
    y = np.where(rng.random((20_000, 40)) < 0.5, rng.multivariate_normal(m, S, 20_000), np.inf)
    most = np.maximum(float(candidates.eta) - y.min(axis=1), 0.0)
    error = 2 * most.std() / np.sqrt(256)  # of the futures, whose sum of EI varies twice as much as their best value
    assert float(found.clairvoyant) == pytest.approx(most.mean(), abs=4 * error)
    assert float(found.expected[-1]) == pytest.approx(most.mean(), abs=4 * error)  # eight find nearly all of it
    assert float(found.open_loop[-1]) <= float(found.clairvoyant)
