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
_BLOCK = 512  # observations at once; their padded number is a multiple of it
_JITTER = 1e-9  # of the variance
_ROUNDING = 1e-12  # of A A^T


def inducing_posterior(kernel: Kernel, hyper: Hyper, X: np.ndarray, y: np.ndarray) -> Posterior:
    """[eq:fitc] for all observations, at given hyperparameters."""
    chosen = inducing_points(X, y, _lengthscale(hyper, X.shape[1]))
    size = data_size(len(X))
    return _through(pad_rows(X, size), pad_rows(y, size), np.asarray(len(X)), X[chosen], y[chosen], hyper, kernel=kernel)


def inducing_points(X: np.ndarray, y: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    """Which observations: the best, then those farthest from all chosen so far; (``INDUCING``,), in order of arrival."""
    scaled = (X / lengthscale).T.copy()  # one row per input: sums of squares without a large array between
    outside = np.any((X < 0.0) | (X > 1.0), axis=1)  # decisions are made around the best inside
    chosen, apart = [int(i) for i in np.lexsort((y, outside))[:_BEST]], np.full(len(X), np.inf)
    for k in range(INDUCING):
        if k == len(chosen):
            chosen.append(int(np.argmax(apart)))
        apart = np.minimum(apart, _squared_distance(scaled, chosen[k]))
    return np.sort(np.array(chosen))


def _squared_distance(scaled: np.ndarray, i: int) -> np.ndarray:
    apart = scaled - scaled[:, i : i + 1]
    return np.einsum("ij,ij->j", apart, apart)


def _lengthscale(hyper: Hyper, d: int) -> np.ndarray:
    """The kernel's lengthscales where it has one per input; else all inputs count alike."""
    found = hyper.theta.get("lengthscale") if isinstance(hyper.theta, dict) else None
    return np.asarray(found) if found is not None and np.shape(found) == (d,) else np.ones(d)


@program
def _through(
    X: jax.Array, y: jax.Array, count: jax.Array, Z: jax.Array, y_Z: jax.Array, hyper: Hyper, *, kernel: Kernel
) -> Posterior:
    M, block, variance = Z.shape[0], min(_BLOCK, X.shape[0]), kernel.variance(hyper.theta)
    K = covariance(kernel, hyper, Z, Z) + _JITTER * variance * jnp.eye(M)
    L_Z = jnp.linalg.cholesky(K)

    def add(k: jax.Array, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """A A^T and A Lambda^-1/2 r with one more block of observations."""
        rows, r = (jax.lax.dynamic_slice_in_dim(a, k * block, block) for a in (X, y - hyper.mean))
        V = solve_triangular(L_Z, covariance(kernel, hyper, Z, rows), lower=True)
        unexplained = jnp.maximum(kernel.diagonal(hyper.theta, rows, hyper.choice) - jnp.sum(V * V, axis=0), 0.0)
        observed = k * block + jnp.arange(block) < count
        weighted = V * jnp.where(observed, 1.0 / (unexplained + hyper.noise + _JITTER * variance), 0.0)
        return sums[0] + weighted @ V.T, sums[1] + weighted @ r

    B, pull = jax.lax.fori_loop(0, (count + block - 1) // block, add, (jnp.zeros((M, M)), jnp.zeros(M)))
    alpha = solve_triangular(L_Z.T, cho_solve((jnp.linalg.cholesky(B + jnp.eye(M)), True), pull), lower=False)
    B = B + _ROUNDING * jnp.max(jnp.diagonal(B)) * jnp.eye(M)
    root = solve_triangular(jnp.linalg.cholesky(B), L_Z.T, lower=True)  # [eq:pseudo]
    T = K + root.T @ root + NUGGET * variance * jnp.eye(M)
    return Posterior(Z, y_Z, jnp.asarray(M), jnp.linalg.cholesky(T), alpha, hyper, variance)
