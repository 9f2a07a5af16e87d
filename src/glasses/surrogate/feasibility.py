"""Feasibility: how likely an evaluation is to give a value at all.

``Feasibility`` is the protocol of such models, those of constraints (``constraints``) included. ``FailureClassifier`` is a
Gaussian-process classifier over everything evaluated, failures included,

    P(feasible at x) = s(g(x)),  s(g) = 1 / (1 + exp(-g)),  g ~ GP(m, a^2 rho(r / l))                     [eq:success]

fitted by Laplace's approximation (Rasmussen and Williams 2006, algorithms 3.1 and 3.2); the probability is taken at the mode of
g, rho is the Matern-5/2 correlation. The prior mean m is the logit of the share of successes, (s + 1.5) / (n + 2): a first
failure says little about the rest of the cube. One lengthscale for all parameters, the best of a few by the Laplace evidence:
there are too few failures to learn one per parameter.

A failed evaluation has brought no improvement. So the posterior that decisions are made with is also conditioned on the failed
points (``told_failures``): each at its mean, or at the incumbent if that is larger. Otherwise a region that always fails would
stay the most promising one.

Fitting is outside compiled code, in NumPy: some Newton steps of N^3 per lengthscale. ``log_probability`` is one row of kernel
values.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from glasses.runtime.padding import data_size, pad_rows
from glasses.runtime.program import quickly_compiled
from glasses.space.lattice import Lattice, resolution
from glasses.space.snapping import same_point
from glasses.surrogate.kernels import Kernel, Matern52, squared_distance
from glasses.surrogate.posterior import Posterior, condition, incumbent, mean

VARIANCE = 9.0  # a^2 of g: from 5 % to 95 % within one sd of even odds
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8)  # times sqrt(d)
_CORRELATION = Matern52().correlation
_CERTAIN = 50.0  # a logit whose log probability is zero beside any value


class Feasibility(Protocol):
    """A model of where evaluations are feasible: a tree of arrays with these properties of inputs in the unit cube."""

    def log_probability(self, X: jax.Array, kernel: Kernel) -> jax.Array:
        """log P(feasible) at each row of X, (n,); ``kernel``: the objective's, which models of constraints share."""

    def log_value(self, X: jax.Array) -> jax.Array | None:
        """log P(a value) at each row of X, feasible or not; None where every value is feasible."""

    def is_infeasible(self, X: jax.Array) -> jax.Array:
        """Which rows of X are known to be infeasible and are not to be proposed again, (n,)."""


class FailureClassifier(NamedTuple):
    """[eq:success]. Rows beyond the data are padding; ``failed`` marks the evaluations that failed."""

    X: Any  # (N, d)
    failed: Any  # (N,) bool
    weights: Any  # (N,): the gradient of the log likelihood at the mode; 0 on the padding
    centre: Any  # m
    lengthscale: Any  # (d,)
    choice: Any  # (d,) bool: which inputs have no order; None if there are none
    resolution: Any  # () or (d,): see ``space.lattice.resolution``

    def log_probability(self, X: jax.Array, kernel: Kernel | None = None) -> jax.Array:
        near = _CORRELATION(squared_distance(X, jnp.asarray(self.X), jnp.asarray(self.lengthscale), self.choice))
        return jax.nn.log_sigmoid(self.centre + VARIANCE * near @ self.weights)

    def log_value(self, X: jax.Array) -> None:
        return None

    def is_infeasible(self, X: jax.Array) -> jax.Array:
        return same_point(X, self.X, self.failed, self.resolution)

    def grown(self, size: int) -> FailureClassifier:
        """The same in arrays of ``size`` rows."""
        failed = np.zeros(size, bool)
        failed[: len(self.failed)] = self.failed
        return self._replace(X=pad_rows(self.X, size), failed=failed, weights=pad_rows(self.weights, size))


