"""Expected minimum by quasi-Monte Carlo, conditioned on an improvement: accurate in the far tail, smooth, differentiable.

For y ~ N(m, S) and a threshold eta let g_i = (eta - y_i)+ and EI_i = E[g_i]. Then, for every y with some g_i > 0,

    max_i g_i = sum_j g_j (max_i g_i / sum_i g_i), hence
    eta - E[min(y, eta)] = sum_j EI_j E_j[max_i g_i / sum_i g_i],   dP_j = (g_j / EI_j) dP        [eq:mixture]

The EI_j are closed forms (kept as logarithms) and the ratio lies in [1/n, 1] whatever the scale and however rare an improvement
is, so a few dozen points of P_j give a relative error of about a per cent where plain sampling of y sees no improvement at all.
One variable (n = 1), one dominating variable and exact copies come out exactly.

Drawing from P_j: z_j = (eta - m_j) / s_j; q from its improvement law (``univariate``, [eq:p]); y_j = eta - s_j q; the others
by pathwise conditioning of one common draw e ~ N(0, R), R the correlations:

    e_i <- e_i + R_ij ((z_j - q) - e_j)                                                           [eq:path]

The base points are a fixed scrambled Sobol set, common to all j and all problems: values are deterministic, and differences
between problems are far more accurate than the values themselves.

Shapes: m (n,), S (n, n), eta (), valid (n,) marks the entries that are not padding. Cost: n^2 (n + samples) per problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.univariate import improvement_quantiles, improvement_table, log_h
from glasses.numerics.sobol import scrambled

MAX_VARIABLES = 256
_JITTER = 1e-10


@dataclass(frozen=True)
class QMC:
    """Expected minimum with ``samples`` fixed base points per variable (a power of two keeps the Sobol set balanced)."""

    samples: int = 128

    def __post_init__(self) -> None:
        if not (isinstance(self.samples, int) and self.samples >= 2):
            raise ValueError(f"QMC needs samples to be a whole number of at least 2, got {self.samples!r}: try 128.")

    def log_gain(self, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array) -> jax.Array:
        """log(eta - E[min(y, eta)]) by [eq:mixture]."""
        log_ei, ratio = mixture_terms(m, S, eta, valid, self.samples)
        return jax.scipy.special.logsumexp(log_ei + jnp.log(jnp.mean(ratio, axis=1)))


def mixture_terms(m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array, samples: int) -> tuple[jax.Array, jax.Array]:
    """log EI_j (n,) and the ratios (n, samples) of [eq:mixture]."""
    n = m.shape[0]
    levels, normals = _base_points(samples)
    u = jnp.asarray(normals[:, :n].T)  # (n, samples)
    table = jnp.asarray(improvement_table(levels))

    sd, R, L = correlations(S, valid, 1e-13 * jnp.max(jnp.where(valid, jnp.abs(eta - m), 0.0)))
    z = (eta - m) / sd
    log_ei = jnp.where(valid, jnp.log(sd) + log_h(z), -jnp.inf)

    e = L @ u
    q = improvement_quantiles(z, table)
    shift = (z[:, None] - q) - e
    draws = e[None] + R.T[:, :, None] * shift[:, None]  # (j, i, samples), [eq:path]
    scale = jnp.where(valid, sd, 0.0)
    g = jnp.maximum(scale[None, :, None] * (z[None, :, None] - draws), 0.0)
    own = (sd[:, None] * q)[:, None]  # g_j itself, free of rounding, keeps every sum positive
    g = jnp.where(jnp.eye(n, dtype=bool)[:, :, None], own, g)
    return log_ei, _largest(g) / jnp.sum(g, axis=1)


@jax.custom_jvp
def _largest(g: jax.Array) -> jax.Array:
    """The maximum over the second axis.

    JAX's own derivative looks for the entries that equal the maximum. A compiler may compute them anew there, rounded
    otherwise: none is equal, and the derivative is 0 / 0. So the index is kept; of several equal entries the first has the
    derivative.
    """
    return jnp.max(g, axis=1)


@_largest.defjvp
def _largest_and_derivative(at: tuple[jax.Array], along: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (g,), (slope,) = at, along
    first = jnp.argmax(g, axis=1)
    chosen = first[:, None] == jnp.arange(g.shape[1])[:, None]
    return _largest(g), jnp.sum(jnp.where(chosen, slope, 0.0), axis=1)


def correlations(S: jax.Array, valid: jax.Array, least: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Standard deviations, correlations and their Cholesky factor, for any S positive semi-definite up to rounding.

    A standard deviation below 1e-12 of the largest or below ``least`` is raised to that, and the variable is independent of the
    others: it is a constant for every purpose.
    """
    n = S.shape[0]
    variance = jnp.where(valid, jnp.diagonal(S), 1.0)
    largest = jnp.max(jnp.where(valid, variance, 0.0))
    floor = jax.lax.stop_gradient(jnp.maximum(jnp.maximum(1e-24 * largest, least**2), 1e-300))
    constant = variance <= floor
    sd = jnp.sqrt(jnp.where(constant, floor, variance))
    both = valid & ~constant
    off = both[:, None] & both[None, :] & ~jnp.eye(n, dtype=bool)
    R = jnp.where(off, S / (sd[:, None] * sd[None, :]), jnp.eye(n))
    R = jnp.clip(R, -1.0, 1.0)
    plain = jax.lax.stop_gradient(R)
    broken = jnp.any(jnp.isnan(jnp.linalg.cholesky(plain + _JITTER * jnp.eye(n))))
    jitter = jnp.where(broken, 1e-4, _JITTER)
    hopeless = broken & jnp.any(jnp.isnan(jnp.linalg.cholesky(plain + 1e-4 * jnp.eye(n))))
    L = jnp.linalg.cholesky(jnp.where(hopeless, jnp.eye(n), R + jitter * jnp.eye(n)))
    return sd, R, L


@lru_cache(maxsize=8)
def _base_points(samples: int) -> tuple[tuple[float, ...], np.ndarray]:
    """Levels of the improvement and standard normals: always cut from one set, so that padding changes nothing."""
    from scipy import special  # loaded only where a program is traced

    points = scrambled(MAX_VARIABLES + 1, int(np.ceil(np.log2(samples))), np.random.default_rng(20151001))[:samples]
    points = np.clip(points, 2.0**-40, 1.0 - 2.0**-40)
    return tuple(points[:, 0].tolist()), special.ndtri(points[:, 1:])
