"""The space of the parameters: the user's values on one side, the unit cube on the other, for everything in the library.

A point has three forms: the user's (an array, a list, or a dict when the parameters have names), a *raw* row of floats
(``parameters``) which records keep, and a row of the unit cube, which the numerics see. Points of the cube live on a grid of
2^-30 (a billionth of each side), so that the rounding of a change of units (a shift, a rescaling) does not alter a run.

Data may lie outside the space, where its ranges are not those of the time when they were measured: their numbers in the units
of the cube are below 0 or above 1. Nothing else ever is; what is suggested lies inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from glasses.space.lattice import lattice_of
from glasses.space.parameters import Choice, Float, Int, Parameter, checked_range

_GRID = 2.0**30


class Space:
    """Parameters with or without names: ``(low, high)`` pairs, ``Float``, ``Int``, ``Choice``.

    ``form`` of a point: a dict when the parameters have names, else an array of floats, or a list where some are not floats.
    """

    def __init__(self, bounds: Any) -> None:
        self.names, given = _listed(bounds)
        self.parameters = [_parameter(self.label(i), each) for i, each in enumerate(given)]
        self.lattice = lattice_of(self.parameters)
        self.choice = None if self.lattice is None else self.lattice.is_choice  # which coordinates have no order
        self._low = np.array([0.0 if isinstance(each, Choice) else each.low for each in self.parameters])
        self._high = np.array([each.count if isinstance(each, Choice) else each.high for each in self.parameters], dtype=float)
        self._plain = all(isinstance(each, Float) for each in self.parameters)

    @property
    def d(self) -> int:
        return len(self.parameters)

    @property
    def together(self) -> int:
        """The most parameters that one point has."""
        return self.d

    @property
    def size(self) -> float:
        """How many configurations there are; infinite with a continuous parameter."""
        return math.prod(math.inf if each.count is None else each.count for each in self.parameters)

    @property
    def lower(self) -> np.ndarray:
        """The smallest raw values."""
        return np.array([0.0 if isinstance(each, Choice) else each.low for each in self.parameters], dtype=float)

    @property
    def upper(self) -> np.ndarray:
        """The largest raw values."""
        return np.array([each.count - 1 if isinstance(each, Choice) else each.top for each in self.parameters], dtype=float)

    def label(self, i: int) -> str:
        """How messages call coordinate i."""
        return f"bounds[{i}]" if self.names is None else f"bounds[{self.names[i]!r}]"

    def name(self, i: int) -> str:
        """How tables and pictures call coordinate i."""
        return f"x[{i}]" if self.names is None else self.names[i]

    def to_unit(self, X: np.ndarray) -> np.ndarray:
        """Raw points (n, d) or (d,) in the unit cube, on the grid; data outside the ranges lie outside the cube."""
        columns = [each.to_unit(X[..., i]) for i, each in enumerate(self.parameters)]
        unit = np.round(np.stack(columns, axis=-1) * _GRID) / _GRID + 0.0  # no negative zero
        if self.lattice is None:
            return unit
        within = (self._low <= X) & (self._high >= X)  # a value beyond the last step is
        return np.where(within, np.clip(unit, 0.0, 1.0), unit)

    def is_inside(self, X: np.ndarray) -> Any:
        """Which raw points (n, d) lie inside the ranges; of one point (d,) whether it does."""
        return in_cube(self.to_unit(X))

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """Points of the cube (n, d) or (d,) as raw ones, moved to values that can be run."""
        unit = _on_grid(np.asarray(unit))
        rows = np.atleast_2d(unit)
        raw = np.stack([each.from_unit(rows[:, i]) for i, each in enumerate(self.parameters)], axis=-1)
        return raw[0] if unit.ndim == 1 else raw

    def every(self, limit: int) -> np.ndarray | None:
        """All configurations (size, d) in the unit cube, or None if they are more than ``limit``."""
        if self.size > limit:
            return None
        each = [p.to_unit(all_raw(p)) for p in self.parameters]
        return _on_grid(np.array(list(itertools.product(*each))))

    def form(self, x: np.ndarray) -> Any:
        """One raw point as the user sees it."""
        if self.names is None and self._plain:
            return x.copy()
        values = [each.value(raw) for each, raw in zip(self.parameters, x, strict=True)]
        return values if self.names is None else dict(zip(self.names, values, strict=True))

    def read(self, x: Any, what: str = "x", *, outside: bool = False) -> tuple[np.ndarray, bool]:
        """One point or several, checked: raw ones (n, d), and whether it was a single one.

        ``outside``: numbers beyond their ranges are read as well, as data that were measured there.
        """
        if isinstance(x, Mapping):
            return self._read_named(x, what, outside)[None], True
        if isinstance(x, str | bytes):
            raise ValueError(f"{what} must be numbers, got the text {x!r}.")
        if self.names is not None and _is_list(x) and len(x) and isinstance(x[0], Mapping):
            return np.array([self._read_named(each, f"{what}[{i}]", outside) for i, each in enumerate(x)]), False
        return self._read_array(x, what, outside) if self._plain else self._read_lists(x, what, outside)

    def _read_array(self, x: Any, what: str, outside: bool) -> tuple[np.ndarray, bool]:
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
        rows = [self._read_row(row, what if single else f"{what}[{i}]", outside) for i, row in enumerate(X)]
        return np.array(rows), single

    def _read_lists(self, x: Any, what: str, outside: bool) -> tuple[np.ndarray, bool]:
        """Points of a space with integers or choices: one list of values, or a list of such lists."""
        if not _is_list(x):
            x = [x] if self.d == 1 else x
            if not _is_list(x):
                raise ValueError(f"{what} must hold {self.d} values per point (one for each bound), got {x!r}.")
        several = len(x) > 0 and all(_is_list(each) for each in x) and not self._is_point(x, outside)
        for each in x if several else [x]:
            if len(each) != self.d:
                raise ValueError(f"{what} must hold {self.d} values per point (one for each bound), got {len(each)}: {each!r}.")
        given = x if several else [x]
        rows = [self._read_row(each, f"{what}[{i}]" if several else what, outside) for i, each in enumerate(given)]
        return np.array(rows).reshape(-1, self.d), not several

    def _is_point(self, x: Sequence[Any], outside: bool) -> bool:
        """Whether a list of lists is one point: of choices that are lists themselves."""
        if len(x) != self.d:
            return False
        try:
            self._read_row(x, "x", outside)
        except ValueError:
            return False
        return True

    def _read_named(self, x: Mapping[str, Any], what: str, outside: bool) -> np.ndarray:
        if self.names is None:
            raise ValueError(
                f"{what} must be {self.d} values because the bounds have no names, got a dict: pass its values in order."
            )
        if set(x) != set(self.names):
            raise ValueError(f"{what} must name exactly {', '.join(self.names)}, got {', '.join(map(str, x)) or 'nothing'}.")
        return self._read_row([x[name] for name in self.names], what, outside)

    def _read_row(self, values: Sequence[Any] | np.ndarray, what: str, outside: bool) -> np.ndarray:
        parts = range(self.d) if self.names is None else self.names
        return np.array(
            [
                each.read(value, f"{what}[{part!r}]", self.label(i), outside=outside)
                for i, (each, value, part) in enumerate(zip(self.parameters, values, parts, strict=True))
            ]
        )


def in_cube(unit: np.ndarray) -> Any:
    """Which rows lie in the unit cube."""
    return np.all((unit >= 0.0) & (unit <= 1.0), axis=-1)


def _on_grid(unit: np.ndarray) -> np.ndarray:
    return np.clip(np.round(unit * _GRID) / _GRID, 0.0, 1.0)


def all_raw(p: Parameter) -> np.ndarray:
    """Every raw value of a parameter that has finitely many."""
    assert p.count is not None
    if isinstance(p, Int):
        return np.arange(p.low, p.high + 1, p.step or 1, dtype=float)
    return p.from_unit((np.arange(p.count) + 0.5) / p.count)


def _is_list(x: Any) -> bool:
    return isinstance(x, Sequence | np.ndarray) and not isinstance(x, str | bytes) and np.ndim(np.asarray(x, dtype=object)) > 0


def _listed(bounds: Any) -> tuple[list[str] | None, list[Any]]:
    if isinstance(bounds, Float | Int | Choice):
        raise ValueError(f"bounds must be a list or a dict of parameters, got a single {bounds!r}: write [{bounds!r}].")
    if isinstance(bounds, Mapping):
        for name in bounds:
            if not isinstance(name, str):
                raise ValueError(f"Names of bounds must be text, got {name!r}.")
        names, given = list(bounds), list(bounds.values())
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        low, high = np.broadcast_arrays(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub))
        names, given = None, list(zip(low, high, strict=True))
    else:
        try:
            names, given = None, list(bounds)
        except TypeError:
            raise ValueError(
                f"bounds must be (lower, upper) pairs, a scipy.optimize.Bounds or a dict of name: pair, got {bounds!r}."
            ) from None
    if not given:
        raise ValueError("bounds must hold at least one (lower, upper) pair, got none.")
    return names, given


def _parameter(label: str, given: Any) -> Parameter:
    if isinstance(given, Float | Int | Choice):
        return given
    expected = f"{label} must be a (lower, upper) pair of numbers, Float, Int or Choice, got {given!r}."
    if isinstance(given, type | str | bytes | Mapping):
        raise ValueError(expected)
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(expected) from None
    if any(isinstance(each, str | bytes) for each in (low, high)):
        raise ValueError(f"{expected[:-1]}: for values without an order write Choice({list(given)!r}).")
    return Float(*checked_range(label, low, high))
