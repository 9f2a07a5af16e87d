"""The answer at the end: the minimum of the posterior mean over the whole cube (the paper's final proposal)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.scene import is_close
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.program import program
from glasses.search.survey import separated_best
from glasses.space.lattice import Lattice
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, marginals, mean
from glasses.surrogate.success import Success, log_success

_EVEN = -0.6931471805599453  # log 1/2


def even_steps(d: int, size: int) -> np.ndarray:
    """``size`` points spread over the cube: multiples of an irrational step per coordinate, modulo 1 (Roberts 2018)."""
    base = 2.0
    for _ in range(60):
        base = (1.0 + base) ** (1.0 / (d + 1))  # the root of base^(d + 1) = base + 1
    step = base ** -np.arange(1.0, d + 1.0)
    return (0.5 + np.arange(size)[:, None] * step) % 1.0


class Lowest(NamedTuple):
    """Where the posterior mean is lowest, and what is predicted there."""

    x: jax.Array
    mean: jax.Array
    sd: jax.Array


@program
def lowest_mean(
    post: Posterior, spread: jax.Array, lattice: Lattice | None, success: Success | None, *, kernel: Kernel
) -> Lowest:
    """argmin mu over what can be run: from the best observed points and the best of ``spread``, by gradients.

    Where evaluations fail more often than not, nothing is recommended.
    """
    real = jnp.arange(post.X.shape[0]) < post.observed
    spread = snap(lattice, spread)
    starts = jnp.concatenate([post.X, spread])
    usable = jnp.concatenate([real, jnp.ones(spread.shape[0], bool)])
    if success is not None:
        failed = is_close(spread, success.X, success.failed)
        usable = usable & jnp.concatenate([real, (log_success(kernel, success, spread) > _EVEN) & ~failed])
    value = jnp.where(usable, mean(kernel, post, starts), jnp.inf)
    first = jnp.concatenate([starts[jnp.argmin(value)][None], starts[separated_best(-value, starts, 8)]])

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pull = jax.vjp(lambda X: mean(kernel, post, X), X)
        return value, pull(jnp.ones_like(value))[0]

    d = spread.shape[1]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=40, first_step=0.02, tolerance=1e-10)
    last = found.f
    ends = found.x
    if lattice is not None or success is not None:
        ends = jnp.concatenate([snap(lattice, found.x), first])
        risky = jnp.zeros(ends.shape[0], bool) if success is None else log_success(kernel, success, ends) <= _EVEN
        risky = risky.at[found.x.shape[0]].set(False)  # the best start is an evaluation that succeeded, or as likely to
        last = jnp.where(risky, jnp.inf, mean(kernel, post, ends))
    x = ends[jnp.argmin(last)]
    mu, sd = marginals(kernel, post, x[None])
    return Lowest(x, mu[0], sd[0])


@program
def predict(post: Posterior, X: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, jax.Array]:
    """Mean and sd of the latent function at the rows of X."""
    return marginals(kernel, post, X)
