"""Output transforms: the user's values on one side, what the model is fitted to on the other.

A transform is fitted to the values told so far and is then an ``Outputs``: everything that crosses between the two units goes
through it (the posterior's data, incumbent, forecasts, predictions, plots). To add one, write a class with ``fit`` and one
that implements ``Outputs``, and give it to ``GaussianProcess(outputs=...)``; ``tests/surrogate/test_outputs.py`` holds what
every transform must do.

What losses and forecasts assume of z = forward(y):
    increasing   forward(a) < forward(b) whenever a < b, so that the best value is the best value in both units
    affine       at and below the best value told: inverse(z) = inverse(0) + scale z there, with one scale > 0. A gain below
                 the incumbent is then the same gain in both units up to that factor, and every closed form, expected minimum
                 and quantile of a gain is exact in the user's units. Above the best value it may bend.
    equivariant  fitting to a y + b, a > 0, gives the same z: a change of units does not change a run
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np


class Outputs(ABC):
    """A fitted transform. Arrays or numbers in, the same shape out."""

    @abstractmethod
    def forward(self, y: Any) -> Any:
        """Values in the user's units as the model sees them."""

    @abstractmethod
    def inverse(self, z: Any) -> Any:
        """The model's values in the user's units."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The user's units per unit of the model, at and below the best value."""

    @abstractmethod
    def moments(self, mean: Any, sd: Any) -> tuple[Any, Any]:
        """Mean and standard deviation in the user's units of what is normal with these in the model's."""

    def gain(self, gain: Any) -> Any:
        """A gain below the incumbent, in the user's units."""
        return self.scale * gain

    def quantile(self, mean: Any, sd: Any, level: Any) -> Any:
        """The quantile in the user's units of what is normal with this mean and sd in the model's: quantiles keep the order."""
        return self.inverse(mean + sd * _normal_quantile(level))


def _normal_quantile(level: Any) -> Any:
    """Of the standard normal distribution; SciPy would take a quarter of a second to load."""
    found = np.array([NormalDist().inv_cdf(float(each)) for each in np.ravel(level)])
    return found.reshape(np.shape(level))


class OutputTransform(ABC):
    """A kind of transform, before it is fitted: a frozen dataclass."""

    @abstractmethod
    def fit(self, y: np.ndarray) -> Outputs:
        """The transform for these values, of which there is at least one."""


def fitted_outputs(transform: OutputTransform, y: np.ndarray) -> Outputs:
    """``transform.fit(y)``, refused where it breaks what is assumed of it."""
    outputs = transform.fit(y)
    if not isinstance(outputs, Outputs):
        raise ValueError(f"fit of {transform!r} must return Outputs, got {outputs!r}.")
    z = np.asarray(outputs.forward(y))
    in_order = np.all(np.diff(z[np.argsort(y, kind="stable")]) >= 0)
    if not (np.all(np.isfinite(z)) and in_order and 0 < outputs.scale < np.inf):
        raise ValueError(
            f"{transform!r} must give finite numbers in the order of the values and a positive scale, got {z!r} with scale "
            f"{outputs.scale!r}: mend its formulas."
        )
    return outputs


@dataclass(frozen=True)
class Standardize(OutputTransform):
    """z = (y - mean) / sd: zero mean and unit variance; a constant keeps its scale."""

    def fit(self, y: np.ndarray) -> Affine:
        y = np.asarray(y, dtype=float)
        size = float(np.max(np.abs(y)))
        spread = float(np.std(y / size)) if size > 0 else 0.0  # relative first: squares of tiny values vanish
        return Affine(float(np.mean(y)), size * spread if spread > 1e-13 else 1.0)


@dataclass(frozen=True)
class Affine(Outputs):
    """y = centre + scale z."""

    centre: float
    factor: float

    @property
    def scale(self) -> float:
        return self.factor

    def forward(self, y: Any) -> Any:
        return (y - self.centre) / self.factor

    def inverse(self, z: Any) -> Any:
        return self.centre + self.factor * z

    def moments(self, mean: Any, sd: Any) -> tuple[Any, Any]:
        return self.inverse(mean), self.factor * sd


