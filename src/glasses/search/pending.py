"""What the pending evaluations bring by themselves, whatever is decided next.

With P points pending, m their posterior means once their outcomes are known and eta the incumbent,

    w = E[max(eta - min_p m_p, 0)],  m ~ N(mu, S (S + noise I)^-1 S)                                     [eq:pending]

mu and S the posterior of f at the pending points; without noise m is f itself. With constraints the minimum is that over those
that turn out feasible. A forecast counts w in every entry
(``lookahead.rollout``), a decision about further evaluations must not: it is paid for already.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.feasible_min import log_gain_of
from glasses.gaussian.qmc import QMC
from glasses.runtime.padding import pad_rows, pending_size
from glasses.runtime.program import program
from glasses.search.decision import Problem
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, incumbent, joint


def pending_gain(kernel: Kernel, problem: Problem) -> float:
    """[eq:pending] in the model's units; 0 when nothing is pending."""
    count = len(problem.pending)
    if count == 0:
        return 0.0
    pending = pad_rows(problem.pending, pending_size(count))
    feasibility = problem.feasibility if problem.post.allowed is not None else None
    return float(_gain(problem.post, pending, np.asarray(count), feasibility, kernel=kernel))


@program
def _gain(
    post: Posterior, pending: jax.Array, count: jax.Array, feasibility: Feasibility | None, *, kernel: Kernel
) -> jax.Array:
    mu, S = joint(kernel, post, pending)
    active = jnp.arange(pending.shape[0]) < count
    S = jnp.where(active[:, None] & active[None, :], S, jnp.eye(len(S)))
    learnt = S @ jnp.linalg.solve(S + post.noise * jnp.eye(len(S)), S)
    log_p = None if feasibility is None else feasibility.log_probability(pending, kernel)
    return jnp.exp(log_gain_of(QMC(128), mu, learnt, incumbent(kernel, post), active, log_p))
