"""Constraints within a simulated future: their values are drawn with those of the objective, and learnt from.

For each constraint j the joint posterior over the candidates and what is left of it after k simulated evaluations,

    mu_j <- mu_j + r u,   s_j^2 <- s_j^2 - r^2,   r = k_j(x_i, U | earlier) / sqrt(s_j^2(x_i) + noise)      [eq:learnt]

with one standard normal number u per constraint and evaluation. An evaluation at x_i is feasible if u <= (limit - mu_j) / s_j
for all j, which has the probability [eq:satisfied] of that moment. So what is evaluated in vain lowers the hopes around it, and
a future does not bet on the same border again and again.

The fixed numbers u are common to all futures of the same place, like those of the objective (``rollout.normals``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from glasses.gaussian.qmc import correlations
from glasses.runtime.program import quickly_compiled
from glasses.surrogate.constraints import ConstrainedFeasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import joint


class JointConstraints(NamedTuple):
    """k constraints over the candidates; x* is candidate ``at``."""

    mu: Any  # (k, U)
    cov: Any  # (k, U, U)
    noise: Any  # (k,)
    nugget: Any  # (k,)
    limit: Any  # (k,)
    at: Any  # ()


class Satisfaction(NamedTuple):
    """What is known of them within a future."""

    mu: jax.Array  # (k, U)
    rest: jax.Array  # (k, U) variances
    rows: jax.Array  # (k, R, U) Cholesky rows of what was evaluated

    def log_probability(self, given: JointConstraints) -> jax.Array:
        """(U,) log P(no constraint is violated)."""
        return jnp.sum(log_ndtr((given.limit[:, None] - self.mu) / jnp.sqrt(self.rest)), axis=0)

    def is_met(self, given: JointConstraints, i: jax.Array, u: jax.Array) -> jax.Array:
        """Whether an evaluation of candidate i violates nothing where its normal numbers are u (k,)."""
        return jnp.all(u * jnp.sqrt(self.rest[:, i]) <= given.limit - self.mu[:, i])

    def after(self, given: JointConstraints, i: jax.Array, u: jax.Array, row: Any, told: jax.Array) -> Satisfaction:
        """[eq:learnt] with the evaluation kept in this row; as before, if it told nothing."""
        known = jnp.einsum("kr,kru->ku", self.rows[:, :, i], self.rows)
        new = (given.cov[:, i] - known) / jnp.sqrt(self.rest[:, i] + given.noise)[:, None]
        new = jnp.where(told, new, 0.0)
        rest = jnp.maximum(self.rest - new * new, given.nugget[:, None])
        return Satisfaction(self.mu + new * u[:, None], rest, self.rows.at[:, row].set(new))


def at_first(given: JointConstraints, rows: int) -> Satisfaction:
    """Before anything is simulated."""
    k, U = given.mu.shape
    rest = jnp.maximum(jnp.diagonal(given.cov, axis1=1, axis2=2), given.nugget[:, None])
    return Satisfaction(jnp.asarray(given.mu), rest, jnp.zeros((k, rows, U)))


def are_met(given: JointConstraints, chosen: jax.Array, u: jax.Array) -> jax.Array:
    """(n, samples) where no constraint is violated at the chosen candidates (n,), drawn together; u (k, n, samples)."""

    def one(args: tuple[jax.Array, ...]) -> jax.Array:
        mu, cov, limit, u = args
        S, every = cov[chosen][:, chosen], jnp.ones(chosen.shape[0], bool)
        _, _, factor = correlations(S, every, jnp.zeros(()))
        sd = jnp.sqrt(jnp.maximum(jnp.diagonal(S), 1e-300))
        return mu[chosen][:, None] + sd[:, None] * (factor @ u) <= limit

    return jnp.all(jax.lax.map(one, (given.mu, given.cov, given.limit, u)), axis=0)


@lru_cache(maxsize=4)
def constraint_normals(count: int, constraints: int, places: int) -> np.ndarray:
    """(count, places, constraints) standard normals; a shorter set is the beginning of a longer one."""
    return np.random.default_rng(20151003).standard_normal((count, places, constraints))


def joint_constraints(feasibility: ConstrainedFeasibility, points: np.ndarray, at: int, *, kernel: Kernel) -> JointConstraints:
    """Over these points of the unit cube (U, d), x* being number ``at``."""
    mu, cov, noise, nugget = _joint(feasibility, points, kernel=kernel)
    return JointConstraints(mu, cov, noise, nugget, np.asarray(feasibility.limit), np.asarray(at))


@quickly_compiled
def _joint(feasibility: ConstrainedFeasibility, points: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, ...]:
    def one(post: Any) -> tuple[jax.Array, ...]:
        return *joint(kernel, post, points), jnp.asarray(post.noise), jnp.asarray(post.nugget)

    return jax.lax.map(one, feasibility.posts)