def nothing_failed(shape: tuple[int, ...], lattice: Lattice | None = None) -> FailureClassifier:
    """A classifier of data of this shape (N, d) to which everything is feasible: a first failure needs no other program."""
    size, d = shape
    return FailureClassifier(
        X=np.zeros(shape),
        failed=np.zeros(size, bool),
        weights=np.zeros(size),
        centre=np.asarray(_CERTAIN),
        lengthscale=np.ones(d),
        choice=None if lattice is None else lattice.is_choice,
        resolution=np.asarray(resolution(lattice)),
    )


def fit_failures(X: np.ndarray, failed: np.ndarray, lattice: Lattice | None = None) -> FailureClassifier:
    """Fit to the inputs X (n, d) of the unit cube, some of which failed."""
    choice = None if lattice is None else lattice.is_choice
    n, d = X.shape
    size = data_size(n)
    good = float(n - np.sum(failed))
    p = (good + 1.5) / (n + 2.0)
    centre = float(np.log(p / (1.0 - p)))
    best: tuple[float, float, np.ndarray] | None = None
    for factor in LENGTHSCALES:
        length = factor * float(np.sqrt(d))
        K = np.asarray(_gram(pad_rows(X, size), np.full(d, length), choice))[:n, :n] * VARIANCE
        evidence, weights = laplace(K, ~failed, centre)
        if best is None or evidence > best[0] + 1e-9:
            best = evidence, length, weights
    assert best is not None
    padded = np.zeros(size, bool)
    padded[:n] = failed
    return FailureClassifier(
        X=pad_rows(X, size),
        failed=padded,
        weights=pad_rows(best[2], size),
        centre=np.asarray(centre),
        lengthscale=np.full(d, best[1]),
        choice=choice,
        resolution=np.asarray(resolution(lattice)),
    )


def laplace(K: np.ndarray, good: np.ndarray, centre: float) -> tuple[float, np.ndarray]:
    """Approximate log evidence and the gradient of the log likelihood at the mode, for the logistic likelihood."""
    t = good.astype(float)
    f = np.zeros(len(t))  # g - m
    value = -np.inf
    for _ in range(60):
        p = 1.0 / (1.0 + np.exp(-(f + centre)))
        W = p * (1.0 - p)
        root = np.sqrt(W)
        L = np.linalg.cholesky(np.eye(len(t)) + root[:, None] * K * root[None, :])
        b = W * f + (t - p)
        a = b - root * np.linalg.solve(L.T, np.linalg.solve(L, root * (K @ b)))
        f = K @ a
        new = -0.5 * a @ f - np.sum(np.logaddexp(0.0, -np.where(good, 1.0, -1.0) * (f + centre)))
        if new - value < 1e-10:
            break
        value = new
    p = 1.0 / (1.0 + np.exp(-(f + centre)))
    root = np.sqrt(p * (1.0 - p))
    L = np.linalg.cholesky(np.eye(len(t)) + root[:, None] * K * root[None, :])
    return float(new - np.sum(np.log(np.diagonal(L)))), t - p


@quickly_compiled
def told_failures(post: Posterior, failed: jax.Array, count: jax.Array, *, kernel: Kernel) -> Posterior:
    """The posterior once the first ``count`` rows of ``failed`` have brought no improvement; it must have room for them."""
    eta = incumbent(kernel, post)
    if post.allowed is not None:  # it is above all values while none is feasible
        eta = jnp.minimum(eta, jnp.max(jnp.where(post.observed, post.y, -jnp.inf)))

    def tell(k: int, post: Posterior) -> Posterior:
        value = jnp.maximum(mean(kernel, post, failed[k][None])[0], eta)
        extended = condition(kernel, post, failed[k], value)
        return jax.tree.map(lambda new, old: jnp.where(k < count, new, old), extended, post)

    exact = post._replace(hyper=post.hyper._replace(noise=jnp.zeros_like(post.noise)))  # so that eta stays what it is
    return jax.lax.fori_loop(0, failed.shape[0], tell, exact)._replace(hyper=post.hyper)


@quickly_compiled
def _gram(X: jax.Array, lengthscale: jax.Array, choice: jax.Array | None) -> jax.Array:
    return _CORRELATION(squared_distance(X, X, lengthscale, choice))
