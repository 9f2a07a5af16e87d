"""The recommended point: the minimum of the posterior mean over the whole cube (the paper's final proposal)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.program import program
from glasses.search.propose import separated_best
from glasses.space.lattice import Lattice
from glasses.space.snapping import snap
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, marginals, mean

_EVEN = -0.6931471805599453  # log 1/2


class Lowest(NamedTuple):
    """Where the posterior mean is lowest, and what is predicted there."""

    x: jax.Array
    mean: jax.Array
    sd: jax.Array


@program
def lowest_mean(
    post: Posterior, spread: jax.Array, lattice: Lattice | None, feasibility: Feasibility | None, *, kernel: Kernel
) -> Lowest:
    """argmin mu over what can be run: from the best observed points and the best of ``spread``, by gradients.

    Where evaluations fail more often than not, nothing is recommended.
    """
    spread = snap(lattice, spread)
    starts = jnp.concatenate([post.X, spread])
    usable = jnp.concatenate([post.observed, jnp.ones(spread.shape[0], bool)])
    if feasibility is not None:
        likely = (feasibility.log_probability(spread) > _EVEN) & ~feasibility.is_infeasible(spread)
        usable = usable & jnp.concatenate([post.observed, likely])
    value = jnp.where(usable, mean(kernel, post, starts), jnp.inf)
    first = jnp.concatenate([starts[jnp.argmin(value)][None], starts[separated_best(-value, starts, 8)]])

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pull = jax.vjp(lambda X: mean(kernel, post, X), X)
        return value, pull(jnp.ones_like(value))[0]

    d = spread.shape[1]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=40, first_step=0.02, tolerance=1e-10)
    last = found.f
    ends = found.x
    if lattice is not None or feasibility is not None:
        ends = jnp.concatenate([snap(lattice, found.x), first])
        risky = jnp.zeros(ends.shape[0], bool) if feasibility is None else feasibility.log_probability(ends) <= _EVEN
        risky = risky.at[found.x.shape[0]].set(False)  # the best start is an evaluation that succeeded, or as likely to
        last = jnp.where(risky, jnp.inf, mean(kernel, post, ends))
    x = ends[jnp.argmin(last)]
    mu, sd = marginals(kernel, post, x[None])
    return Lowest(x, mu[0], sd[0])


@program
def predict(post: Posterior, X: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, jax.Array]:
    """Mean and sd of the latent function at the rows of X."""
    return marginals(kernel, post, X)
