"""Rollout: simulate the rest of the run, outcome by outcome and decision by decision, under the model.

From x*, draw its outcome, go where EI is highest given it, draw that outcome, ... until nothing remains. The value of x* is

    G_n(x*) = E[ sum_{k=1..n} EI(x_k | D_{k-1}) ],  x_1 = x*,  x_k = argmax over the candidates of EI(x | D_{k-1})  [eq:rollout]

D_k the data after k simulated outcomes. The improvement of step k minus its EI has mean zero given D_{k-1}: taking the EI
instead of the improvement is the control variate with coefficient one at every step [eq:control], and the last outcome needs
no drawing at all. n = 1 is the closed form; with n = 2 only y* is drawn. Outcomes are normal numbers from one scrambled Sobol
set, dimension k for step k, common to all query points (common random numbers): future number s is the same for every x*.
Pending evaluations come first, each with its outcome.

The maximum of noisy values favours points with a favourable error. ``race`` says how many futures each round has: the search
values many query points with the first few futures and goes on with the best of them (``search.race``); prefixes of a Sobol
set whose length is a power of two are balanced.

Conditioning on a step is one row over the candidates (``oracles``): future and step cost H U. Memory: ``BLOCK`` futures at a
time, H U numbers each, whatever the number of futures, query points or the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, QueryPoint, times_feasibility
from glasses.lookahead.loss import Steps
from glasses.lookahead.losses import LookAhead
from glasses.lookahead.oracles import KrigingBeliever, before_outcome, budget_after, choose, free_candidates, no_steps
from glasses.lookahead.satisfaction import JointConstraints, at_first, constraint_normals
from glasses.numerics.sobol import scrambled
from glasses.runtime.padding import MAX_HORIZON, MAX_PENDING

BLOCK = 16
_MOST = 4096
_FEASIBLE = MAX_HORIZON + MAX_PENDING  # where the numbers that decide about feasibility begin
PLACES = _FEASIBLE  # of the numbers of a constraint: steps, then pending points
_LAST = _FEASIBLE + MAX_HORIZON - 1  # the last of them; pending points take theirs from here downwards


@dataclass(frozen=True)
class Rollout(LookAhead):
    """[eq:rollout] over ``race[-1]`` futures. ``race=(256,)`` values every query point with all of them."""

    race: tuple[int, ...] = (64, 128, 256)  # type: ignore[misc]  # a field here, a constant of other losses
    steps: Steps = None

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds = self.race if isinstance(self.race, tuple) else ()
        whole = all(isinstance(n, int) and n >= BLOCK and n & (n - 1) == 0 and n <= _MOST for n in rounds)
        if not rounds or not whole or list(rounds) != sorted(set(rounds)):
            raise ValueError(
                f"race must be increasing powers of two from {BLOCK} to {_MOST}, such as (64, 128, 256), got {self.race!r}."
            )

    def predict_steps(self, candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int) -> jax.Array:
        """The kriging believer's steps: the plan that goes with the decision. The value simulates its own futures."""
        return KrigingBeliever().predict(candidates, before_outcome(candidates, query), remaining, size)

    def acquisition_value(
        self, candidates: CandidateSet, query: QueryPoint, steps: jax.Array, remaining: jax.Array
    ) -> jax.Array:
        """log of [eq:rollout] with all futures."""
        size = steps.shape[-1] + 1
        return jnp.log(total_gain(candidates, query, remaining, size, self.race[-1], 0, self.race[-1]) / self.race[-1])


