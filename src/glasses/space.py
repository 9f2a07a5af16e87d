"""The box of the parameters: the user's units on one side, the unit cube on the other.

Points of the cube live on a grid of 2^-30 (a billionth of each side). The optimiser sees a point through this grid, so that
the rounding of a change of units (a shift, a rescaling) does not alter a run, while records keep the user's own numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_GRID = 2.0**30
_SLACK = 1e-9  # a point this far outside, relative to the side, is rounding and not a mistake


class Space:
    """A box with or without names. ``form`` of a point: an array, or a dict when the parameters have names."""

    def __init__(self, bounds: Any) -> None:
        self.names, pairs = _pairs(bounds)
        checked = [_checked_pair(self.label(i), pair) for i, pair in enumerate(pairs)]
        self.lower = np.array([low for low, _ in checked])
        self.upper = np.array([high for _, high in checked])

    @property
    def d(self) -> int:
        return self.lower.size

    def label(self, i: int) -> str:
        """How messages call coordinate i."""
        return f"bounds[{i}]" if self.names is None else f"bounds[{self.names[i]!r}]"

    def to_unit(self, X: np.ndarray) -> np.ndarray:
        """Checked points (n, d) in the unit cube, on the grid."""
        unit = (X - self.lower) / (self.upper - self.lower)
        return np.clip(np.round(unit * _GRID) / _GRID, 0.0, 1.0)

    def snap(self, unit: np.ndarray) -> np.ndarray:
        """Points of the cube, on the grid."""
        return np.clip(np.round(np.asarray(unit) * _GRID) / _GRID, 0.0, 1.0)

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """Points of the cube in the user's units."""
        return np.clip(self.lower + unit * (self.upper - self.lower), self.lower, self.upper)

    def form(self, x: np.ndarray) -> Any:
        """One point as the user sees it."""
        return x.copy() if self.names is None else dict(zip(self.names, x.tolist(), strict=True))

    def read(self, x: Any, what: str = "x") -> tuple[np.ndarray, bool]:
        """One point or several, checked: an (n, d) array, and whether it was a single one."""
        if isinstance(x, Mapping):
            return self._read_named(x, what)[None], True
        if (
            self.names is not None
            and not isinstance(x, np.ndarray)
            and _is_sequence(x)
            and len(x)
            and isinstance(x[0], Mapping)
        ):
            return np.array([self._read_named(each, f"{what}[{i}]") for i, each in enumerate(x)]), False
        if isinstance(x, str | bytes):
            raise ValueError(f"{what} must be numbers, got the text {x!r}.")
        try:
            X = np.array(x, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"{what} must be {self.d} numbers per point, got {x!r}: check for text or ragged rows.") from None
        single = X.ndim < 2
        if X.ndim == 0 and self.d == 1:
            X = X[None]
        X = np.atleast_2d(X) if X.ndim else X
        if X.ndim != 2 or X.shape[1] != self.d:
            raise ValueError(
                f"{what} must hold {self.d} {'number' if self.d == 1 else 'numbers'} per point (one "
                f"for each bound), got shape {np.shape(x)}."
            )
        for i, row in enumerate(X):
            self._check(row, what if single else f"{what}[{i}]")
        return np.clip(X, self.lower, self.upper), single

    def _read_named(self, x: Mapping[str, Any], what: str) -> np.ndarray:
        if self.names is None:
            raise ValueError(
                f"{what} must be {self.d} numbers because the bounds have no names, got a dict: pass its values in order."
            )
        if set(x) != set(self.names):
            raise ValueError(f"{what} must name exactly {', '.join(self.names)}, got {', '.join(map(str, x)) or 'nothing'}.")
        try:
            row = np.array([float(x[name]) for name in self.names])
        except (TypeError, ValueError):
            raise ValueError(f"{what} must map every name to a number, got {dict(x)!r}.") from None
        self._check(row, what)
        return np.clip(row, self.lower, self.upper)

    def _check(self, row: np.ndarray, what: str) -> None:
        for i, value in enumerate(row):
            part = f"{what}[{i}]" if self.names is None else f"{what}[{self.names[i]!r}]"
            if not math.isfinite(value):
                raise ValueError(f"{part} is {value}: coordinates must be finite numbers.")
            slack = _SLACK * (self.upper[i] - self.lower[i])
            if not self.lower[i] - slack <= value <= self.upper[i] + slack:
                raise ValueError(
                    f"{part} = {value:g} lies outside [{self.lower[i]:g}, {self.upper[i]:g}]: move the "
                    f"point or widen {self.label(i)}."
                )


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str | bytes)


def _pairs(bounds: Any) -> tuple[list[str] | None, list[Any]]:
    if isinstance(bounds, Mapping):
        for name in bounds:
            if not isinstance(name, str):
                raise ValueError(f"Names of bounds must be text, got {name!r}.")
        names, pairs = list(bounds), list(bounds.values())
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        low, high = np.broadcast_arrays(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub))
        names, pairs = None, list(zip(low, high, strict=True))
    else:
        try:
            names, pairs = None, list(bounds)
        except TypeError:
            raise ValueError(
                f"bounds must be (lower, upper) pairs, a scipy.optimize.Bounds or a dict of name: pair, got {bounds!r}."
            ) from None
    if not pairs:
        raise ValueError("bounds must hold at least one (lower, upper) pair, got none.")
    return names, pairs


def _checked_pair(label: str, pair: Any) -> tuple[float, float]:
    if isinstance(pair, str | bytes):
        raise ValueError(f"{label} must be a (lower, upper) pair of numbers, got {pair!r}.")
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise ValueError(f"{label} must be a (lower, upper) pair of numbers, got {pair!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{label} = ({low:g}, {high:g}) must be finite: give the range you would really try.")
    if low == high:
        raise ValueError(f"{label} = ({low:g}, {high:g}) has no width: leave a parameter that cannot vary out of the bounds.")
    if low > high:
        raise ValueError(f"{label} = ({low:g}, {high:g}) has lower above upper: swap them.")
    if not math.isfinite(high - low) or high - low < 1e-8 * max(abs(low), abs(high)) or high - low < 1e-290:
        raise ValueError(f"{label} = ({low:g}, {high:g}) cannot be resolved in floating point: rescale this parameter.")
    return low, high
