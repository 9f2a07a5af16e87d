"""Fitting a Gaussian process: maximum a posteriori or maximum likelihood, several starts in one compiled batch.

Minimised over theta = (log lengthscales, log signal variance, log noise sd, constant mean, log bias variance):

    J(theta) = 1/2 r^T (K + noise I)^-1 r + 1/2 log det(K + noise I) - log p(theta),   r = y - c       [eq:map]

Priors of the default (inputs in the unit cube, outputs standardised):
    log lengthscale ~ N(sqrt(2) - 3 + 1/2 log d, 3)   the mode of Hvarfner et al. (2024), growing with sqrt(d)
    log signal      ~ N(0, 1),  c ~ N(0, 1)
    noise sd        ~ Exponential(mean 0.05)          flat near zero: noise needs evidence, a rugged function is not enough
Maximum likelihood has no prior; a wide box bounds both.

Gradient: dJ/dK = 1/2 ((K + noise I)^-1 - alpha alpha^T) is explicit [eq:trace], so reverse mode never enters the
factorisation. Large data: with more than ``_SUBSET`` observations the starts compete on a subset (the best values and an
even spread of the rest), and only the winner is polished, on at most ``_POLISHED`` of them; the posterior has them all.
Deterministic; no state is carried from one fit to the next. Cost: starts x passes x N^3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.padding import data_size, pad_rows
from glasses.runtime.program import program
from glasses.surrogate.kernels import Kernel, Matern52
from glasses.surrogate.posterior import Hyper, Posterior, observed_covariance, posterior

_SUBSET, _POLISHED = 128, 256
_LENGTH, _SIGNAL, _NOISE, _BIAS = (0.005, 50.0), (1e-3, 1e3), (1e-4, 1.0), (1e-4, 1e3)


class Prior(NamedTuple):
    """Independent priors on theta; an infinite spread or scale means none."""

    log_lengthscale: float
    log_lengthscale_sd: float
    log_signal_sd: float
    mean_sd: float
    noise_scale: float


@dataclass(frozen=True)
class MAP:
    """Maximum a posteriori with the priors of the module's header."""

    starts: int = 4

    def prior(self, d: int) -> Prior:
        return Prior(2**0.5 - 3.0 + 0.5 * float(np.log(d)), 3**0.5, 1.0, 1.0, 0.05)


@dataclass(frozen=True)
class MaximumLikelihood:
    """Maximum likelihood, the best of several starts: the paper's fit."""

    starts: int = 5

    def prior(self, d: int) -> Prior:
        return Prior(0.0, np.inf, np.inf, np.inf, np.inf)


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

    def hyper(self, d: int, noise: float, centre: float, scale: float) -> Hyper:
        """In the units of standardised outputs."""
        if np.size(self.lengthscale) not in (1, d):
            raise ValueError(f"lengthscale must be one number or {d}, one per parameter, got {np.size(self.lengthscale)}.")
        lengthscale = np.broadcast_to(np.asarray(self.lengthscale, dtype=float), (d,))
        with jax.enable_x64(True):
            return Hyper(
                lengthscale=jnp.asarray(lengthscale),
                signal=jnp.asarray((self.sd / scale) ** 2),
                noise=jnp.asarray((noise / scale) ** 2),
                mean=jnp.asarray((self.mean - centre) / scale),
                bias=jnp.asarray(0.0),
            )


