"""BINOCULARS on our model: a whole batch optimised at once, of which one point is evaluated (Jiang et al. 2020).

    X^ = argmax over q points of  eta - E[min(y_1..y_q, eta)],  q = min(12, left); then the point of X^ of highest EI   [eq:qei]

The batch is moved as one vector of q d coordinates by gradients, from three starts: the kriging believer's plan, the greedy
mode of a determinantal process and the penalised maxima of EI. Model, candidate set and expectation are those of our own
methods, so that only the rule differs. (BoTorch's qEI does the same with its own model: ``peers``.)
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import CandidateSet, is_excluded, query_candidate, query_point
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Loss
from glasses.lookahead.oracles import KrigingBeliever, LocalPenalization, Oracle, before_outcome
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.program import program
from glasses.search.decision import Decision, Problem, Valued, decide
from glasses.search.propose import candidates_for
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import joint, marginals

BATCH = 12
_PASSES = 40
_STARTS: tuple[Oracle, ...] = (KrigingBeliever(), DeterminantalPoints(), LocalPenalization(hard=True))


@dataclass(frozen=True)
class Binoculars:
    """A search that ignores the loss it is given: [eq:qei] is its own."""

    candidates: int = 256

    def decide(self, loss: Loss, kernel: Kernel, problem: Problem, rng: np.random.Generator) -> Decision:
        candidates = candidates_for(kernel, problem, self.candidates, rng)
        found = _best_of_batch(candidates, np.asarray(min(BATCH, problem.remaining)), kernel=kernel)
        return decide(candidates, candidates.eta, found)


@program
def _best_of_batch(candidates: CandidateSet, remaining: jax.Array, *, kernel: Kernel) -> Valued:
    """The points of the best batch, with log EI as their value; -inf for those that repeat an experiment or do not count."""
    log_ei = log_expected_improvement(candidates.mu, jnp.sqrt(jnp.diagonal(candidates.cov)), candidates.eta)
    assert candidates.origin is not None
    post, points = candidates.origin.post, candidates.points
    first = jnp.argmax(jnp.where(is_excluded(candidates), -jnp.inf, log_ei))
    query = query_candidate(candidates, first)
    d, counts, belief = points.shape[1], jnp.arange(BATCH) < remaining, before_outcome(candidates, query)
    steps = [oracle.predict(candidates, belief, remaining, BATCH) for oracle in _STARTS]
    starts = [jnp.concatenate([points[first][None], points[each]]) for each in steps]

    def value(flat: jax.Array) -> jax.Array:
        mu, S = joint(kernel, post, flat.reshape(BATCH, d))
        return -QMC(64).log_gain(mu, S, candidates.eta, counts)

    def descend(batches: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.map(jax.value_and_grad(value), batches)

    flat = jnp.stack(starts).reshape(len(starts), -1)
    found = minimize_batch(descend, flat, jnp.zeros(BATCH * d), jnp.ones(BATCH * d), passes=_PASSES, first_step=0.01)
    batch = found.x[jnp.argmin(found.f)].reshape(BATCH, d)
    mu, sd = marginals(kernel, post, batch)
    best = log_expected_improvement(mu, sd, candidates.eta)
    excluded = jax.vmap(lambda x: query_point(kernel, candidates, x))(batch).excluded
    assert excluded is not None
    best = jnp.where(counts & ~excluded, best, -jnp.inf)
    return Valued(batch, best, mu, sd, jnp.zeros((BATCH, 0), int))