def total_gain(
    candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, size: int, futures: int, first: Any, last: Any
) -> jax.Array:
    """The sum of the gains of futures first..last - 1, both multiples of ``BLOCK``, out of a set of ``futures``."""

    def add(block: jax.Array, sum_: jax.Array) -> jax.Array:
        return sum_ + jnp.sum(simulate_block(candidates, query, remaining, size, futures, block).gain)

    return jax.lax.fori_loop(first // BLOCK, last // BLOCK, add, jnp.zeros(()))


class Simulated(NamedTuple):
    """One simulated rest of a run."""

    gain: jax.Array  # () sum of EI
    gains: jax.Array  # (size,) EI of each step, 0 for those that do not happen
    best: jax.Array  # (size,) the best value after each step
    steps: jax.Array  # (size - 1,) candidates of steps 2..; -1 where nothing can be paid for


def simulate_block(
    candidates: CandidateSet,
    query: QueryPoint,
    remaining: jax.Array,
    size: int,
    futures: int,
    block: jax.Array,
    *,
    for_forecast: bool = False,
    joint: JointConstraints | None = None,
) -> Simulated:
    """Futures number ``BLOCK`` block and the ``BLOCK`` - 1 after it, out of a set of ``futures``."""
    t = jax.lax.dynamic_slice_in_dim(jnp.asarray(normals(futures)), block * BLOCK, BLOCK)
    if joint is None:
        return jax.vmap(lambda t: simulate(candidates, query, remaining, size, t, for_forecast=for_forecast))(t)
    drawn = jnp.asarray(constraint_normals(futures, joint.mu.shape[0], PLACES))
    u = jax.lax.dynamic_slice_in_dim(drawn, block * BLOCK, BLOCK)
    return jax.vmap(lambda t, u: simulate(candidates, query, remaining, size, t, for_forecast=True, joint=joint, u=u))(t, u)


def simulate(
    candidates: CandidateSet,
    query: QueryPoint,
    remaining: jax.Array,
    size: int,
    t: jax.Array,
    *,
    for_forecast: bool = False,
    joint: JointConstraints | None = None,
    u: Any = None,
) -> Simulated:
    """The rest of the run if the standardised outcomes are t: of x* and the steps, of the pending points, of feasibility.

    An evaluation that violates a constraint brings nothing and teaches what its value does. With ``joint`` the constraints are
    drawn and learnt from as well (``satisfaction``), with numbers u: of x* and the steps, of the pending points.

    With noise, what counts is the posterior mean at a point after its outcome, as in ``losses``; of the last step, f itself. A
    later step fails with its probability, and then brings and teaches nothing. ``for_forecast``: also x* may fail (for a
    decision ``loss.with_risk`` sees to that), and the posterior mean counts at the last step too.
    """
    C, P, U = candidates.n_candidates, candidates.n_pending, candidates.mu.shape[0]
    noise, nugget = candidates.noise, candidates.nugget
    n = jnp.minimum(remaining, size)
    mu, eta, at_query, pending_gain = candidates.mu, candidates.eta, query.mu, jnp.zeros(())
    log_feasibility = candidates.log_feasibility
    log_value: Any = None if candidates.failures is None else candidates.failures.log_value
    value_at_query: Any = query.log_value
    known_of = None if joint is None else at_first(joint, size + P)

    def arrive(p: jax.Array, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outcome of a pending point: its row is known, only means move."""
        mu, eta, at_query, gain, known_of = state
        i, row, active = C + p, candidates.pending.rows[p], candidates.active[C + p]
        counts = active
        ei = jnp.exp(log_expected_improvement(mu[i], jnp.where(active, row[i], 1.0), eta))
        mu, at_query = mu + row * t[MAX_HORIZON + p], at_query + query.loadings[p] * t[MAX_HORIZON + p]
        if joint is not None and known_of is not None:
            told = active & is_feasible(log_value[i], t[_LAST - p])
            ei = ei * jnp.exp(log_value[i] + known_of.log_probability(joint)[i])
            counts = told & known_of.is_met(joint, i, u[MAX_HORIZON + p])
            known_of = known_of.after(joint, i, u[MAX_HORIZON + p], size + p, told)
        elif candidates.is_constrained and log_feasibility is not None:
            ei, counts = ei * jnp.exp(log_feasibility[i]), active & is_feasible(log_feasibility[i], t[_LAST - p])
        eta = jnp.where(counts, jnp.minimum(eta, mu[i]), eta)
        return mu, eta, at_query, gain + jnp.where(active, ei, 0.0), known_of

    if P:
        begun = (mu, eta, at_query, pending_gain, known_of)
        mu, eta, at_query, pending_gain, known_of = jax.lax.fori_loop(0, P, arrive, begun)
    total = jnp.sqrt(query.later_var + noise)
    reach = query.later_var / total
    known = (n > 1) | for_forecast
    first = jnp.exp(log_expected_improvement(at_query, jnp.where(known, reach, jnp.sqrt(query.later_var)), eta))
    row = query.later_cov / total
    if joint is not None and known_of is not None:
        told = is_feasible(value_at_query, t[_FEASIBLE])
        first = first * jnp.exp(value_at_query + known_of.log_probability(joint)[joint.at])
        went = told & known_of.is_met(joint, joint.at, u[0])
        known_of = known_of.after(joint, joint.at, u[0], 0, told)
        row, outcome = jnp.where(told, row, 0.0), jnp.where(went, at_query + reach * t[0], jnp.inf)
    elif for_forecast and query.log_feasibility is not None:
        first, went = first * jnp.exp(query.log_feasibility), is_feasible(query.log_feasibility, t[_FEASIBLE])
        told = went if value_at_query is None else is_feasible(value_at_query, t[_FEASIBLE])
        row, outcome = jnp.where(told, row, 0.0), jnp.where(went, at_query + reach * t[0], jnp.inf)
    else:
        outcome = at_query + reach * t[0]
    mu, eta = mu + row * t[0], jnp.minimum(eta, outcome)
    rest = jnp.maximum(jnp.diagonal(candidates.pending.cov) - row * row, nugget)
    rows = jnp.zeros((size, U)).at[0].set(row)

    def step(k: jax.Array, state: tuple[Any, ...]) -> tuple[Any, ...]:
        known_of, rows, rest, mu, eta, free, budget, gains, best, steps = state
        now = log_feasibility if joint is None or known_of is None else log_value + known_of.log_probability(joint)
        score = times_feasibility(log_expected_improvement(mu, jnp.sqrt(rest), eta), now)
        i, chosen, free, budget = choose(candidates, score, free, budget)
        row = (candidates.pending.cov[i] - rows[:, i] @ rows) / jnp.sqrt(rest[i] + noise)
        sd = jnp.where((k + 1 < n) | for_forecast, row[i], jnp.sqrt(rest[i]))
        happens = chosen >= 0
        gain = log_expected_improvement(mu[i], sd, eta)
        if joint is not None and known_of is not None and now is not None:
            told = is_feasible(log_value[i], t[_FEASIBLE + k])
            gain, went = gain + now[i], told & known_of.is_met(joint, i, u[k])
            known_of, row = known_of.after(joint, i, u[k], k, told & happens), jnp.where(told, row, 0.0)
        elif log_feasibility is not None:
            gain, went = gain + log_feasibility[i], is_feasible(log_feasibility[i], t[_FEASIBLE + k])
            told = went if log_value is None else is_feasible(log_value[i], t[_FEASIBLE + k])
            row = jnp.where(told, row, 0.0)
        else:
            went = jnp.asarray(True)
        gain = jnp.exp(gain)
        mu = mu + row * t[k]
        eta = jnp.where(happens & went, jnp.minimum(eta, mu[i]), eta)
        rest = jnp.maximum(rest - row * row, nugget)
        gains = gains.at[k].set(jnp.where(happens, gain, 0.0))
        kept = gains, best.at[k].set(eta), steps.at[k - 1].set(chosen)
        return known_of, rows.at[k].set(row), rest, mu, eta, free, budget, *kept

    zeros = jnp.zeros(size)
    start: tuple[Any, ...] = (
        known_of,
        rows,
        rest,
        mu,
        eta,
        free_candidates(candidates, query),
        budget_after(candidates, query),
    )
    kept = (zeros.at[0].set(first + pending_gain), zeros.at[0].set(eta), no_steps(size))
    *_, gains, best, steps = jax.lax.fori_loop(1, n, step, (*start, *kept))
    return Simulated(jnp.sum(gains), gains, best, steps)


def is_feasible(log_feasibility: jax.Array, t: jax.Array) -> jax.Array:
    """Whether an evaluation with this log feasibility gives a value where its normal number is t."""
    return t < ndtri(jnp.exp(log_feasibility))


@lru_cache(maxsize=4)
def normals(count: int) -> np.ndarray:
    """(count, outcomes + pending + feasibility) standard normals; a shorter set is the beginning of a longer one."""
    points = scrambled(_FEASIBLE + MAX_HORIZON, count.bit_length() - 1, np.random.default_rng(20151002))
    from scipy import special  # loaded only where a program is traced

    return special.ndtri(np.clip(points, 2.0**-40, 1.0 - 2.0**-40))
