"""Oracles F_n(x*): where the evaluations after x* will go.

All predict the steps one by one over the candidates, x* first, every candidate at most once (of a finite space whose
evaluations are exact every configuration, and none that is done):

    x_k = argmax over the candidates of  log EI(x) + sum_{j<k} log phi(x; x_j)        local penalisation    [eq:lp]
    x_k = argmax over the candidates of  log EI(x | x*, x_2..x_{k-1}, y_j = mu_j)     kriging believer      [eq:kb]
    x_k = argmin over the candidates of  f_k,  f_k ~ the posterior after x*           Thompson paths        [eq:ts]
    (x_2..x_n) ~ a determinantal point process, or its mode                          see ``determinantal``

The first two are functions of the candidate set. The last two draw, and draw number s is the same for every x* of every
decision (common random numbers): what differs between two query points is the query points. With costs, a step must be paid
for: the score is per unit of cost (log EI - log c) among the candidates that the remaining budget affords, and -1 once
there are none.

Penalisers of x_j with mean mu_j, sd s_j, Lipschitz constant L = max |grad mu| and M <= min mu, r_j = (mu_j - M) / L:

    soft  phi = Phi((L |x - x_j| - mu_j + M) / s_j)                               Gonzalez et al. (2016)    [eq:soft]
    hard  phi = ((|x - x_j| / (r_j + s_j / L))^p + 1)^(1/p),  p = -5              Alvi et al. (2019)        [eq:hard]

The paper prints the argmin of the penalised loss at x*, which would attract the points; [eq:lp] is what is meant. Its exact
transformation, soft-plus of -Lambda_1 on standardised outputs, is ``softplus=True``; EI itself is shift invariant.
The believer conditions on its own predictions: the mean stays, the variance falls by a rank-1 update, eta follows the mean.

L and M come from the candidate set and the belief, hence are re-estimated for every fit.
Cost per query point and step: one row over the candidates (believer: k rows). Next: ``losses``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import EVEN, CandidateSet, QueryPoint, incumbent_after_pending, times_feasibility

_JITTER = 1e-8


class Belief(NamedTuple):
    """What an oracle starts from: after x*, and perhaps after its outcome."""

    query: QueryPoint
    mu: jax.Array  # (U,) mean over the candidates
    eta: jax.Array
    informed: jax.Array  # whether the outcome of x* is already in ``mu`` and ``eta``


def before_outcome(candidates: CandidateSet, query: QueryPoint) -> Belief:
    """x* is decided and its outcome is not known."""
    return Belief(query, candidates.mu, candidates.eta, jnp.asarray(False))


class Oracle(Protocol):
    """Predicts steps as indices of candidates, (size - 1,): entry k is step k + 2; -1 beyond what remains or can be paid for.

    ``draw`` numbers the draws of an oracle that samples; one that does not ignores it.
    """

    def predict(
        self, candidates: CandidateSet, belief: Belief, remaining: jax.Array, size: int, draw: jax.Array | int = 0
    ) -> jax.Array: ...


class Step(NamedTuple):
    """One predicted step, and what is left after it."""

    row: jax.Array  # a candidate to go on with; meaningless where ``candidate`` is -1
    candidate: jax.Array
    free: jax.Array
    budget: jax.Array


def no_steps(size: int) -> jax.Array:
    """Steps that are not predicted."""
    return jnp.full(size - 1, -1)


def budget_after(candidates: CandidateSet, query: QueryPoint) -> jax.Array:
    """What may be spent once x* is paid for; nothing is counted where there are no costs."""
    return jnp.zeros(()) if candidates.costs is None or query.cost is None else candidates.costs.budget - query.cost


def choose(candidates: CandidateSet, score: jax.Array, free: jax.Array, budget: jax.Array) -> Step:
    """The candidate of highest score per unit of cost, among the free ones that can be paid for."""
    if candidates.costs is None:
        i = jnp.argmax(jnp.where(free, score, -jnp.inf))
        return Step(i, jnp.where(free[i], i, -1), without(candidates, free, i), budget)
    cost = candidates.costs.cost
    paid = free & (cost <= budget)
    i = jnp.argmax(jnp.where(paid, score - jnp.log(cost), -jnp.inf))
    some = jnp.any(paid)
    return Step(i, jnp.where(some, i, -1), without(candidates, free, i), jnp.where(some, budget - cost[i], budget))


def without(candidates: CandidateSet, free: jax.Array, i: jax.Array) -> jax.Array:
    """The free candidates without number i; where evaluations are exact also without its copies (a small space has some)."""
    free = free.at[i].set(False)
    return free if candidates.copies is None else free & ~(candidates.copies[i] & candidates.is_exact)


def free_candidates(candidates: CandidateSet, query: QueryPoint) -> jax.Array:
    """(U,) where a step may go: not x* itself, not a pending point, and of a finite space nothing exact that is done."""
    assert query.same is not None
    free = (jnp.arange(candidates.mu.shape[0]) < candidates.n_candidates) & ~query.same
    free = free if candidates.copies is None else free & ~done_exactly(candidates)
    return free & ~candidates.begun if candidates.n_pending else free


def done_exactly(candidates: CandidateSet) -> jax.Array:
    """Which candidates were evaluated and would bring the same again."""
    return candidates.done & candidates.is_exact


def is_copy(candidates: CandidateSet) -> jax.Array:
    """Which candidates repeat an earlier one, where evaluations are exact."""
    assert candidates.copies is not None
    return jnp.any(jnp.tril(candidates.copies, -1), axis=1) & candidates.is_exact


def believed(candidates: CandidateSet, mu: jax.Array, i: jax.Array) -> jax.Array:
    """What a step to candidate i is believed to bring: its mean; with constraints nothing where it is likely to violate one."""
    if not candidates.is_constrained or candidates.log_feasibility is None:
        return mu[i]
    return jnp.where(candidates.log_feasibility[i] > EVEN, mu[i], jnp.inf)


@dataclass(frozen=True)
class KrigingBeliever:
    """[eq:kb]: each step maximises EI given the steps before it, whose outcomes are taken to be their means."""

    def predict(
        self, candidates: CandidateSet, belief: Belief, remaining: jax.Array, size: int, draw: jax.Array | int = 0
    ) -> jax.Array:
        query, noise, nugget = belief.query, candidates.noise, candidates.nugget
        first = query.later_cov / jnp.sqrt(query.later_var + noise)
        rows = jnp.zeros((size, candidates.mu.shape[0])).at[0].set(first)
        seen = jnp.where(belief.informed, belief.eta, jnp.minimum(belief.eta, query.mu))
        eta = incumbent_after_pending(candidates, belief.mu, seen)

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            rows, rest, free, budget, eta, steps = state
            log_ei = log_expected_improvement(belief.mu, jnp.sqrt(rest), eta)
            score = times_feasibility(log_ei, candidates.log_feasibility)
            i, chosen, free, budget = choose(candidates, score, free, budget)
            row = (candidates.pending.cov[i] - rows[:, i] @ rows) / jnp.sqrt(rest[i] + noise)
            rest = jnp.maximum(rest - row * row, nugget)
            eta = jnp.minimum(eta, believed(candidates, belief.mu, i))
            return rows.at[k].set(row), rest, free, budget, eta, steps.at[k - 1].set(chosen)

        rest = jnp.maximum(jnp.diagonal(candidates.pending.cov) - first * first, nugget)
        start = (rows, rest, free_candidates(candidates, query), budget_after(candidates, query), eta, no_steps(size))
        return jax.lax.fori_loop(1, jnp.minimum(remaining, size), step, start)[-1]


@dataclass(frozen=True)
class LocalPenalization:
    """[eq:lp]: the paper's oracle. ``hard`` takes [eq:hard]; ``softplus`` the paper's transformation of the loss."""

    softplus: bool = False
    hard: bool = False

    def predict(
        self, candidates: CandidateSet, belief: Belief, remaining: jax.Array, size: int, draw: jax.Array | int = 0
    ) -> jax.Array:
        sd = jnp.sqrt(jnp.diagonal(candidates.cov))

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            score, free, budget, steps = state
            i, chosen, free, budget = choose(candidates, score, free, budget)
            score = score + self.penalty(candidates, belief, candidates.apart[i], belief.mu[i], sd[i])
            return score, free, budget, steps.at[k - 1].set(chosen)

        budget = budget_after(candidates, belief.query)
        start = (self.first_score(candidates, belief), free_candidates(candidates, belief.query), budget, no_steps(size))
        return jax.lax.fori_loop(1, jnp.minimum(remaining, size), step, start)[-1]

    def first_score(self, candidates: CandidateSet, belief: Belief) -> jax.Array:
        """What the first step maximises: log EI (or the soft-plus) penalised by x* and the pending points."""
        query = belief.query
        sd = jnp.sqrt(jnp.diagonal(candidates.cov))
        score = log_expected_improvement(belief.mu, sd, belief.eta)
        if self.softplus:  # g(-Lambda_1), Lambda_1 = eta - EI
            score = jnp.log(jax.nn.softplus(jnp.exp(score) - belief.eta))
        score = times_feasibility(score, candidates.log_feasibility)
        score = score + self.penalty(candidates, belief, query.apart, query.mu, jnp.sqrt(query.var))
        if not candidates.n_pending:
            return score
        C = candidates.n_candidates
        begun = jax.vmap(lambda *given: self.penalty(candidates, belief, *given))(
            candidates.apart[C:], candidates.mu[C:], sd[C:]
        )
        return score + jnp.sum(jnp.where(candidates.pending_active[:, None], begun, 0.0), axis=0)

    def penalty(
        self, candidates: CandidateSet, belief: Belief, apart: jax.Array | None, mu: jax.Array, s: jax.Array
    ) -> jax.Array:
        """log phi over the candidates, for a step so far ``apart`` from each of them, with mean mu and sd s."""
        assert apart is not None
        others = jnp.stack([candidates.lowest, belief.eta, belief.query.mu])
        means = jnp.concatenate([jnp.where(candidates.active, belief.mu, jnp.inf), others])
        lowest = jnp.min(means)  # M <= every mean, also once an outcome has moved them
        return self.log_penalty(apart, mu, s, candidates.lipschitz, lowest)

    def log_penalty(
        self, distance: jax.Array, mu: jax.Array, s: jax.Array, lipschitz: jax.Array, lowest: jax.Array
    ) -> jax.Array:
        """log phi at a distance from a point with mean mu and sd s: [eq:soft] or [eq:hard]."""
        if self.hard:
            radius = (jnp.maximum(mu - lowest, 0.0) + s) / lipschitz
            return -0.2 * jnp.log1p((radius / jnp.maximum(distance, 1e-12)) ** 5)
        return log_ndtr((lipschitz * distance - mu + lowest) / s)


@dataclass(frozen=True)
class ThompsonPaths:
    """[eq:ts]: step k goes to the minimum of its own joint posterior sample, given x* (at its mean if not seen).

    ``seed`` chooses the normal numbers, the same for all query points and decisions.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def predict(
        self, candidates: CandidateSet, belief: Belief, remaining: jax.Array, size: int, draw: jax.Array | int = 0
    ) -> jax.Array:
        U = candidates.mu.shape[0]
        key = jax.random.fold_in(jax.random.key(self.seed), draw)
        factor = jnp.linalg.cholesky(covariance_after(candidates, belief.query))

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            free, budget, steps = state
            path = belief.mu + factor @ jax.random.normal(jax.random.fold_in(key, k), (U,))
            depth = jnp.log(jnp.max(path) - path + 1e-300)  # a score that a cost or a feasibility can be added to
            score = times_feasibility(depth, candidates.log_feasibility)
            _, chosen, free, budget = choose(candidates, score, free, budget)
            return free, budget, steps.at[k - 1].set(chosen)

        free = free_candidates(candidates, belief.query) & ~done_exactly(candidates)
        start = (free, budget_after(candidates, belief.query), no_steps(size))
        return jax.lax.fori_loop(1, jnp.minimum(remaining, size), step, start)[-1]


def covariance_after(candidates: CandidateSet, query: QueryPoint) -> jax.Array:
    """Covariance over the candidates once x* (and what is pending) is evaluated, positive definite up to rounding."""
    row = query.later_cov / jnp.sqrt(query.later_var + candidates.noise)
    jitter = _JITTER * candidates.variance * jnp.eye(row.size)
    return candidates.pending.cov - row[:, None] * row[None, :] + jitter


def check_seed(seed: int) -> None:
    if not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**32):
        raise ValueError(f"seed must be a whole number from 0 to 2**32 - 1, got {seed!r}.")
