"""Forecasts: the best value after k more evaluations, k = 1..n, under the model.

    expected     eta - E[ sum_{j<=k} EI(x_j | D_{j-1}) ]     futures simulated with EI as the policy, ``rollout`` [eq:rollout]
    band         quantiles of the best value of the same futures after k steps; of k = 1 those of min(eta, y*), exact
    open loop    the first k steps of the kriging believer's plan, nothing learnt on the way [eq:open]: less gain than a policy
                 that learns can have
    clairvoyant  eta - E[min(eta, min over the candidates of f)]: more gain than any policy can have      [eq:clairvoyant]

The expected best value never rises with k, and k = 1 is the closed form. With noise, the best value is the lowest posterior
mean at a point after its outcomes, for every k and for the open loop; where evaluations have failed, steps fail with their
probability. With constraints the best value is the best feasible one; their values are drawn and learnt from too
(``satisfaction``). The fitted hyperparameters are used, also where decisions average over samples. The bounds bound what the
best policy can do on these candidates; the simulated policy, EI, is one of them. Systematic errors of fitted models are
corrected in ``loop.correction``.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from glasses.gaussian.qmc import QMC, correlations
from glasses.lookahead.candidates import CandidateSet, QueryPoint, joint_of_steps
from glasses.lookahead.losses import Glasses
from glasses.lookahead.rollout import BLOCK, PLACES, is_feasible, normals, simulate_block
from glasses.lookahead.satisfaction import JointConstraints, are_met, constraint_normals
from glasses.runtime.program import program

FUTURES = 256
BAND = 0.8
_LOW, _HIGH = 0.5 - BAND / 2, 0.5 + BAND / 2
_PATHS = 1024


class ForecastGains(NamedTuple):
    """Gains below the incumbent in the model's units, (size,) each: entry k - 1 after k more evaluations."""

    eta: jax.Array
    expected: jax.Array
    least: jax.Array  # quantiles of the gain, the band
    most: jax.Array
    open_loop: jax.Array
    clairvoyant: jax.Array  # ()
    evaluations: jax.Array  # how many of the k evaluations happen, on average: all of them, or those that can be paid for


@program
def forecast_gains(
    candidates: CandidateSet, query: QueryPoint, remaining: jax.Array, joint: JointConstraints | None = None, *, size: int
) -> ForecastGains:
    """The forecast when the next evaluation is at the query point, with constraints candidate ``joint.at``."""
    blocks = jax.lax.map(
        lambda block: simulate_block(candidates, query, remaining, size, FUTURES, block, for_forecast=True, joint=joint),
        jnp.arange(FUTURES // BLOCK),
    )
    gains = jnp.mean(blocks.gains.reshape(FUTURES, size), axis=0)
    happens = jnp.arange(size) < remaining
    paid = jnp.mean(blocks.steps.reshape(FUTURES, size - 1) >= 0, axis=0)
    evaluations = jnp.cumsum(jnp.concatenate([jnp.ones(1), paid]))
    best = jnp.where(happens[None], blocks.best.reshape(FUTURES, size), jnp.inf)
    after = candidates.eta - jax.lax.cummin(best, axis=1)
    least, most = (jnp.quantile(after, q, axis=0) for q in (_LOW, _HIGH))
    if candidates.n_pending == 0 and query.log_feasibility is None:
        sd = query.var / jnp.sqrt(query.var + candidates.noise)
        z = jnp.asarray([NormalDist().inv_cdf(level) for level in (_LOW, _HIGH)])
        low, high = jnp.maximum(candidates.eta - (query.mu - sd * z), 0.0)
        least, most = least.at[0].set(low), most.at[0].set(high)

    C, U = candidates.n_candidates, candidates.mu.shape[0]
    plan = Glasses().predict_steps(candidates, query, remaining, size)

    def planned(k: jax.Array) -> jax.Array:
        mu, S, active = joint_of_steps(candidates, query, plan, jnp.minimum(k, remaining))
        both = active[:, None] & active[None, :]
        observed = jnp.where(both, S, 0.0) + jnp.diag(jnp.where(active, candidates.noise + candidates.nugget, 1.0))
        L = jnp.linalg.cholesky(observed)
        V = jax.scipy.linalg.solve_triangular(L, jnp.where(both, S, 0.0), lower=True)
        learnt = jnp.where(candidates.is_exact, S, V.T @ V)
        if query.log_feasibility is None or candidates.log_feasibility is None:
            return jnp.exp(QMC(64).log_gain(mu, learnt, candidates.eta, active))
        _, _, factor = correlations(learnt, active, jnp.zeros(()))
        sd = jnp.sqrt(jnp.maximum(jnp.diagonal(learnt), 1e-300))
        log_feasibility = jnp.concatenate(
            [query.log_feasibility[None], candidates.log_feasibility[jnp.concatenate([plan, jnp.arange(C, U)])]]
        )
        t = jnp.asarray(normals(FUTURES))
        y = mu[:, None] + sd[:, None] * (factor @ t[:, : mu.size].T)
        if joint is not None and candidates.failures is not None:
            chosen = jnp.concatenate([joint.at[None], plan, jnp.arange(C, U)])
            drawn = jnp.asarray(constraint_normals(FUTURES, joint.mu.shape[0], PLACES))
            u = jnp.moveaxis(drawn[:, : mu.size], 0, -1).swapaxes(0, 1)  # (k, n, futures)
            at_query: Any = query.log_value
            log_value = jnp.concatenate([at_query[None], candidates.failures.log_value[chosen[1:]]])
            went = active[:, None] & is_feasible(log_value[:, None], t[:, -mu.size :].T) & are_met(joint, chosen, u)
        else:
            went = active[:, None] & is_feasible(log_feasibility[:, None], t[:, -mu.size :].T)
        return jnp.mean(jnp.maximum(candidates.eta - jnp.min(jnp.where(went, y, jnp.inf), axis=0), 0.0))

    open_loop = jax.lax.cummax(jax.lax.map(planned, jnp.arange(1, size + 1)))
    expected = jnp.cumsum(jnp.where(happens, gains, 0.0))
    sd, _, factor = correlations(candidates.cov, candidates.active, jnp.zeros(()))
    paths = candidates.mu[:, None] + sd[:, None] * factor @ jax.random.normal(jax.random.key(0), (U, _PATHS))
    active = candidates.active[:, None]
    if joint is not None:
        normal = jax.random.normal(jax.random.key(1), (joint.mu.shape[0], U, _PATHS))
        active = active & are_met(joint, jnp.arange(U), normal)
    lowest = jnp.min(jnp.where(active, paths, jnp.inf), axis=0)
    clairvoyant = jnp.mean(jnp.maximum(candidates.eta - lowest, 0.0))
    clairvoyant = jnp.maximum(clairvoyant, jnp.maximum(expected[-1], open_loop[-1]))  # a bound, also for few paths
    least, most = jnp.maximum(least, 0.0), jnp.maximum(most, 0.0)
    return ForecastGains(candidates.eta, expected, least, most, open_loop, clairvoyant, evaluations)
