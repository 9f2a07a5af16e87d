"""What no forecast goes beyond: the best value that is possible, where the user knows one, and its own bounds.

Let L be the distance from the best value so far to the best possible one. A gain G that is exponentially distributed with mean
g has the mean below once what lies beyond L is cut off; it is g where g is small beside L, never above L, and grows with g:

    g -> E[min(G, L)] = g (1 - exp(-L / g)),     q -> min(q, L)   for quantiles, which is exact                  [eq:limit]

The means are the expected best value, the open loop and the clairvoyant value; the quantiles are the ends of the band.

Order, for gains after k = 1, 2, ... evaluations: none falls with k, and                                         [eq:order]

    0 <= least_k <= expected_k <= most_k <= clairvoyant,      open_loop_k <= clairvoyant

The ends of the band are widened to where the mean is: that may lie outside the quantiles where one run in twenty brings much.
The clairvoyant value is an average too; where the band, which is about single runs and models still to be fitted, reaches
further, it is moved out to the band's end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glasses.loop.result import Forecast


class BestPossibleWarning(UserWarning):
    """A value was told that beats the best possible one."""


def beaten(best_possible: float, value: float) -> str:
    """What is said when a value told is better than the best possible one."""
    return (
        f"best_possible = {best_possible:.6g} is to be a value that none can beat, but {value:.6g} was told: "
        "forecasts leave it out until it is corrected."
    )


def limited_mean(gain: Any, most: float) -> Any:
    """[eq:limit] of a mean gain, elementwise."""
    g = np.maximum(np.asarray(gain, dtype=float), 0.0)
    ratio = np.divide(most, g, out=np.full(g.shape, np.inf), where=g > 0)
    return np.minimum(-g * np.expm1(-ratio), most)


def limited(forecast: Forecast, best_possible: float) -> Forecast:
    """The forecast with nothing beyond the best possible value [eq:limit]."""
    best, least = forecast.best, min(forecast.best, best_possible)

    def mean(value: Any) -> Any:
        return np.maximum(best - limited_mean(best - value, best - least), least)  # not below it by rounding either

    return replace(
        forecast,
        expected=mean(forecast.expected),
        low=np.maximum(forecast.low, least),
        high=np.maximum(forecast.high, least),
        open_loop=mean(forecast.open_loop),
        clairvoyant=float(mean(forecast.clairvoyant)),
    )


def in_order(forecast: Forecast) -> Forecast:
    """The forecast with [eq:order]."""
    best = forecast.best

    def never_up(values: np.ndarray) -> np.ndarray:
        return np.minimum.accumulate(np.minimum(values, best))

    expected, open_loop = never_up(forecast.expected), never_up(forecast.open_loop)
    low = np.minimum(never_up(forecast.low), expected)
    high = np.maximum(never_up(forecast.high), expected)
    clairvoyant = min(forecast.clairvoyant, float(low[-1]), float(open_loop[-1])) if len(forecast) else forecast.clairvoyant
    return replace(forecast, expected=expected, open_loop=open_loop, low=low, high=high, clairvoyant=clairvoyant)