@dataclass(frozen=True)
class Compress(OutputTransform):
    """Bad values compressed: the identity at and below the median m, a logarithm above it, then standardised.

        u = (y - m) / s,   s = m - min y                  c = u for u <= 0,   c = log(1 + u) above           [eq:compress]
        z = (c - mean c) / sd c

    With a long tail of bad values a stationary model is fitted to the tail; compressed, it is fitted to the better half in its
    own units. Where half of the values or more are the best one, s is the median distance of the others from it. Beyond the
    worst value told the logarithm goes on as a straight line, so that the mean and sd of a prediction stay finite in the user's
    units.
    """

    def fit(self, y: np.ndarray) -> Outputs:
        y = np.asarray(y, dtype=float)
        best, worst, centre = float(y.min()), float(y.max()), float(np.median(y))
        if not worst - best > 1e-13 * max(abs(best), abs(worst)):
            return Standardize().fit(y)
        spread = centre - best if centre > best else float(np.median(y[y > best])) - best
        bent = _compressed(y - centre, spread)
        return Compressed(centre, spread, float(np.mean(bent)), float(np.std(bent)), max(worst - centre, 0.0))


@dataclass(frozen=True)
class Compressed(Outputs):
    """[eq:compress] with m, s, the mean and sd of c, and how far above m the worst value told lies."""

    centre: float
    spread: float
    mean: float
    sd: float
    worst: float

    @property
    def scale(self) -> float:
        return self.spread * self.sd

    @property
    def _end(self) -> float:
        """c of the worst value told, where the straight line begins; its slope there is 1 / (s + worst) per unit of y."""
        return float(_compressed(np.asarray(self.worst), self.spread))

    def forward(self, y: Any) -> Any:
        above = np.asarray(y, dtype=float) - self.centre
        c = _compressed(np.minimum(above, self.worst), self.spread)
        return (c + np.maximum(above - self.worst, 0.0) / (self.spread + self.worst) - self.mean) / self.sd

    def inverse(self, z: Any) -> Any:
        return self.centre + self._above(z)

    def moments(self, mean: Any, sd: Any) -> tuple[Any, Any]:
        """By a trapezoidal rule over the law of z: deviations from the middle, so that a small sd is not lost."""
        t = np.linspace(-8.0, 8.0, 257)
        w = np.exp(-0.5 * t * t)
        w /= w.sum()
        mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
        middle = self._above(mean)
        apart = self._above(mean[..., None] + sd[..., None] * t) - middle[..., None]
        largest = np.maximum(np.max(np.abs(apart), axis=-1), 1e-300)
        apart = apart / largest[..., None]  # relative: squares of huge values overflow
        first = apart @ w
        second = np.sqrt((apart - first[..., None]) ** 2 @ w)
        return self.centre + (middle + largest * first), largest * second

    def _above(self, z: Any) -> Any:
        """How far above m a value lies, in the user's units."""
        c, end = self.mean + self.sd * np.asarray(z, dtype=float), self._end
        bent = np.clip(c, 0.0, end)
        with np.errstate(over="ignore"):
            high = np.where(bent < 700.0, self.spread * np.expm1(bent), np.exp(bent + np.log(self.spread)))
        return np.where(c <= 0, self.spread * c, high + (self.spread + self.worst) * np.maximum(c - end, 0.0))


def _compressed(above: np.ndarray, spread: float) -> np.ndarray:
    """c of [eq:compress] of what lies so far above the median."""
    high = np.maximum(above, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        u = above / spread
        logarithm = np.where(u < 1e300, np.log1p(high / spread), np.log(high) - np.log(spread))
    return np.where(above <= 0, u, logarithm)
