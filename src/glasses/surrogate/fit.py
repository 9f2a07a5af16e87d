"""Fitting a Gaussian process: maximum a posteriori or maximum likelihood, several starts in one compiled batch.

Minimised over theta (the kernel's hyperparameters), the noise and the constant mean c, as one vector of free numbers
(``hyperparameters``): those of the kernel, then the log of the noise sd, then c.

    J(theta) = 1/2 r^T (K + noise I)^-1 r + 1/2 log det(K + noise I) - log p(theta),   r = y - c       [eq:map]

Priors: those of the kernel; c ~ N(0, 1); noise sd ~ Exponential(mean 0.05), flat near zero, so that noise is learned only from
strong evidence. Maximum likelihood has no prior; wide bounds hold in both.

Gradient: dJ/dK = 1/2 ((K + noise I)^-1 - alpha alpha^T) is explicit [eq:trace], so reverse mode never enters the
factorisation. Large data: with more than ``_SUBSET`` observations the starts compete on a subset (the best values and an
even spread of the rest), and only the winner is polished, on at most ``LARGEST_FIT`` of them; the posterior has them all
(``inducing`` says how). With more than ``_MANY_INPUTS`` inputs there are two starts. Deterministic; no state is carried from
one fit to the next. Cost: starts x passes x N^3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.padding import data_size, pad_rows
from glasses.runtime.program import program, quickly_compiled
from glasses.surrogate.hyperparameters import Exponential, Hyperparameter, Layout, Normal
from glasses.surrogate.inducing import LARGEST_EXACT, inducing_posterior
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Hyper, Posterior, observed_covariance, posterior

LARGEST_FIT = 256
_SUBSET = 128
_MANY_INPUTS = 40
_NOISE = Hyperparameter(1e-4, 1.0, Exponential(0.05), start=1e-3)  # standard deviation
_MEAN = Hyperparameter(-5.0, 5.0, Normal(0.0, 1.0), start=0.0, log=False)
_SHAPES = ((0.0, 1e-3), (-1.2, 1e-3), (1.2, 1e-3), (0.0, 0.2))  # shift of the lengthscales, noise sd


@dataclass(frozen=True)
class MAP:
    """Maximum a posteriori with the priors of the module's header."""

    starts: int = 4
    with_prior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_starts(self.starts)


@dataclass(frozen=True)
class MaximumLikelihood:
    """Maximum likelihood, the best of several starts: the paper's fit."""

    starts: int = 5
    with_prior: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_starts(self.starts)


@dataclass(frozen=True)
class Known:
    """No fit: hyperparameters known beforehand, as when the objective is a draw from the model.

    ``lengthscale``: one number or one per parameter, in parts of each side of the box; ``sd`` and ``mean`` of the prior in
    the units of y.
    """

    lengthscale: float | tuple[float, ...]
    sd: float = 1.0
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.lengthscale, int | float | tuple):
            raise ValueError(f"lengthscale must be a number or a tuple of them, got {self.lengthscale!r}.")
        each = np.asarray(self.lengthscale, dtype=float)
        if each.ndim > 1 or each.size == 0 or not (np.isfinite(each).all() and (each > 0).all()):
            raise ValueError(f"lengthscale must be positive, got {self.lengthscale!r}.")
        if not (np.ndim(self.sd) == 0 and np.isfinite(self.sd) and self.sd > 0):
            raise ValueError(f"sd must be positive, got {self.sd!r}.")
        if not (np.ndim(self.mean) == 0 and np.isfinite(self.mean)):
            raise ValueError(f"mean must be finite, got {self.mean!r}.")

    def theta(self, kernel: Kernel, d: int, scale: float) -> dict[str, np.ndarray]:
        """The kernel's hyperparameters; ``scale``: units of y per unit of transformed outputs."""
        names = kernel.hyperparameters(d)
        if not isinstance(names, dict) or set(names) != {"lengthscale", "variance"}:
            raise ValueError(
                f"Known gives the lengthscale and sd of one stationary kernel such as Matern52(), got {kernel!r}: fit "
                "another one with MAP()."
            )
        if np.size(self.lengthscale) not in (1, d):
            raise ValueError(f"lengthscale must be one number or {d}, one per parameter, got {np.size(self.lengthscale)}.")
        lengthscale = np.broadcast_to(np.asarray(self.lengthscale, dtype=float), (d,))
        return {"lengthscale": lengthscale, "variance": np.asarray((self.sd / scale) ** 2)}


