"""What the evaluations under way bring by themselves, whatever is decided next.

With P points pending, m their posterior means once their outcomes are known and eta the best value now,

    w = E[max(eta - min_p m_p, 0)],  m ~ N(mu, S (S + noise I)^-1 S)                                     [eq:waiting]

mu and S the posterior of f at the pending points; without noise m is f itself. A forecast counts w in every entry
(``lookahead.rollout``), a decision about further evaluations must not: it is paid for already.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.qmc import QMC
from glasses.runtime.padding import pad_rows, pending_size
from glasses.runtime.program import program
from glasses.search.decision import Situation
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, best_value, joint


def gain_under_way(kernel: Kernel, situation: Situation) -> float:
    """[eq:waiting] in standardised units; 0 when nothing is pending."""
    count = len(situation.pending)
    if count == 0:
        return 0.0
    pending = pad_rows(situation.pending, pending_size(count))
    return float(_gain(situation.post, pending, np.asarray(count), kernel=kernel))


@program
def _gain(post: Posterior, pending: jax.Array, count: jax.Array, *, kernel: Kernel) -> jax.Array:
    mu, S = joint(kernel, post, pending)
    valid = jnp.arange(pending.shape[0]) < count
    S = jnp.where(valid[:, None] & valid[None, :], S, jnp.eye(len(S)))
    learnt = S @ jnp.linalg.solve(S + post.hyper.noise * jnp.eye(len(S)), S)
    return jnp.exp(QMC(128).log_gain(mu, learnt, best_value(kernel, post), valid))
