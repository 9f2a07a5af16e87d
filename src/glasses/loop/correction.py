"""The forecast correction: what the forecasts of many runs got wrong on average, applied to the next one.

A forecast is exact for the model fitted so far, but the model is fitted again to every value told. Early in a run the data
determine it badly, and what later fits change is not in the forecast. So the correction grows with the data to come: with N
values told and P evaluations pending, t_k = (N + P + k) / (N + P + 1) after k more. With w the gain that the pending
evaluations bring by themselves and r the distance from the median of the values to the best, the part g of a gain that lies
above w becomes

    h = g + c min(k, 50) / 10 ln(t_k) sqrt(g r),      g -> h / (1 + s sqrt(1 - 1 / t_k) min(h / r, 4))         [eq:stretch]

c = a for the expected gain; c = b and s = 0 for the optimistic end of its band. At the cautious end m evaluations may bring
nothing:

    g -> max(g_1, (1 - m / k)_+ g),   g_1 that of the next evaluation                                            [eq:idle]

So a gain of 0 stays 0, more gain stays more, and the forecast of the next evaluation, t_1 = 1, does not change. This is what
runs show: a model that expects a twentieth to a half of r is too modest, the more so the more data are to come, and one that
expects more than r promises too much. Runs of more than 50 further evaluations were too few to fit to. The 4 only keeps the
gain from vanishing where half of the values are the best one. Where a corrected gain would fall with k, the largest so far
holds (``limits``). With costs, k counts the evaluations that can be paid for. The open-loop gain moves like the expected one at
its step and the clairvoyant one like the last.

a, s, b and m of ``CORRECTION`` come from runs without noise on test functions; docs/how_to_choose.md says how they were fitted
and how accurate they are. Known hyperparameters need no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glasses.loop.result import Forecast

_MOST = 4.0  # of h / r in [eq:stretch]
_FAR = 50  # evaluations ahead, beyond which the correction of a gain grows with the data only


@dataclass(frozen=True)
class ForecastCorrection:
    """a and b of [eq:stretch], m of [eq:idle], and s of [eq:stretch]."""

    gain: float
    most: float
    idle: int
    saturation: float = 0.0

    def applied(self, forecast: Forecast, values: Sequence[float], pending: int = 0, pending_gain: float = 0.0) -> Forecast:
        """A forecast made with these values told, so many evaluations pending and ``pending_gain`` expected from those."""
        best, r = forecast.best, spread(values, forecast.best)
        told, made = len(values) + pending, forecast.evaluations

        def moved(end: Any, share: float, saturation: float, k: Any = made) -> Any:
            gain = best - end
            above = np.maximum(gain - pending_gain, 0.0)
            return best - np.minimum(gain, pending_gain) - stretched(above, share, told, r, k, saturation)

        mean = self.gain, self.saturation

        least = best - forecast.high
        above = np.maximum(least - pending_gain, 0.0)
        least = np.minimum(least, pending_gain) + cautious(above, above[0], self.idle, made)
        return replace(
            forecast,
            expected=moved(forecast.expected, *mean),
            low=moved(forecast.low, self.most, 0.0),
            high=best - least,
            open_loop=moved(forecast.open_loop, *mean),
            clairvoyant=float(moved(forecast.clairvoyant, *mean, made[-1])),
        )


def spread(values: Sequence[float], best: float) -> float:
    """r: from the median of the values to the best one, which with noise is not the lowest of them."""
    return max(0.0, float(np.median(values)) - best)


def stretched(gain: Any, share: float, told: Any, r: Any, steps: Any, saturation: float = 0.0) -> Any:
    """[eq:stretch], elementwise."""
    t = (told + steps) / (told + 1.0)
    h = gain + share * np.minimum(steps, _FAR) / 10.0 * np.log(t) * np.sqrt(gain * r)
    times = np.minimum(h, _MOST * r) / np.where(np.asarray(r) > 0, r, 1.0)
    return h / (1.0 + saturation * np.sqrt(1.0 - 1.0 / t) * np.where(np.asarray(r) > 0, times, _MOST))


def cautious(gain: Any, first: Any, idle: float, steps: Any) -> Any:
    """[eq:idle], elementwise."""
    return np.maximum(first, np.maximum(1.0 - idle / steps, 0.0) * gain)


CORRECTION = ForecastCorrection(gain=1.6, most=2.3, idle=19, saturation=2.0)
