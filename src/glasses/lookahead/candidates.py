"""The candidate set of one decision: a finite set of points, the posterior over all of them, and what is still pending.

Everything a decision compares is computed once here; oracles and losses only gather from it.

| name | symbol | shape | |
|---|---|---|---|
| points | U | (U, d) | candidates, where evaluations may go; the last P rows are the pending evaluations |
| mu, cov | mu(U), k'(U, U) | (U,), (U, U) | posterior of the latent f |
| active | | (U,) | False on the padding of the pending points |
| W | (K + noise I)^-1 k(X, U) | (N, U) | gives k'(x, U) = k(x, U) - k(x, X) W for any new x |
| eta | eta | () | the incumbent: best value so far |
| lipschitz, lowest | L, M | () | steepest slope of mu over U (with a floor), smallest mean there: for local penalisation |

Blocks that a decision may need besides:

| block | |
|---|---|
| pending | the covariance once the pending points are evaluated, their mean taken as their value (kriging believer) |
| costs | what each candidate costs and the remaining budget; None: budgets count evaluations |
| failures | the feasibility of each candidate and the value of what follows a failure; None while nothing has failed |
| trust | tau, the share of a plan that is believed (``loss.with_trust``); None: all of it |
| samples | the same candidates under each of several hyperparameter samples, stacked; None: the fit is used |
| lattice | the values that can be run; None: every parameter is continuous |

A ``QueryPoint`` is a putative next point x* as the candidate set sees it: its mean, variance and covariance with U. It is a
differentiable function of x*, and so is every loss built on it as long as the predicted steps are held fixed; they are
candidates, hence piecewise constant in x*, and that derivative is the true one almost everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from glasses.space.lattice import Lattice, resolution
from glasses.space.snapping import same_point
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE, Posterior, covariance, cross_covariance, incumbent, joint, mean


class Pending(NamedTuple):
    """The evaluations asked for and not told yet, P of them with padding."""

    rows: jax.Array  # (P, U): Cholesky rows of the pending points, for ``query_point``
    cov: jax.Array  # (U, U): covariance once they are evaluated


class Costs(NamedTuple):
    """What evaluations cost, in the units of the budget."""

    cost: Any  # (U,)
    budget: Any  # (): what may still be spent

    @property
    def largest(self) -> jax.Array:
        """The largest cost of a candidate that can be paid for."""
        return jnp.max(jnp.where(self.cost <= self.budget, self.cost, jnp.min(self.cost)))


class Failures(NamedTuple):
    """How likely evaluations are to fail, and what the others are worth after a failure."""

    model: Feasibility
    log_feasibility: jax.Array  # (U,)
    log_gain: jax.Array  # (): log of the gain expected from the later evaluations if this one fails
    log_gain_unpaid: jax.Array  # (): with costs, the same if the failure costs nothing (``log_gain``: as much as the dearest)


class CandidateSet(NamedTuple):
    """See the tables above."""

    post: Posterior
    points: jax.Array
    mu: jax.Array
    cov: jax.Array
    active: jax.Array
    W: jax.Array
    eta: jax.Array
    lipschitz: jax.Array
    lowest: jax.Array
    pending: Pending
    lattice: Lattice | None = None
    failures: Failures | None = None
    costs: Costs | None = None
    trust: Any = None  # ()
    samples: CandidateSet | None = None

    @property
    def noise(self) -> jax.Array:
        return self.post.noise

    @property
    def n_pending(self) -> int:
        """How many rows are kept for pending points (padding included)."""
        return int(self.pending.rows.shape[0])

    @property
    def n_candidates(self) -> int:
        return int(self.points.shape[0]) - self.n_pending

    @property
    def candidates(self) -> jax.Array:
        """(C, d): the points without the pending ones."""
        return self.points[: self.n_candidates]

    @property
    def pending_points(self) -> jax.Array:
        return self.points[self.n_candidates :]

    @property
    def pending_active(self) -> jax.Array:
        return self.active[self.n_candidates :]

    @property
    def log_feasibility(self) -> jax.Array | None:
        """(U,) log P(feasible); None while nothing has failed."""
        return None if self.failures is None else self.failures.log_feasibility

    @property
    def is_exact(self) -> jax.Array:
        """Whether evaluations are without noise, so that a repetition tells nothing new."""
        return self.noise < NEGLIGIBLE_NOISE

    def same_as(self, points: jax.Array, others: jax.Array, active: jax.Array | None = None) -> jax.Array:
        """Which rows of ``points`` are the same experiment as an active row of ``others``."""
        active = jnp.ones(others.shape[0], bool) if active is None else active
        return same_point(points, others, active, resolution(self.lattice))


class QueryPoint(NamedTuple):
    """A putative next point."""

    x: jax.Array  # (d,)
    mu: jax.Array  # ()
    var: jax.Array  # ()
    cov: jax.Array  # (U,)
    later_var: jax.Array  # () once the pending points are evaluated
    later_cov: jax.Array  # (U,)
    loadings: jax.Array  # (P,) how x* moves with the standardised outcome of each pending point
    log_feasibility: jax.Array | None  # ()
    cost: jax.Array | None = None  # () what an evaluation there costs

    def costing(self, costs: jax.Array | None, i: jax.Array | int = 0) -> QueryPoint:
        """The same with its cost, entry i of ``costs``."""
        return self if costs is None else self._replace(cost=costs[i])


def build_candidates(
    kernel: Kernel,
    post: Posterior,
    candidates: jax.Array,
    pending: jax.Array,
    pending_count: jax.Array,
    lattice: Lattice | None = None,
    feasibility: Feasibility | None = None,
) -> CandidateSet:
    """The candidate set over ``candidates`` (C, d) and the first ``pending_count`` rows of ``pending`` (P, d)."""
    points = jnp.concatenate([candidates, pending])
    P, U = pending.shape[0], points.shape[0]
    active = jnp.concatenate([jnp.ones(U - P, bool), jnp.arange(P) < pending_count])
    mu, cov = joint(kernel, post, points)
    W = solve_triangular(post.L.T, solve_triangular(post.L, cross_covariance(kernel, post, points), lower=True), lower=False)

    def evaluate(k: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, rows = state
        i = U - P + k
        row = rest[i] / jnp.sqrt(rest[i, i] + post.noise)
        row = jnp.where(k < pending_count, row, 0.0)
        return rest - row[:, None] * row[None, :], rows.at[k].set(row)

    later, rows = cov, jnp.zeros((P, U))
    if P:
        later, rows = jax.lax.fori_loop(0, P, evaluate, (cov, rows))
        diagonal = jnp.maximum(jnp.diagonal(later), post.nugget)
        later = jnp.where(jnp.eye(U, dtype=bool), diagonal[:, None], later)
    eta = incumbent(kernel, post)
    slope = jax.vmap(jax.grad(lambda x: mean(kernel, post, x[None])[0]))(points)
    steepest = jnp.max(jnp.where(active, jnp.sqrt(jnp.sum(slope * slope, axis=1)), 0.0))
    lipschitz = jnp.maximum(steepest, 1e-3 * jnp.sqrt(post.variance))  # a flat mean would push every step out of the box
    lowest = jnp.minimum(jnp.min(jnp.where(active, mu, jnp.inf)), eta)
    failures = None
    if feasibility is not None:
        nothing = jnp.asarray(-jnp.inf)
        failures = Failures(feasibility, feasibility.log_probability(points), nothing, nothing)
    return CandidateSet(post, points, mu, cov, active, W, eta, lipschitz, lowest, Pending(rows, later), lattice, failures)


def query_point(kernel: Kernel, candidates: CandidateSet, x: jax.Array) -> QueryPoint:
    """The query point at x: O(N^2 + N U)."""
    post = candidates.post
    k = cross_covariance(kernel, post, x[None])[:, 0]
    v = solve_triangular(post.L, k, lower=True)
    var = jnp.maximum(kernel.diagonal(post.hyper.theta, x[None], post.hyper.choice)[0] - v @ v, 0.0) + post.nugget
    cov = covariance(kernel, post.hyper, x[None], candidates.points)[0] - k @ candidates.W
    later_var, later_cov, c = var, cov, jnp.zeros(0)
    P = candidates.n_pending
    if P:
        rows = candidates.pending.rows
        own = rows[:, -P:]  # rows at the pending points: upper triangular up to the noise

        def substitute(j: int, c: jax.Array) -> jax.Array:
            i = candidates.n_candidates + j
            earlier = jnp.sum(jnp.where(jnp.arange(P) < j, own[:, j] ** 2, 0.0))
            pivot = jnp.sqrt(jnp.maximum(candidates.cov[i, i] - earlier, post.nugget) + post.noise)
            rest = cov[i] - jnp.sum(jnp.where(jnp.arange(P) < j, own[:, j] * c, 0.0))
            return c.at[j].set(jnp.where(candidates.pending_active[j], rest / pivot, 0.0))

        c = jax.lax.fori_loop(0, P, substitute, jnp.zeros(P))
        later_var = jnp.maximum(var - c @ c, post.nugget)
        later_cov = cov - c @ rows
    log_feasibility = None if candidates.failures is None else candidates.failures.model.log_probability(x[None])[0]
    return QueryPoint(x, mean(kernel, post, x[None])[0], var, cov, later_var, later_cov, c, log_feasibility)


def query_candidate(candidates: CandidateSet, i: jax.Array) -> QueryPoint:
    """Candidate i as the query point, gathered."""
    log_feasibility = None if candidates.log_feasibility is None else candidates.log_feasibility[i]
    cost = None if candidates.costs is None else candidates.costs.cost[i]
    own, later, loadings = candidates.cov[i], candidates.pending.cov[i], candidates.pending.rows[:, i]
    return QueryPoint(candidates.points[i], candidates.mu[i], own[i], own, later[i], later, loadings, log_feasibility, cost)


def incumbent_after_pending(candidates: CandidateSet, mu: jax.Array, eta: jax.Array) -> jax.Array:
    """The incumbent once the pending points have come out at their means."""
    P = candidates.n_pending
    return jnp.minimum(eta, jnp.min(jnp.where(candidates.pending_active, mu[-P:], jnp.inf))) if P else eta


def times_feasibility(log_value: jax.Array, log_feasibility: jax.Array | None) -> jax.Array:
    """A logarithmic value times the probability that the evaluation is feasible."""
    return log_value if log_feasibility is None else log_value + log_feasibility


def joint_of_steps(
    candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean, covariance and active mask of f at (x*, predicted steps, pending points), in this order.

    ``steps`` (H - 1,) are indices of candidates; entry k is step k + 2.
    """
    C, U = candidates.n_candidates, candidates.points.shape[0]
    rows = jnp.concatenate([steps, jnp.arange(C, U)])
    active = jnp.concatenate([jnp.ones(1, bool), active_steps(steps, remaining), candidates.pending_active])
    mu = jnp.concatenate([query.mu[None], candidates.mu[rows]])
    cross = query.cov[rows]
    S = jnp.block([[query.var[None, None], cross[None, :]], [cross[:, None], candidates.cov[rows][:, rows]]])
    return mu, S, active


def active_steps(steps: jax.Array, remaining: jax.Array) -> jax.Array:
    """Which predicted steps (..., H - 1) will happen: within the remaining evaluations, and paid for (else they are -1)."""
    return (jnp.arange(steps.shape[-1]) + 2 <= remaining) & (steps >= 0)
