"""The forecast correction: what the forecasts of many runs got wrong on average, applied to the next one.

A forecast is exact for the model fitted so far, but the model is fitted again to every value told. Early in a run the data
determine it badly, and what later fits change is not in the forecast. So the correction grows with the data to come: with N
values told and P evaluations pending, t_k = (N + P + k) / (N + P + 1) after k more. With w the gain that the pending
evaluations bring by themselves and r the distance from the median of the values to the best, the part g of a gain that lies
above w becomes

    g -> g + c ln(t_k) sqrt(g r)                                                                               [eq:stretch]

c = a for the expected gain and b for the optimistic end of its band. At the cautious end m evaluations may bring nothing:

    g -> max(g_1, (1 - m / k)_+ g),   g_1 that of the next evaluation                                            [eq:idle]

So a gain of 0 stays 0, every doubling of the data adds the same, and the forecast of the next evaluation, t_1 = 1, does not
change. The logarithm is what runs show: the c that most outcomes need hardly depends on k, from 2 to 50, while a linear t_k - 1
promises too much where few values are told and many evaluations are to come. With costs, k counts the evaluations that can be
paid for. The open-loop gain moves like the expected one at its step and the clairvoyant one like the last, so both stay on
their sides of it.

a, b and m of ``CORRECTION`` come from runs without noise on test functions; docs/how_to_choose.md says how they were fitted and
how accurate they are. Known hyperparameters need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glasses.loop.result import Forecast


@dataclass(frozen=True)
class ForecastCorrection:
    """a and b of [eq:stretch], and m of [eq:idle]."""

    gain: float
    most: float
    idle: int

    def applied(self, forecast: Forecast, values: Sequence[float], pending: int = 0, pending_gain: float = 0.0) -> Forecast:
        """A forecast made with these values told, so many evaluations pending and ``pending_gain`` expected from those."""
        best, r = forecast.best, spread(values, forecast.best)
        told, made = len(values) + pending, forecast.evaluations

        def moved(end: Any, share: float, k: Any = made) -> Any:
            gain = best - end
            return best - np.minimum(gain, pending_gain) - stretched(np.maximum(gain - pending_gain, 0.0), share, told, r, k)

        least = best - forecast.high
        above = np.maximum(least - pending_gain, 0.0)
        least = np.minimum(least, pending_gain) + cautious(above, above[0], self.idle, made)
        return replace(
            forecast,
            expected=moved(forecast.expected, self.gain),
            low=moved(forecast.low, self.most),
            high=best - least,
            open_loop=moved(forecast.open_loop, self.gain),
            clairvoyant=float(moved(forecast.clairvoyant, self.gain, made[-1])),
        )


def spread(values: Sequence[float], best: float) -> float:
    """r: from the median of the values to the best one, which with noise is not the lowest of them."""
    return max(0.0, float(np.median(values)) - best)


def stretched(gain: Any, share: float, told: Any, r: Any, steps: Any) -> Any:
    """[eq:stretch], elementwise."""
    return gain + share * np.log((told + steps) / (told + 1.0)) * np.sqrt(gain * r)


def cautious(gain: Any, first: Any, idle: float, steps: Any) -> Any:
    """[eq:idle], elementwise."""
    return np.maximum(first, np.maximum(1.0 - idle / steps, 0.0) * gain)


CORRECTION = ForecastCorrection(gain=0.35, most=1.6, idle=17)
