"""Forecasts in the light of hindsight: what went wrong with the forecasts of many runs, put right in the next one.

The model's own forecast is exact about the model, and the model changes on the way. What it says, with N values told, of the
moment when there will be N + k rests on what it believes now; early in a run it believes too little of the function, and
what it learns later was not in the forecast. How far the data will have grown, t_k = (N + k) / (N + 1), says how far to
distrust it. With r the distance from the median of the values to the best of them, a gain g foretold for k more evaluations is

    g -> min(t_k^3 g,  g + c r (t_k - 1))                                                                      [eq:stretch]

c = a for the expected gain and b for the optimistic end of its band; the cautious end is divided by t_k^3. So where the model
sees nothing to gain, nothing is promised; where it sees something, doubling the data may bring a share of r more; and the next
evaluation, t_1 = 1, is left alone. The open-loop gain moves like the expected one at its step and the all-seeing one like
the last, so both stay on their sides of it.

a and b of ``HINDSIGHT`` come from runs of the default planner on the development suite, seeds from 1000 (``glasses campaign
foresight development --fit``); docs/how_to_choose.md shows how they do on seeds from 2000. Known hyperparameters need no
hindsight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glasses.loop.result import Forecast

_POWER = 3


@dataclass(frozen=True)
class Stretch:
    """a and b of [eq:stretch]: shares of the distance from the median to the best value."""

    gain: float
    most: float

    def applied(self, forecast: Forecast, values: Sequence[float]) -> Forecast:
        """A forecast made with these values told."""
        steps, best, r = np.arange(1, len(forecast) + 1), forecast.best, spread(values)

        def moved(end: Any, share: float, k: Any = steps) -> Any:
            return best - stretched(best - end, share, len(values), r, k)

        return replace(
            forecast,
            expected=moved(forecast.expected, self.gain),
            low=moved(forecast.low, self.most),
            high=np.minimum.accumulate(best - cautious(best - forecast.high, len(values), steps)),
            open_loop=moved(forecast.open_loop, self.gain),
            clairvoyant=float(moved(forecast.clairvoyant, self.gain, len(forecast))),
        )


def spread(values: Sequence[float]) -> float:
    """r: from the median of the values to the best of them."""
    return float(np.median(values) - np.min(values))


def stretched(gain: Any, share: float, told: Any, r: Any, steps: Any) -> Any:
    """[eq:stretch], elementwise."""
    t = (told + steps) / (told + 1.0)
    return np.minimum(t**_POWER * gain, gain + share * r * (t - 1.0))


def cautious(gain: Any, told: Any, steps: Any) -> Any:
    """The cautious end of the band, elementwise."""
    return gain * ((told + steps) / (told + 1.0)) ** -_POWER


HINDSIGHT = Stretch(gain=0.2, most=0.5)
