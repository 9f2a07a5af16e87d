"""What is changed afterwards in a run: corrections, withdrawals and cancellations, one record each. None is ever overwritten.

Everything is checked first; then the ledger changes, whole or not at all, and the record is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glasses.loop.checks import values_of
from glasses.loop.constraints import constraint_values
from glasses.loop.ledger import Ledger, Values


@dataclass(frozen=True, eq=False)
class Change:
    """One change. Points have the form the objective takes; a value of None is a failed evaluation.

    ``what``: "correct", "withdraw" or "cancel". ``number``: which result, in order of telling; None for a pending point.
    ``x``, ``y``: what was there before. ``new_x``, ``new_y``: what is there now; None where it was taken out. ``constraints``,
    ``new_constraints``: the values of constraints, likewise; None where there are none.
    """

    what: str
    number: int | None
    x: Any
    y: float | None
    new_x: Any = None
    new_y: float | None = None
    reason: str | None = None
    constraints: Values | None = None
    new_constraints: Values | None = None


class History:
    """The changes of one ledger, in order."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.space = ledger, ledger.space
        self.changes: list[Change] = []

    def correct(self, x: Any, y: Any, at: Any, reason: str | None, constraints: Any = ...) -> None:
        """``Optimizer.correct``; y and constraints are Ellipsis where the values stay."""
        number = self._number(x)
        point, value, why = self.ledger.result(number)
        if y is ... and at is None and constraints is ...:
            raise ValueError("There is nothing to correct: give the value y, the point at, or both.")
        new_value = value if y is ... else values_of(y, "y", single=True)[0]
        row = self.ledger.constraints_of(number)
        new_row = row if constraints is ... and new_value is not None and (row or not self.ledger.constraints) else None
        if new_row is None:
            given = None if constraints is ... else constraints
            new_row = constraint_values(given, self.ledger.constraints, [new_value], single=True)[0]
        new_point = point if at is None else self._one(at, "at")
        self.ledger.correct(number, new_point, new_value, reason or (why if y is ... else None), new_row)
        form = self.space.form
        changed = form(point), value, form(new_point), new_value, reason, row or None, new_row or None
        self.changes.append(Change("correct", number, *changed))

    def withdraw(self, x: Any, reason: str | None) -> None:
        """``Optimizer.withdraw``."""
        number = self._number(x)
        point, value, _ = self.ledger.result(number)
        row = self.ledger.constraints_of(number) or None
        self.ledger.withdraw(number)
        self.changes.append(Change("withdraw", number, self.space.form(point), value, reason=reason, constraints=row))

    def cancel(self, x: Any, reason: str | None) -> None:
        """``Optimizer.cancel``."""
        point = self._one(x, "x", outside=True)
        self.ledger.cancel(point)
        self.changes.append(Change("cancel", None, self.space.form(point), None, reason=reason))

    def _number(self, x: Any) -> int:
        """Which result is meant, by its number or by its point."""
        if isinstance(x, int | np.integer) and not isinstance(x, bool):
            self.ledger.check_number(int(x))
            return int(x)
        return self.ledger.number_of(self._one(x, "x", outside=True))

    def _one(self, x: Any, what: str, *, outside: bool = False) -> np.ndarray:
        points, _ = self.space.read(x, what, outside=outside)
        if len(points) != 1:
            raise ValueError(f"{what} must be one point, got {len(points)}: change them one after the other.")
        return points[0]
