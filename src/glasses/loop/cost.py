"""What evaluations cost, for budgets in money, minutes or grams instead of a number of evaluations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from glasses.configuration.unknown import unknown
from glasses.numerics.kronecker import kronecker
from glasses.space.parameters import Choice
from glasses.space.space import Space, all_raw

_LOOKED_AT = 256


class Cost:
    """c(x) > 0: a function called as the objective is, or a table that adds up what each parameter costs.

    Table: ``{name: {value: cost, ...}}`` for a parameter with few values, ``{name: rate}`` for a number that costs its value
    times the rate; parameters that are not named cost nothing. Names are positions where the parameters have none. ``cheapest``
    and ``usual`` (the median) are taken over the corners and all configurations of a small space, 256 even ones of a large
    one; the cheapest of a table is exact. Data outside the bounds, without a positive cost there, are taken to have cost what
    the nearest point inside does.
    """

    def __init__(self, space: Space, given: Any) -> None:
        self.space, self.given = space, given
        self._least: np.ndarray | None = None
        self._function = given if callable(given) else self._table(given)
        self._kept: dict[bytes, float] = {}
        every = space.every(_LOOKED_AT)
        spread = kronecker(space.d, _LOOKED_AT) if every is None else every
        self.points = np.concatenate([self._extremes(), space.from_unit(spread)])
        costs = np.array([self.of(x) for x in self.points])
        self.points, costs = self.points[np.argsort(costs, kind="stable")], np.sort(costs)
        self.cheapest, self.usual = float(costs[0]), float(np.median(costs))

    def _extremes(self) -> np.ndarray:
        """Raw points where a cost may be least or not positive: the corners (the first 256), and a table's cheapest."""
        ends = list(zip(self.space.lower, self.space.upper, strict=True))
        corners = [np.array(corner) for corner in itertools.islice(itertools.product(*ends), _LOOKED_AT)]
        if self._least is not None:
            corners.append(self._least)
        return np.array([*corners, self.space.upper])

    def of(self, x: np.ndarray) -> float:
        """The cost of one raw point."""
        key = x.tobytes()
        if key not in self._kept:
            self._kept[key] = self._asked(x)
        return self._kept[key]

    def at(self, unit: np.ndarray) -> np.ndarray:
        """The cost at each row of the unit cube."""
        return np.array([self.of(x) for x in self.space.from_unit(np.asarray(unit))])

    def _asked(self, x: np.ndarray) -> float:
        point = self.space.form(x)
        value = self._function(**point) if isinstance(point, dict) else self._function(point)
        try:
            cost = float(value)
        except (TypeError, ValueError):
            cost = math.nan
        if not (math.isfinite(cost) and cost > 0):
            inside = np.clip(x, self.space.lower, self.space.upper)
            if np.any(inside != x):
                return self.of(inside)
            value = value.item() if isinstance(value, np.generic) else value
            raise ValueError(
                f"cost must be a positive number everywhere, got {value!r} at {point}: mend the cost function, or where a "
                "table adds up to nothing give a function."
            )
        return cost

    def _table(self, given: Any) -> Callable[..., float]:
        names = list(self.space.names or range(self.space.d))
        if not isinstance(given, Mapping) or not given:
            raise ValueError(
                f"cost must be a function of the point or a table such as {{{names[0]!r}: ...}}, got {given!r}: "
                "leave it out to count evaluations."
            )
        parts: list[tuple[Any, Any]] = []
        least = self.space.lower.copy()
        for name, entry in given.items():
            if name not in names:
                raise ValueError(f"cost: {unknown('parameter', str(name), [repr(each) for each in names])}")
            parameter = self.space.parameters[names.index(name)]
            if isinstance(entry, Mapping):
                if parameter.count is None:
                    raise ValueError(f"cost[{name!r}] lists values of a continuous parameter: give a rate per unit instead.")
                raws = all_raw(parameter)
                values = [parameter.value(raw) for raw in raws]
                if not all(isinstance(value, Hashable) for value in values):
                    raise ValueError(f"cost[{name!r}] cannot be a table, its values are no keys: give a function of the point.")
                absent = [value for value in values if value not in entry]
                if absent:
                    raise ValueError(f"cost[{name!r}] lacks {absent[0]!r}: give a cost for every value.")
                wrong = [value for value in values if not _is_number(entry[value])]
                if wrong:
                    raise ValueError(f"cost[{name!r}][{wrong[0]!r}] must be a number, got {entry[wrong[0]]!r}.")
                least[names.index(name)] = raws[int(np.argmin([entry[value] for value in values]))]
            elif isinstance(parameter, Choice) or not _is_number(entry):
                raise ValueError(f"cost[{name!r}] must be {{value: cost}} or, for a number, a rate per unit, got {entry!r}.")
            elif entry < 0:
                least[names.index(name)] = self.space.upper[names.index(name)]
            parts.append((name, entry))
        self._least = least

        def add(*point: Any, **named: Any) -> float:
            values: Any = named if named else point[0]
            return sum(
                entry.get(values[name], math.nan) if isinstance(entry, Mapping) else entry * values[name]
                for name, entry in parts
                if not named or name in named  # a conditional parameter that is not there costs nothing
            )

        return add


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float | np.number) and not isinstance(given, bool)