@dataclass(frozen=True)
class GaussianProcess:
    """A model: what is assumed of the objective before any data.

    ``noise`` is the standard deviation of an observation in the units of y: None learns it, 0 declares evaluations exact.
    ``bias=True`` replaces the constant mean by a constant (bias) kernel, as in the paper. ``draws``: hyperparameters that a
    decision averages over (``ensemble``), for up to 256 observations; 0 believes the fit.
    """

    kernel: Kernel = field(default_factory=Matern52)
    fit: MAP | MaximumLikelihood | Known = field(default_factory=MAP)
    noise: float | None = None
    bias: bool = False
    draws: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.draws, int) and not isinstance(self.draws, bool) and self.draws >= 0):
            raise ValueError(f"draws must be a whole number of at least 0 sets of hyperparameters, got {self.draws!r}.")
        if self.noise is not None and not (np.isfinite(self.noise) and self.noise >= 0):
            raise ValueError(f"noise must be a standard deviation of at least 0, or None to learn it, got {self.noise!r}.")
        if isinstance(self.fit, Known):
            if self.noise is None:
                raise ValueError("With known hyperparameters nothing is learned, the noise included: give noise=0 or its sd.")
            if self.bias:
                raise ValueError("With known hyperparameters the mean is known too: leave bias out.")
            if self.draws:
                raise ValueError("Known hyperparameters leave nothing to draw: leave draws out.")
        elif not (isinstance(self.fit.starts, int) and self.fit.starts >= 1):
            raise ValueError(f"starts must be a whole number of at least 1, got {self.fit.starts!r}.")

    def posterior(
        self,
        X: np.ndarray,
        y: np.ndarray,
        *,
        y_centre: float = 0.0,
        y_scale: float = 1.0,
        choice: np.ndarray | None = None,
    ) -> Posterior:
        """Fit to inputs in the unit cube and standardised outputs and condition on them.

        ``y_centre + y_scale * y`` are the outputs in the user's units; ``choice`` (d,) marks inputs without an order.
        """
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        N, d = X.shape
        size = data_size(N)
        data = (pad_rows(X, size), pad_rows(y, size), np.asarray(N))
        if isinstance(self.fit, Known):
            assert self.noise is not None
            hyper = self.fit.hyper(d, self.noise, y_centre, y_scale)._replace(
                choice=None if choice is None else jnp.asarray(choice)
            )
            return _condition(*data, hyper, kernel=self.kernel)
        fixed = -1.0 if self.noise is None else (self.noise / y_scale) ** 2
        prior = self.fit.prior(d)
        starts = _starts(d, self.fit.starts, prior)
        passes = 60
        for size in (_SUBSET, _POLISHED):
            if size < N:
                chosen = _subset(y, size)
                few = (pad_rows(X[chosen], size), pad_rows(y[chosen], size), np.asarray(size))
                theta, _ = self._fit(few, starts, fixed, choice, prior, passes)
                starts, passes = np.asarray(theta)[None], 15
        if N > _POLISHED:
            return _condition_at(*data, starts[0], np.asarray(fixed), choice, kernel=self.kernel, bias=self.bias)
        return self._fit(data, starts, fixed, choice, prior, passes)[1]

    def doubt(self, post: Posterior, y_scale: float = 1.0) -> Posterior | None:
        """Posteriors with drawn hyperparameters, stacked; None where the fit is believed."""
        if self.draws == 0 or isinstance(self.fit, Known) or int(post.observed) > _POLISHED:
            return None
        from glasses.surrogate.ensemble import ensemble

        fixed = np.asarray(-1.0 if self.noise is None else (self.noise / y_scale) ** 2)
        prior = self.fit.prior(post.X.shape[1])
        return ensemble(post, fixed, kernel=self.kernel, prior=prior, bias=self.bias, draws=self.draws)

    def _fit(
        self, data: Any, starts: np.ndarray, fixed: float, choice: np.ndarray | None, prior: Prior, passes: int
    ) -> tuple[jax.Array, Posterior]:
        static = {"kernel": self.kernel, "prior": prior, "bias": self.bias, "passes": passes}
        return _fit(*data, starts, np.asarray(fixed), choice, **static)


def limits(d: int) -> tuple[jax.Array, jax.Array]:
    """The box that theta is kept in."""
    box = np.log(np.array([_LENGTH] * d + [_SIGNAL, _NOISE, (np.exp(-5.0), np.exp(5.0)), _BIAS]))
    return jnp.asarray(box[:, 0]), jnp.asarray(box[:, 1])


