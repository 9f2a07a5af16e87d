"""The candidate set of a decision: an even cover of the cube, points around the best observation, and the maxima of EI.

The cover is a Sobol set, shifted; the points around the best observation lie at scales from a third of the cube down to 1e-4
(on a lattice: neighbouring values, exchanged choices); the local maxima of EI are polished by gradients from the best
well-separated candidates, half of which differ in their choices (no gradient leads from one value of a choice to another). All
of them are on the lattice where there is one. The pending points come last. Of a small finite space every configuration is a
candidate.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, Costs, build_candidates, times_feasibility
from glasses.numerics.bfgs import minimize_batch
from glasses.numerics.sobol import scrambled
from glasses.runtime.padding import pad_rows, pending_size
from glasses.runtime.program import program
from glasses.search.decision import Problem
from glasses.space.lattice import Lattice
from glasses.space.snapping import moved, snap
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, condition, incumbent, marginals, mean

_SEPARATION = 0.05  # starts of a polish are at least this far apart (largest coordinate)
_SAME_CHOICE = 1e-5  # values of a choice lie at least 1e-4 apart
_STARTS = 8


def candidates_for(kernel: Kernel, problem: Problem, count: int, rng: np.random.Generator) -> CandidateSet:
    """The candidate set of a decision: ``count`` points of a cover, and some more."""
    d, pending = problem.d, problem.pending
    filled = pad_rows(pending.reshape(-1, d), pending_size(len(pending)))
    near = neighbourhood(d, max(16, count // 8), rng)
    known = problem.configurations
    spread = cover(d, count, rng) if known is None else np.resize(known, (count, d))
    jumps = None if problem.lattice is None else rng.random(near.shape)
    found = _propose(
        problem.post,
        spread,
        near,
        jumps,
        filled,
        np.asarray(len(pending)),
        problem.lattice,
        problem.feasibility,
        kernel=kernel,
    )
    cost = problem.cost_at(found.points)
    if cost is not None:
        found = found._replace(costs=Costs(np.asarray(cost), np.asarray(problem.budget)))
    return found if problem.samples is None else found._replace(samples=_for_samples(found, problem.samples, kernel=kernel))


def cover(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """``size`` points spread over the cube: a scrambled Sobol set."""
    return scrambled(d, int(np.ceil(np.log2(size))), rng)[:size]


def neighbourhood(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Offsets around a point, at scales from a third of the cube down to 1e-4."""
    scale = np.geomspace(0.3, 1e-4, size)[:, None]
    return scale * rng.standard_normal((size, d)) / np.sqrt(d)


def separated_best(score: jax.Array, points: jax.Array, count: int, choice: jax.Array | None = None) -> jax.Array:
    """Indices of the ``count`` best scores, each at least ``_SEPARATION`` from the ones before while there are such.

    ``choice`` (d,) marks coordinates without an order. Where there are any, the first half of the indices have different
    choices while there are such: the best of all, the best with other choices, and so on.
    """

    def pick(k: int, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        score, tried, chosen = state  # nothing is excluded, only lowered: a small box may have nothing else
        i = jnp.argmax(score if choice is None else score - jnp.where(tried & (k < count // 2), 1e7, 0.0))
        apart = jnp.abs(points - points[i])
        lowered = jnp.where(jnp.max(apart, axis=1) < _SEPARATION, score - 1e6, score)
        if choice is not None:
            tried = tried | (jnp.all((apart < _SAME_CHOICE) | ~choice, axis=1) & jnp.any(choice))
        return lowered.at[i].set(-jnp.inf), tried, chosen.at[k].set(i)

    return jax.lax.fori_loop(0, count, pick, (score, jnp.zeros(score.shape, bool), jnp.zeros(count, int)))[2]


@program
def _propose(
    post: Posterior,
    spread: jax.Array,
    offsets: jax.Array,
    jumps: jax.Array | None,
    pending: jax.Array,
    pending_count: jax.Array,
    lattice: Lattice | None,
    feasibility: Feasibility | None,
    *,
    kernel: Kernel,
) -> CandidateSet:
    """The posterior must have room in its padding for the pending points."""
    eta = incumbent(kernel, post)
    best = post.X[jnp.argmin(jnp.where(post.observed, mean(kernel, post, post.X), jnp.inf))]
    local = moved(lattice, best, offsets, jumps)
    points = jnp.concatenate([snap(lattice, spread), local])

    def evaluate(k: int, post: Posterior) -> Posterior:
        extended = condition(kernel, post, pending[k], mean(kernel, post, pending[k][None])[0])
        return jax.tree.map(lambda new, old: jnp.where(k < pending_count, new, old), extended, post)

    later = jax.lax.fori_loop(0, pending.shape[0], evaluate, post) if pending.shape[0] else post

    expected = jnp.where(jnp.arange(pending.shape[0]) < pending_count, mean(kernel, post, pending), jnp.inf)
    level = jnp.min(jnp.append(expected, eta))  # the pending points at their means

    def log_ei(X: jax.Array) -> jax.Array:
        mu, sd = marginals(kernel, later, X)
        value = log_expected_improvement(mu, sd, level)
        return value if feasibility is None else times_feasibility(value, feasibility.log_probability(X))

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pull = jax.vjp(lambda X: -log_ei(X), X)  # each value depends on its own row alone
        return value, pull(jnp.ones_like(value))[0]

    choice = None if lattice is None else lattice.is_choice
    first = points[separated_best(log_ei(points), points, _STARTS, choice)]
    d = points.shape[1]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=30, first_step=0.02, tolerance=1e-6)
    every = jnp.concatenate([points, snap(lattice, found.x)])
    return build_candidates(kernel, post, every, pending, pending_count, lattice, feasibility)


@program
def _for_samples(candidates: CandidateSet, samples: Posterior, *, kernel: Kernel) -> CandidateSet:
    """The same candidates for each hyperparameter sample, stacked."""
    feasibility = None if candidates.failures is None else candidates.failures.model

    def one(post: Posterior) -> CandidateSet:
        pending, count = candidates.pending_points, jnp.sum(candidates.pending_active)
        again = build_candidates(kernel, post, candidates.candidates, pending, count, candidates.lattice, feasibility)
        return again._replace(costs=candidates.costs)

    return jax.lax.map(one, samples)
