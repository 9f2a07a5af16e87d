"""What a study may spend: a number of evaluations, or with ``[cost]`` an amount; and what each trial takes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.loop.cost import Cost
from glasses.optuna.distributions import Placing
from glasses.optuna.trials import known_point
from glasses.space.space import Space
from glasses.study.file import StudyFile

_ROUNDING = 1e-9  # of sums of costs


class Budget:
    """The budget of a study file. Without ``[cost]`` every trial takes 1, and all amounts are whole numbers.

    A trial whose point is not decided yet takes what the cheapest does; one that has no place in today's space (``Placing``)
    what is usual, the median. A trial is priced by what the file says today, at the point where it was done.
    """

    def __init__(self, file: StudyFile, placing: Placing) -> None:
        self.whole = file.budget
        self.unit = file.cost_unit
        self.cost = None if file.cost is None else Cost(Space(file.parameters), file.cost)
        self.cheapest: float = 1 if self.cost is None else self.cost.cheapest
        self._placing = placing
        self._kept: dict[tuple[Any, ...], float] = {}

    def of(self, trial: FrozenTrial) -> float:
        """What a trial takes."""
        if self.cost is None:
            return 1
        point = known_point(trial, self._placing)
        return self.at(point) if point else self.cost.usual if trial.params else self.cheapest

    def at(self, point: dict[str, Any]) -> float:
        """What an evaluation at this point takes."""
        if self.cost is None:
            return 1
        key = tuple(point.items())
        if key not in self._kept:
            self._kept[key] = self.cost.of(self.cost.space.read(point, outside=True)[0][0])
        return self._kept[key]

    def sum(self, trials: Iterable[FrozenTrial]) -> float:
        """What these trials take together."""
        taken = [self.of(trial) for trial in trials]
        return len(taken) if self.cost is None else math.fsum(taken)

    def used(self, counted: Iterable[FrozenTrial]) -> float:
        """What is spent or held by what is running."""
        return self.sum(trial for trial in counted if trial.state != TrialState.WAITING)

    def pays(self, amount: float) -> bool:
        """Whether the budget is at least this amount, but for the rounding of sums."""
        return amount <= self.whole if self.cost is None else amount <= self.whole * (1 + _ROUNDING)

    def left(self, used: float) -> float:
        """What is left once so much is used."""
        left = max(0, self.whole - used)
        return left if self.cost is None or left > _ROUNDING * self.whole else 0.0

    def fitting(self, used: float) -> int:
        """How many evaluations still fit, if all are as cheap as the cheapest."""
        if self.cost is None:
            return int(self.left(used))
        return max(0, math.floor((self.whole * (1 + _ROUNDING) - used) / self.cheapest))

    def startable(self, counted: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """The waiting ones of the counted trials that may be run, in the order of their numbers.

        Without costs they are among the first of as many as the budget. With costs what waits is taken as long as it fits
        besides all that is done or running; what does not fit is passed over and holds nothing.
        """
        if self.cost is None:
            return [trial for trial in counted[: int(self.whole)] if trial.state == TrialState.WAITING]
        used, found = self.used(counted), []
        for trial in counted:
            if trial.state == TrialState.WAITING and self.pays(used + self.of(trial)):
                used += self.of(trial)
                found.append(trial)
        return found

    def words(self, amount: float, things: str = "") -> str:
        """An amount of the whole: ``3 of 20 evaluations`` or ``12.5 of 100 EUR``; ``things``: what is counted without costs."""
        return amount_words(amount, self.whole, things if self.cost is None else self.unit)

    def priced(self, amount: float) -> str:
        """An amount of costs with its unit."""
        return f"{amount:.6g}{f' {self.unit}' if self.unit else ''}"


def amount_words(amount: float, whole: float, unit: str | None) -> str:
    """Whole numbers as they are, others to six digits: an amount of the whole, with its unit if there is one."""
    shown = [f"{each:.6g}" if isinstance(each, float) else str(each) for each in (amount, whole)]
    return f"{shown[0]} of {shown[1]}{f' {unit}' if unit else ''}"
