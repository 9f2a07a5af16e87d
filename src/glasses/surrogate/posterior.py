"""The posterior of a Gaussian process given data, as arrays: predictions, and conditioning on more data.

| name | symbol | shape | |
|---|---|---|---|
| X, y | X, y | (N, d), (N,) | observed inputs in units of the cube, transformed outputs; rows from ``n`` on are padding |
| L | L | (N, N) | Cholesky factor of K + noise I; identity on the padding |
| alpha | (K + noise I)^-1 (y - c) | (N,) | zero on the padding |
| theta, noise, mean | theta, noise, c | | hyperparameters of the kernel, noise variance, constant mean |
| variance | | () | of what varies over the cube (``Kernel.variance``); the nugget is 1e-10 of it |

    mu(x)     = c + k(x, X) alpha                                      [eq:mean]
    k'(x, x') = k(x, x') - k(x, X) (K + noise I)^-1 k(X, x')            [eq:cov]   the latent f, no noise

Numerics: the nugget on K makes every factorisation succeed (repeated inputs included) and is the smallest predicted variance
everywhere. Conditioning appends one row to L: O(N^2). Next: ``fit`` makes posteriors, ``lookahead`` consumes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from glasses.runtime.padding import pad_rows
from glasses.surrogate.hyperparameters import Theta
from glasses.surrogate.kernels import Kernel

NUGGET = 1e-10  # of the variance
NEGLIGIBLE_NOISE = 1e-5  # noise variance, outputs standardised: below it the best observation is the best value


Array = Any  # NumPy outside programs, JAX inside


class Hyper(NamedTuple):
    """All hyperparameters, in the units of the unit cube and of transformed outputs."""

    theta: Theta  # of the kernel
    noise: Array  # variance
    mean: Array  # constant c
    choice: Array | None = None  # (d,) bool: which inputs have no order; None if there are none


class Allowed(NamedTuple):
    """Which observations may be the incumbent, where constraints decide about that."""

    feasible: Array  # (N,) bool; False on the padding
    otherwise: Array  # (): what the incumbent is while none of them is


class Posterior(NamedTuple):
    """A Gaussian process given ``n`` observations."""

    X: Array
    y: Array
    n: Array
    L: Array
    alpha: Array
    hyper: Hyper
    variance: Array
    allowed: Allowed | None = None  # None: there are no constraints

    @property
    def noise(self) -> jax.Array:
        return self.hyper.noise

    @property
    def nugget(self) -> jax.Array:
        """The smallest variance."""
        return NUGGET * self.variance

    @property
    def observed(self) -> jax.Array:
        """(N,) which rows are data and not padding."""
        return jnp.arange(self.X.shape[0]) < self.n


def covariance(kernel: Kernel, hyper: Hyper, A: jax.Array, B: jax.Array) -> jax.Array:
    """Prior covariance k(A, B) of the latent function, (n, m).

    The addition of zero rounds it to a number of its own. Without it the compiler may join the last product of a kernel with
    what is subtracted next (a fused multiply-add), and the same covariance has other digits in other programs.
    """
    return kernel.covariance(hyper.theta, A, B, hyper.choice) + 0.0 * kernel.variance(hyper.theta)


def observed_covariance(kernel: Kernel, hyper: Hyper, X: jax.Array, count: jax.Array) -> jax.Array:
    """K + noise I on the first ``count`` rows, identity on the padding."""
    observed = jnp.arange(X.shape[0]) < count
    K = covariance(kernel, hyper, X, X)
    diagonal = jnp.where(observed, hyper.noise + NUGGET * kernel.variance(hyper.theta), 1.0)
    return jnp.where(observed[:, None] & observed[None, :], K, 0.0) + jnp.diag(diagonal)


def posterior(kernel: Kernel, hyper: Hyper, X: jax.Array, y: jax.Array, count: jax.Array) -> Posterior:
    """Condition the prior on data."""
    L = jnp.linalg.cholesky(observed_covariance(kernel, hyper, X, count))
    return Posterior(X, y, count, L, _weights(L, y, count, hyper), hyper, kernel.variance(hyper.theta))


def grow(post: Posterior, size: int) -> Posterior:
    """The same posterior in arrays of ``size`` rows: room to condition on more. Outside compiled code."""
    have = post.X.shape[0]
    L = np.eye(size)
    L[:have, :have] = np.asarray(post.L)
    X, y, alpha = (pad_rows(np.asarray(a), size) for a in (post.X, post.y, post.alpha))
    allowed = post.allowed
    if allowed is not None:
        allowed = allowed._replace(feasible=pad_rows(np.asarray(allowed.feasible), size) > 0)
    return post._replace(X=X, y=y, alpha=alpha, L=L, allowed=allowed)


def condition(kernel: Kernel, post: Posterior, x: jax.Array, y: jax.Array) -> Posterior:
    """The posterior after one more observation, in O(N^2); there must be room in the padding."""
    row_index = post.n
    row, variance = _whiten(kernel, post, x[None])
    pivot = jnp.sqrt(jnp.maximum(variance[0] + post.noise, post.nugget))
    L = post.L.at[row_index].set(jnp.where(post.observed, row[:, 0], 0.0))
    L = L.at[row_index, row_index].set(pivot)
    half = (post.L.T @ post.alpha).at[row_index].set((y - mean(kernel, post, x[None])[0]) / pivot)  # L^-1 (y - c)
    alpha = solve_triangular(L.T, half, lower=False)
    X, ys = post.X.at[row_index].set(x), post.y.at[row_index].set(y)
    return post._replace(X=X, y=ys, n=row_index + 1, L=L, alpha=alpha)


def mean(kernel: Kernel, post: Posterior, A: jax.Array) -> jax.Array:
    """[eq:mean] at the rows of A."""
    return post.hyper.mean + cross_covariance(kernel, post, A).T @ post.alpha


def marginals(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of f at each row of A."""
    _, variance = _whiten(kernel, post, A)
    return mean(kernel, post, A), jnp.sqrt(variance)


