"""Small objects that several tests need: Gaussian problems from GP posteriors, and a function to optimise."""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from glasses import tiny
from glasses.testing.examples import hills as hills
from glasses.testing.examples import make_candidates as make_candidates
from glasses.testing.examples import query_of as query_of


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
