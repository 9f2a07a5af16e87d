"""Constraints as they are given: g(x) <= 0 is feasible, as in Optuna.

An optimiser is told the values of the constraints beside y: ``constraints=2`` or their names say which there are. ``minimize``
takes functions too, and evaluates them beside the objective (``WithConstraints``), or ``scipy.optimize.NonlinearConstraint``:

    lb <= f(x) <= ub  is  f(x) - ub <= 0  and  lb - f(x) <= 0,  for every limit that is finite                   [eq:limits]

A value is told whole: as many numbers as there are constraints, or none at all where the evaluation failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glasses.loop.checks import values_of, whole
from glasses.loop.ledger import Names, Values


def constraint_names(given: Any) -> Names:
    """The names that constraints were declared by; of a number of them their positions."""
    if given is None:
        return ()
    if callable(given) or _is_limited(given) or (isinstance(given, list | tuple) and any(map(callable, given))):
        raise ValueError(
            f"An Optimizer evaluates nothing, got the function {given!r} as constraints: say how many there are or give their "
            "names, and tell their values; minimize takes functions."
        )
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return tuple(range(whole("constraints", given, 1)))
    names = tuple(given) if isinstance(given, list | tuple) else ()
    if not names or not all(isinstance(each, str | int) for each in names) or len(set(names)) != len(names):
        raise ValueError(f'constraints must be a number of them or different names such as ["stress", "mass"], got {given!r}.')
    return names


def constraint_values(given: Any, names: Names, values: Sequence[float | None], *, single: bool) -> list[Values]:
    """The values of the constraints told with these values of y (None: it failed), checked."""
    if not names:
        if given is not None:
            raise ValueError(f"constraints = {given!r} was told but none are declared: say so, Optimizer(..., constraints=1).")
        return [()] * len(values)
    rows = [given] if single else given
    if rows is None:
        rows = [None] * len(values)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Sequence | np.ndarray) or len(rows) != len(values):
        raise ValueError(f"constraints must hold the values of each of the {len(values)} points, got {given!r}.")
    prefix = ["constraints" if single else f"constraints[{i}]" for i in range(len(values))]
    return [() if y is None else _row(row, names, what) for row, y, what in zip(rows, values, prefix, strict=True)]


def _row(given: Any, names: Names, what: str) -> Values:
    """The values of one point."""
    if given is None:
        raise ValueError(
            f"A value needs those of its constraints {_listed(names)}: tell(x, y, constraints=...), or y = None if the "
            "evaluation failed."
        )
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ValueError(f"{what} must have the values of {_listed(names)}, got {given!r}.")
        given = [given[name] for name in names]
    row = [given] if np.ndim(given) == 0 or isinstance(given, str | bytes) else list(given)
    if len(row) != len(names):
        raise ValueError(f"{what} must hold {len(names)} values, those of {_listed(names)}, got {len(row)}: {given!r}.")
    found = [values_of(value, f"{what}[{name!r}]", single=True)[0] for name, value in zip(names, row, strict=True)]
    for name, value, number in zip(names, row, found, strict=True):
        if number is None:
            value = value.item() if isinstance(value, np.generic) else value
            raise ValueError(
                f"{what}[{name!r}] must be a finite number, got {value!r}: tell y = None where the evaluation failed."
            )
    return tuple(number for number in found if number is not None)


def _listed(names: Names) -> str:
    return ", ".join(map(repr, names))


class Evaluated(NamedTuple):
    """What an evaluation with constraints gives: y, and the values of the constraints (None: there are none)."""

    y: Any
    constraints: Any


@dataclass(frozen=True)
class _Part:
    """A function and its limits; without limits its one value is that of a constraint."""

    function: Callable[..., Any]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    @property
    def count(self) -> int:
        return 1 if self.low is None or self.high is None else int(np.sum(np.isfinite([self.low, self.high])))

    def values(self, x: Any, name: Any) -> list[Any]:
        """[eq:limits] at x."""
        found = self.function(**x) if isinstance(x, dict) else self.function(x)
        numbers: list[Any] = [found]
        if found is not None and not isinstance(found, str | bytes):
            numbers = list(np.ravel(np.asarray(found, dtype=object)))
        expected = 1 if self.low is None else len(self.low)
        if len(numbers) != expected:
            raise WrongValuesError(
                f"constraints[{name!r}] must give {expected} {'value' if expected == 1 else 'values'}, got {len(numbers)} "
                f"({found!r}): give one function per constraint, or NonlinearConstraint with as many limits."
            )
        if self.low is None or self.high is None or any(each is None for each in numbers):
            return numbers
        upper = [value - high for value, high in zip(numbers, self.high, strict=True) if math.isfinite(high)]
        return upper + [low - value for value, low in zip(numbers, self.low, strict=True) if math.isfinite(low)]


class WrongValuesError(ValueError):
    """What came back is not what was declared: a mistake that ends the run, and no failed evaluation."""


class WithConstraints:
    """An objective with its constraints, as ``minimize`` evaluates it; a class, so that processes can be sent it.

    ``given``: functions, one or in a list or by name, to be evaluated where the objective gave a value; or how many values, or
    the names of those, that the objective returns beside its own: ``return y, [g1, g2]``.
    """

    def __init__(self, fun: Callable[..., Any], given: Any, *, sign: float = 1.0) -> None:
        self.fun, self.sign = fun, sign
        self.parts: dict[str | int, _Part] = {}
        self.names: Names = ()
        if _are_names(given):
            self.names = constraint_names(given)
            return
        if _is_scipy_dict(given):
            given = [given]
        named = (
            given.items() if isinstance(given, Mapping) else enumerate(given if isinstance(given, list | tuple) else [given])
        )
        self.parts = {name: _part(name, each) for name, each in named}
        if not self.parts:
            raise ValueError(f"constraints must be functions g(x), feasible where g(x) <= 0, got {given!r}: leave it out.")
        for name, part in self.parts.items():
            self.names += (name,) if part.count == 1 else tuple(f"{name}[{i}]" for i in range(part.count))

    def __call__(self, *point: Any, **named: Any) -> Evaluated:
        found = self.fun(*point, **named)
        if not self.parts:
            return self._returned(found)
        y = _signed(found, self.sign)
        if values_of(y, "y", single=True)[0] is None:
            return Evaluated(y, None)
        x = named if named else point[0]
        return Evaluated(y, [value for name, part in self.parts.items() for value in part.values(x, name)])

    def _returned(self, found: Any) -> Evaluated:
        if found is None or (isinstance(found, float) and math.isnan(found)):
            return Evaluated(found, None)
        if not isinstance(found, tuple) or len(found) != 2:
            raise WrongValuesError(
                f"With constraints that are not functions the objective must return its value and theirs, such as "
                f"(y, {list(self.names)}), got {found!r}."
            )
        return Evaluated(_signed(found[0], self.sign), found[1])


def with_constraints(fun: Callable[..., Any], given: Any, *, sign: float = 1.0) -> tuple[Callable[..., Any], Names | None]:
    """The objective with these constraints and their names; itself where there are none."""
    if given is None:
        return fun, None
    found = WithConstraints(fun, given, sign=sign)
    return found, found.names


def evaluated_values(given: Any, names: Names) -> tuple[Values | None, str | None]:
    """The values that came back, or why the evaluation is a failure: one of them is not a finite number."""
    answers = given.values() if isinstance(given, Mapping) else np.ravel(np.asarray(given, dtype=object))
    if any(isinstance(each, bool | np.bool_) for each in answers):
        raise WrongValuesError(
            f"Values of constraints must be numbers, feasible where they are at most 0, got {given!r}: return how far from the "
            "limit the point is, or where only yes or no is known raise an exception."
        )
    try:
        return _row(given, names, "constraints"), None
    except ValueError as error:
        wrong_number = given is None or (np.ndim(given) == 1 and len(given) != len(names))
        if wrong_number or (isinstance(given, Mapping) and set(given) != set(names)):
            raise WrongValuesError(str(error)) from None
        return None, str(error)


def _are_names(given: Any) -> bool:
    return isinstance(given, int | np.integer) or (
        isinstance(given, list | tuple) and bool(given) and all(isinstance(each, str) for each in given)
    )


def _part(name: Any, given: Any) -> _Part:
    if _is_limited(given):
        low, high = np.broadcast_arrays(np.atleast_1d(given.lb), np.atleast_1d(given.ub))
        if np.any(low >= high) or not np.any(np.isfinite([low, high])):
            raise ValueError(
                f"constraints[{name!r}] must leave room between lb = {given.lb!r} and ub = {given.ub!r}, one of them finite: "
                "of an equality h(x) = 0 say how near is enough, abs(h(x)) - 0.01 <= 0."
            )
        return _Part(given.fun, tuple(map(float, low)), tuple(map(float, high)))
    if _is_scipy_dict(given):
        raise ValueError(
            f"constraints[{name!r}] must be a function g(x), feasible where g(x) <= 0, got SciPy's {given!r}: there 'ineq' is "
            "fun(x) >= 0, so give a function that returns -fun(x)."
        )
    if not callable(given) or isinstance(given, type):
        raise ValueError(
            f"constraints[{name!r}] must be a function g(x), feasible where g(x) <= 0, or a NonlinearConstraint, got {given!r}."
        )
    return _Part(given)


def _is_limited(given: Any) -> bool:
    """Whether it is a NonlinearConstraint: SciPy is not loaded to see that."""
    return all(hasattr(given, name) for name in ("fun", "lb", "ub")) and callable(given.fun)


def _is_scipy_dict(given: Any) -> bool:
    """Whether it is a constraint as ``scipy.optimize.minimize`` takes it."""
    return isinstance(given, Mapping) and isinstance(given.get("type"), str) and "fun" in given


def _signed(y: Any, sign: float) -> Any:
    """y times the sign, or y itself where it is no number: the failure then says what was really returned."""
    try:
        return y if sign > 0 else -y
    except TypeError:
        return y
