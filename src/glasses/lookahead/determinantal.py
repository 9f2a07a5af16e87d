"""Steps from a determinantal point process: candidates of high EI that differ from each other and from x*.

A k-DPP over a ground set of M candidates gives a set A of k of them the probability det(L_A) / e_k(L), with

    L_ij = q_i q_j (k'(x_i, x_j) + noise [i = j]),   q_i^2 = EI(x_i)                                        [eq:dpp]

k' the posterior covariance: quality from EI, similarity from the model. Sets that contain x* follow the process with the
Schur complement of L in x*, that is with k' after x* is evaluated: conditioning on x* is conditioning the model [eq:given].

    e_k(L) = sum over |A| = k of det(L_A), from the eigenvalues:  e_l^m = e_l^{m-1} + lambda_m e_{l-1}^{m-1}   [eq:esp]
    sample   keep eigenvector m with probability lambda_m e_{l-1}^{m-1} / e_l^m, m = M..1; then candidates one by one with
             probability proportional to what the kept vectors have left there (Kulesza and Taskar 2012, algorithm 8)
    mode     greedily, x_k = argmax  log q_i^2 + log k'(x_i, x_i | x*, x_2..x_{k-1})                           [eq:greedy]

The sums e_l^m are kept as logarithms. The ground set is the 128 candidates of highest EI. Cost per x*: M^3 for the
eigenvectors, M k^2 for a sample; the mode costs what the kriging believer costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, times_feasibility
from glasses.lookahead.oracles import (
    Belief,
    budget_after,
    check_seed,
    choose,
    covariance_after,
    free_candidates,
    is_copy,
    no_steps,
)
from glasses.runtime.padding import MAX_HORIZON

_TINY = 1e-300
_GROUND = MAX_HORIZON  # one size, so that no padding changes a draw


@dataclass(frozen=True)
class DeterminantalPoints:
    """[eq:dpp] conditioned on x*: its greedy mode, or with ``sample=True`` exact draws of all steps together.

    ``seed`` chooses the random numbers, the same for all query points and decisions.
    """

    sample: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def predict(
        self, candidates: CandidateSet, belief: Belief, remaining: jax.Array, size: int, draw: jax.Array | int = 0
    ) -> jax.Array:
        log_ei = log_expected_improvement(belief.mu, jnp.sqrt(jnp.diagonal(candidates.pending.cov)), belief.eta)
        quality = times_feasibility(log_ei, candidates.log_feasibility)
        if self.sample:
            return self._sampled(candidates, belief, quality, remaining, size, draw)
        return self._greedy(candidates, belief, quality, remaining, size)

    def _greedy(
        self, candidates: CandidateSet, belief: Belief, quality: jax.Array, remaining: jax.Array, size: int
    ) -> jax.Array:
        """[eq:greedy]."""
        S, noise = covariance_after(candidates, belief.query), candidates.noise

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            rows, rest, free, budget, steps = state
            i, chosen, free, budget = choose(candidates, quality + jnp.log(rest + noise), free, budget)
            row = (S[i] - rows[:, i] @ rows) / jnp.sqrt(rest[i] + noise)
            rest = jnp.maximum(rest - row * row, _TINY)
            return rows.at[k].set(row), rest, free, budget, steps.at[k - 1].set(chosen)

        start = (
            jnp.zeros((size, S.shape[0])),
            jnp.diagonal(S),
            free_candidates(candidates, belief.query),
            budget_after(candidates, belief.query),
            no_steps(size),
        )
        return jax.lax.fori_loop(1, jnp.minimum(remaining, size), step, start)[-1]

    def _sampled(
        self,
        candidates: CandidateSet,
        belief: Belief,
        quality: jax.Array,
        remaining: jax.Array,
        size: int,
        draw: jax.Array | int,
    ) -> jax.Array:
        U = quality.shape[0]
        free = free_candidates(candidates, belief.query)
        free = free if candidates.copies is None else free & ~is_copy(candidates)
        best, ground = jax.lax.top_k(jnp.where(free, quality, -jnp.inf), min(candidates.n_candidates, _GROUND))
        q = jnp.where(jnp.isfinite(best), jnp.exp(0.5 * (best - best[0])), 0.0)  # e_k scales with it, probabilities do not
        S = covariance_after(candidates, belief.query)[ground][:, ground] + candidates.noise * jnp.eye(ground.size)
        L = q[:, None] * S * q[None, :] / candidates.variance
        key = jax.random.fold_in(jax.random.key(self.seed), draw)
        k = jnp.minimum(jnp.minimum(remaining, size) - 1, jnp.sum(free))
        chosen, wanted = ground[sample_k(key, L, k, size - 1)], jnp.arange(size - 1) < k
        lost = wanted & ~free[chosen]  # drawn where the kernel is zero up to rounding: the best of the others instead
        unused = free.at[jnp.where(wanted, chosen, U)].set(False, mode="drop")
        others = jax.lax.top_k(jnp.where(unused, quality, -jnp.inf), min(size - 1, U))[1]
        chosen = jnp.where(wanted, jnp.where(lost, others[jnp.cumsum(lost) - 1], chosen), -1)
        return _affordable(candidates, chosen, budget_after(candidates, belief.query))


def _affordable(candidates: CandidateSet, steps: jax.Array, budget: jax.Array) -> jax.Array:
    """The steps in their order, without those that the budget does not afford when their turn comes."""
    if candidates.costs is None:
        return steps
    cost = candidates.costs.cost

    def pay(budget: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
        enough = (i >= 0) & (cost[i] <= budget)
        return jnp.where(enough, budget - cost[i], budget), jnp.where(enough, i, -1)

    return jax.lax.scan(pay, budget, steps)[1]


def log_elementary(log_lambda: jax.Array, most: int) -> jax.Array:
    """log e_l^m of [eq:esp], (M + 1, most + 1)."""

    def grow(row: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        longer = jnp.logaddexp(row, jnp.concatenate([jnp.full(1, -jnp.inf), row[:-1]]) + value)
        return longer, longer

    first = jnp.full(most + 1, -jnp.inf).at[0].set(0.0)
    return jnp.concatenate([first[None], jax.lax.scan(grow, first, log_lambda)[1]])


def sample_k(key: jax.Array, L: jax.Array, k: jax.Array, most: int) -> jax.Array:
    """k <= ``most`` indices drawn from the k-DPP with kernel L, in the order drawn; meaningless from entry k on."""
    M = L.shape[0]
    values, vectors = jnp.linalg.eigh(0.5 * (L + L.T))
    log_lambda = jnp.log(jnp.maximum(values, _TINY))
    table = log_elementary(log_lambda, most)
    by_vector, by_member = jax.random.split(key)
    u = jax.random.uniform(by_vector, (M,))

    def keep(j: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        wanted, kept = state
        m = M - j  # eigenvector m - 1
        odds = log_lambda[m - 1] + table[m - 1, jnp.maximum(wanted - 1, 0)] - table[m, wanted]
        take = (wanted > 0) & ((jnp.log(u[m - 1]) < odds) | (m <= wanted))
        return wanted - take, kept.at[m - 1].set(take)

    _, kept = jax.lax.fori_loop(0, M, keep, (k, jnp.zeros(M, bool)))
    V = jnp.where(kept[None, :], vectors, 0.0)
    K = V @ V.T  # a projection: its samples have exactly k members

    def member(j: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows, left, chosen = state
        log_p = jnp.log(jnp.maximum(left, _TINY))
        i = jax.random.categorical(jax.random.fold_in(by_member, j), log_p)
        row = (K[i] - rows[:, i] @ rows) / jnp.sqrt(jnp.maximum(left[i], _TINY))
        return rows.at[j].set(row), jnp.maximum(left - row * row, 0.0).at[i].set(0.0), chosen.at[j].set(i)

    start = (jnp.zeros((max(most, 1), M)), jnp.diagonal(K), jnp.zeros(most, int))
    return jax.lax.fori_loop(0, k, member, start)[2]
