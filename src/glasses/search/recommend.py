"""The recommended point: the minimum of the posterior mean over the whole cube (the paper's final proposal).

With constraints it is that over the points that are feasible with a probability of at least 95 %, else the best evaluation
that was feasible. While there is none it is the point most likely to be.
"""

from __future__ import annotations

import math
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
from glasses.surrogate.constraints import ConstrainedFeasibility
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, mean

_EVEN = -0.6931471805599453  # log 1/2
_LIKELY = math.log(0.95)  # with constraints
_AIM = math.log(0.97)  # of the descent, so that its ends are likely enough
_PENALTY = 100.0  # of the shortfall squared, in the model's units
_STARTS = 8


class Lowest(NamedTuple):
    """Where the posterior mean is lowest, what is predicted there and, with constraints, how likely it is to be feasible."""

    x: np.ndarray
    mean: float
    sd: float
    feasibility: float | None = None


def lowest_mean(
    kernel: Kernel, post: Posterior, spread: np.ndarray, lattice: Lattice | None, feasibility: Feasibility | None
) -> Lowest:
    """argmin mu over what can be run: from the best observed points and the best of ``spread``, by gradients.

    Where evaluations fail more often than not, nothing is recommended.
    """
    if isinstance(feasibility, ConstrainedFeasibility):
        return _lowest_feasible(kernel, post, spread, lattice, feasibility)
    n, spread = int(post.n), snap(lattice, spread)
    starts = np.concatenate([np.clip(np.asarray(post.X)[:n], 0.0, 1.0), spread])
    value = np.concatenate([mean_where_allowed(kernel, post), predict(kernel, post, spread)[0]])
    if feasibility is not None:
        log_p, infeasible = feasible_at(feasibility, spread, kernel)
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
        risky = feasible_at(feasibility, ends, kernel)[0] <= _EVEN
        risky[0] = False
        mu = np.where(risky, np.inf, mu)
    lowest = int(np.argmin(mu))
    return Lowest(ends[lowest], float(mu[lowest]), float(sd[lowest]))


def _lowest_feasible(
    kernel: Kernel, post: Posterior, spread: np.ndarray, lattice: Lattice | None, feasibility: ConstrainedFeasibility
) -> Lowest:
    """The same under constraints: the descent is that of the mean with a penalty on what is missing of the probability."""
    data = np.asarray(post.X)[: int(post.n)]
    known = mean_where_allowed(kernel, post)
    starts = np.concatenate([np.clip(data, 0.0, 1.0), snap(lattice, spread)])
    log_p, infeasible = feasible_at(feasibility, starts, kernel)
    mu = predict(kernel, post, starts)[0]
    value = np.where((log_p > _LIKELY) & ~infeasible, mu, np.inf)
    value[: len(data)] = np.minimum(value[: len(data)], known)
    order = value if np.any(np.isfinite(value)) else -log_p  # while nothing is likely enough, what is the most likely
    first = starts[separated(-order, starts, _STARTS)]

    def descend(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found, slope = _penalized(post, feasibility, X, kernel=kernel)
        return np.asarray(found), np.asarray(slope)

    ends = snap(lattice, minimize_outside(descend, first, passes=40, first_step=0.02, tolerance=1e-10).x)
    best = starts[int(np.argmin(order))][None]
    points = np.concatenate([best, ends, first])
    mu, sd = predict(kernel, post, points)
    log_p, infeasible = feasible_at(feasibility, points, kernel)
    allowed = (log_p > _LIKELY) & ~infeasible
    if np.any(np.isfinite(known)):
        allowed[0] = True  # an evaluation that was feasible, or as likely to be
        i = int(np.argmin(np.where(allowed, mu, np.inf)))
    else:
        i = int(np.argmin(np.where(allowed, mu, np.inf))) if np.any(allowed) else int(np.argmax(log_p))
    return Lowest(points[i], float(mu[i]), float(sd[i]), float(np.exp(log_p[i])))


@quickly_compiled
def _mean_and_slope(post: Posterior, X: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, jax.Array]:
    value, pull = jax.vjp(lambda X: mean(kernel, post, X), X)
    return value, pull(jnp.ones_like(value))[0]


@quickly_compiled
def _penalized(
    post: Posterior, feasibility: ConstrainedFeasibility, X: jax.Array, *, kernel: Kernel
) -> tuple[jax.Array, jax.Array]:
    def penalized(X: jax.Array) -> jax.Array:
        short = jnp.maximum(_AIM - jnp.maximum(feasibility.log_probability(X, kernel), -1e3), 0.0)
        return mean(kernel, post, X) + _PENALTY * short * short

    value, pull = jax.vjp(penalized, X)
    return value, pull(jnp.ones_like(value))[0]
