"""When to stop before the budget is spent: criteria that give a reason to stop, or None.

``criterion.reason(optimizer)`` is a sentence with the numbers, or None to go on. ``|`` stops when one of two criteria does,
``&`` when both do. Notation, in the units of y, with n evaluations left (at most 128 of them are looked at):

    g_k, low_k   what k more evaluations are expected to gain, and the optimistic end of the 80 % band of the best value
                 after them, from ``Optimizer.forecast()``
    w            the part of it that the pending evaluations bring by themselves (``search.pending``)
    c_k          what k more evaluations cost: k, or in the units of a cost the sum over the points of ``Optimizer.plan()``

    Price    stop when  max_k (g_k - w - price c_k) <= 0                                                   [eq:price]
    NoGain   stop when  max(g_n, best - low_n) < share (max y - min y)                                     [eq:nogain]
    Target   stop when  min y <= value

The first two ask for a forecast and hence never stop before the initial evaluations, and d + 2 values, are told. They rely on
it: where few or misleading values make the expected gain too small, they stop too early. Where nothing is left to evaluate, or
nothing new, they give no reason. Cost: a decision and a forecast, both remembered by the optimiser until something is told;
``Target`` needs neither, so it stands first in a composition.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from glasses.loop.ledger import ExhaustedError, TooFewValuesError

if TYPE_CHECKING:  # a study file is read without the numerics
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Forecast


class Criterion(ABC):
    """Says why to stop. One of your own is a subclass with ``reason``."""

    @abstractmethod
    def reason(self, optimizer: Optimizer) -> str | None:
        """Why to stop now, in a sentence with its numbers; None to go on. Asks for nothing and changes nothing."""

    def __or__(self, other: Any) -> AnyOf:
        return AnyOf((*_parts(AnyOf, self), *_parts(AnyOf, other))) if is_criterion(other) else NotImplemented

    def __and__(self, other: Any) -> AllOf:
        return AllOf((*_parts(AllOf, self), *_parts(AllOf, other))) if is_criterion(other) else NotImplemented


@dataclass(frozen=True)
class AnyOf(Criterion):
    """Stops as soon as one of them does; those after it are not asked."""

    criteria: tuple[Criterion, ...]

    def reason(self, optimizer: Optimizer) -> str | None:
        found = (each.reason(optimizer) for each in self.criteria)
        return next((reason for reason in found if reason is not None), None)


@dataclass(frozen=True)
class AllOf(Criterion):
    """Stops when all of them do; those after one that does not are not asked."""

    criteria: tuple[Criterion, ...]

    def reason(self, optimizer: Optimizer) -> str | None:
        reasons = []
        for each in self.criteria:
            reason = each.reason(optimizer)
            if reason is None:
                return None
            reasons.append(reason)
        return " ".join(reasons)


@dataclass(frozen=True)
class Price(Criterion):
    """Stop when no number of further evaluations is expected to be worth it [eq:price].

    ``price``: how much lower the best value must get to be worth one more evaluation, in the units of y. For an optimiser with
    costs, to be worth one unit of cost: further evaluations are then taken to cost what the points of the plan do.

    Examples
    --------
    >>> from glasses import Optimizer, Price
    >>> optimizer = Optimizer([(0, 1)], budget=6, x0=[[0.2], [0.3], [0.8]], y0=[0.02, 0.01, 0.26], noise=0, seed=1)
    >>> print(Price(0.1).reason(optimizer))
    No further evaluations are expected to be worth 0.1 each: 1 more would buy ..., and cost 0.1.
    """

    price: float

    def __post_init__(self) -> None:
        if not (_is_finite(self.price) and self.price > 0):
            raise ValueError(
                f"price must be a positive number of units of y per evaluation, got {self.price!r}: "
                "say what one more evaluation must bring to be worth it."
            )

    def reason(self, optimizer: Optimizer) -> str | None:
        forecast = forecast_of_rest(optimizer)
        if forecast is None:
            return None
        gain = forecast.gain - optimizer._planner.pending_gain()
        costs = _costs(optimizer, len(forecast))
        net = gain - self.price * costs
        k = int(np.argmax(net))
        if net[k] > 0:
            return None
        besides = f", besides what the {len(optimizer.pending)} under way bring" if optimizer.pending else ""
        unit = "each" if optimizer._ledger.cost is None else "per unit of cost"
        return (
            f"No further evaluations are expected to be worth {self.price:.3g} {unit}: "
            f"{k + 1} more would buy {max(gain[k], 0.0):.3g}{besides}, and cost {self.price * costs[k]:.3g}."
        )


@dataclass(frozen=True)
class Target(Criterion):
    """Stop when the best value told is at or below ``value``, at any time.

    With noise one value may be that low by chance. ``maximize``: the optimiser was told negated values; the target is one of
    the values themselves, to be reached from below.

    Examples
    --------
    >>> from glasses import Optimizer, Target
    >>> optimizer = Optimizer([(0, 1)], budget=6, x0=[[0.2], [0.3], [0.8]], y0=[0.02, 0.01, 0.26], noise=0, seed=1)
    >>> Target(0.01).reason(optimizer), Target(0.001).reason(optimizer)
    ('The best value, 0.01, has reached the target, 0.01.', None)
    """

    value: float
    maximize: bool = False

    def __post_init__(self) -> None:
        if not _is_finite(self.value):
            raise ValueError(
                f"target must be a finite number in the units of y, got {self.value!r}: "
                "say which value is good enough, or leave it out."
            )

    def reason(self, optimizer: Optimizer) -> str | None:
        found = optimizer._ledger.best_value
        if math.isinf(found):
            return None
        best = -found if self.maximize else found
        reached = best >= self.value if self.maximize else best <= self.value
        return f"The best value, {best:.6g}, has reached the target, {self.value:.6g}." if reached else None


@dataclass(frozen=True)
class NoGain(Criterion):
    """Stop when no realistic gain is left [eq:nogain]: what all remaining evaluations together are expected to buy, and what
    they buy at the optimistic end of the 80 % band, are below ``share`` of the spread of the values so far.

    The gain of pending evaluations counts. While all values are equal there is no spread to compare with, and no reason.

    Examples
    --------
    >>> from glasses import NoGain, Optimizer, Target
    >>> optimizer = Optimizer([(0, 1)], budget=6, x0=[[0.2], [0.3], [0.8]], y0=[0.02, 0.01, 0.26], noise=0, seed=1)
    >>> print((NoGain() | Target(0.0)).reason(optimizer))
    None
    """

    share: float = 0.001

    def __post_init__(self) -> None:
        if not (_is_finite(self.share) and 0 < self.share < 1):
            raise ValueError(
                f"share must be a number between 0 and 1, got {self.share!r}: "
                "0.001 is a thousandth of the spread of the values so far."
            )

    def reason(self, optimizer: Optimizer) -> str | None:
        forecast = forecast_of_rest(optimizer)
        if forecast is None:
            return None
        values = optimizer._ledger.feasible_values
        least = self.share * (max(values) - min(values))
        gain, hoped = float(forecast.gain[-1]), forecast.best - float(forecast.low[-1])
        if not max(gain, hoped) < least:
            return None
        return (
            f"No realistic gain is left: {len(forecast)} more evaluations are expected to buy {gain:.2g}, "
            f"with luck {hoped:.2g}, less than {least:.2g}, {self.share:.3g} of the spread of the values."
        )


def for_maximizing(criterion: Criterion) -> Criterion:
    """The criterion for an optimiser that is told the negated values of something to be maximised: targets keep their sign."""
    if isinstance(criterion, AnyOf | AllOf):
        return replace(criterion, criteria=tuple(map(for_maximizing, criterion.criteria)))
    return replace(criterion, maximize=True) if isinstance(criterion, Target) else criterion


def is_criterion(given: Any) -> bool:
    """Whether it can be asked for a reason."""
    return not isinstance(given, type) and callable(getattr(given, "reason", None))


def _parts(kind: type[AnyOf] | type[AllOf], criterion: Criterion) -> tuple[Criterion, ...]:
    return criterion.criteria if isinstance(criterion, kind) else (criterion,)


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float | np.number) and math.isfinite(value)


def forecast_of_rest(optimizer: Optimizer) -> Forecast | None:
    """The forecast for all that remains; None while initial evaluations or too few values are told, or when nothing is left."""
    if optimizer.remaining == 0 or optimizer._planner.is_initial() or optimizer.record().nfev < optimizer.n_initial:
        return None
    try:
        return optimizer.forecast()
    except (TooFewValuesError, ExhaustedError):  # or a finite space without a new configuration, nothing that can be paid for
        return None


def _costs(optimizer: Optimizer, n: int) -> np.ndarray:
    """c_k, k = 1..n. Beyond the plan, whose points exhaust what may be spent, evaluations are as cheap as can be."""
    ledger = optimizer._ledger
    if ledger.cost is None:
        return np.arange(1.0, n + 1.0)
    planned = [ledger.cost_of([*optimizer.space.read(x)[0]]) for x in optimizer.plan().points[:n]]
    return np.cumsum(planned + [ledger.cost.cheapest] * (n - len(planned)))
