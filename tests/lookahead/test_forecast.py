from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_candidates, query_of
from scipy import stats

from glasses import tiny
from glasses.lookahead.candidates import CandidateSet
from glasses.lookahead.forecast import forecast_gains

POINTS = np.random.default_rng(3).random((60, 2))
X = np.array([0.9, 0.45])
LEFT = 8


@cache
def forecast(left=LEFT, size=8, **settings):
    kernel, candidates, model = make_candidates(POINTS, **settings)
    return (
        forecast_gains(candidates.alone(), query_of(kernel, candidates, X), np.asarray(left), size=size),
        candidates,
        model,
        kernel,
    )


@pytest.mark.slow
def test_the_expected_best_never_rises_and_lies_between_its_bounds():
    found = forecast()[0]
    gain = np.asarray(found.expected)
    assert np.all(np.diff(gain) >= 0)
    assert np.all(np.diff(np.asarray(found.open_loop)) >= 0)
    assert gain[-1] <= float(found.clairvoyant)
    assert float(found.open_loop[-1]) <= float(found.clairvoyant)
    assert np.all(np.asarray(found.least) <= np.asarray(found.most))
    assert np.all(np.diff(np.asarray(found.most)) >= -1e-9)


def test_one_step_is_exact():
    """k = 1: EI, and the quantiles of the improvement of one normal variable."""
    found, candidates, model, _ = forecast()
    mu, cov = tiny.posterior(model, X[None])
    sd, eta = float(np.sqrt(cov[0, 0])), float(candidates.eta)
    exact = float(tiny.expected_improvement(mu, np.array([sd]), eta)[0])
    assert float(found.expected[0]) == pytest.approx(exact, abs=1e-6)
    assert float(found.open_loop[0]) == pytest.approx(exact, abs=1e-6)
    for got, level in ((found.least, 0.1), (found.most, 0.9)):
        assert float(got[0]) == pytest.approx(max(0.0, eta - stats.norm.ppf(1 - level, mu[0], sd)), abs=1e-3)


def test_padding_is_invisible():
    short, long = forecast(left=5)[0], forecast(left=5, size=16)[0]
    np.testing.assert_allclose(np.asarray(short.expected)[:5], np.asarray(long.expected)[:5], rtol=1e-9)
    np.testing.assert_allclose(np.asarray(short.open_loop)[:5], np.asarray(long.open_loop)[:5], rtol=1e-9)


def played(candidates: CandidateSet, query, paths):
    """EI played on functions drawn from the posterior over x* and the places: the best value after each step, plain NumPy."""
    mu = np.append(np.asarray(candidates.mu), float(query.mu))
    S = np.block(
        [
            [np.asarray(candidates.cov), np.asarray(query.cov)[:, None]],
            [np.asarray(query.cov)[None], np.asarray(query.var)[None, None]],
        ]
    )
    best = []
    for f in np.random.default_rng(8).multivariate_normal(mu, S, size=paths, method="eigh"):
        m, C, eta, i, history = mu.copy(), S.copy(), float(candidates.eta), len(mu) - 1, []
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
    found, candidates, _, kernel = forecast()
    query = query_of(kernel, candidates, jnp.asarray(X))
    with jax.enable_x64(True):
        best = played(candidates, query, 600)
    gain = float(candidates.eta) - best
    error = gain.std(axis=0) / np.sqrt(len(gain)) + gain.std(axis=0) / np.sqrt(256)
    assert np.all(np.abs(gain.mean(axis=0) - np.asarray(found.expected)) < 4.5 * error + 1e-9)
    below = (gain <= np.asarray(found.most) + 1e-9).mean(axis=0)
    above = (gain >= np.asarray(found.least) - 1e-9).mean(axis=0)
    some = np.asarray(found.most) > 1e-6  # where nothing may be gained more often than not, the quantile is an atom
    assert some.sum() >= 6
    assert np.all(np.abs(below - 0.9)[some] < 0.06)
    assert np.all(above > 0.84)
    paths = np.random.default_rng(9).multivariate_normal(
        np.asarray(candidates.mu), np.asarray(candidates.cov), size=4000, method="eigh"
    )
    all_seeing = np.maximum(float(candidates.eta) - paths.min(axis=1), 0)
    spread = all_seeing.std() * (1 / np.sqrt(4000) + 1 / np.sqrt(1024))
    assert abs(all_seeing.mean() - float(found.clairvoyant)) < 4.5 * spread
