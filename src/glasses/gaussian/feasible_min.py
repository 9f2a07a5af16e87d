"""The expected feasible minimum: E[min over those y_i that are feasible, eta], y ~ N(m, S), y_i feasible with probability p_i.

The y_i are correlated, their feasibilities independent of them and of each other. With g_i = (eta - y_i)+, sorted so that
g_(1) >= g_(2) >= ..., the chance of feasibility is summed out exactly for given y,

    F(y) = E[max over the feasible g_i | y] = sum_k g_(k) p_(k) prod_{l<k} (1 - p_(l))                       [eq:chance]

and the law of y as in ``qmc``, each improvement now weighted by its chance:

    eta - E[min] = sum_j p_j EI_j E_j[F / sum_i p_i g_i],   dP_j = (g_j / EI_j) dP                         [eq:feasible]

F lies between max_i p_i g_i and sum_i p_i g_i, so the ratio is in [1/n, 1] as there. n = 1 is EI times the probability of
feasibility, p_i = 1 for all i is the expected minimum, and the value is smooth in m, S and p. Cost: that of ``qmc`` and a sort.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from glasses.gaussian.qmc import QMC, improvements


def log_feasible_gain(
    m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array, log_p: jax.Array, samples: int
) -> jax.Array:
    """The logarithm of [eq:feasible]; log_p (n,) are the logarithms of the probabilities."""
    log_ei, g = improvements(m, S, eta, valid, samples)  # (n,), (j, i, samples)
    log_p = jnp.where(valid, log_p, -jnp.inf)
    p = jnp.exp(log_p)
    total = jnp.sum(p[:, None] * g, axis=1)
    some = total > 0.0  # else no p is a number: what is left of a tiny one is itself
    ratio = jnp.where(some, expected_largest(g, p, axis=1) / jnp.where(some, total, 1.0), 1.0)
    return jax.scipy.special.logsumexp(log_ei + log_p + jnp.log(jnp.mean(ratio, axis=1)))


def expected_largest(g: jax.Array, p: jax.Array, axis: int) -> jax.Array:
    """[eq:chance] along an axis of g >= 0: the expected largest of those that are kept, entry i with probability p_i."""
    g = jnp.moveaxis(g, axis, -1)
    first, chance = jax.lax.sort((-g, jnp.broadcast_to(p, g.shape)), dimension=-1, num_keys=1)
    before = jnp.cumprod(1.0 - chance, axis=-1)
    before = jnp.concatenate([jnp.ones_like(before[..., :1]), before[..., :-1]], axis=-1)
    return jnp.sum(-first * chance * before, axis=-1)


def log_gain_of(
    expectation: Any, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array, log_p: jax.Array | None
) -> jax.Array:
    """What an expectation says of points that are feasible for certain (``log_p`` None) or not; the latter is always by QMC."""
    if log_p is None:
        return expectation.log_gain(m, S, eta, valid)
    method = expectation if isinstance(expectation, QMC) else QMC()
    return log_feasible_gain(m, S, eta, valid, log_p, method.samples)
