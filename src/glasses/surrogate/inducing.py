"""Many observations: a posterior through inducing points, in place of the exact one.

Beyond ``LARGEST_EXACT`` observations the posterior goes through M of them, Z, taken as the points that explain the others
(FITC, Snelson and Ghahramani 2006). With Q = k(., Z) K_Z^-1 k(Z, .), r = y - c and

    Lambda = diag(k(x_i, x_i) - Q(x_i, x_i)) + noise I                what Z does not explain of an observation counts as noise
    S      = K_Z + k(Z, X) Lambda^-1 k(X, Z)
    mu(x)     = c + k(x, Z) S^-1 k(Z, X) Lambda^-1 r                                                       [eq:fitc]
    k'(x, x') = k(x, x') - k(x, Z) (K_Z^-1 - S^-1) k(Z, x')

At the inducing points themselves nothing is left unexplained, so there the posterior is as good as the exact one. That is why
they are chosen as they are: the best values, since decisions are made around them, and then the observation that is farthest
from all chosen so far in the kernel's own distance, again and again (Gonzalez 1985: no cover of the data by as many points is
twice as fine). ``docs/benchmarks.md`` compares with the exact posterior.

K_Z^-1 - S^-1 is the inverse of a covariance T, so the result is a ``Posterior`` like any other, of M observations with L the
factor of T: everything that uses a posterior works on it. Numerics: with K_Z = L_Z L_Z^T and A = L_Z^-1 k(Z, X) Lambda^-1/2,

    T = K_Z + L_Z (A A^T)^-1 L_Z^T,    S^-1 k(Z, X) Lambda^-1 r = L_Z^-T (I + A A^T)^-1 A Lambda^-1/2 r     [eq:pseudo]

Cost: N M^2 once, then what M observations cost.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from glasses.runtime.padding import data_size, pad_rows
from glasses.runtime.program import program
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NUGGET, Hyper, Posterior, covariance

LARGEST_EXACT = 1024
INDUCING = LARGEST_EXACT  # the same size: the same programs
_BEST = INDUCING // 2
_JITTER = 1e-9  # of the variance
_ROUNDING = 1e-12  # of A A^T


def inducing_posterior(kernel: Kernel, hyper: Hyper, X: np.ndarray, y: np.ndarray) -> Posterior:
    """[eq:fitc] for all observations, at given hyperparameters."""
    chosen = inducing_points(X, y, _lengthscale(hyper, X.shape[1]))
    size = data_size(len(X))
    return _through(pad_rows(X, size), pad_rows(y, size), np.asarray(len(X)), X[chosen], y[chosen], hyper, kernel=kernel)


def inducing_points(X: np.ndarray, y: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    """Which observations: the best, then those farthest from all chosen so far; (``INDUCING``,), in order of arrival."""
    scaled = X / lengthscale
    chosen = list(np.argsort(y, kind="stable")[:_BEST])
    apart = np.full(len(X), np.inf)
    for i in chosen:
        apart = np.minimum(apart, np.sum((scaled - scaled[i]) ** 2, axis=1))
    while len(chosen) < INDUCING:
        i = int(np.argmax(apart))
        chosen.append(i)
        apart = np.minimum(apart, np.sum((scaled - scaled[i]) ** 2, axis=1))
    return np.sort(np.array(chosen))


def _lengthscale(hyper: Hyper, d: int) -> np.ndarray:
    """The kernel's lengthscales where it has one per input; else all inputs count alike."""
    found = hyper.theta.get("lengthscale") if isinstance(hyper.theta, dict) else None
    return np.asarray(found) if found is not None and np.shape(found) == (d,) else np.ones(d)


@program
def _through(
    X: jax.Array, y: jax.Array, count: jax.Array, Z: jax.Array, y_Z: jax.Array, hyper: Hyper, *, kernel: Kernel
) -> Posterior:
    observed, M = jnp.arange(X.shape[0]) < count, Z.shape[0]
    variance = kernel.variance(hyper.theta)
    K = covariance(kernel, hyper, Z, Z) + _JITTER * variance * jnp.eye(M)
    L_Z = jnp.linalg.cholesky(K)
    V = solve_triangular(L_Z, jnp.where(observed[None, :], covariance(kernel, hyper, Z, X), 0.0), lower=True)
    unexplained = jnp.maximum(kernel.diagonal(hyper.theta, X, hyper.choice) - jnp.sum(V * V, axis=0), 0.0)
    weight = jnp.where(observed, 1.0 / (unexplained + hyper.noise + _JITTER * variance), 0.0)
    B = (V * weight) @ V.T  # A A^T
    pull = (V * weight) @ jnp.where(observed, y - hyper.mean, 0.0)
    alpha = solve_triangular(L_Z.T, cho_solve((jnp.linalg.cholesky(B + jnp.eye(M)), True), pull), lower=False)
    B = B + _ROUNDING * jnp.max(jnp.diagonal(B)) * jnp.eye(M)
    root = solve_triangular(jnp.linalg.cholesky(B), L_Z.T, lower=True)  # [eq:pseudo]
    T = K + root.T @ root + NUGGET * variance * jnp.eye(M)
    return Posterior(Z, y_Z, jnp.asarray(M), jnp.linalg.cholesky(T), alpha, hyper, variance)
