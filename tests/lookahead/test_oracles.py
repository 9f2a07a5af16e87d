import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import make_candidates, query_of

from glasses import tiny
from glasses.lookahead import DeterminantalPoints, KrigingBeliever, LocalPenalization, ThompsonPaths
from glasses.lookahead.candidates import Costs
from glasses.lookahead.oracles import Belief, before_outcome
from glasses.testing import OracleContract
from glasses.testing.oracles import POINTS, compiled, predict

ORACLES = [
    KrigingBeliever(),
    LocalPenalization(),
    LocalPenalization(softplus=True),
    LocalPenalization(hard=True),
    DeterminantalPoints(),
    DeterminantalPoints(sample=True),
    ThompsonPaths(),
]
pytest.mark.slow(OracleContract.test_a_small_space_is_visited_once)  # with all oracles


class TestOracles(OracleContract):
    @pytest.fixture(params=ORACLES, ids=str)
    def oracle(self, request):
        return request.param


# A k-DPP draws its k points together: another k is another process.
@pytest.mark.parametrize("oracle", [oracle for oracle in ORACLES if oracle != DeterminantalPoints(sample=True)], ids=str)
def test_a_shorter_future_is_the_beginning_of_a_longer_one(oracle):
    long, short = predict(oracle, [0.3, 0.3], 12)[0], predict(oracle, [0.3, 0.3], 5)[0]
    assert np.array_equal(long[:4], short)


# One Thompson path may go anywhere: its frequencies are tested below.
@pytest.mark.parametrize("oracle", [oracle for oracle in ORACLES if oracle != ThompsonPaths()], ids=str)
def test_the_star_repels(oracle):
    """The favourite place of the future is avoided once the query stands on it."""
    elsewhere, _, _ = predict(oracle, [0.99, 0.01], 2)
    favourite = POINTS[elsewhere[0]]
    near = favourite + 1e-3
    then = POINTS[predict(oracle, near, 2)[0][0]]
    assert np.linalg.norm(then - near) > 0.02


@given(x=st.tuples(st.floats(0, 1), st.floats(0, 1)), seed=st.integers(0, 5))
def test_local_penalisation_is_the_tiny_version(x, seed):
    """[eq:lp], [eq:soft] with the paper's soft-plus"""
    points = np.random.default_rng(seed).random((40, 2))
    steps, _, model = predict(LocalPenalization(softplus=True), x, 6, points=points, seed=seed)
    exact = tiny.steps_ahead(model, np.asarray(x), 6, points, float(model.y.min()))
    np.testing.assert_allclose(points[steps], exact[1:], atol=1e-12)


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_kriging_believer_is_conditioning_again_and_again(noise):
    """[eq:kb]: condition a fresh model on every believed step."""
    x = np.array([0.35, 0.8])
    steps, candidates, model = predict(KrigingBeliever(), x, 8, noise=noise)
    mu, _ = tiny.posterior(model, np.vstack([x, POINTS]))
    eta, taken, believed = (
        min(float(candidates.eta), mu[0]),
        [],
        model._replace(X=np.vstack([model.X, x]), y=np.append(model.y, mu[0])),
    )
    for _ in range(7):
        mean, cov = tiny.posterior(believed, POINTS)
        sd = np.sqrt(np.maximum(np.diag(cov), 1e-10) + 1e-10)
        score = np.array(tiny.expected_improvement(mean, sd, eta))
        score[taken] = -1
        best = int(np.argmax(score))
        taken.append(best)
        eta = min(eta, mean[best])
        believed = believed._replace(X=np.vstack([believed.X, POINTS[best]]), y=np.append(believed.y, mean[best]))
    assert steps.tolist() == taken


@pytest.mark.parametrize("hard", [False, True])
def test_penaliser_facts(hard):
    """[eq:soft], [eq:hard]: in (0, 1], growing with the distance, one far away; the hard one is 0 at its centre, the soft
    one at most 1/2."""
    oracle = LocalPenalization(hard=hard)
    distance = jnp.asarray([0.0, 0.01, 0.1, 0.5, 2.0, 50.0])
    log_phi = np.asarray(oracle.log_penalty(distance, jnp.asarray(0.4), jnp.asarray(0.3), jnp.asarray(2.0), jnp.asarray(-1.0)))
    assert np.all(np.diff(log_phi) > 0)
    assert np.all(log_phi <= 0)
    assert np.exp(log_phi[-1]) == pytest.approx(1.0, abs=1e-6)
    assert np.exp(log_phi[0]) < (1e-6 if hard else 0.5)