def joint(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and covariance of f at the rows of A jointly, [eq:cov]."""
    V = solve_triangular(post.L, cross_covariance(kernel, post, A), lower=True)
    C = covariance(kernel, post.hyper, A, A) - V.T @ V
    return mean(kernel, post, A), C + post.nugget * jnp.eye(A.shape[0])


def incumbent(kernel: Kernel, post: Posterior) -> jax.Array:
    """The incumbent eta: min y when the noise is negligible, else the smallest posterior mean at the data.

    Of data outside the cube, whose values cannot be had any more, only where there are no others; never of data that violate a
    constraint.
    """
    within = post.observed & jnp.all((post.X >= 0.0) & (post.X <= 1.0), axis=1)
    allowed = post.allowed
    within = jnp.where(jnp.any(within), within, post.observed) if allowed is None else within & allowed.feasible
    smooth = jnp.where(within, mean(kernel, post, post.X), jnp.inf)
    exact = jnp.where(within, post.y, jnp.inf)
    eta = jnp.min(jnp.where(post.noise < NEGLIGIBLE_NOISE, exact, smooth))
    return eta if allowed is None else jnp.where(jnp.any(within), eta, allowed.otherwise)


def cross_covariance(kernel: Kernel, post: Posterior, A: jax.Array) -> jax.Array:
    """k(X, A), (N, n); zero on the padding."""
    return jnp.where(post.observed[:, None], covariance(kernel, post.hyper, post.X, A), 0.0)


def _whiten(kernel: Kernel, post: Posterior, A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """L^-1 k(X, A) and the posterior variances, at least the nugget."""
    V = solve_triangular(post.L, cross_covariance(kernel, post, A), lower=True)
    return V, jnp.maximum(kernel.diagonal(post.hyper.theta, A, post.hyper.choice) - jnp.sum(V * V, axis=0), 0.0) + post.nugget


def _weights(L: jax.Array, y: jax.Array, count: jax.Array, hyper: Hyper) -> jax.Array:
    residual = jnp.where(jnp.arange(y.shape[0]) < count, y - hyper.mean, 0.0)
    half = solve_triangular(L, residual, lower=True)
    return solve_triangular(L.T, half, lower=False)
