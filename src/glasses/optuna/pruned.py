"""What a pruned trial would have come to: its last intermediate value, carried on as the completed trials went on from there.

With v the value that it reported at step s, v_i what the completed trials reported at s and f_i their final values,

    f = median(f_i - b v_i) + b v,   b = median over pairs (f_i - f_j) / (v_i - v_j), within [0, 1]              [eq:pruned]

Theil and Sen's line, which single odd trials do not move. b = 1 with fewer than three completed trials: differences stay what
they are. b lies within [0, 1] because trials rather come closer to each other while they go on. Where no completed trial
reported at s, the last step before it that some reported at is taken; without one the value is v as it is.

An early value is far from any final one. Taken as it is, it tells the model of a cliff that is none: in the benchmark of
docs/how_to/pruning.md a pruner then saved little or nothing by the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from optuna.trial import FrozenTrial, TrialState

_FEWEST = 3  # completed trials for a slope
_MOST = 200  # the last ones; their pairs are many


class Continuation:
    """How the completed ones of some trials went on from each step."""

    def __init__(self, trials: Iterable[FrozenTrial]) -> None:
        self._completed = [each for each in trials if each.state == TrialState.COMPLETE]
        self._lines: dict[int, tuple[float, float] | None] = {}

    def value(self, trial: FrozenTrial) -> float | None:
        """[eq:pruned]; NaN or infinite where the last value is, None without intermediate values."""
        reported, last = trial.intermediate_values, trial.last_step
        if last is None or not math.isfinite(reported[last]):
            return None if last is None else reported[last]
        for step in sorted(reported, reverse=True):
            line = self._line(step)
            if line is not None and math.isfinite(reported[step]):
                return line[0] + line[1] * reported[step]
        return reported[last]

    def _line(self, step: int) -> tuple[float, float] | None:
        """Offset and slope from the values at a step to the final ones; None if no completed trial reported there."""
        if step not in self._lines:
            pairs = [
                (each.intermediate_values[step], each.value)
                for each in self._completed
                if each.value is not None and math.isfinite(each.intermediate_values.get(step, math.nan))
            ]
            self._lines[step] = line_through(np.array(pairs[-_MOST:], dtype=float)) if pairs else None
        return self._lines[step]


def line_through(pairs: np.ndarray) -> tuple[float, float]:
    """Offset and slope of Theil and Sen's line through the rows (v, f), the slope within [0, 1]."""
    early, final = pairs.T
    i, j = np.triu_indices(len(pairs), 1)
    apart = early[i] - early[j]
    differ = apart != 0
    slope = 1.0
    if len(pairs) >= _FEWEST and np.any(differ):
        slope = float(np.clip(np.median((final[i] - final[j])[differ] / apart[differ]), 0.0, 1.0))
    return float(np.median(final - slope * early)), slope
