from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import hills, make_candidates, query_of

from glasses import GaussianProcess, Glasses, tiny
from glasses.lookahead import Rollout
from glasses.lookahead.candidates import build_candidates, query_candidate
from glasses.lookahead.rollout import normals, simulate
from glasses.search import MultiStart
from glasses.search.decision import Problem
from glasses.search.race import entrants_of
from glasses.surrogate import SquaredExponential
from glasses.surrogate.outputs import Affine
from glasses.surrogate.posterior import Hyper, posterior
from glasses_lab.exact import Even, policy_values

POINTS = np.random.default_rng(3).random((60, 2))
GRID = np.linspace(0, 1, 15)[:, None]


@cache
def simulator(size):
    return jax.jit(
        jax.vmap(lambda candidates, query, left, t: simulate(candidates, query, left, size, t), in_axes=(None, None, None, 0))
    )


def futures(x, left, size=8, count=256, **settings):
    kernel, candidates, model = make_candidates(POINTS, **settings)
    query = query_of(kernel, candidates, jnp.asarray(x))
    return simulator(size)(candidates, query, jnp.asarray(left), jnp.asarray(normals(count))), candidates, model


@pytest.mark.parametrize("x", [(0.2, 0.3), (0.8, 0.6)])
def test_one_evaluation_left_is_ei(x):
    """[eq:rollout] with n = 1: the closed form, in every future."""
    found, candidates, model = futures(x, 1)
    mu, cov = tiny.posterior(model, np.array([x]))
    exact = float(tiny.expected_improvement(mu, np.sqrt(np.diag(cov)), float(candidates.eta))[0])
    np.testing.assert_allclose(found.gain, exact, atol=1e-8)


def line(seed):
    """Candidates on a line whose law the reference takes."""
    rng = np.random.default_rng([seed, 15])
    X = rng.random((3, 1))
    hyper = Hyper({"lengthscale": jnp.full(1, 0.12), "variance": jnp.asarray(1.0)}, jnp.zeros(()), jnp.zeros(()))
    kernel = SquaredExponential()
    post = jax.jit(posterior, static_argnums=0)(
        kernel, hyper, jnp.asarray(X), jnp.asarray(rng.standard_normal(3)), jnp.asarray(3)
    )
    build = jax.jit(build_candidates, static_argnums=0)
    return build(kernel, post, jnp.asarray(GRID), jnp.zeros((0, 1)), jnp.asarray(0))


@pytest.mark.slow
@pytest.mark.parametrize("left", [2, 3])
def test_against_nested_quadrature(left):
    """[eq:rollout]: two and three evaluations left, every first place, within 4.5 standard errors of the exact policy value."""
    for seed in range(3):
        candidates = line(seed)
        exact = policy_values(candidates.mu, candidates.cov, float(candidates.eta), left, rule=Even(64)).values
        t = jnp.asarray(normals(1024))
        for i in range(0, 15, 3):
            found = np.asarray(simulator(4)(candidates, query_candidate(candidates, jnp.asarray(i)), jnp.asarray(left), t).gain)
            error = found.std() / np.sqrt(found.size)  # of plain Monte Carlo: Sobol points do better
            assert abs(found.mean() - exact[i]) < 4.5 * error + 5e-3 * exact[i]


def test_the_control_variate_keeps_the_mean_and_takes_most_of_the_variance():
    """[eq:control]: the sum of EI against the improvement itself, in the same futures."""
    found, candidates, _ = futures((0.2, 0.3), 8, count=4096)
    improvement = np.asarray(candidates.eta) - np.asarray(found.best)[:, 7]
    gain = np.asarray(found.gain)
    error = np.std(improvement - gain) / np.sqrt(gain.size)
    assert abs(improvement.mean() - gain.mean()) < 4.5 * error
    assert gain.var() < 0.5 * improvement.var()


def test_more_evaluations_are_worth_more_and_padding_is_invisible():
    gains = [np.asarray(futures((0.2, 0.3), left)[0].gain).mean() for left in (1, 2, 4, 8)]
    assert np.all(np.diff(gains) > 0)
    short, long = futures((0.2, 0.3), 5)[0], futures((0.2, 0.3), 5, size=16)[0]
    np.testing.assert_allclose(short.gain, long.gain, rtol=1e-9)
    assert np.array_equal(short.steps[:, :4], long.steps[:, :4])


@pytest.mark.slow
def test_pending_outcomes_are_simulated_too():
    """A pending point that will surely be good leaves less for x* to gain, and everything together gains more."""
    alone = np.asarray(futures((0.2, 0.3), 1)[0].gain).mean()
    waiting = [[0.9, 0.4]]
    beside = np.asarray(futures((0.2, 0.3), 1, pending=waiting)[0].gain).mean()
    padded = np.asarray(futures((0.2, 0.3), 1, pending=waiting, room=2)[0].gain).mean()
    assert beside > alone
    assert padded == pytest.approx(beside, rel=1e-9)


def test_futures_are_common_and_a_shorter_set_begins_a_longer_one():
    np.testing.assert_array_equal(normals(64), normals(256)[:64])


def decided(seed, race):
    X = np.random.default_rng(seed).random((8, 2))
    y = np.array([hills(x) for x in X])
    model = GaussianProcess()
    post = model.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))
    problem = Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=6)
    return MultiStart(screened=12).decide(Rollout(race=race), model.kernel, problem, np.random.default_rng(1))


@pytest.mark.slow
def test_racing_picks_what_valuing_everything_picks():
    """[eq:race]: the very candidate that all 256 futures for all 12 candidates choose in at least half of the cases (many
    candidates are next to equal), and never one that is worth 1 % less. A race that begins with 16 futures does worse."""
    raced, exhaustive = ([decided(seed, race) for seed in range(8)] for race in (Rollout().race, (256,)))
    same = [np.array_equal(a.x, b.x) for a, b in zip(raced, exhaustive, strict=True)]
    assert sum(same) >= 4
    assert min(a.value - b.value for a, b in zip(raced, exhaustive, strict=True)) > np.log(0.99)


def test_rounds_cost_about_the_same():
    assert [entrants_of(48, (16, 64, 256), r) for r in (1, 2)] == [12, 3]
    assert entrants_of(2, (16, 1024), 1) == 2


@pytest.mark.parametrize("race", [(), (20,), (64, 16), (16, 16), (8,), [16, 64], (8192,)])
def test_wrong_races_are_refused(race):
    with pytest.raises(ValueError, match="race must be increasing powers of two"):
        Rollout(race=race)


@pytest.mark.slow
def test_any_horizon():
    """The plan of 40 evaluations: bounded arrays, a finite value, no candidate twice."""
    X = np.random.default_rng(0).random((8, 2))
    y = np.array([hills(x) for x in X])
    model = GaussianProcess()
    post = model.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))
    problem = Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=40)
    found = MultiStart(candidates=64, screened=4, polished=1).decide(
        Rollout(race=(16,)), model.kernel, problem, np.random.default_rng(1)
    )
    open_loop = MultiStart(candidates=64, screened=4, polished=1).decide(
        Glasses(), model.kernel, problem, np.random.default_rng(1)
    )
    assert len(np.unique(found.steps[:39], axis=0)) == 39
    assert found.value > open_loop.value - 0.05
