"""The posterior of a Gaussian process given data, as arrays: predict, condition again, draw nothing.

| name | symbol | shape | |
|---|---|---|---|
| X, y | X, y | (N, d), (N,) | observed inputs in the unit cube, standardised outputs; rows from ``observed`` on are padding |
| L | L | (N, N) | Cholesky factor of K + noise I; identity on the padding |
| alpha | (K + noise I)^-1 (y - c) | (N,) | zero on the padding |
| hyper | l, a^2, noise, c, b | | lengthscales, signal variance, noise variance, constant mean, bias variance |

    mu(x)     = c + k(x, X) alpha                                      [eq:mean]
    k'(x, x') = k(x, x') - k(x, X) (K + noise I)^-1 k(X, x')            [eq:cov]   the latent f, no noise
    k(x, x')  = a^2 rho(r) + b                                         bias kernel b as in the paper, 0 by default

Numerics: a nugget of 1e-10 a^2 on K makes every factorisation succeed (repeated inputs included) and bounds the smallest
predicted variance. Conditioning appends one row to L: O(N^2). Next: ``fit`` makes posteriors, ``lookahead`` consumes them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from glasses.runtime.padding import pad_rows
from glasses.surrogate.kernels import Kernel, squared_distance

NUGGET = 1e-10
NEGLIGIBLE_NOISE = 1e-5  # noise variance, outputs standardised: below it the best observation is the best value


class Hyper(NamedTuple):
    """Hyperparameters in the units of the unit cube and of standardised outputs."""

    lengthscale: jax.Array  # (d,)
    signal: jax.Array  # variance a^2
    noise: jax.Array  # variance
    mean: jax.Array  # constant c
    bias: jax.Array  # variance b of the constant kernel
    choice: jax.Array | None = None  # (d,) bool: which inputs have no order; None if there are none


class Posterior(NamedTuple):
    """A Gaussian process given ``observed`` observations."""

    X: jax.Array
    y: jax.Array
    observed: jax.Array
    L: jax.Array
    alpha: jax.Array
    hyper: Hyper


def covariance(kernel: Kernel, hyper: Hyper, A: jax.Array, B: jax.Array) -> jax.Array:
    """Prior covariance k(A, B) of the latent function, (n, m)."""
    return hyper.signal * kernel.correlation(squared_distance(A, B, hyper.lengthscale, hyper.choice)) + hyper.bias


def observed_covariance(kernel: Kernel, hyper: Hyper, X: jax.Array, count: jax.Array) -> jax.Array:
    """K + noise I on the first ``count`` rows, identity on the padding."""
    real = jnp.arange(X.shape[0]) < count
    K = covariance(kernel, hyper, X, X)
    diagonal = jnp.where(real, hyper.noise + NUGGET * hyper.signal, 1.0)
    return jnp.where(real[:, None] & real[None, :], K, 0.0) + jnp.diag(diagonal)


def posterior(kernel: Kernel, hyper: Hyper, X: jax.Array, y: jax.Array, count: jax.Array) -> Posterior:
    """Condition the prior on data."""
    L = jnp.linalg.cholesky(observed_covariance(kernel, hyper, X, count))
    return Posterior(X, y, count, L, _weights(L, y, count, hyper), hyper)


def grow(post: Posterior, size: int) -> Posterior:
    """The same posterior in arrays of ``size`` rows: room to condition on more. Outside compiled code."""
    have = post.X.shape[0]
    L = np.eye(size)
    L[:have, :have] = np.asarray(post.L)
    X, y, alpha = (pad_rows(np.asarray(a), size) for a in (post.X, post.y, post.alpha))
    with jax.enable_x64(True):
        return post._replace(X=jnp.asarray(X), y=jnp.asarray(y), alpha=jnp.asarray(alpha), L=jnp.asarray(L))


def condition(kernel: Kernel, post: Posterior, x: jax.Array, y: jax.Array) -> Posterior:
    """The posterior after one more observation, in O(N^2); there must be room in the padding."""
    place = post.observed
    row, variance = _whiten(kernel, post, x[None])
    pivot = jnp.sqrt(jnp.maximum(variance[0] + post.hyper.noise, NUGGET * post.hyper.signal))
    L = post.L.at[place].set(jnp.where(jnp.arange(post.X.shape[0]) < place, row[:, 0], 0.0))
    L = L.at[place, place].set(pivot)
    X, ys, count = post.X.at[place].set(x), post.y.at[place].set(y), place + 1
    return Posterior(X, ys, count, L, _weights(L, ys, count, post.hyper), post.hyper)


def mean(kernel: Kernel, post: Posterior, A: jax.Array) -> jax.Array:
    """[eq:mean] at the rows of A."""
    return post.hyper.mean + _cross(kernel, post, A).T @ post.alpha


def marginals(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of f at each row of A."""
    _, variance = _whiten(kernel, post, A)
    return mean(kernel, post, A), jnp.sqrt(variance)


def joint(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and covariance of f at the rows of A jointly, [eq:cov]."""
    V = solve_triangular(post.L, _cross(kernel, post, A), lower=True)
    C = covariance(kernel, post.hyper, A, A) - V.T @ V
    return mean(kernel, post, A), C + NUGGET * post.hyper.signal * jnp.eye(A.shape[0])


def best_value(kernel: Kernel, post: Posterior) -> jax.Array:
    """The one eta of the program: min y when the noise is negligible, else the smallest posterior mean at the data."""
    real = jnp.arange(post.y.shape[0]) < post.observed
    smooth = jnp.where(real, mean(kernel, post, post.X), jnp.inf)
    exact = jnp.where(real, post.y, jnp.inf)
    return jnp.min(jnp.where(post.hyper.noise < NEGLIGIBLE_NOISE, exact, smooth))


def _cross(kernel: Kernel, post: Posterior, A: jax.Array) -> jax.Array:
    real = jnp.arange(post.X.shape[0]) < post.observed
    return jnp.where(real[:, None], covariance(kernel, post.hyper, post.X, A), 0.0)


def _whiten(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """L^-1 k(X, A) and the posterior variances, floored at the nugget."""
    V = solve_triangular(post.L, _cross(kernel, post, A), lower=True)
    nugget = NUGGET * post.hyper.signal
    return V, jnp.maximum(post.hyper.signal + post.hyper.bias - jnp.sum(V * V, axis=0), 0.0) + nugget


def _weights(L: jax.Array, y: jax.Array, count: jax.Array, hyper: Hyper) -> jax.Array:
    residual = jnp.where(jnp.arange(y.shape[0]) < count, y - hyper.mean, 0.0)
    half = solve_triangular(L, residual, lower=True)
    return solve_triangular(L.T, half, lower=False)
