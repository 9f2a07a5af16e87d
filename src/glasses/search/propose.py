"""The candidate set of a decision: an even cover of the cube, points around the best observation, and the maxima of EI.

The cover is a Sobol set, shifted; the points around the best observation lie at scales from a third of the cube down to 1e-4
(on a lattice: neighbouring values, exchanged choices); the local maxima of EI are found by gradients from the best
well-separated candidates, half of which differ in their choices (no gradient leads from one value of a choice to another). All
of them are on the lattice where there is one. The pending points come last. Of a small finite space every configuration is a
candidate.

Two steps: ``propose`` finds the points, with what is pending taken at its mean, and with them the best point by expected loss;
``candidates_for`` adds the joint posterior, which only a loss that looks further needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.univariate import log_expected_improvement, log_h_outside
from glasses.lookahead.candidates import EVEN, CandidateSet, Costs, build_candidates, times_feasibility
from glasses.numerics.bfgs import minimize_batch
from glasses.numerics.sobol import scrambled
from glasses.runtime.padding import pad_rows, pending_size
from glasses.runtime.program import program, quickly_compiled
from glasses.search.decision import Problem, Valued
from glasses.search.exclusion import is_known
from glasses.search.predict import feasible_at, mean_where_allowed, predict
from glasses.space.lattice import Lattice, resolution
from glasses.space.snapping import moved, repeats, snap
from glasses.surrogate.feasibility import Feasibility, nothing_failed
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE, NUGGET, Posterior, condition, marginals, mean

_SEPARATION = 0.05  # starts of a polish are at least this far apart (largest coordinate)
_SAME_CHOICE = 1e-5  # values of a choice lie at least 1e-4 apart
_STARTS = 16


class Proposal(NamedTuple):
    """Points worth looking at, and their expected improvement once what is pending has come out at its mean."""

    points: np.ndarray  # (C, d)
    log_ei: np.ndarray  # (C,): -inf for what may not be proposed
    mean: np.ndarray
    sd: np.ndarray
    eta: float

    @property
    def best(self) -> np.ndarray:
        return self.points[int(np.argmax(self.log_ei))]

    def valued(self, problem: Problem) -> Valued:
        """By expected loss; what the remaining budget does not afford has no value."""
        value, cost = self.log_ei, problem.cost_at(self.points)
        value = value if cost is None else np.where(cost <= problem.budget, value, -np.inf)
        return Valued(self.points, value, self.mean, self.sd, np.zeros((len(value), 0), int))


def propose(kernel: Kernel, problem: Problem, count: int, rng: np.random.Generator) -> Proposal:
    """``count`` points of a cover, those around the best observation, and the maxima of EI."""
    d, lattice, post = problem.d, problem.lattice, problem.post
    near = neighbourhood(d, max(16, count // 8), rng)
    known = problem.configurations
    spread = cover(d, count, rng) if known is None else np.resize(known, (count, d))
    jumps = None if lattice is None else rng.random(near.shape)
    X, n, is_exact = np.asarray(post.X), int(post.n), float(post.noise) < NEGLIGIBLE_NOISE
    floor = np.asarray(post.noise), NUGGET * np.asarray(post.variance)
    centre, eta = best_known(kernel, problem)
    points, level = np.concatenate([snap(lattice, spread), moved(lattice, X[centre], near, jumps)]), eta
    pending = problem.pending.reshape(-1, d)
    if len(pending):
        padded = pad_rows(pending, pending_size(len(pending)))
        before = post
        post, lowest = _believed(post, padded, np.asarray(len(pending)), kernel=kernel)
        if (
            post.allowed is not None and problem.feasibility is not None
        ):  # what is likely to violate a constraint brings nothing
            likely = feasible_at(problem.feasibility, pending, kernel)[0] > EVEN
            lowest = np.min(predict(kernel, before, pending)[0], where=likely, initial=np.inf)
        level = min(level, float(lowest))

    def log_ei(X: np.ndarray, mu: np.ndarray, sd: np.ndarray) -> np.ndarray:
        value = np.log(sd) + log_h_outside((level - mu) / sd)
        if lattice is not None:
            with np.errstate(divide="ignore"):
                gain = np.log(np.maximum(level - mu, 0.0))
            value = np.where(is_known(sd**2, *floor), gain, value)
        if problem.feasibility is None:
            return value
        log_p, infeasible = feasible_at(problem.feasibility, X, kernel)
        return np.where(infeasible, -np.inf, value + log_p)

    mu, sd = predict(kernel, post, points)
    value = log_ei(points, mu, sd)
    feasibility = problem.feasibility or nothing_failed(X.shape, lattice)
    starts = points[separated(value, points, _STARTS, lattice)]
    found = [np.asarray(a) for a in _climb(post, starts, feasibility, np.asarray(level), kernel=kernel)]
    tops = snap(lattice, found[0])
    top_mu, top_sd = found[1:] if lattice is None else predict(kernel, post, tops)
    points, mu, sd = np.concatenate([points, tops]), np.append(mu, top_mu), np.append(sd, top_sd)
    value = np.append(value, log_ei(tops, top_mu, top_sd))
    if is_exact:
        value = np.where(repeats(points, np.concatenate([X[:n], pending]), resolution(lattice)), -np.inf, value)
    return Proposal(points, np.where(np.isnan(value), -np.inf, value), mu, sd, eta)


def best_known(kernel: Kernel, problem: Problem) -> tuple[int, float]:
    """Which observation is the best, and the incumbent; while none is feasible, the one that violates least."""
    smooth, post = mean_where_allowed(kernel, problem.post), problem.post
    if post.allowed is None or problem.feasibility is None or np.isfinite(np.min(smooth)):
        return int(np.argmin(smooth)), float(np.min(smooth))
    log_p = feasible_at(problem.feasibility, np.asarray(post.X)[: int(post.n)], kernel)[0]
    return int(np.argmax(log_p)), float(post.allowed.otherwise)


def candidates_for(kernel: Kernel, problem: Problem, count: int, rng: np.random.Generator) -> CandidateSet:
    """The candidate set of a decision: ``count`` points of a cover, and some more."""
    return candidates_over(kernel, problem, propose(kernel, problem, count, rng).points)


def candidates_over(kernel: Kernel, problem: Problem, points: np.ndarray) -> CandidateSet:
    """The candidate set over given points and what is pending."""
    d, pending = problem.d, problem.pending
    filled = pad_rows(pending.reshape(-1, d), pending_size(len(pending)))
    feasibility = problem.feasibility or nothing_failed(problem.post.X.shape, problem.lattice)
    arrays = points, filled, np.asarray(len(pending)), problem.lattice, feasibility
    found = _build(problem.post, *arrays, kernel=kernel)
    if problem.samples is not None:
        found = found._replace(samples=_build_each(problem.samples, *arrays, kernel=kernel))
    cost = problem.cost_at(np.concatenate([points, filled]))
    if cost is None:
        return found
    costs, samples = Costs(cost, np.asarray(problem.budget)), found.samples
    if samples is not None:
        stacked = jax.tree.map(lambda a: np.broadcast_to(a, (len(samples.eta), *np.shape(a))), costs)
        samples = samples._replace(costs=stacked)
    return found._replace(costs=costs, samples=samples)


def cover(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """``size`` points spread over the cube: a scrambled Sobol set."""
    return scrambled(d, int(np.ceil(np.log2(size))), rng)[:size]


def neighbourhood(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Offsets around a point, at scales from a third of the cube down to 1e-4."""
    scale = np.geomspace(0.3, 1e-4, size)[:, None]
    return scale * rng.standard_normal((size, d)) / np.sqrt(d)


