"""Draws from a Gaussian process prior as cheap functions that can be evaluated anywhere.

    f(x) = sum_i (u_i cos(w_i . x) + v_i sin(w_i . x)) / sqrt(m),   u, v ~ N(0, 1)                [eq:features]
    E[f(x) f(x')] = 1/m sum_i cos(w_i . (x - x'))  ->  k(x, x')

The frequencies w follow the kernel's spectral density (Bochner): normal for the squared exponential, multivariate t with
5 degrees of freedom for Matern-5/2, both divided by the lengthscale. They come from one scrambled Sobol sequence, which meets
the covariance more closely than random ones (root mean square error .0005 in one and .004 in two dimensions for the squared
exponential of the suite ``samples``, where random features have .018); the weights u, v are the draw. Zero mean, unit
variance, unit cube. The optimum is found numerically: a dense cover, then the best points polished by their gradient.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2, norm, qmc

from glasses_lab.problems.problem import Problem

_FREQUENCIES = 1024
_COVER, _POLISHED = 2**14, 24
_KERNELS = {"SE": None, "M52": 5.0}  # degrees of freedom of the spectral density


def draw_by_name(name: str, seed: int) -> Problem | None:
    """``GP-SE-2-0.1``: kernel, dimension, lengthscale. None if the name is not of this form.

    The weights depend on the seed and the dimension: draws with two lengthscales and one seed are the same up to scale.
    """
    parts = re.fullmatch(r"GP-(SE|M52)-([1-9]\d?)-(\d*\.?\d+)", name)
    if parts is None or float(parts[3]) <= 0:
        return None
    return gp_draw(parts[1], int(parts[2]), float(parts[3]), seed)


@lru_cache(maxsize=8)
def gp_draw(kernel: str, d: int, lengthscale: float, seed: int) -> Problem:
    """Draw number ``seed`` of the process with this kernel ("SE" or "M52") on the unit cube."""
    path = SamplePath(kernel, d, lengthscale, seed)
    places = qmc.Sobol(d, seed=7).random(_COVER)
    values = np.concatenate([path.values(chunk) for chunk in np.array_split(places, 16)])
    best = places[np.argsort(values)[:_POLISHED]]
    found = [minimize(path, x, jac=path.gradient, bounds=[(0, 1)] * d, method="L-BFGS-B") for x in best]
    lowest = min(found, key=lambda result: result.fun)
    return Problem(f"GP-{kernel}-{d}-{lengthscale:g}", path, ((0.0, 1.0),) * d, float(lowest.fun), lowest.x[None])


class SamplePath:
    """One draw as a function, with its gradient."""

    def __init__(self, kernel: str, d: int, lengthscale: float, seed: int) -> None:
        self.w = frequencies(kernel, d, lengthscale)
        rng = np.random.default_rng([seed, d, 0x64726177])
        self.u, self.v = rng.standard_normal((2, len(self.w))) / np.sqrt(len(self.w))

    def __call__(self, x: np.ndarray) -> float:
        return float(self.values(np.asarray(x)[None])[0])

    def values(self, X: np.ndarray) -> np.ndarray:
        angle = X @ self.w.T
        return np.cos(angle) @ self.u + np.sin(angle) @ self.v

    def gradient(self, x: np.ndarray) -> np.ndarray:
        angle = self.w @ x
        return (self.v * np.cos(angle) - self.u * np.sin(angle)) @ self.w


def frequencies(kernel: str, d: int, lengthscale: float) -> np.ndarray:
    """(m, d) frequencies of [eq:features]."""
    freedom = _KERNELS[kernel]
    u = np.clip(qmc.Sobol(d + (freedom is not None), seed=11).random(_FREQUENCIES), 1e-12, 1 - 1e-12)
    w = norm.ppf(u[:, :d])
    if freedom is not None:
        w = w * np.sqrt(freedom / chi2.ppf(u[:, d:], freedom))
    return w / lengthscale
