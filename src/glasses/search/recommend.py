"""The recommended point: the minimum of the posterior mean over the whole cube (the paper's final proposal)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from glasses.numerics.bfgs import minimize_outside
from glasses.runtime.program import quickly_compiled
from glasses.search.predict import feasible_at, mean_where_allowed, predict
from glasses.search.propose import separated
from glasses.space.lattice import Lattice
from glasses.space.snapping import snap
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, mean

_EVEN = -0.6931471805599453  # log 1/2
_STARTS = 8


class Lowest(NamedTuple):
    """Where the posterior mean is lowest, and what is predicted there."""

    x: np.ndarray
    mean: float
    sd: float


def lowest_mean(
    kernel: Kernel, post: Posterior, spread: np.ndarray, lattice: Lattice | None, feasibility: Feasibility | None
) -> Lowest:
    """argmin mu over what can be run: from the best observed points and the best of ``spread``, by gradients.

    Where evaluations fail more often than not, nothing is recommended.
    """
    n, spread = int(post.n), snap(lattice, spread)
    starts = np.concatenate([np.clip(np.asarray(post.X)[:n], 0.0, 1.0), spread])
    value = np.concatenate([mean_where_allowed(kernel, post), predict(kernel, post, spread)[0]])
    if feasibility is not None:
        log_p, infeasible = feasible_at(feasibility, spread)
        value[n:] = np.where((log_p > _EVEN) & ~infeasible, value[n:], np.inf)
    best = starts[int(np.argmin(value))][None]
    first = np.concatenate([best, starts[separated(-value, starts, _STARTS)]])

    def descend(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, slope = _mean_and_slope(post, X, kernel=kernel)
        return np.asarray(found), np.asarray(slope)

    ends = minimize_outside(descend, first, passes=40, first_step=0.02, tolerance=1e-10).x
    if lattice is not None or feasibility is not None:
        ends = np.concatenate([best, snap(lattice, ends), first])
    mu, sd = predict(kernel, post, ends)
    if feasibility is not None:  # the best start is an evaluation that succeeded, or as likely to
        risky = feasible_at(feasibility, ends)[0] <= _EVEN
        risky[0] = False
        mu = np.where(risky, np.inf, mu)
    lowest = int(np.argmin(mu))
    return Lowest(ends[lowest], float(mu[lowest]), float(sd[lowest]))


@quickly_compiled
def _mean_and_slope(post: Posterior, X: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, jax.Array]:
    value, pull = jax.vjp(lambda X: mean(kernel, post, X), X)
    return value, pull(jnp.ones_like(value))[0]
