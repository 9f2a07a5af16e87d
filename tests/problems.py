"""Small objects that several tests need: Gaussian problems from GP posteriors, and a function to optimise."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from glasses import tiny
from glasses.lookahead.candidates import build_candidates, query_point
from glasses.surrogate import Constant, SquaredExponential
from glasses.surrogate.posterior import Hyper, posterior

_posterior = jax.jit(posterior, static_argnums=0)
_build_candidates = jax.jit(build_candidates, static_argnums=0)
query_of = jax.jit(query_point, static_argnums=0)


def gp_problem(n, kind, seed):
    """Mean, covariance and threshold at n points of a GP posterior: spread, clustered or duplicated points."""
    rng = np.random.default_rng([seed, n])
    X = rng.random((20, 2))
    y = np.sin(5 * X[:, 0]) + np.cos(4 * X[:, 1]) + 0.3 * rng.standard_normal(20)
    y = (y - y.mean()) / y.std()
    model = tiny.Model(X, y, 0.2, 1.0, 1e-4, 0.0)
    if kind == "spread":
        A = rng.random((n, 2))
    elif kind == "clustered":
        A = X[np.argmin(y)] + 0.06 * rng.standard_normal((n, 2))
    else:
        half = rng.random(((n + 1) // 2, 2))
        A = np.concatenate([half, half])[:n]
    m, S = tiny.posterior(model, A)
    return m, S + 1e-9 * np.eye(n), float(y.min())


def reference_gain(m, S, eta, samples=2**17):
    """eta - E[min(y, eta)] and its standard error, valid however rare an improvement is.

    Sampling "at least one of rare events" (Owen, Maximov, Chertkov 2019): pick j with probability proportional to P(y_j <
    eta), draw y_j below eta and the others given it, weight by the inverse of how many of the events happened. Plain where
    improvements are common.
    """
    n = len(m)
    points = np.clip(qmc.Sobol(n + 1, scramble=True, rng=np.random.default_rng(5)).random(samples), 1e-12, 1 - 1e-12)
    sd = np.sqrt(np.diag(S))
    tail = ndtr((eta - m) / sd)
    if tail.sum() < 1e-290:
        return 0.0, 0.0
    cumulative = np.cumsum(tail / tail.sum())
    j = np.minimum(np.searchsorted(cumulative, points[:, 0]), n - 1)
    before = np.concatenate([[0.0], cumulative])[j]
    level = np.clip((points[:, 0] - before) / (tail[j] / tail.sum()), 1e-12, 1 - 1e-12)
    y_j = m[j] + sd[j] * ndtri(level * tail[j])
    L = np.linalg.cholesky(S + 1e-10 * np.mean(np.diag(S)) * np.eye(n))
    y = m + ndtri(points[:, 1:]) @ L.T
    y += (S[j] / S[j, j][:, None]) * (y_j - y[np.arange(samples), j])[:, None]
    y[np.arange(samples), j] = y_j
    value = tail.sum() * (eta - y.min(axis=1)) / (y < eta).sum(axis=1)
    batches = value.reshape(32, -1).mean(axis=1)
    return value.mean(), batches.std() / np.sqrt(32)


def hills(x):
    """A smooth two-dimensional function with several minima on the unit square."""
    a, b = x
    return float(np.sin(5 * a) + np.cos(4 * b) + (a - 0.3) ** 2 + 0.5 * np.sin(9 * a * b))


def make_candidates(points, *, pending=None, noise=1e-6, bias=0.0, seed=0, n=10, room=0):
    """A candidate set over given points of the unit square: squared-exponential GP (plus bias), fixed hyperparameters, and the
    same as a tiny model."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.array([hills(x) for x in X])
    y = (y - y.mean()) / y.std()
    kernel = SquaredExponential() + Constant()
    theta = {"lengthscale": jnp.full(2, 0.3), "variance": jnp.asarray(1.0)}, {"variance": jnp.asarray(bias)}
    post = _posterior(kernel, Hyper(theta, jnp.asarray(noise), jnp.zeros(())), jnp.asarray(X), jnp.asarray(y), jnp.asarray(n))
    begun = np.zeros((0, 2)) if pending is None else np.asarray(pending)
    filled = np.zeros((len(begun) + room, 2))
    filled[: len(begun)] = begun
    candidates = _build_candidates(kernel, post, jnp.asarray(points), jnp.asarray(filled), jnp.asarray(len(begun)))
    return kernel, candidates, tiny.Model(X, y, 0.3, 1.0, noise, bias)
