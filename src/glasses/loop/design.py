"""The initial design: which points are evaluated before the model decides, and where to go when a decision cannot be used."""

from __future__ import annotations

import numpy as np

from glasses.loop.inference import Inference, Purpose
from glasses.loop.ledger import ExhaustedError
from glasses.search.propose import cover
from glasses.space.space import Space

_ENUMERABLE = 100_000


def usual_initial(space: Space, budget: int) -> int:
    """Evaluations before the model decides: 2 per parameter, at least 3, at most half the budget or half of a finite space."""
    return int(max(1, min(max(3, 2 * space.together), budget // 2, space.size / 2)))


def design_point(inference: Inference, k: int, also: list[np.ndarray] | None = None) -> np.ndarray:
    """The first raw point of the initial design that is not taken, after k evaluations; one Sobol sequence per seed.

    ``also``: points that are only planned and count as taken.
    """
    space, ledger = inference.space, inference.ledger
    sequence = space.from_unit(cover(space.d, k + 64, inference.run_rng(Purpose.INITIAL_DESIGN)))
    everything = space.every(_ENUMERABLE)
    if everything is not None:
        shuffled = inference.run_rng(Purpose.ENUMERATION).permutation(everything)
        sequence = np.concatenate([sequence, space.from_unit(shuffled)])
    if ledger.cost is not None:
        sequence = np.concatenate([sequence, ledger.cost.points])
    for x in sequence:
        if not ledger.is_taken(x, also) and ledger.affords(x, also):
            return x
    if ledger.cost is not None:
        raise ExhaustedError(
            f"{ledger.unspent:.6g} of {ledger.budget:g} is left and nothing new was found that it pays for: "
            "the run is complete, or raise optimizer.budget."
        )
    return sequence[k % len(sequence)]  # a finite space too large to enumerate, of which 64 points in a row were taken
