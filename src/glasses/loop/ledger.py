"""The ledger of a run: what was told, what failed, what is pending, what the budget leaves. Changes whole or not at all.

Every result has a number, that of the results told before it, which it keeps whatever is corrected or withdrawn. The lists are
in that order, so a corrected ledger is the one of a run that was told the corrected results. ``revision`` changes with every
correction: what was computed from the former data is told apart by it.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from glasses.loop.checks import LARGEST, amount, whole
from glasses.loop.cost import Cost
from glasses.loop.forms import X
from glasses.space.lattice import resolution
from glasses.space.space import Space

_ROUNDING = 1e-12  # of sums of costs
Names = tuple[str | int, ...]
Values = tuple[float, ...]
_POINTS = ("X", "failed", "pending", "first")  # lists of raw points
_REST = ("y", "G", "numbers", "reasons", "failed_numbers")
_FAILED = ("failed", "reasons", "failed_numbers")
_RESULTS = ("X", "y", "G", "numbers", "failed", "reasons", "failed_numbers")


class ExhaustedError(ValueError):
    """Every configuration of a finite space is evaluated or pending."""


class TooFewValuesError(ValueError):
    """Fewer values were told than a forecast needs."""


@dataclass(frozen=True)
class Failure(Generic[X]):
    """An evaluation that failed: its point, as the objective got it, and why."""

    x: X
    reason: str


class Ledger:
    """Raw points and their outcomes. ``count_failures=False`` lets as many failures as the budget go free.

    Without ``cost`` every evaluation costs 1, and all amounts are whole numbers. ``constraints``: the names of those whose
    values every result has beside y (NaN for one that is not known); none, if there are no constraints.
    """

    def __init__(
        self, space: Space, budget: float, count_failures: bool, cost: Cost | None = None, constraints: Names = ()
    ) -> None:
        self.space = space
        self.cost = cost
        self.constraints = constraints
        self._budget = self._checked(budget)
        self.count_failures = count_failures
        self.X: list[np.ndarray] = []
        self.y: list[float] = []
        self.G: list[Values] = []  # the values of the constraints: one tuple per value of y
        self.failed: list[np.ndarray] = []
        self.reasons: list[str] = []
        self.pending: list[np.ndarray] = []
        self.first: list[np.ndarray] = []  # points the user wants tried before anything else
        self.numbers: list[int] = []  # of X and y
        self.failed_numbers: list[int] = []
        self.told = 0  # results so far, withdrawn ones included
        self.revision = 0

    def state(self) -> dict[str, Any]:
        """Everything told, asked and queued, in numbers and texts."""
        plain = {name: [x.tolist() for x in getattr(self, name)] for name in _POINTS}
        found = {**plain, **{name: getattr(self, name) for name in (*_REST, "told", "revision")}}
        if self.constraints:  # JSON has no NaN
            return found | {"G": [[None if math.isnan(g) else g for g in row] for row in self.G]}
        del found["G"]
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` gave."""
        found: dict[str, list[Any]] = {name: [np.array(x, dtype=float) for x in state[name]] for name in _POINTS}
        state = {"G": [[]] * len(state["y"]), **state}
        found |= {name: list(state[name]) for name in _REST}
        found["G"] = [tuple(math.nan if g is None else float(g) for g in row) for row in found["G"]]
        told, numbers = int(state["told"]), [*found["numbers"], *found["failed_numbers"]]
        lengths = [len({len(found[name]) for name in names}) for names in (("X", "y", "G", "numbers"), _FAILED)]
        rows = [x.shape == (self.space.d,) and bool(np.all(np.isfinite(x))) for name in _POINTS for x in found[name]]
        sorted_ones = all(found[name] == sorted(set(found[name])) for name in ("numbers", "failed_numbers"))
        rows += [len(row) == len(self.constraints) for row in found["G"]]
        if lengths != [1, 1] or not all(rows) or not sorted_ones or not set(numbers) <= set(range(told)):
            raise ValueError("its results do not fit together")
        if not all(isinstance(y, int | float) and math.isfinite(y) for y in found["y"]):
            raise ValueError("a value is no number")
        for name, each in found.items():
            setattr(self, name, each)
        self.told, self.revision = told, int(state["revision"])

    def snapshot(self) -> Ledger:
        """The ledger as it is now, whatever is told or asked later."""
        found = copy.copy(self)
        for name in (*_RESULTS, "pending", "first"):
            setattr(found, name, list(getattr(self, name)))
        return found

    def _checked(self, budget: Any) -> float:
        if self.cost is not None:
            return amount("budget", budget)
        if whole("budget", budget, 1) > LARGEST:
            raise ValueError(f"budget must be a number of evaluations that can be done, got one of {len(str(budget))} digits.")
        return int(budget)

    @property
    def budget(self) -> float:
        return self._budget

    @budget.setter
    def budget(self, value: float) -> None:
        value = self._checked(value)
        held = self.cost_of(self.pending)
        used = self.spent + held
        if value * (1 + _ROUNDING) < used:
            raise ValueError(
                f"budget = {value:g} is below what is already used ({self.spent:g} told, "
                f"{held:g} pending): the least possible is {used:g}."
            )
        self._budget = value

    def cost_of(self, points: list[np.ndarray]) -> float:
        """What these raw points cost together."""
        return len(points) if self.cost is None else math.fsum(map(self.cost.of, points))

    @property
    def spent(self) -> float:
        """What the budget has paid for."""
        return self._paid(self.X, self.failed)

    def _paid(self, done: list[np.ndarray], failed: list[np.ndarray]) -> float:
        return self.cost_of(done) + max(0, self.cost_of(failed) - self._free_failures)

    @property
    def spendable(self) -> float:
        """``unspent``, with a margin for the rounding of sums."""
        return self.unspent if self.cost is None else self.unspent + _ROUNDING * self._budget

    @property
    def unspent(self) -> float:
        """What may still be spent."""
        return self._budget - self.spent - self.cost_of(self.pending)

    @property
    def remaining(self) -> int:
        """Evaluations that still fit; with costs, if all were as cheap as the cheapest."""
        if self.cost is None:
            return int(self.spendable)
        return max(0, math.floor(self.spendable / self.cost.cheapest))

    def ahead(self, name: str, given: int | None, most: int) -> int:
        """How many evaluations to look ahead: those given, which must fit, or as many as can be."""
        n = whole(name, most if given is None else given, 1, ": leave it out to look as far as can be")
        if n > max(1, self.remaining):
            raise ValueError(f"{name} = {n} but {self.remaining} {self.of_budget()}: look less far or raise the budget.")
        return n

    def of_budget(self) -> str:
        """What remains of the budget, behind the number of evaluations."""
        if self.cost is None:
            return f"of {self._budget:g} evaluations remain"
        return f"at most fit into the {self.unspent:.6g} left"

    def affords(self, x: np.ndarray, besides: list[np.ndarray] | None = None) -> bool:
        """Whether an evaluation at x can still be paid for, ``besides`` others that are only planned."""
        return self.cost_of([*(besides or []), x]) <= self.spendable

    @property
    def evaluated(self) -> int:
        """Evaluations done or pending, failures included."""
        return len(self.y) + len(self.failed) + len(self.pending)

    @property
    def _free_failures(self) -> float:
        return 0 if self.count_failures else self._budget

    def tell(
        self,
        points: np.ndarray,
        values: list[float | None],
        reason: str | None,
        names: tuple[str, str],
        constraints: Sequence[Values] | None = None,
    ) -> None:
        """Record outcomes; a point that was pending or to be tried first no longer is."""
        if len(values) != len(points):
            raise ValueError(
                f"{names[0]} holds {len(points)} points and {names[1]} {len(values)} values: give one value per point."
            )
        pending, first = list(self.pending), list(self.first)
        for point in points:
            for expected in (pending, first):
                match = self._index_of(point, expected)
                if match is not None:
                    del expected[match]
                    break
        failed = [point for point, value in zip(points, values, strict=True) if value is None]
        done = [point for point, value in zip(points, values, strict=True) if value is not None]
        paid, held = self._paid([*self.X, *done], [*self.failed, *failed]), self.cost_of(pending)
        if paid + held > self._budget * (1 + _ROUNDING):
            unit = "evaluations this would make" if self.cost is None else "this would cost"
            raise ValueError(
                f"budget = {self._budget:g} is below the {paid + held:g} {unit} "
                f"({self.spent:g} told, {self.cost_of([*points]):g} new, {held:g} pending): raise the budget first."
            )
        self.pending, self.first = pending, first
        for point, value, row in zip(points, values, constraints or [()] * len(values), strict=True):
            self._put(self.told, point, value, reason, row)
            self.told += 1

    def _put(self, number: int, point: np.ndarray, value: float | None, reason: str | None, constraints: Values = ()) -> None:
        """Enter a result where its number belongs."""
        numbers = self.failed_numbers if value is None else self.numbers
        at = bisect.bisect(numbers, number)
        numbers.insert(at, number)
        if value is None:
            self.failed.insert(at, point)
            self.reasons.insert(at, reason or "told as failed")
        else:
            self.X.insert(at, point)
            self.y.insert(at, value)
            self.G.insert(at, constraints)

    def _take(self, number: int) -> None:
        """Take a result out."""
        if number in self.numbers:
            at = self.numbers.index(number)
            del self.numbers[at], self.X[at], self.y[at], self.G[at]
        else:
            at = self.failed_numbers.index(number)
            del self.failed_numbers[at], self.failed[at], self.reasons[at]

    def result(self, number: int) -> tuple[np.ndarray, float | None, str | None]:
        """Point, value and reason of a result: no value for one that failed, no reason for one that did not."""
        if number in self.numbers:
            at = self.numbers.index(number)
            return self.X[at], self.y[at], None
        at = self.failed_numbers.index(number)
        return self.failed[at], None, self.reasons[at]

    def constraints_of(self, number: int) -> Values:
        """The values of the constraints of a result; none, if it failed."""
        return self.G[self.numbers.index(number)] if number in self.numbers else ()

    def number_of(self, x: np.ndarray) -> int:
        """The number of the one result at this raw point."""
        found = [
            number
            for number, point in zip(self.numbers + self.failed_numbers, self.X + self.failed, strict=True)
            if self._index_of(x, [point]) is not None
        ]
        if len(found) == 1:
            return found[0]
        shown = self.space.form(x)
        if found:
            numbers = ", ".join(map(str, sorted(found)))
            raise ValueError(f"{shown} was told {len(found)} times, as numbers {numbers}: say which by its number.")
        if self._index_of(x, self.pending) is not None:
            raise ValueError(f"{shown} is pending and has no result yet: tell it, or cancel it.")
        raise ValueError(f"Nothing was told at {shown}: give the point as it was told, or its number in order of telling.")

    def check_number(self, number: int) -> None:
        """Refuse the number of no result."""
        if not 0 <= number < self.told:
            known = f"{self.told} results were told, numbers 0 to {self.told - 1}" if self.told else "nothing was told"
            raise ValueError(f"There is no result number {number}: {known} so far.")
        if number not in self.numbers and number not in self.failed_numbers:
            raise ValueError(f"Result number {number} was withdrawn: tell it again to have it back.")

    def correct(
        self, number: int, point: np.ndarray, value: float | None, reason: str | None, constraints: Values = ()
    ) -> None:
        """Put this in the place of a result."""
        changed = self.snapshot()
        changed._take(number)
        changed._put(number, point, value, reason, constraints)
        used = changed.spent + self.cost_of(self.pending)
        if used > max(self._budget, self.spent + self.cost_of(self.pending)) * (1 + _ROUNDING):
            raise ValueError(
                f"budget = {self._budget:g} is below the {used:g} that are used once this is corrected: raise the budget first."
            )
        self._become(changed)

    def withdraw(self, number: int) -> None:
        """Take a result out of the data; it costs nothing any more."""
        changed = self.snapshot()
        changed._take(number)
        self._become(changed)

    def cancel(self, x: np.ndarray) -> None:
        """Take a raw point out of the pending ones."""
        at = self._index_of(x, self.pending)
        if at is None:
            shown = self.space.form(x)
            remedy = "it was told: withdraw it" if self.is_taken(x) else "optimizer.pending lists those that are"
            raise ValueError(f"{shown} is not pending: {remedy}.")
        self.pending = self.pending[:at] + self.pending[at + 1 :]

    def _become(self, changed: Ledger) -> None:
        for name in _RESULTS:
            setattr(self, name, getattr(changed, name))
        self.revision += 1

    @property
    def feasible(self) -> np.ndarray:
        """Which values violate no constraint."""
        return np.array([not any(g > 0.0 for g in row) for row in self.G], bool)

    @property
    def feasible_values(self) -> list[float]:
        """The values that violate no constraint, in order of arrival."""
        return [y for y, feasible in zip(self.y, self.feasible, strict=True) if feasible]

    @property
    def has_value_inside(self) -> bool:
        """Whether there is a value inside today's ranges, feasible or not."""
        return bool(self.y) and bool(np.any(self.space.is_inside(np.array(self.X))))

    @property
    def best(self) -> int | None:
        """Which value is the lowest of those inside today's ranges that are feasible; None if there is none."""
        if not self.y:
            return None
        values = np.where(self.space.is_inside(np.array(self.X)) & self.feasible, np.array(self.y), np.inf)
        lowest = int(np.argmin(values))
        return lowest if np.isfinite(values[lowest]) else None

    @property
    def best_value(self) -> float:
        """The lowest feasible value inside today's ranges; infinite if there is none."""
        return math.inf if self.best is None else self.y[self.best]

    def next_given(self) -> int | None:
        """Which of the points to be tried first is next: the first that can be paid for; None if there is none."""
        return next((k for k, x in enumerate(self.first) if self.affords(x)), None)

    def is_taken(self, x: np.ndarray, also: list[np.ndarray] | None = None) -> bool:
        """Whether this raw point was evaluated, has failed or is pending."""
        return any(self._index_of(x, some) is not None for some in (self.X, self.failed, self.pending, also or []))

    def is_exhausted(self) -> bool:
        """Whether no configuration of a finite space is left."""
        return self.space.size <= self.evaluated and self.new_configurations() < 1

    def new_configurations(self) -> float:
        """How many configurations were neither evaluated nor asked for; infinite with a continuous parameter."""
        if math.isinf(self.space.size):
            return math.inf
        runnable = {tuple(self.space.from_unit(self.space.to_unit(x))) for x in (*self.X, *self.failed, *self.pending)}
        return self.space.size - sum(self.is_taken(np.array(row)) for row in runnable)

    def failures(self) -> list[Failure]:
        return [Failure(self.space.form(x), reason) for x, reason in zip(self.failed, self.reasons, strict=True)]

    def _index_of(self, x: np.ndarray, among: list[np.ndarray]) -> int | None:
        if not among:
            return None
        apart = np.abs(self.space.to_unit(np.array(among)) - self.space.to_unit(x))
        nearest = int(np.argmin(np.max(apart, axis=1)))
        return nearest if np.all(apart[nearest] < resolution(self.space.lattice)) else None