class FreeModel(NamedTuple):
    """What a fit is about: static, hashable."""

    kernel: Kernel
    constant_mean: bool  # whether c is learned; else it is 0
    with_prior: bool
    choices: bool = False  # whether some inputs are choices: they have a prior of their own

    def hyper(self, free: jax.Array, d: int, fixed_noise: jax.Array, choice: jax.Array | None) -> Hyper:
        """The free numbers as hyperparameters; a fixed noise variance (>= 0) overrides the learned one."""
        layout = self.layout(d)
        noise = jnp.where(fixed_noise >= 0, fixed_noise, jnp.exp(2.0 * free[layout.size]))
        mean = free[layout.size + 1] if self.constant_mean else jnp.zeros(())
        return Hyper(layout.theta(free), noise, mean, choice)

    def free(self, hyper: Hyper, d: int) -> jax.Array:
        """The other way round."""
        noise = 0.5 * jnp.log(jnp.maximum(hyper.noise, 1e-300))
        return jnp.concatenate([self.layout(d).free(hyper.theta), jnp.stack([noise, hyper.mean])])

    def layout(self, d: int) -> Layout:
        return Layout.of(self.kernel.hyperparameters(d))

    def bounds(self, d: int) -> tuple[jax.Array, jax.Array]:
        """Lower and upper bounds of the free numbers."""
        both = np.concatenate([self.layout(d).bounds(), [_NOISE.bounds, _MEAN.bounds]])
        return jnp.asarray(both[:, 0]), jnp.asarray(both[:, 1])

    def learned(self, d: int, fixed_noise: jax.Array) -> jax.Array:
        """Which of the free numbers the data decide."""
        rest = [fixed_noise < 0, jnp.asarray(self.constant_mean)]
        return jnp.concatenate([jnp.ones(self.layout(d).size, bool), jnp.stack(rest)])

    def starts(self, d: int, count: int, choice: np.ndarray | None = None) -> np.ndarray:
        """Deterministic: the first start, then shorter and longer lengthscales and more noise, then a random spread."""
        shapes = list(_SHAPES)
        rng = np.random.default_rng(0)
        while len(shapes) < count:
            shapes.append((rng.uniform(-2.0, 2.0), float(np.exp(rng.uniform(np.log(1e-3), np.log(0.3))))))
        kernel = self.layout(d).starts(
            [shift for shift, _ in shapes[:count]], self.with_prior, choice if self.choices else None
        )
        return np.column_stack([kernel, [np.log(noise) for _, noise in shapes[:count]], np.zeros(count)])

    def objective(
        self,
        free: jax.Array,
        X: jax.Array,
        y: jax.Array,
        count: jax.Array,
        fixed_noise: jax.Array,
        choice: jax.Array | None = None,
    ) -> jax.Array:
        """J, [eq:map], up to a constant."""
        hyper = self.hyper(free, X.shape[1], fixed_noise, choice)
        K = observed_covariance(self.kernel, hyper, X, count)
        r = jnp.where(jnp.arange(X.shape[0]) < count, y - hyper.mean, 0.0)
        value = _half_deviance(K, r)
        if not self.with_prior:
            return value
        layout = self.layout(X.shape[1])
        assert _NOISE.prior is not None
        assert _MEAN.prior is not None
        rest = _NOISE.prior.penalty(free[layout.size]) + _MEAN.prior.penalty(free[layout.size + 1])
        return value + (layout.penalty(free, choice if self.choices else None) + rest)


def fitted(
    model: FreeModel, X: np.ndarray, y: np.ndarray, fixed_noise: float, choice: np.ndarray | None, starts: int
) -> Posterior:
    """The posterior at the best hyperparameters. ``fixed_noise``: the noise variance, or -1 to learn it."""
    N, d = X.shape
    begin, passes = model.starts(d, starts if d <= _MANY_INPUTS else min(starts, 2), choice), 60
    noise = np.asarray(fixed_noise)
    for size in (_SUBSET, LARGEST_FIT):
        if size < N:
            chosen = _subset(y, size)
            free, _ = _fit(*_padded(X[chosen], y[chosen], size), begin, noise, choice, model=model, passes=passes)
            begin, passes = np.asarray(free)[None], 15 if d <= _MANY_INPUTS else 8
    if N > LARGEST_EXACT:
        return inducing_posterior(model.kernel, _hyper_at(begin[0], noise, choice, model=model, d=d), X, y)
    data = _padded(X, y, data_size(N))
    if N > LARGEST_FIT:
        return _condition_at(*data, begin[0], noise, choice, model=model)
    return _fit(*data, begin, noise, choice, model=model, passes=passes)[1]


