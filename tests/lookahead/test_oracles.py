from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import make_scene, star_of

from glasses import Int, tiny
from glasses.lookahead import DeterminantalPoints, KrigingBeliever, LocalPenalization, ThompsonPaths
from glasses.lookahead.oracles import World, unseen
from glasses.space.space import Space

ORACLES = [
    KrigingBeliever(),
    LocalPenalization(),
    LocalPenalization(softplus=True),
    LocalPenalization(hard=True),
    DeterminantalPoints(),
    DeterminantalPoints(sample=True),
    ThompsonPaths(),
]
PLACES = np.random.default_rng(3).random((80, 2))


@cache
def compiled(oracle, size):
    return jax.jit(lambda scene, world, left: oracle.steps(scene, world, left, size))


def predict(oracle, x, left, size=16, places=PLACES, **settings):
    kernel, scene, model = make_scene(places, **settings)
    star = star_of(kernel, scene, jnp.asarray(x))
    world = unseen(scene, star)
    return np.asarray(compiled(oracle, size)(scene, world, jnp.asarray(left)))[: left - 1], scene, model


@pytest.mark.parametrize("oracle", ORACLES, ids=str)
class TestContract:
    def test_steps_are_distinct_places_other_than_the_star(self, oracle):
        steps, _, _ = predict(oracle, PLACES[5], 16)
        assert len(set(steps.tolist())) == 15
        assert 5 not in steps
        assert np.all((steps >= 0) & (steps < 80))

    def test_same_question_same_answer(self, oracle):
        assert np.array_equal(predict(oracle, [0.3, 0.3], 9)[0], predict(oracle, [0.3, 0.3], 9)[0])

    def test_padding_of_the_horizon_is_invisible(self, oracle):
        assert np.array_equal(predict(oracle, [0.3, 0.3], 7, size=8)[0], predict(oracle, [0.3, 0.3], 7, size=64)[0])

    def test_nothing_follows_the_last_evaluation(self, oracle):
        assert predict(oracle, [0.3, 0.3], 1)[0].size == 0

    def test_pending_points_are_never_predicted_again(self, oracle):
        favourite = PLACES[predict(oracle, [0.99, 0.01], 2)[0][0]]
        steps, _, _ = predict(oracle, [0.99, 0.01], 9, pending=[favourite + 1e-9])
        assert np.all(steps < 80)
        with_pending = PLACES[steps[0]]
        assert np.linalg.norm(with_pending - favourite) > 0.02

    def test_padding_of_the_pending_points_is_invisible(self, oracle):
        waiting = [[0.4, 0.6]]
        assert np.array_equal(
            predict(oracle, [0.2, 0.2], 9, pending=waiting)[0], predict(oracle, [0.2, 0.2], 9, pending=waiting, room=3)[0]
        )


# A k-DPP draws its k places together: another k is another process.
@pytest.mark.parametrize("oracle", [oracle for oracle in ORACLES if oracle != DeterminantalPoints(sample=True)], ids=str)
def test_a_shorter_future_is_the_beginning_of_a_longer_one(oracle):
    long, short = predict(oracle, [0.3, 0.3], 12)[0], predict(oracle, [0.3, 0.3], 5)[0]
    assert np.array_equal(long[:4], short)


# One Thompson path may go anywhere: its frequencies are tested below.
@pytest.mark.parametrize("oracle", [oracle for oracle in ORACLES if oracle != ThompsonPaths()], ids=str)
def test_the_star_repels(oracle):
    """The favourite place of the future is avoided once the star stands on it."""
    elsewhere, _, _ = predict(oracle, [0.99, 0.01], 2)
    favourite = PLACES[elsewhere[0]]
    near = favourite + 1e-3
    then = PLACES[predict(oracle, near, 2)[0][0]]
    assert np.linalg.norm(then - near) > 0.02


@given(x=st.tuples(st.floats(0, 1), st.floats(0, 1)), seed=st.integers(0, 5))
def test_local_penalisation_is_the_tiny_version(x, seed):
    """[eq:lp], [eq:soft] with the paper's soft-plus"""
    places = np.random.default_rng(seed).random((40, 2))
    steps, _, model = predict(LocalPenalization(softplus=True), x, 6, places=places, seed=seed)
    exact = tiny.steps_ahead(model, np.asarray(x), 6, places, float(model.y.min()))
    np.testing.assert_allclose(places[steps], exact[1:], atol=1e-12)


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_kriging_believer_is_conditioning_again_and_again(noise):
    """[eq:kb]: condition a fresh model on every believed step."""
    x = np.array([0.35, 0.8])
    steps, scene, model = predict(KrigingBeliever(), x, 8, noise=noise)
    mu, _ = tiny.posterior(model, np.vstack([x, PLACES]))
    eta, taken, believed = (
        min(float(scene.eta), mu[0]),
        [],
        model._replace(X=np.vstack([model.X, x]), y=np.append(model.y, mu[0])),
    )
    for _ in range(7):
        mean, cov = tiny.posterior(believed, PLACES)
        sd = np.sqrt(np.maximum(np.diag(cov), 1e-10) + 1e-10)
        score = np.array(tiny.expected_improvement(mean, sd, eta))
        score[taken] = -1
        best = int(np.argmax(score))
        taken.append(best)
        eta = min(eta, mean[best])
        believed = believed._replace(X=np.vstack([believed.X, PLACES[best]]), y=np.append(believed.y, mean[best]))
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
    """M follows the means of the world: else the soft penaliser vanishes and the hard one is not a number."""
    kernel, scene, _ = make_scene(PLACES)
    star = star_of(kernel, scene, jnp.asarray([0.3, 0.3]))
    world = World(star, scene.mu - 5.0, scene.eta - 4.0, jnp.asarray(True))
    oracle = LocalPenalization(hard=hard)
    steps = np.asarray(compiled(oracle, 8)(scene, world, jnp.asarray(8)))
    assert len(set(steps.tolist())) == 7
    gaps = np.linalg.norm(PLACES[steps][:, None] - PLACES[steps][None], axis=-1) + np.eye(7)
    assert gaps.min() > 0.05


