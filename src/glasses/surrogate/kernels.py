"""Stationary kernels with one lengthscale per input (ARD): correlation as a function of the scaled distance.

    r^2      = sum_i ((a_i - b_i) / l_i)^2                        numbers
             + sum_j [a_j != b_j] / l_j^2                         choices, which have no order           [eq:hamming]
    Matern   = (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)          [eq:matern52]
    SE       = exp(-r^2 / 2)                                      [eq:se]

Both are written in r^2 so that the gradient at r = 0 is finite: the derivative of the Matern by r^2 is
-(5/6) (1 + sqrt(5) r) exp(-sqrt(5) r), smooth everywhere. [eq:hamming] is the distance between unit vectors, one per value
(up to a factor in l), so every kernel above stays positive definite with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

SQRT5 = 5.0**0.5
_SAME = 1e-5  # values of a choice lie at least 1e-4 apart in the unit cube


class Kernel(Protocol):
    """A correlation function of the squared scaled distance, 1 at distance 0."""

    def correlation(self, r2: jax.Array) -> jax.Array: ...


@dataclass(frozen=True)
class Matern52:
    """Twice differentiable functions: the default."""

    def correlation(self, r2: jax.Array) -> jax.Array:
        return _matern52(r2)


@dataclass(frozen=True)
class SquaredExponential:
    """Infinitely differentiable functions: the paper's kernel."""

    def correlation(self, r2: jax.Array) -> jax.Array:
        return jnp.exp(-0.5 * r2)


@jax.custom_jvp
def _matern52(r2: jax.Array) -> jax.Array:
    s = SQRT5 * jnp.sqrt(r2)
    return (1.0 + s + (5.0 / 3.0) * r2) * jnp.exp(-s)


@_matern52.defjvp
def _matern52_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (r2,), (t,) = primals, tangents
    s = SQRT5 * jnp.sqrt(r2)
    decay = jnp.exp(-s)
    return (1.0 + s + (5.0 / 3.0) * r2) * decay, (-5.0 / 6.0) * (1.0 + s) * decay * t


def squared_distance(A: jax.Array, B: jax.Array, lengthscale: jax.Array, choice: jax.Array | None = None) -> jax.Array:
    """r^2 between the rows of A (n, d) and B (m, d): summed differences, so that r^2 = 0 exactly for equal rows.

    ``choice`` (d,) marks the columns of [eq:hamming]; None if there are none.
    """
    total = jnp.zeros((A.shape[0], B.shape[0]))
    for i in range(A.shape[1]):
        apart = A[:, i, None] - B[None, :, i]
        if choice is not None:
            apart = jnp.where(choice[i], (jnp.abs(apart) > _SAME).astype(apart.dtype), apart)
        total = total + (apart / lengthscale[i]) ** 2
    return total
