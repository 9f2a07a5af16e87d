"""Which points may not be proposed: known to be infeasible, exact ones that are done, and what costs more than the remaining
budget.

Beside a point that was evaluated exactly the model still has the variance of its noise floor and its nuggets, although the
incumbent counts as exact. The expected improvement there is 0.4 standard deviations of that floor however often the point is
evaluated, and in a mixed space it can exceed every real gain: the others lie on other values of an integer, and a search that
maximises it repeats the incumbent a little to the side. So in such spaces a point without more variance than that is *known*:
an evaluation there gains eta - mu, or nothing.
"""

from __future__ import annotations

from typing import Any

import jax

from glasses.lookahead.candidates import CandidateSet
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE


def too_dear(candidates: CandidateSet, cost: jax.Array | None, excluded: jax.Array) -> jax.Array:
    """Which points are excluded once what costs more than the remaining budget is excluded too."""
    return excluded if cost is None or candidates.costs is None else excluded | (cost > candidates.costs.budget)


def is_known(var: Any, noise: Any, nugget: Any) -> Any:
    """Which points with these variances would tell nothing new, in a space that is not continuous throughout."""
    floor = noise + 2.0 * nugget  # the variance at an evaluated point
    return (var < 2.0 * floor) & (noise < NEGLIGIBLE_NOISE)
