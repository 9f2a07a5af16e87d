"""DIRECT, the paper's search: dividing rectangles over the loss itself (Jones et al. 1993, through SciPy).

The loss is deterministic given the candidate set, so DIRECT sees a function and not noise. An expected minimum is given as its
value, not as the logarithm of its gain: unlike an argmax, DIRECT's choices are not invariant under monotone transformations.
Its first sample is the centre of the box, which favours problems with their optimum there. One compiled call per sample: slower
than ``MultiStart``, kept as the paper's option.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, QueryPoint, query_point
from glasses.lookahead.loss import Loss, steps_for, value_for
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program
from glasses.search.decision import Decision, Problem, Valued, decide, horizon, trusting
from glasses.search.exclusion import is_excluded
from glasses.search.propose import candidates_for
from glasses.search.value import with_gain_after_failure
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel

_WORST = 1e12


@dataclass(frozen=True)
class Direct:
    """``evaluations`` samples of the loss per decision; ``locally_biased=False`` is Jones's original."""

    evaluations: int = 400
    locally_biased: bool = False
    candidates: int = 256

    def __post_init__(self) -> None:
        for name, least in (("evaluations", 1), ("candidates", 16)):
            number = getattr(self, name)
            if not (isinstance(number, int) and number >= least):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}.")

    def decide(self, loss: Loss, kernel: Kernel, problem: Problem, rng: np.random.Generator) -> Decision:
        from scipy.optimize import direct

        n = min(horizon(loss, problem.remaining, problem.trust), self.candidates)
        candidates = trusting(loss, candidates_for(kernel, problem, self.candidates, rng), problem.trust)
        candidates = with_gain_after_failure(candidates, problem, n, kernel, loss)
        remaining, size = np.asarray(n), horizon_size(n)

        def look_at(x: np.ndarray) -> tuple[jax.Array, Valued]:
            return _loss_at(candidates, x, problem.cost_at(x[None]), remaining, kernel=kernel, loss=loss, size=size)

        found = direct(
            lambda x: float(look_at(x)[0]),
            [(0.0, 1.0)] * problem.d,
            maxfun=self.evaluations,
            maxiter=self.evaluations,
            locally_biased=self.locally_biased,
            vol_tol=0.0,
        )
        return decide(candidates, look_at(found.x)[1])


@program
def _loss_at(
    candidates: CandidateSet,
    x: jax.Array,
    cost: jax.Array | None,
    remaining: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    size: int,
) -> tuple[jax.Array, Valued]:
    """The loss at one point (of the lattice, the nearest), up to a constant, and the point as a valued one."""
    x = snap(candidates.lattice, x)

    def query(each: CandidateSet) -> QueryPoint:
        return query_point(kernel, each, x).costing(cost)

    at, steps = query(candidates), steps_for(loss, candidates, query, remaining, size)
    value = value_for(loss, candidates, query, steps, remaining)
    as_loss = -jnp.exp(value) if loss.is_gain else -value
    as_loss = jnp.where(jnp.isfinite(as_loss) & ~is_excluded(candidates, x[None], cost)[0], as_loss, _WORST)
    kept = jnp.zeros((1, 0), int) if isinstance(steps, tuple) else steps[None]
    return as_loss, Valued(x[None], value[None], at.mu[None], jnp.sqrt(at.var)[None], kept)