def separated(score: np.ndarray, points: np.ndarray, count: int, lattice: Lattice | None = None) -> np.ndarray:
    """Indices of the ``count`` best scores, each at least ``_SEPARATION`` from the ones before while there are such.

    Where some coordinates are choices, the first half of the indices have different choices while there are such: the best of
    all, the best with other choices, and so on. Nothing is excluded, only lowered: a small box may have nothing else.
    """
    choice = None if lattice is None or not np.any(lattice.is_choice) else np.asarray(lattice.is_choice)
    score, tried, chosen = np.nan_to_num(score, nan=-np.inf, posinf=np.inf, neginf=-np.inf), np.zeros(len(score), bool), []
    for k in range(count):
        i = int(np.argmax(score if choice is None or k >= count // 2 else score - np.where(tried, 1e7, 0.0)))
        apart = np.abs(points - points[i])
        if choice is not None:
            tried = tried | np.all((apart < _SAME_CHOICE) | ~choice, axis=1)
        score = np.where(np.max(apart, axis=1) < _SEPARATION, score - 1e6, score)
        score[i] = -np.inf
        chosen.append(i)
    return np.array(chosen)


@quickly_compiled
def _believed(post: Posterior, pending: jax.Array, count: jax.Array, *, kernel: Kernel) -> tuple[Posterior, jax.Array]:
    """The posterior once the pending points have come out at their means, and the lowest of those.

    There must be room for them in the padding.
    """

    def evaluate(k: int, post: Posterior) -> Posterior:
        extended = condition(kernel, post, pending[k], mean(kernel, post, pending[k][None])[0])
        return jax.tree.map(lambda new, old: jnp.where(k < count, new, old), extended, post)

    expected = jnp.where(jnp.arange(pending.shape[0]) < count, mean(kernel, post, pending), jnp.inf)
    return jax.lax.fori_loop(0, pending.shape[0], evaluate, post), jnp.min(expected)


@quickly_compiled
def _climb(
    post: Posterior, starts: jax.Array, feasibility: Feasibility, level: jax.Array, *, kernel: Kernel
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Local maxima of log EI below ``level`` times the feasibility, with their means and standard deviations."""

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss(X: jax.Array) -> jax.Array:
            value = log_expected_improvement(*marginals(kernel, post, X), level)
            return -times_feasibility(value, feasibility.log_probability(X, kernel))

        value, pull = jax.vjp(loss, X)  # each value depends on its own row alone
        return value, pull(jnp.ones_like(value))[0]

    d = starts.shape[1]
    found = minimize_batch(descend, starts, jnp.zeros(d), jnp.ones(d), passes=40, first_step=0.02, tolerance=1e-7)
    return found.x, *marginals(kernel, post, found.x)


@quickly_compiled
def _build(
    post: Posterior,
    points: jax.Array,
    pending: jax.Array,
    count: jax.Array,
    lattice: Lattice | None,
    feasibility: Feasibility,
    *,
    kernel: Kernel,
) -> CandidateSet:
    return build_candidates(kernel, post, points, pending, count, lattice, feasibility)


@program
def _build_each(
    samples: Posterior,
    points: jax.Array,
    pending: jax.Array,
    count: jax.Array,
    lattice: Lattice | None,
    feasibility: Feasibility,
    *,
    kernel: Kernel,
) -> CandidateSet:
    """The same candidates for each hyperparameter sample, stacked."""
    rest: tuple[Any, ...] = (points, pending, count, lattice, feasibility)
    return jax.lax.map(lambda post: build_candidates(kernel, post, *rest), samples)
