"""Draws from a Gaussian process prior as cheap functions that can be evaluated anywhere.

    f(x) = sqrt(2 a^2 / m) sum_i (u_i cos(w_i . x) + v_i sin(w_i . x)) / sqrt(2),   u, v ~ N(0, 1)          [eq:features]
    E[f(x) f(x')] = a^2 / m sum_i cos(w_i . (x - x'))  ->  k(x, x')

The frequencies w follow the kernel's spectral density (Bochner): normal for the squared exponential, multivariate t with
5 degrees of freedom for Matern-5/2, both divided by the lengthscale. They come from one scrambled Sobol sequence, so the
covariance is met far more closely than by random features (tests measure it); the weights u, v are the draw. Zero mean, unit
variance, unit cube. The optimum is found numerically: a dense cover, then the best places polished by their gradient.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2, norm, qmc

from glasses.problems.problem import Problem

_FREQUENCIES = 1024
_COVER, _POLISHED = 2**14, 24
_KERNELS = {"SE": None, "M52": 5.0}  # degrees of freedom of the spectral density


def draw_by_name(name: str, seed: int) -> Problem | None:
    """``GP-SE-2-0.1``: kernel, dimension, lengthscale. None if the name is not of this form."""
    parts = re.fullmatch(r"GP-(SE|M52)-([1-9]\d?)-(\d*\.?\d+)", name)
    if parts is None or float(parts[3]) <= 0:
        return None
    return gp_draw(parts[1], int(parts[2]), float(parts[3]), seed)


@lru_cache(maxsize=8)
def gp_draw(kernel: str, d: int, lengthscale: float, seed: int) -> Problem:
    """Draw number ``seed`` of the process with this kernel ("SE" or "M52") on the unit cube."""
    w = frequencies(kernel, d, lengthscale)
    rng = np.random.default_rng([seed, d, 0x64726177])
    weights = rng.standard_normal(2 * len(w)) / np.sqrt(len(w))

    def function(x: np.ndarray) -> float:
        angle = w @ x
        return float(np.concatenate([np.cos(angle), np.sin(angle)]) @ weights)

    def gradient(x: np.ndarray) -> np.ndarray:
        angle = w @ x
        return (weights[len(w) :] * np.cos(angle) - weights[: len(w)] * np.sin(angle)) @ w

    places = qmc.Sobol(d, seed=7).random(_COVER)
    values = np.concatenate([_values(chunk, w, weights) for chunk in np.array_split(places, 16)])
    best = places[np.argsort(values)[:_POLISHED]]
    found = [minimize(function, x, jac=gradient, bounds=[(0, 1)] * d, method="L-BFGS-B") for x in best]
    lowest = min(found, key=lambda result: result.fun)
    return Problem(f"GP-{kernel}-{d}-{lengthscale:g}", function, ((0.0, 1.0),) * d, float(lowest.fun), lowest.x[None])


def frequencies(kernel: str, d: int, lengthscale: float) -> np.ndarray:
    """(m, d) frequencies of [eq:features]."""
    freedom = _KERNELS[kernel]
    u = np.clip(qmc.Sobol(d + (freedom is not None), seed=11).random(_FREQUENCIES), 1e-12, 1 - 1e-12)
    w = norm.ppf(u[:, :d])
    if freedom is not None:
        w = w * np.sqrt(freedom / chi2.ppf(u[:, d:], freedom))
    return w / lengthscale


def _values(X: np.ndarray, w: np.ndarray, weights: np.ndarray) -> np.ndarray:
    angle = X @ w.T
    return np.cos(angle) @ weights[: len(w)] + np.sin(angle) @ weights[len(w) :]
