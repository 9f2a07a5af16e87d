"""Which points may not be proposed: known to be infeasible, exact ones that are done, and what costs more than the remaining
budget.

Beside a point that was evaluated exactly the model still has the variance of its noise floor and its nuggets, although the
incumbent counts as exact. The expected improvement there is 0.4 standard deviations of that floor however often the point is
evaluated, and in a mixed space it can exceed every real gain: the others lie on other values of an integer, and a search that
maximises it repeats the incumbent a little to the side. So in such spaces a point without more variance than that is *known*:
an evaluation there gains eta - mu, or nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.lookahead.candidates import CandidateSet


def is_excluded(candidates: CandidateSet, X: jax.Array, cost: jax.Array | None = None) -> jax.Array:
    """Which rows of X are infeasible, repeat an exact evaluation that is done or pending, or exceed the remaining budget."""
    post = candidates.post
    again = candidates.same_as(X, post.X, post.observed)
    if candidates.n_pending:
        again = again | candidates.same_as(X, candidates.pending_points, candidates.pending_active)
    excluded = again & candidates.is_exact
    if candidates.failures is not None:
        excluded = excluded | candidates.failures.model.is_infeasible(X)
    return excluded if cost is None or candidates.costs is None else excluded | (cost > candidates.costs.budget)


def is_known(candidates: CandidateSet, var: jax.Array) -> jax.Array:
    """Which points with these variances would tell nothing new; none in a space of continuous parameters only."""
    if candidates.lattice is None:
        return jnp.zeros(var.shape, bool)
    floor = candidates.noise + 2.0 * candidates.post.nugget  # the variance at an evaluated point
    return (var < 2.0 * floor) & candidates.is_exact