def hyper_from(theta: jax.Array, d: int, fixed_noise: jax.Array, bias: bool, choice: jax.Array | None = None) -> Hyper:
    """theta as hyperparameters; a fixed noise variance (>= 0) overrides the learned one."""
    noise = jnp.where(fixed_noise >= 0, fixed_noise, jnp.exp(2.0 * theta[d + 1]))
    return Hyper(
        lengthscale=jnp.exp(theta[:d]),
        signal=jnp.exp(theta[d]),
        noise=noise,
        mean=jnp.zeros(()) if bias else theta[d + 2],
        bias=jnp.exp(theta[d + 3]) if bias else jnp.zeros(()),
        choice=choice,
    )


def objective(
    theta: jax.Array,
    X: jax.Array,
    y: jax.Array,
    count: jax.Array,
    fixed_noise: jax.Array,
    choice: jax.Array | None = None,
    *,
    kernel: Kernel,
    prior: Prior,
    bias: bool,
) -> jax.Array:
    """J(theta), [eq:map], up to a constant."""
    d = X.shape[1]
    hyper = hyper_from(theta, d, fixed_noise, bias, choice)
    K = observed_covariance(kernel, hyper, X, count)
    r = jnp.where(jnp.arange(X.shape[0]) < count, y - hyper.mean, 0.0)
    z = (theta[:d] - prior.log_lengthscale) / prior.log_lengthscale_sd
    penalty = 0.5 * jnp.sum(z * z) + 0.5 * (theta[d] / prior.log_signal_sd) ** 2
    penalty += jnp.exp(theta[d + 1]) / prior.noise_scale + 0.5 * (theta[d + 2] / prior.mean_sd) ** 2
    return _half_deviance(K, r) + penalty


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
    fixed: jax.Array,
    choice: jax.Array | None,
    *,
    kernel: Kernel,
    prior: Prior,
    bias: bool,
    passes: int,
) -> tuple[jax.Array, Posterior]:
    """The best theta over all starts, and the posterior it gives."""
    d = X.shape[1]

    def one(theta: jax.Array) -> jax.Array:
        return objective(theta, X, y, count, fixed, choice, kernel=kernel, prior=prior, bias=bias)

    def batch(thetas: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.map(jax.value_and_grad(one), thetas)

    found = minimize_batch(batch, starts, *limits(d), passes=passes, first_step=0.5, tolerance=1e-7)
    theta = found.x[jnp.argmin(found.f)]
    return theta, posterior(kernel, hyper_from(theta, d, fixed, bias, choice), X, y, count)


@program
def _condition_at(
    X: jax.Array,
    y: jax.Array,
    count: jax.Array,
    theta: jax.Array,
    fixed: jax.Array,
    choice: jax.Array | None,
    *,
    kernel: Kernel,
    bias: bool,
) -> Posterior:
    return posterior(kernel, hyper_from(theta, X.shape[1], fixed, bias, choice), X, y, count)


@program
def _condition(X: jax.Array, y: jax.Array, count: jax.Array, hyper: Hyper, *, kernel: Kernel) -> Posterior:
    return posterior(kernel, hyper, X, y, count)


def _starts(d: int, count: int, prior: Prior) -> np.ndarray:
    """Deterministic starts: the centre of the prior first, then short, long and noisy explanations, then a spread."""
    centre = prior.log_lengthscale if np.isfinite(prior.log_lengthscale_sd) else float(np.log(0.3 * np.sqrt(d)))
    shapes = [(0.0, 1e-3), (-1.2, 1e-3), (1.2, 1e-3), (0.0, 0.2)]
    rng = np.random.default_rng(0)
    while len(shapes) < count:
        shapes.append((rng.uniform(-2.0, 2.0), float(np.exp(rng.uniform(np.log(1e-3), np.log(0.3))))))
    rows = [[centre + shift] * d + [0.0, np.log(noise), 0.0, 0.0] for shift, noise in shapes[:count]]
    return np.array(rows)


def _subset(y: np.ndarray, size: int) -> np.ndarray:
    """Indices of the ``size // 4`` best values and an even spread over the order of arrival."""
    best = np.argsort(y, kind="stable")[: size // 4]
    rest = np.setdiff1d(np.arange(y.size), best)
    spread = rest[np.linspace(0, rest.size - 1, size - best.size).round().astype(int)]
    return np.sort(np.concatenate([best, spread]))