@pytest.mark.parametrize("hard", [False, True])
def test_steps_stay_apart_after_an_outcome_that_lowers_every_mean(hard):
    """M follows the means of the belief: else the soft penaliser vanishes and the hard one is not a number."""
    kernel, candidates, _ = make_candidates(POINTS)
    query = query_of(kernel, candidates, jnp.asarray([0.3, 0.3]))
    belief = Belief(query, candidates.mu - 5.0, candidates.eta - 4.0, jnp.asarray(True))
    oracle = LocalPenalization(hard=hard)
    steps = np.asarray(compiled(oracle, 8)(candidates, belief, jnp.asarray(8)))
    assert len(set(steps.tolist())) == 7
    gaps = np.linalg.norm(POINTS[steps][:, None] - POINTS[steps][None], axis=-1) + np.eye(7)
    assert gaps.min() > 0.05


def test_lowest_value_at_the_mean_would_not_penalise():
    """Why M must not exceed the smallest mean: with M = mu the soft penaliser is 1/2 at its own centre."""
    phi = LocalPenalization().log_penalty(
        jnp.asarray(0.0), jnp.asarray(0.4), jnp.asarray(0.3), jnp.asarray(2.0), jnp.asarray(0.4)
    )
    assert float(jnp.exp(phi)) == pytest.approx(0.5)


def test_lipschitz_constant_and_lowest_mean_follow_the_fit():
    _, candidates, model = make_candidates(POINTS)
    step = 1e-5
    slopes = [
        (tiny.posterior(model, POINTS + step * e)[0] - tiny.posterior(model, POINTS - step * e)[0]) / (2 * step)
        for e in np.eye(2)
    ]
    assert float(candidates.lipschitz) == pytest.approx(np.sqrt(np.sum(np.square(slopes), axis=0)).max(), rel=1e-5)
    assert float(candidates.lowest) <= float(candidates.mu.min())
    _, other, _ = make_candidates(POINTS, seed=4)
    assert float(other.lipschitz) != float(candidates.lipschitz)


def test_thompson_paths_go_where_the_minimum_is_that_often():
    """[eq:ts]: the first step is place i as often as place i is the lowest of a joint sample given x*, by brute force."""
    kernel, candidates, model = make_candidates(POINTS)
    x = np.array([0.35, 0.8])
    query = query_of(kernel, candidates, jnp.asarray(x))
    draws = 4000
    steps = jax.jit(
        jax.vmap(lambda s: ThompsonPaths().predict(candidates, before_outcome(candidates, query), jnp.asarray(2), 2, s)),
        static_argnums=(),
    )(jnp.arange(draws))
    frequency = np.bincount(np.asarray(steps)[:, 0], minlength=80) / draws
    mu, _ = tiny.posterior(model, x[None])
    believed = model._replace(X=np.vstack([model.X, x]), y=np.append(model.y, mu))
    mean, cov = tiny.posterior(believed, POINTS)
    paths = np.random.default_rng(5).multivariate_normal(mean, cov + 1e-8 * np.eye(80), size=40_000, method="eigh")
    probability = np.bincount(paths.argmin(axis=1), minlength=80) / 40_000
    error = np.sqrt(probability * (1 - probability) * (1 / draws + 1 / 40_000) + 1e-6)
    assert np.all(np.abs(frequency - probability) < 4.5 * error)
    assert (probability > 0.02).sum() >= 3  # or the test would say nothing


@pytest.mark.parametrize("oracle", [KrigingBeliever(), LocalPenalization(), DeterminantalPoints(), ThompsonPaths()], ids=str)
def test_unit_costs_change_nothing_but_the_end(oracle):
    """-1 once the budget holds no more. That steps are paid for is in the contract."""
    kernel, candidates, _ = make_candidates(POINTS)
    query = query_of(kernel, candidates, jnp.asarray([0.3, 0.3]))
    program = compiled(oracle, 8)
    plain = np.asarray(program(candidates, before_outcome(candidates, query), jnp.asarray(8)))
    ones = candidates._replace(costs=Costs(jnp.ones(80), jnp.asarray(8.0)))
    paid = query._replace(cost=jnp.asarray(1.0))
    assert np.array_equal(program(ones, before_outcome(ones, paid), jnp.asarray(8)), plain)
    short = ones._replace(costs=ones.costs._replace(budget=jnp.asarray(4.0)))
    assert np.asarray(program(short, before_outcome(short, paid), jnp.asarray(8))).tolist() == [*plain[:3], -1, -1, -1, -1]