def conditioned(kernel: Kernel, hyper: Hyper, X: np.ndarray, y: np.ndarray) -> Posterior:
    """The posterior at given hyperparameters."""
    if len(X) > LARGEST_EXACT:
        return inducing_posterior(kernel, hyper, X, y)
    return _condition(*_padded(X, y, data_size(len(X))), hyper, kernel=kernel)


def _padded(X: np.ndarray, y: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return pad_rows(X, size), pad_rows(y, size), np.asarray(len(X))


@jax.custom_vjp
def _half_deviance(K: jax.Array, r: jax.Array) -> jax.Array:
    return _half_deviance_forward(K, r)[0]


def _half_deviance_forward(K: jax.Array, r: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    L = jnp.linalg.cholesky(K)
    inverse_L = jax.scipy.linalg.solve_triangular(L, jnp.eye(K.shape[0]), lower=True)
    alpha = inverse_L.T @ (inverse_L @ r)
    return 0.5 * r @ alpha + jnp.sum(jnp.log(jnp.diagonal(L))), (inverse_L, alpha)


def _half_deviance_backward(kept: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    inverse_L, alpha = kept
    return 0.5 * g * (inverse_L.T @ inverse_L - alpha[:, None] * alpha[None, :]), g * alpha  # [eq:trace]


_half_deviance.defvjp(_half_deviance_forward, _half_deviance_backward)


@program
def _fit(
    X: jax.Array,
    y: jax.Array,
    count: jax.Array,
    starts: jax.Array,
    fixed_noise: jax.Array,
    choice: jax.Array | None,
    *,
    model: FreeModel,
    passes: int,
) -> tuple[jax.Array, Posterior]:
    """The best free numbers over all starts, and the posterior they give."""
    d = X.shape[1]

    def one(free: jax.Array) -> jax.Array:
        return model.objective(free, X, y, count, fixed_noise, choice)

    def batch(frees: jax.Array, done: jax.Array) -> tuple[jax.Array, jax.Array]:
        def row(given: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            free, done = given
            return jax.lax.cond(done, lambda x: (jnp.zeros(()), jnp.zeros_like(x)), jax.value_and_grad(one), free)

        return jax.lax.map(row, (frees, done))

    low, high = model.bounds(d)
    narrowing = _narrowing(starts.shape[0])
    found = minimize_batch(batch, starts, low, high, passes=passes, first_step=0.5, tolerance=1e-7, narrowing=narrowing)
    free = found.x[jnp.argmin(found.f)]
    return free, posterior(model.kernel, model.hyper(free, d, fixed_noise, choice), X, y, count)


def _narrowing(starts: int) -> tuple[tuple[int, int], ...]:
    """After 15 passes the better half of the starts goes on, after 30 the best quarter: which one wins is clear by then."""
    return (15, max(1, starts // 2)), (30, max(1, starts // 4))


@quickly_compiled
def _condition_at(
    X: jax.Array,
    y: jax.Array,
    count: jax.Array,
    free: jax.Array,
    fixed_noise: jax.Array,
    choice: jax.Array | None,
    *,
    model: FreeModel,
) -> Posterior:
    return posterior(model.kernel, model.hyper(free, X.shape[1], fixed_noise, choice), X, y, count)


@quickly_compiled
def _hyper_at(free: jax.Array, fixed_noise: jax.Array, choice: jax.Array | None, *, model: FreeModel, d: int) -> Hyper:
    return model.hyper(free, d, fixed_noise, choice)


@quickly_compiled
def _condition(X: jax.Array, y: jax.Array, count: jax.Array, hyper: Hyper, *, kernel: Kernel) -> Posterior:
    return posterior(kernel, hyper, X, y, count)


def _subset(y: np.ndarray, size: int) -> np.ndarray:
    """Indices of the ``size // 4`` best values and an even spread over the order of arrival."""
    best = np.argsort(y, kind="stable")[: size // 4]
    rest = np.setdiff1d(np.arange(y.size), best)
    spread = rest[np.linspace(0, rest.size - 1, size - best.size).round().astype(int)]
    return np.sort(np.concatenate([best, spread]))


def _check_starts(starts: Any) -> None:
    if not (isinstance(starts, int) and not isinstance(starts, bool) and starts >= 1):
        raise ValueError(f"starts must be a whole number of at least 1, got {starts!r}.")
