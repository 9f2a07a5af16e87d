"""The candidate set of one decision: a finite set of points, the posterior over all of them, and what is still pending.

Everything a decision compares is computed once here; oracles and losses only gather from it.

| name | symbol | shape | |
|---|---|---|---|
| mu, var, cov | mu(U), k'(U, U) | (U,), (U,), (U, U) | posterior of f; the last P rows are the pending evaluations |
| active | | (U,) | False on the padding of the pending points |
| eta | eta | () | the incumbent: best value so far |
| lipschitz, lowest | L, M | () | steepest slope of mu over U (with a floor), smallest mean there: for local penalisation |
| noise, nugget, variance | | () | of the posterior |
| apart | | (U, U) | distances, for local penalisation |
| done, begun, infeasible | | (U,) | the same experiment as one that was evaluated, is pending, has failed |
| copies | | (U, U) | which candidates are the same experiment; None where every parameter is continuous |

Blocks that a decision may need besides:

| block | |
|---|---|
| pending | the covariance once the pending points are evaluated, their mean taken as their value (kriging believer) |
| costs | what each candidate costs and the remaining budget; None: budgets count evaluations |
| failures | the feasibility of each candidate and the value of what follows a failure; None: nothing can fail |
| trust | tau, the share of a plan that is believed (``loss.with_trust``); None: all of it |
| samples | the same candidates under each of several hyperparameter samples, stacked; None: the fit is used |
| origin | the points themselves and the model: needed to look at points that are no candidates, dropped by ``alone`` |

With constraints a planned evaluation counts with its probability of being feasible (``log_chances``). One that can only fail is
taken to succeed in a plan.

Nothing but the origin has the shape of the data, of the inputs or of the kernel. So a program that takes the set ``alone`` is
compiled once, whatever the number of observations and parameters.

A ``QueryPoint`` is a putative next point x* as the candidate set sees it: its mean, variance and covariance with U. It is a
differentiable function of x*, and so is every loss built on it as long as the predicted steps are held fixed; they are
candidates, hence piecewise constant in x*, and that derivative is the true one almost everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from glasses.space.lattice import SAME_POINT, Lattice, resolution
from glasses.space.snapping import same_point
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel, squared_distance
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE, Posterior, covariance, cross_covariance, incumbent, joint, mean

EVEN = -0.6931471805599453  # log 1/2


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

    log_feasibility: jax.Array  # (U,)
    log_gain: jax.Array  # (): log of the gain expected from the later evaluations if this one fails
    log_gain_unpaid: jax.Array  # (): with costs, the same if the failure costs nothing (``log_gain``: as much as the dearest)
    log_value: Any = None  # (U,) log P(a value), feasible or not; None where there are no constraints


class Origin(NamedTuple):
    """Where a candidate set comes from."""

    post: Posterior
    points: jax.Array  # (U, d)
    W: jax.Array  # (N, U): (K + noise I)^-1 k(X, U), gives k'(x, U) = k(x, U) - k(x, X) W for any new x
    lattice: Lattice | None
    feasibility: Feasibility | None


class CandidateSet(NamedTuple):
    """See the tables above."""

    mu: jax.Array
    var: jax.Array
    cov: jax.Array
    active: jax.Array
    eta: jax.Array
    lipschitz: jax.Array
    lowest: jax.Array
    noise: jax.Array
    nugget: jax.Array
    variance: jax.Array
    apart: jax.Array
    done: jax.Array
    begun: jax.Array
    infeasible: jax.Array
    copies: jax.Array | None
    pending: Pending
    failures: Failures | None = None
    costs: Costs | None = None
    trust: Any = None  # ()
    samples: CandidateSet | None = None
    origin: Origin | None = None

    def alone(self) -> CandidateSet:
        """Without the origin: what programs take that look at nothing but the candidates."""
        return self._replace(origin=None, samples=None if self.samples is None else self.samples.alone())

    @property
    def n_pending(self) -> int:
        """How many rows are kept for pending points (padding included)."""
        return int(self.pending.rows.shape[-2])

    @property
    def n_candidates(self) -> int:
        return int(self.mu.shape[-1]) - self.n_pending

    @property
    def points(self) -> jax.Array:
        """(U, d), where the origin is known."""
        assert self.origin is not None
        return self.origin.points

    @property
    def candidates(self) -> jax.Array:
        """(C, d): the points without the pending ones."""
        return self.points[: self.n_candidates]

    @property
    def pending_active(self) -> jax.Array:
        return self.active[self.n_candidates :]

    @property
    def log_feasibility(self) -> jax.Array | None:
        """(U,) log P(feasible); None where nothing can fail."""
        return None if self.failures is None else self.failures.log_feasibility

    @property
    def is_constrained(self) -> bool:
        return self.failures is not None and self.failures.log_value is not None

    @property
    def pending_counts(self) -> jax.Array:
        """Which pending points are taken to bring a value that counts: with constraints those that are likely to."""
        counts = self.pending_active
        if not self.is_constrained or self.log_feasibility is None:
            return counts
        return counts & (self.log_feasibility[self.n_candidates :] > EVEN)

    @property
    def is_exact(self) -> jax.Array:
        """Whether evaluations are without noise, so that a repetition tells nothing new."""
        return self.noise < NEGLIGIBLE_NOISE


class QueryPoint(NamedTuple):
    """A putative next point."""

    mu: jax.Array  # ()
    var: jax.Array  # ()
    cov: jax.Array  # (U,)
    later_var: jax.Array  # () once the pending points are evaluated
    later_cov: jax.Array  # (U,)
    loadings: jax.Array  # (P,) how x* moves with the standardised outcome of each pending point
    log_feasibility: jax.Array | None  # ()
    log_value: jax.Array | None = None  # ()
    same: jax.Array | None = None  # (U,) which candidates are the same experiment
    apart: jax.Array | None = None  # (U,) distances
    excluded: jax.Array | None = None  # () whether it may not be proposed, whatever it costs
    cost: jax.Array | None = None  # () what an evaluation there costs
    samples: QueryPoint | None = None  # the same under each hyperparameter sample, stacked

    def moving(self) -> QueryPoint:
        """The part that is a differentiable function of x*."""
        samples = None if self.samples is None else self.samples.moving()
        return self._replace(same=None, apart=None, excluded=None, cost=None, samples=samples)

    def moved_to(self, part: QueryPoint) -> QueryPoint:
        """With another differentiable part."""
        samples = None if self.samples is None or part.samples is None else self.samples.moved_to(part.samples)
        return part._replace(same=self.same, apart=self.apart, excluded=self.excluded, cost=self.cost, samples=samples)


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
    failures, failed = None, jnp.zeros(U, bool)
    if feasibility is not None:
        nothing = jnp.asarray(-jnp.inf)
        log_feasibility, log_value = feasibility.log_probability(points, kernel), feasibility.log_value(points)
        failures = Failures(log_feasibility, nothing, nothing, log_value)
        failed = feasibility.is_infeasible(points)
    fine, everywhere = resolution(lattice), jnp.ones(U, bool)
    return CandidateSet(
        mu=mu,
        var=jnp.diagonal(cov),
        cov=cov,
        active=active,
        eta=eta,
        lipschitz=jnp.maximum(steepest, 1e-3 * jnp.sqrt(post.variance)),  # a flat mean would push every step out of the box
        lowest=jnp.minimum(jnp.min(jnp.where(active, mu, jnp.inf)), eta),
        noise=jnp.asarray(post.noise),
        nugget=jnp.asarray(post.nugget),
        variance=jnp.asarray(post.variance),
        apart=jnp.sqrt(_apart(post, points, points)),
        done=same_point(points, post.X, post.observed, fine),
        begun=same_point(points, pending, active[U - P :], fine) if P else ~everywhere,
        infeasible=failed,
        copies=None if lattice is None else jax.vmap(lambda x: same_point(points, x[None], everywhere[:1], fine))(points),
        pending=Pending(rows, later),
        failures=failures,
        origin=Origin(post, points, W, lattice, feasibility),
    )


def query_point(kernel: Kernel, candidates: CandidateSet, x: jax.Array) -> QueryPoint:
    """The query point at x: O(N^2 + N U)."""
    origin = candidates.origin
    assert origin is not None
    post = origin.post
    k = cross_covariance(kernel, post, x[None])[:, 0]
    v = solve_triangular(post.L, k, lower=True)
    var = jnp.maximum(kernel.diagonal(post.hyper.theta, x[None], post.hyper.choice)[0] - v @ v, 0.0) + post.nugget
    cov = covariance(kernel, post.hyper, x[None], origin.points)[0] - k @ origin.W
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
    fine = resolution(origin.lattice)
    again = same_point(x[None], post.X, post.observed, fine)[0]
    if P:
        again = again | same_point(x[None], origin.points[-P:], candidates.pending_active, fine)[0]
    excluded, log_feasibility, log_value = again & candidates.is_exact, None, None
    if origin.feasibility is not None:
        log_feasibility = origin.feasibility.log_probability(x[None], kernel)[0]
        found = origin.feasibility.log_value(x[None])
        log_value = None if found is None else found[0]
        excluded = excluded | origin.feasibility.is_infeasible(x[None])[0]
    samples = None
    if candidates.samples is not None:
        samples = jax.lax.map(lambda each: query_point(kernel, each, x), candidates.samples)
    return QueryPoint(
        mu=mean(kernel, post, x[None])[0],
        var=var,
        cov=cov,
        later_var=later_var,
        later_cov=later_cov,
        loadings=c,
        log_feasibility=log_feasibility,
        log_value=log_value,
        same=same_point(origin.points, x[None], jnp.ones(1, bool), fine),
        apart=jnp.sqrt(jax.lax.stop_gradient(_apart(post, origin.points, x[None])[:, 0])),
        excluded=excluded,
        samples=samples,
    )


def query_candidate(candidates: CandidateSet, i: jax.Array) -> QueryPoint:
    """Candidate i as the query point, gathered."""
    later = candidates.pending.cov[i]
    return QueryPoint(
        mu=candidates.mu[i],
        var=candidates.cov[i, i],
        cov=candidates.cov[i],
        later_var=later[i],
        later_cov=later,
        loadings=candidates.pending.rows[:, i],
        log_feasibility=None if candidates.log_feasibility is None else candidates.log_feasibility[i],
        log_value=None if candidates.failures is None or not candidates.is_constrained else candidates.failures.log_value[i],
        same=candidates.apart[i] < SAME_POINT if candidates.copies is None else candidates.copies[i],
        apart=candidates.apart[i],
        excluded=is_excluded(candidates)[i],
        cost=None if candidates.costs is None else candidates.costs.cost[i],
        samples=None if candidates.samples is None else jax.vmap(lambda each: query_candidate(each, i))(candidates.samples),
    )


def is_excluded(candidates: CandidateSet) -> jax.Array:
    """(U,) which candidates may not be proposed: known to be infeasible, or exact and done or pending."""
    return ((candidates.done | candidates.begun) & candidates.is_exact) | candidates.infeasible


def _apart(post: Posterior, A: jax.Array, B: jax.Array) -> jax.Array:
    return squared_distance(A, B, jnp.ones(A.shape[1]), post.hyper.choice)


def incumbent_after_pending(candidates: CandidateSet, mu: jax.Array, eta: jax.Array) -> jax.Array:
    """The incumbent once the pending points have come out at their means."""
    P = candidates.n_pending
    return jnp.minimum(eta, jnp.min(jnp.where(candidates.pending_counts, mu[-P:], jnp.inf))) if P else eta


def times_feasibility(log_value: jax.Array, log_feasibility: jax.Array | None) -> jax.Array:
    """A logarithmic value times the probability that the evaluation is feasible."""
    return log_value if log_feasibility is None else log_value + log_feasibility


def joint_of_steps(
    candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean, covariance and active mask of f at (x*, predicted steps, pending points), in this order.

    ``steps`` (H - 1,) are indices of candidates; entry k is step k + 2.
    """
    C, U = candidates.n_candidates, candidates.mu.shape[0]
    rows = jnp.concatenate([steps, jnp.arange(C, U)])
    active = jnp.concatenate([jnp.ones(1, bool), active_steps(steps, remaining), candidates.pending_active])
    mu = jnp.concatenate([query.mu[None], candidates.mu[rows]])
    cross = query.cov[rows]
    S = jnp.block([[query.var[None, None], cross[None, :]], [cross[:, None], candidates.cov[rows][:, rows]]])
    return mu, S, active


def log_chances(candidates: CandidateSet, steps: jax.Array) -> jax.Array | None:
    """log P(feasible) of x*, taken to be feasible, the predicted steps and the pending points; None: all count in full.

    In the order of ``joint_of_steps``. That x* may not be feasible is for ``loss.with_risk``.
    """
    log_p = candidates.log_feasibility
    if not candidates.is_constrained or log_p is None:
        return None
    return jnp.concatenate([jnp.zeros(1), log_p[steps], log_p[candidates.n_candidates :]])


def active_steps(steps: jax.Array, remaining: jax.Array) -> jax.Array:
    """Which predicted steps (..., H - 1) will happen: within the remaining evaluations, and paid for (else they are -1)."""
    return (jnp.arange(steps.shape[-1]) + 2 <= remaining) & (steps >= 0)
