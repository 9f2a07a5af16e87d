"""The books of a run: what was told, what failed, what is pending, what the budget leaves. Changes whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glasses.loop.checks import whole
from glasses.space import Space

_SAME = 1e-8  # points of the unit cube nearer than this in every coordinate are one point


class ExhaustedError(ValueError):
    """Every configuration of a finite space is evaluated or pending."""


@dataclass(frozen=True)
class Failure:
    """An evaluation that failed: its point, as the objective got it, and why."""

    x: Any
    reason: str


class Ledger:
    """Raw points and their outcomes. ``count_failures=False`` lets as many failures as the budget go free."""

    def __init__(self, space: Space, budget: int, count_failures: bool) -> None:
        self.space = space
        self._budget = whole("budget", budget, 1)
        self.count_failures = count_failures
        self.X: list[np.ndarray] = []
        self.y: list[float] = []
        self.failed: list[np.ndarray] = []
        self.reasons: list[str] = []
        self.pending: list[np.ndarray] = []
        self.first: list[np.ndarray] = []  # points the user wants tried before anything else

    @property
    def budget(self) -> int:
        return self._budget

    @budget.setter
    def budget(self, value: int) -> None:
        value = whole("budget", value, 1)
        used = self.spent + len(self.pending)
        if value < used:
            raise ValueError(
                f"budget = {value} is below what is already used ({self.spent} told, "
                f"{len(self.pending)} pending): the least possible is {used}."
            )
        self._budget = value

    @property
    def spent(self) -> int:
        """Evaluations that the budget has paid for."""
        return len(self.y) + max(0, len(self.failed) - self._free_failures)

    @property
    def remaining(self) -> int:
        return self._budget - self.spent - len(self.pending)

    @property
    def evaluated(self) -> int:
        """Evaluations done or under way, failures included."""
        return len(self.y) + len(self.failed) + len(self.pending)

    @property
    def _free_failures(self) -> int:
        return 0 if self.count_failures else self._budget

    def tell(self, points: np.ndarray, values: list[float | None], reason: str | None, names: tuple[str, str]) -> None:
        """Record outcomes; a point that was pending or to be tried first no longer is."""
        if len(values) != len(points):
            raise ValueError(
                f"{names[0]} holds {len(points)} points and {names[1]} {len(values)} values: give one value per point."
            )
        pending, first = list(self.pending), list(self.first)
        for point in points:
            for waiting in (pending, first):
                match = self._index_of(point, waiting)
                if match is not None:
                    del waiting[match]
                    break
        failures = sum(value is None for value in values)
        paid = len(self.y) + len(values) - failures + max(0, len(self.failed) + failures - self._free_failures)
        if paid + len(pending) > self._budget:
            raise ValueError(
                f"budget = {self._budget} is below the {paid + len(pending)} evaluations this would make "
                f"({self.spent} told, {len(points)} new, "
                f"{len(pending)} pending): raise the budget first."
            )
        self.pending, self.first = pending, first
        for point, value in zip(points, values, strict=True):
            if value is None:
                self.failed.append(point)
                self.reasons.append(reason or "told as failed")
            else:
                self.X.append(point)
                self.y.append(value)

    def is_taken(self, x: np.ndarray, also: list[np.ndarray] | None = None) -> bool:
        """Whether this raw point was evaluated, has failed or is pending."""
        return any(self._index_of(x, some) is not None for some in (self.X, self.failed, self.pending, also or []))

    def is_exhausted(self) -> bool:
        """Whether no configuration of a finite space is left."""
        if self.space.size > self.evaluated:
            return False
        runnable = {tuple(self.space.from_unit(self.space.to_unit(x))) for x in (*self.X, *self.failed, *self.pending)}
        exact = {row for row in runnable if self.is_taken(np.array(row))}
        return len(exact) >= self.space.size

    def failures(self) -> list[Failure]:
        return [Failure(self.space.form(x), reason) for x, reason in zip(self.failed, self.reasons, strict=True)]

    def _index_of(self, x: np.ndarray, among: list[np.ndarray]) -> int | None:
        if not among:
            return None
        near = np.max(np.abs(self.space.to_unit(np.array(among)) - self.space.to_unit(x)), axis=1) < _SAME
        return int(np.argmax(near)) if near.any() else None
