"""DIRECT, the paper's search: dividing rectangles over the loss itself (Jones et al. 1993, through SciPy).

The loss is deterministic given the candidate set, so DIRECT sees a function and not noise. An expected minimum is given as its
value, not as the logarithm of its gain: unlike an argmax, DIRECT's choices are not invariant under monotone transformations.
Its first sample is the centre of the box, which favours problems with their optimum there. One compiled call per sample: slower
than ``MultiStart``, kept as the paper's option.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.runtime.padding import horizon_size
from glasses.search.decision import Decision, Problem, Valued, decide, horizon, trusting
from glasses.search.look import look_at
from glasses.search.propose import candidates_for
from glasses.search.value import values_of, with_gain_after_failure
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

        def look(x: np.ndarray) -> tuple[float, Valued]:
            x = snap(problem.lattice, x[None])
            queries = look_at(candidates, x, problem.cost_at(x), 1, kernel=kernel)
            value, steps = values_of(candidates, queries, 1, n, loss, size=horizon_size(n))
            as_loss = -math.exp(value[0]) if loss.is_gain else -float(value[0])
            dear = queries.cost is not None and float(queries.cost[0]) > problem.budget
            excluded = not math.isfinite(as_loss) or bool(np.asarray(queries.excluded)[0]) or dear
            return _WORST if excluded else as_loss, Valued(x, value, queries.mu, np.sqrt(np.asarray(queries.var)), steps)

        found = direct(
            lambda x: look(x)[0],
            [(0.0, 1.0)] * problem.d,
            maxfun=self.evaluations,
            maxiter=self.evaluations,
            locally_biased=self.locally_biased,
            vol_tol=0.0,
        )
        return decide(candidates, candidates.eta, look(found.x)[1])
