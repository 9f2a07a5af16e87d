"""Which points may not be proposed: known to be infeasible, exact ones that are done, and what costs more than there is."""

from __future__ import annotations

import jax

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
