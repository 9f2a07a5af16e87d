"""A loss at given points: what the searches minimise, for ``Optimizer.loss_at`` and plots."""

from __future__ import annotations

import numpy as np

from glasses.lookahead.candidates import CandidateSet
from glasses.lookahead.loss import Loss
from glasses.runtime.batching import BATCH
from glasses.runtime.device import on_accelerator
from glasses.runtime.padding import horizon_size
from glasses.search.decision import Problem, horizon
from glasses.search.look import look_at
from glasses.search.value import SCREENED, values_of, with_gain_after_failure
from glasses.surrogate.kernels import Kernel


def gains_at(
    loss: Loss, kernel: Kernel, candidates: CandidateSet, problem: Problem, X: np.ndarray, remaining: int
) -> tuple[float, np.ndarray]:
    """The incumbent and the expected gain below it at the rows of X, for a loss that is one (``is_gain``)."""
    n = min(horizon(loss, remaining), candidates.n_candidates)
    candidates = with_gain_after_failure(candidates, problem, n, kernel, loss)
    parts = []
    rows = BATCH if on_accelerator() else SCREENED
    for first in range(0, len(X), rows):
        part = X[first : first + rows]
        queries = look_at(candidates, part, problem.cost_at(part), rows, kernel=kernel)
        parts.append(values_of(candidates, queries, len(part), n, loss, size=horizon_size(n))[0])
    return float(candidates.eta), np.exp(np.concatenate(parts))
