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
