"""The best point of a myopic loss: valued at every candidate, the best well-separated ones polished by gradients.

Expected loss with nothing pending needs none of that: it is what the candidates are proposed by (``propose``).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, is_excluded, query_candidate
from glasses.lookahead.loss import Loss, value_for
from glasses.runtime.batching import batched_map
from glasses.runtime.program import program
from glasses.search.decision import Problem, Valued
from glasses.search.exclusion import is_known
from glasses.search.look import look_at
from glasses.search.polish import polished
from glasses.search.propose import separated
from glasses.search.value import values_of
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel

_PASSES = 30


def best_myopic(candidates: CandidateSet, problem: Problem, kernel: Kernel, loss: Loss, *, count: int) -> Valued:
    """The ``count`` polished points first, then all candidates; what the remaining budget does not afford has no value."""
    C = candidates.n_candidates
    points = np.asarray(candidates.points)[:C]
    mu, var = np.asarray(candidates.mu)[:C], np.asarray(candidates.var)[:C]
    found, excluded = (np.asarray(a) for a in _values(candidates.alone(), loss=loss))
    value = np.where(excluded | np.isnan(found), -np.inf, _with_known(loss, candidates, found, mu, var))
    if candidates.costs is not None:
        value = np.where(np.asarray(candidates.costs.cost)[:C] <= problem.budget, value, -np.inf)
    first = points[separated(value, points, count, problem.lattice)]
    best = snap(problem.lattice, polished(candidates, first, (), None, 1, kernel, loss, rows=count, passes=_PASSES))
    tops = look_at(candidates, best, problem.cost_at(best), count, kernel=kernel)
    top_mu, top_var, excluded = (np.asarray(a) for a in (tops.mu, tops.var, tops.excluded))
    top = _with_known(loss, candidates, values_of(candidates, tops, count, 1, loss, size=1)[0], top_mu, top_var)
    if candidates.costs is not None:
        excluded = excluded | (np.asarray(tops.cost) > problem.budget)
    return Valued(
        np.concatenate([best, points]),
        np.append(np.where(excluded | np.isnan(top), -np.inf, top), value),
        np.append(top_mu, mu),
        np.sqrt(np.append(top_var, var)),
        np.zeros((C + count, 0), int),
    )


def _with_known(loss: Loss, candidates: CandidateSet, value: np.ndarray, mu: np.ndarray, var: np.ndarray) -> np.ndarray:
    """The values, where a point is known those of its mean."""
    if not loss.is_gain or candidates.copies is None:
        return value
    with np.errstate(divide="ignore"):
        gain = np.log(np.maximum(np.asarray(candidates.eta) - mu, 0.0))
    return np.where(is_known(var, np.asarray(candidates.noise), np.asarray(candidates.nugget)), gain, value)


@program
def _values(candidates: CandidateSet, *, loss: Loss) -> tuple[jax.Array, jax.Array]:
    """The value of every candidate, and which may not be proposed."""
    batch = None if candidates.n_pending else 64  # an expectation over pending points factorises: one matrix at a time
    C, one = candidates.n_candidates, jnp.asarray(1)
    value = batched_map(lambda i: value_for(loss, candidates, query_candidate(candidates, i), (), one), jnp.arange(C), batch)
    return value, is_excluded(candidates)[:C]