def test_lowest_value_at_the_mean_would_not_penalise():
    """Why M must not exceed the smallest mean: with M = mu the soft penaliser is 1/2 at its own centre."""
    phi = LocalPenalization().log_penalty(
        jnp.asarray(0.0), jnp.asarray(0.4), jnp.asarray(0.3), jnp.asarray(2.0), jnp.asarray(0.4)
    )
    assert float(jnp.exp(phi)) == pytest.approx(0.5)


def test_lipschitz_constant_and_lowest_mean_follow_the_fit():
    _, scene, model = make_scene(PLACES)
    step = 1e-5
    slopes = [
        (tiny.posterior(model, PLACES + step * e)[0] - tiny.posterior(model, PLACES - step * e)[0]) / (2 * step)
        for e in np.eye(2)
    ]
    assert float(scene.lipschitz) == pytest.approx(np.sqrt(np.sum(np.square(slopes), axis=0)).max(), rel=1e-5)
    assert float(scene.lowest) <= float(scene.mu.min())
    _, other, _ = make_scene(PLACES, seed=4)
    assert float(other.lipschitz) != float(scene.lipschitz)


def test_thompson_paths_go_where_the_minimum_is_that_often():
    """[eq:ts]: the first step is place i as often as place i is the lowest of a joint sample given x*, by brute force."""
    kernel, scene, model = make_scene(PLACES)
    x = np.array([0.35, 0.8])
    star = star_of(kernel, scene, jnp.asarray(x))
    draws = 4000
    steps = jax.jit(
        jax.vmap(lambda s: ThompsonPaths().steps(scene, unseen(scene, star), jnp.asarray(2), 2, s)), static_argnums=()
    )(jnp.arange(draws))
    frequency = np.bincount(np.asarray(steps)[:, 0], minlength=80) / draws
    mu, _ = tiny.posterior(model, x[None])
    believed = model._replace(X=np.vstack([model.X, x]), y=np.append(model.y, mu))
    mean, cov = tiny.posterior(believed, PLACES)
    paths = np.random.default_rng(5).multivariate_normal(mean, cov + 1e-8 * np.eye(80), size=40_000, method="eigh")
    probability = np.bincount(paths.argmin(axis=1), minlength=80) / 40_000
    error = np.sqrt(probability * (1 - probability) * (1 / draws + 1 / 40_000) + 1e-6)
    assert np.all(np.abs(frequency - probability) < 4.5 * error)
    assert (probability > 0.02).sum() >= 3  # or the test would say nothing


@pytest.mark.parametrize("oracle", [KrigingBeliever(), LocalPenalization(), DeterminantalPoints(), ThompsonPaths()], ids=str)
def test_steps_are_paid_for(oracle):
    """With costs: never more than the purse holds, -1 once nothing fits; unit costs change nothing."""
    kernel, scene, _ = make_scene(PLACES)
    star = star_of(kernel, scene, jnp.asarray([0.3, 0.3]))
    program = compiled(oracle, 8)
    plain = np.asarray(program(scene, unseen(scene, star), jnp.asarray(8)))
    ones = scene._replace(price=jnp.ones(80), purse=jnp.asarray(8.0))
    paid = star._replace(price=jnp.asarray(1.0))
    assert np.array_equal(program(ones, unseen(ones, paid), jnp.asarray(8)), plain)
    short = ones._replace(purse=jnp.asarray(4.0))
    assert np.asarray(program(short, unseen(short, paid), jnp.asarray(8))).tolist() == [*plain[:3], -1, -1, -1, -1]
    price = 0.5 + 4.0 * PLACES[:, 0]
    dear = ones._replace(price=jnp.asarray(price), purse=jnp.asarray(6.0))
    steps = np.asarray(program(dear, unseen(dear, paid), jnp.asarray(8)))
    went = steps[steps >= 0]
    assert price[went].sum() <= 5.0
    rest = 5.0 - price[went].sum()
    left_over = np.setdiff1d(np.arange(80), went)
    assert len(went) == 7 or np.all(price[left_over] > rest)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES, ids=str)
@pytest.mark.parametrize("count", [6, 12])
def test_a_small_space_is_visited_once(oracle, count):
    """Places of a finite space are copied to fill the survey; a configuration is still visited once, and not if it is done.

    Asked for more steps than there are configurations, an oracle predicts those there are.
    """
    some = np.concatenate([PLACES[:count], make_scene(PLACES[:1])[1].post.X[:2]])  # two of them are evaluated
    kernel, scene, _ = make_scene(np.concatenate([some] * 3))
    scene = scene._replace(lattice=Space([Int(0, 1), Int(0, 1)]).lattice)
    star = star_of(kernel, scene, jnp.asarray(PLACES[0]))
    for draw in range(3):
        steps = np.asarray(jax.jit(lambda s: oracle.steps(scene, unseen(scene, star), jnp.asarray(9), 16, s))(draw))
        went = steps[steps >= 0] % (count + 2)
        assert len(set(went.tolist())) == len(went) == min(8, count - 1)
        assert not {0, count, count + 1} & set(went.tolist())
