"""A space in which some parameters exist beside certain values of others only: of a classifier, its own settings.

A point in the user's form holds the parameters that it has, and a point read may leave others out. In the unit cube an absent
parameter lies at the middle of its range, so two points without it do not differ in it, and a point with it differs from one
without by the parameters that decide about it and by its distance from the middle. Everything that is proposed is *folded*:
moved to the lattice, into the ranges that are allowed, and absent parameters to the middle. A point has one place.

``within`` restricts a space for one decision: some parameters are held at values that are known already, one may have a
narrower range. Numbers beyond such a range are reflected at its ends, which leaves those inside where they are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from glasses.space.lattice import Lattice, entries, on_lattice
from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses.space.presence import Presence, learned
from glasses.space.space import Space

_ENUMERABLE = 100_000


class FoldedLattice(Lattice):
    """A lattice whose points have one place each in a conditional space."""

    space: ConditionalSpace | None = None  # lost where arrays are mapped: compiled programs do not move points

    def folded(self, X: np.ndarray) -> np.ndarray:
        return X if self.space is None else self.space.folded(X)


class ConditionalSpace(Space):
    """Named ``parameters``, and which of them a point has, learned from ``examples``: points in the user's form."""

    def __init__(self, parameters: Mapping[str, Parameter], examples: list[Mapping[str, Any]]) -> None:
        super().__init__(parameters)
        assert self.names is not None
        plain = entries(self.parameters)
        self._middle = on_lattice(plain, np.full((1, self.d), 0.5))[0]
        self._least, self._largest = np.zeros(self.d), np.ones(self.d)
        self._certain = np.zeros(self.d, bool)
        self._settle(plain)
        self._absent = {
            name: each.value(float(each.from_unit(np.array([u]))[0]))
            for name, each, u in zip(self.names, self.parameters, self._middle, strict=True)
        }
        rows = [self._row(example) for example in examples]
        stepped = (plain.cells > 0) | (plain.log_width > 0)
        known = np.array(rows).reshape(-1, self.d) if rows else np.full((1, self.d), 0.5)
        self.presence: Presence = learned(known, plain.is_choice, stepped)

    def _settle(self, plain: Lattice) -> None:
        found = FoldedLattice(*plain)
        found.space = self
        self.__dict__.pop("_every", None)
        self.lattice, self.choice, self._plain_lattice = found, found.is_choice, plain

    def within(self, known: Mapping[str, Any], ranges: Mapping[str, Parameter]) -> ConditionalSpace:
        """The space for a point of which some parameters are known, and others have these ranges."""
        assert self.names is not None
        found = copy.copy(self)
        found._least, found._largest, found._certain = self._least.copy(), self._largest.copy(), self._certain.copy()
        for i, (name, parameter) in enumerate(zip(self.names, self.parameters, strict=True)):
            if name in known:
                raw = parameter.read(known[name], name, name, outside=True)
                found._least[i] = found._largest[i] = float(np.clip(parameter.to_unit(np.array([raw]))[0], 0.0, 1.0))
                found._certain[i] = True
            elif name in ranges:
                found._certain[i], part = True, ranges[name]
                if not isinstance(parameter, Choice) and not isinstance(part, Choice):
                    found._least[i], found._largest[i] = _ends(parameter, part)
        found._settle(self._plain_lattice)
        return found

    @property
    def together(self) -> int:
        """The most parameters that a known point has."""
        return self.presence.most

    @property
    def size(self) -> float:
        return self._product() if self._every is None else float(len(self._every))

    def every(self, limit: int) -> np.ndarray | None:
        return None if self._every is None or len(self._every) > limit else self._every

    def _product(self) -> float:
        return math.prod(math.inf if each.count is None else each.count for each in self.parameters)

    @cached_property
    def _every(self) -> np.ndarray | None:
        """All configurations, each once, or None if there are too many."""
        if self._product() > _ENUMERABLE:
            return None
        plain = Space(dict(zip(self.names or (), self.parameters, strict=True))).every(_ENUMERABLE)
        assert plain is not None
        return np.unique(self.folded(on_lattice(self._plain_lattice, plain)), axis=0)

    def folded(self, X: np.ndarray) -> np.ndarray:
        """Rows of the unit cube on the lattice, each in its one place."""
        low, high = self._least, self._largest
        if np.any(high - low < 1.0):
            width = np.where(high > low, high - low, 1.0)
            away = np.abs((X - low) / width % 2.0)
            reflected = on_lattice(self._plain_lattice, low + width * np.minimum(away, 2.0 - away))
            X = np.where((low <= X) & (high >= X), X, np.where(high > low, reflected, low))
        return np.where(self._has(X), X, self._middle)

    def _has(self, X: np.ndarray) -> np.ndarray:
        return self.presence.of(X) | self._certain

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        rows = np.atleast_2d(np.asarray(unit))
        assert self.lattice is not None
        found = super().from_unit(self.folded(on_lattice(self.lattice, rows)))
        return found[0] if np.ndim(unit) == 1 else found

    def form(self, x: np.ndarray) -> Any:
        has = self._has(self.to_unit(x)[None])[0]
        return {name: value for (name, value), own in zip(super().form(x).items(), has, strict=True) if own}

    def names_of(self, params: Mapping[str, Any]) -> list[str]:
        """The parameters that a point with these values has."""
        row = self._row(params)
        has = self.presence.of(np.where(np.isnan(row), self._middle, row)[None])[0]
        return [name for name, own in zip(self.names or (), has, strict=True) if own]

    def _row(self, params: Mapping[str, Any]) -> np.ndarray:
        """In the unit cube; NaN where a parameter is left out."""
        row = np.full(self.d, np.nan)
        for i, (name, parameter) in enumerate(zip(self.names or (), self.parameters, strict=True)):
            if name in params:
                raw = parameter.read(params[name], name, name, outside=True)
                row[i] = np.clip(parameter.to_unit(np.array([raw]))[0], 0.0, 1.0)
        return row

    def _read_named(self, x: Mapping[str, Any], what: str, outside: bool) -> np.ndarray:
        return super()._read_named({**self._absent, **x}, what, outside)


def _ends(whole: Float | Int, part: Float | Int) -> tuple[float, float]:
    """Where a part of a range lies in the whole of it: with steps, the outer ends of its cells."""
    half = 0.5 * (whole.step or 1) if isinstance(whole, Int) else 0.5 * (whole.step or 0.0)
    low, high = np.clip(whole.to_unit(np.array([part.low - half, part.top + half])), 0.0, 1.0)
    return float(low), float(high)
