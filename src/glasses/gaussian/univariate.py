"""One Gaussian variable and a threshold: stable logarithms of the improvement and the law of an improvement.

Notation: z = (eta - m) / s for y ~ N(m, s^2) and a threshold eta; phi, Phi the standard normal density and distribution.

    h(z)     = phi(z) + z Phi(z)                      [eq:h]      E[(eta - y)+] = s h(z)
    h(-x)    = phi(x) G(x) / (1 + x^2),  x >= 0       [eq:G]      G smooth, G(0) = G(inf) = 1
    p(q | z) = q phi(q - z) / h(z),      q >= 0       [eq:p]      law of (eta - y) / s, weighted by its size
    P(q > t) = (h(z - t) + t Phi(z - t)) / h(z)       [eq:sf]     both terms positive: no cancellation

Numerics: ``log_h`` is accurate to 1e-12 and its derivative to 1e-11 for all z until z^2 overflows, because G is a Chebyshev
series and not a difference. Plain EI underflows at z = -38. Source of the idea: Ament et al. (2023), LogEI; the form with G is
ours: one polynomial and no branch. Next: ``expected_min`` builds on both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LOG_SQRT_2PI = 0.9189385332046727

# Chebyshev coefficients of G in t = (x - 4) / (x + 4), degree 24, interpolated at Chebyshev nodes in 60-digit arithmetic.
_G = (
    0.8966519776895311,
    0.11149465606636567,
    0.041269507382024666,
    -0.08957011180199578,
    0.05723431780111182,
    -0.02145192900771851,
    0.004911893649200283,
    -0.000498069501931215,
    -6.738337823544049e-05,
    2.639518497938487e-05,
    -3.7842106941086067e-07,
    -9.779440272473704e-07,
    6.869403608334344e-08,
    3.8683385194906586e-08,
    -3.5467657749904924e-09,
    -1.7645761341288783e-09,
    1.3271591838750185e-10,
    9.006444939484364e-11,
    -2.3621254854303323e-12,
    -4.7769429723183295e-12,
    -2.1972490337489566e-13,
    2.4077733900594944e-13,
    3.5035400912035455e-14,
    -1.0091454687330508e-14,
    -3.5009863813963986e-15,
)
_POWERS = tuple(np.polynomial.chebyshev.cheb2poly(_G).tolist())  # none exceeds 1: as accurate as Clenshaw's recurrence


@jax.custom_jvp
def log_h(z: jax.Array) -> jax.Array:
    """log(phi(z) + z Phi(z)), [eq:h]: the logarithm of a standardised expected improvement, for any z."""
    return _log_h_and_slope(z)[0]


@log_h.defjvp
def _log_h_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    value, slope = _log_h_and_slope(primals[0])
    return value, slope * tangents[0]


def _log_h_and_slope(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """log h and its derivative Phi / h, where Phi(-x) = phi(x) (1 - g) / x and g = G / (1 + x^2) = h(-x) / phi(x)."""
    positive = z > 0
    x = jnp.abs(z)
    t = (x - 4.0) / (x + 4.0)
    even, odd, t2 = jnp.full_like(t, _POWERS[-1]), jnp.full_like(t, _POWERS[-2]), t * t
    for c_even, c_odd in zip(_POWERS[-3::-2], (*_POWERS[-4::-2], 0.0), strict=True):  # two short chains instead of a long one
        even, odd = even * t2 + c_even, (odd * t2 + c_odd if c_odd else odd)
    g = (even + t * odd) / (1.0 + x * x)
    log_phi = -0.5 * z * z - LOG_SQRT_2PI
    phi = jnp.exp(log_phi)
    h = jnp.where(positive, x + phi * g, g)  # h(z) = z + h(-z); the factor phi(z) is kept apart for z <= 0
    near, x2 = x < 1e-2, x * x  # 1 - g loses its digits there: the first terms of Mills' ratio
    series = 1.2533141373155001 * (1.0 + x2 * (0.5 + x2 / 8.0)) - x * (1.0 + x2 * (1.0 / 3.0 + x2 / 15.0))
    mills = jnp.where(near, series, (1.0 - g) / jnp.where(near, 1.0, x))
    return jnp.where(positive, 0.0, log_phi) + jnp.log(h), jnp.where(positive, 1.0 - phi * mills, mills) / h


def log_expected_improvement(mean: jax.Array, sd: jax.Array, eta: jax.Array) -> jax.Array:
    """log E[(eta - y)+] for y ~ N(mean, sd^2), sd > 0."""
    return jnp.log(sd) + log_h((eta - mean) / sd)


_KNOTS = 257
_REACH = float(np.arcsinh(100.0))


def improvement_quantiles(z: jax.Array, table: jax.Array) -> jax.Array:
    """Quantiles of [eq:p] at the levels ``table`` was made for: shape of z, then one axis of levels.

    Cubic interpolation in asinh(z); outside |z| <= 100 the limits (a gamma law below, a shifted normal above) are used.
    """
    theta = jnp.clip(jnp.arcsinh(z), -_REACH, _REACH)
    place = (theta + _REACH) * ((_KNOTS - 1) / (2 * _REACH))
    cell = jnp.clip(jnp.floor(place).astype(int), 0, _KNOTS - 2)
    f = (place - cell)[..., None]
    table = jnp.asarray(table)
    rows = [table[cell + k] for k in range(4)]  # the table has one extra knot on either side
    slope1, slope2 = 0.5 * (rows[2] - rows[0]), 0.5 * (rows[3] - rows[1])
    bend = 3.0 * (rows[2] - rows[1]) - 2.0 * slope1 - slope2
    twist = 2.0 * (rows[1] - rows[2]) + slope1 + slope2
    ratio = rows[1] + f * (slope1 + f * (bend + f * twist))
    inside = jnp.minimum(z, jnp.sinh(_REACH))
    return ratio * _size(inside)[..., None] + (z - inside)[..., None]


def _size(z: jax.Array) -> jax.Array:
    """Order of magnitude of a draw from [eq:p]: z for z >> 0, 1 / |z| for z << 0; the positive root of q^2 - z q - 1."""
    root = jnp.sqrt(z * z + 4.0)
    return jnp.where(z > 0, 0.5 * (z + root), 2.0 / (root - z))


@lru_cache(maxsize=8)
def improvement_table(levels: tuple[float, ...]) -> np.ndarray:
    """Quantiles of [eq:p] divided by their order of magnitude, on the knots of ``improvement_quantiles``."""
    from scipy import special  # loaded only where a program is traced

    step = 2 * _REACH / (_KNOTS - 1)
    z = np.sinh(-_REACH + step * np.arange(-1, _KNOTS + 1))[:, None]
    target = np.log1p(-np.asarray(levels))[None, :]
    root = np.sqrt(z * z + 4.0)  # as ``_size``
    size = np.where(z > 0, 0.5 * (z + root), 2.0 / (root - z))
    low, high = np.zeros((z.size, target.size)), np.full((z.size, target.size), 60.0)
    log_mass = log_h_outside(z)
    for _ in range(52):  # bisection of the log survival function [eq:sf]: no derivative, no failure
        middle = 0.5 * (low + high)
        q = middle * size
        survival = np.logaddexp(log_h_outside(z - q), np.log(q) + special.log_ndtr(z - q)) - log_mass
        low, high = np.where(survival > target, middle, low), np.where(survival > target, high, middle)
    return 0.5 * (low + high)


def log_h_outside(z: np.ndarray) -> np.ndarray:
    """``log_h`` outside compiled programs."""
    x = np.abs(z)
    tail = -0.5 * z * z - LOG_SQRT_2PI + np.log(np.polynomial.chebyshev.chebval((x - 4.0) / (x + 4.0), _G) / (1.0 + x * x))
    return np.where(z > 0, np.log(np.where(z > 0, z, 1.0) + np.exp(tail)), tail)
