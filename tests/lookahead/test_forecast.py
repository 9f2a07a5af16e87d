from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_scene, star_of
from scipy import stats

from glasses import tiny
from glasses.lookahead.forecast import foretell
from glasses.lookahead.scene import Scene

PLACES = np.random.default_rng(3).random((60, 2))
X = np.array([0.9, 0.45])
LEFT = 8


@cache
def forecast(left=LEFT, size=8, **settings):
    kernel, scene, model = make_scene(PLACES, **settings)
    return foretell(scene, X, None, np.asarray(left), kernel=kernel, size=size), scene, model, kernel


@pytest.mark.slow
def test_the_expected_best_never_rises_and_lies_between_its_bounds():
    found = forecast()[0]
    gain = np.asarray(found.gain)
    assert np.all(np.diff(gain) >= 0)
    assert np.all(np.diff(np.asarray(found.open_loop)) >= 0)
    assert gain[-1] <= float(found.clairvoyant)
    assert float(found.open_loop[-1]) <= float(found.clairvoyant)
    assert np.all(np.asarray(found.least) <= np.asarray(found.most))
    assert np.all(np.diff(np.asarray(found.most)) >= -1e-9)


def test_one_step_is_exact():
    """k = 1: EI, and the quantiles of the improvement of one normal variable."""
    found, scene, model, _ = forecast()
    mu, cov = tiny.posterior(model, X[None])
    sd, eta = float(np.sqrt(cov[0, 0])), float(scene.eta)
    exact = float(tiny.expected_improvement(mu, np.array([sd]), eta)[0])
    assert float(found.gain[0]) == pytest.approx(exact, abs=1e-6)
    assert float(found.open_loop[0]) == pytest.approx(exact, abs=1e-6)
    for got, level in ((found.least, 0.1), (found.most, 0.9)):
        assert float(got[0]) == pytest.approx(max(0.0, eta - stats.norm.ppf(1 - level, mu[0], sd)), abs=1e-3)


def test_padding_is_invisible():
    short, long = forecast(left=5)[0], forecast(left=5, size=16)[0]
    np.testing.assert_allclose(np.asarray(short.gain)[:5], np.asarray(long.gain)[:5], rtol=1e-9)
    np.testing.assert_allclose(np.asarray(short.open_loop)[:5], np.asarray(long.open_loop)[:5], rtol=1e-9)


def played(scene: Scene, star, paths):
    """EI played on functions drawn from the posterior over x* and the places: the best value after each step, plain NumPy."""
    mu = np.append(np.asarray(scene.mu), float(star.mu))
    S = np.block(
        [[np.asarray(scene.cov), np.asarray(star.cov)[:, None]], [np.asarray(star.cov)[None], np.asarray(star.var)[None, None]]]
    )
    best = []
    for f in np.random.default_rng(8).multivariate_normal(mu, S, size=paths, method="eigh"):
        m, C, eta, i, history = mu.copy(), S.copy(), float(scene.eta), len(mu) - 1, []
        for _ in range(LEFT):
            gain = C[i] / max(C[i, i], 1e-12)
            m, C = m + gain * (f[i] - m[i]), C - np.outer(gain, C[i])
            eta = min(eta, f[i])
            history.append(eta)
            sd = np.sqrt(np.maximum(np.diag(C), 1e-10))
            i = int(np.argmax(tiny.expected_improvement(m, sd, eta)))
        best.append(history)
    return np.array(best)


def test_against_playing_on_functions_drawn_from_the_model():
    """[eq:clairvoyant] and the forecast itself: means within 4.5 standard errors, the band where the quantiles are."""
    found, scene, _, kernel = forecast()
    star = star_of(kernel, scene, jnp.asarray(X))
    with jax.enable_x64(True):
        best = played(scene, star, 600)
    gain = float(scene.eta) - best
    error = gain.std(axis=0) / np.sqrt(len(gain)) + gain.std(axis=0) / np.sqrt(256)
    assert np.all(np.abs(gain.mean(axis=0) - np.asarray(found.gain)) < 4.5 * error + 1e-9)
    below = (gain <= np.asarray(found.most) + 1e-9).mean(axis=0)
    above = (gain >= np.asarray(found.least) - 1e-9).mean(axis=0)
    some = np.asarray(found.most) > 1e-6  # where nothing may be gained more often than not, the quantile is an atom
    assert some.sum() >= 6
    assert np.all(np.abs(below - 0.9)[some] < 0.06)
    assert np.all(above > 0.84)
    paths = np.random.default_rng(9).multivariate_normal(np.asarray(scene.mu), np.asarray(scene.cov), size=4000, method="eigh")
    all_seeing = np.maximum(float(scene.eta) - paths.min(axis=1), 0)
    spread = all_seeing.std() * (1 / np.sqrt(4000) + 1 / np.sqrt(1024))
    assert abs(all_seeing.mean() - float(found.clairvoyant)) < 4.5 * spread
