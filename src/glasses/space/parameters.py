"""What can be varied: ``Float``, ``Int`` and ``Choice``, each with its coordinate in the unit interval.

Every parameter has a *raw* number (a float; for a choice the index of its value) and a *unit* coordinate in [0, 1]:

    continuous   u = (v - low) / (high - low), or the same of the logarithms
    k-th of K    u = (k + 1/2) / K                              steps, integers, choices: equal cells, each value a centre
    log integer  u = (log v - a) / (b - a), a = log(low - 1/2), b = log(high + 1/2)

Logarithmic floats: the logarithm of the ratio v / low is taken, or the difference of the logarithms where high / low overflows.

``lattice`` does the same inside compiled programs. What a parameter cannot hold is refused here, in its user's words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

_SLACK = 1e-9  # a value this far outside, relative to the side, is rounding and not a mistake
_LARGEST_INT = 2**53  # beyond, floats no longer hold every integer
FARTHEST = 1e3  # widths of the range: data farther away than this have nothing to say about it


@dataclass(frozen=True)
class Float:
    """A real number between ``low`` and ``high``; ``log``: on a logarithmic scale; ``step``: only low, low + step, ...

    Examples
    --------
    >>> from glasses import Float
    >>> Float(1e-4, 1.0, log=True), Float(0, 0.5, step=0.1)
    (Float(low=0.0001, high=1.0, log=True, step=None), Float(low=0.0, high=0.5, log=False, step=0.1))
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        low, high = checked_range(f"Float({self.low!r}, {self.high!r})", self.low, self.high, log=self.log is True)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        _check_flag("Float", self.log)
        if self.log and low <= 0:
            raise ValueError(f"Float({low:g}, {high:g}, log=True) needs low above 0: raise it or leave log out.")
        if self.step is not None:
            if self.log:
                raise ValueError(f"Float({low:g}, {high:g}) cannot have both log and step: choose one.")
            step = _number(self.step, "step")
            if not (math.isfinite(step) and 0 < step <= (high - low) * (1 + _SLACK)):
                raise ValueError(
                    f"step must be positive and at most {high - low:g}, the width of the range, got {self.step!r}."
                )
            object.__setattr__(self, "step", step)

    @property
    def count(self) -> int | None:
        """How many values there are; None when any number will do."""
        return None if self.step is None else math.floor((self.high - self.low) / self.step + _SLACK) + 1

    @property
    def top(self) -> float:
        """The largest value: ``high``, or the last step below it."""
        return self.high if self.count is None else self._stepped(self.count - 1)

    def to_unit(self, raw: np.ndarray) -> np.ndarray:
        if self.step is not None and self.count is not None:
            return ((raw - self.low) / self.step + 0.5) / self.count
        if self.log and math.isinf(self.high / self.low):
            return (np.log(raw) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        if self.log:
            return np.log(raw / self.low) / math.log(self.high / self.low)
        return (raw - self.low) / (self.high - self.low)

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        if self.step is not None and self.count is not None:
            return np.array([self._stepped(k) for k in _cell(unit, self.count)])
        if self.log and math.isinf(self.high / self.low):
            a, b = math.log(self.low), math.log(self.high)
            return np.clip(np.exp(a + unit * (b - a)), self.low, self.high)
        if self.log:
            return np.clip(self.low * np.exp(unit * math.log(self.high / self.low)), self.low, self.high)
        return np.clip(self.low + unit * (self.high - self.low), self.low, self.high)

    def _stepped(self, k: int) -> float:
        value = float(f"{self.low + k * (self.step or 0.0):.15g}")  # 0.1 + 2 * 0.1 is 0.3
        return min(max(value, self.low), self.high)

    def read(self, value: Any, what: str, label: str, *, outside: bool = False) -> float:
        """The raw number of a value; outside the range is refused, in between two steps is not: it is where it was run.

        ``outside``: values beyond the range are read too, as data that were measured there.
        """
        number = _number(value, what)
        if not math.isfinite(number):
            raise ValueError(f"{what} is {number}: coordinates must be finite numbers.")
        slack = _SLACK * (self.high - self.low)
        if not self.low - slack <= number <= self.high + slack:
            if outside and not (self.log and number <= 0):
                return _placeable(self, number, what)
            raise ValueError(
                f"{what} = {number:g} lies outside [{self.low:g}, {self.high:g}]: move the point or widen {label}."
            )
        return min(max(number, self.low), self.high)

    def value(self, raw: float) -> float:
        return float(raw)


@dataclass(frozen=True)
class Int:
    """A whole number between ``low`` and ``high``, both included; ``log``: on a logarithmic scale; ``step``: every step-th.

    Examples
    --------
    >>> from glasses import Int
    >>> Int(1, 8), Int(1, 1000, log=True)
    (Int(low=1, high=8, log=False, step=None), Int(low=1, high=1000, log=True, step=None))
    """

    low: int
    high: int
    log: bool = False
    step: int | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _whole(getattr(self, name), f"{name} of an Int"))
        _check_flag("Int", self.log)
        if self.low == self.high:
            raise ValueError(f"Int({self.low}, {self.high}) has no width: leave a parameter that cannot vary out.")
        if self.low > self.high:
            raise ValueError(f"Int({self.low}, {self.high}) has low above high: swap them.")
        if self.log and self.low < 1:
            raise ValueError(f"Int({self.low}, {self.high}, log=True) needs low of at least 1: raise it or leave log out.")
        if self.step is not None:
            object.__setattr__(self, "step", _whole(self.step, "step of an Int"))
            if not 1 <= self.step <= self.high - self.low:
                raise ValueError(f"step must be between 1 and {self.high - self.low}, the width of the range, got {self.step}.")
            if self.log and self.step > 1:
                raise ValueError(f"Int({self.low}, {self.high}) cannot have both log and step: choose one.")

    @property
    def count(self) -> int:
        return (self.high - self.low) // (self.step or 1) + 1

    @property
    def top(self) -> int:
        return self.low + (self.count - 1) * (self.step or 1)

    def log_edges(self) -> tuple[float, float]:
        """a and b of the logarithmic scale."""
        return math.log(self.low - 0.5), math.log(self.high + 0.5)

    def to_unit(self, raw: np.ndarray) -> np.ndarray:
        if self.log:
            a, b = self.log_edges()
            return (np.log(raw) - a) / (b - a)
        return ((raw - self.low) / (self.step or 1) + 0.5) / self.count

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        if self.log:
            a, b = self.log_edges()
            return np.clip(np.round(np.exp(a + unit * (b - a))), self.low, self.high)
        return self.low + (self.step or 1) * _cell(unit, self.count).astype(float)

    def read(self, value: Any, what: str, label: str, *, outside: bool = False) -> float:
        number = _number(value, what)
        if not (math.isfinite(number) and number == round(number)):
            raise ValueError(f"{what} must be a whole number, got {value!r}: round it to what was really run.")
        if not self.low <= number <= self.high:
            if outside and not (self.log and number <= 0):
                return _placeable(self, number, what)
            raise ValueError(f"{what} = {number:.0f} lies outside [{self.low}, {self.high}]: move the point or widen {label}.")
        return number

    def value(self, raw: float) -> int:
        return round(raw)


@dataclass(frozen=True)
class Choice:
    """One of several values without an order: ``Choice(["rbf", "linear"])``.

    Values are looked up by hash; those that have none (arrays, dicts, sets) are compared with every other.

    Examples
    --------
    >>> from glasses import Choice
    >>> Choice(["rbf", "linear"])
    Choice(values=('rbf', 'linear'))
    """

    values: tuple[Any, ...]

    def __init__(self, values: Sequence[Any]) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray | set | frozenset):
            raise ValueError(f"Choice takes a list of values, got {values!r}.")
        if isinstance(values, set | frozenset):
            raise ValueError(f"Choice takes a list, because a set has no fixed order: Choice({sorted(map(repr, values))}).")
        given = tuple(each.item() if isinstance(each, np.generic) else each for each in values)
        if len(given) < 2:
            raise ValueError(f"Choice needs at least 2 values, got {list(given)!r}: leave a parameter that cannot vary out.")
        if len(given) > 10_000:
            raise ValueError(f"Choice holds at most 10,000 values, got {len(given)}: use Int or Float for a scale.")
        object.__setattr__(self, "values", given)
        for i, each in enumerate(given):
            if any(_same(each, given[j]) for j in self._alike(each) if j < i):
                raise ValueError(f"Choice holds {each!r} twice: every value must be different.")

    def __getstate__(self) -> dict[str, Any]:
        return {"values": self.values}  # without the digests, which differ from process to process

    @cached_property
    def _positions(self) -> dict[int | None, list[int]]:
        """Where the values of each digest stand; under None those that have no digest."""
        table: dict[int | None, list[int]] = {}
        for i, each in enumerate(self.values):
            table.setdefault(_digest(each), []).append(i)
        return table

    def _alike(self, value: Any) -> Iterable[int]:
        """Positions of all values that may be the same as this one, the likely ones first."""
        scalar = isinstance(value, np.generic)
        digest = _digest(value.item() if scalar else value)
        if digest is None:
            return range(self.count)
        others = range(self.count) if scalar else self._positions.get(None, ())
        return itertools.chain(self._positions.get(digest, ()), others)

    @property
    def count(self) -> int:
        return len(self.values)

    def to_unit(self, raw: np.ndarray) -> np.ndarray:
        return (raw + 0.5) / self.count

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        return _cell(unit, self.count).astype(float)

    def read(self, value: Any, what: str, label: str, *, outside: bool = False) -> float:
        for i in self._alike(value):
            if _same(self.values[i], value):
                return float(i)
        shown = ", ".join(repr(each) for each in self.values[:8]) + (", ..." if self.count > 8 else "")
        raise ValueError(f"{what} must be one of {shown}, got {value!r}.")

    def value(self, raw: float) -> Any:
        return self.values[round(raw)]


Parameter = Float | Int | Choice


def _placeable(parameter: Float | Int, number: float, what: str) -> float:
    """A number beyond the range, where the unit interval is long enough for it."""
    u = float(parameter.to_unit(np.array([number]))[0])
    if not abs(u) <= FARTHEST:
        raise ValueError(
            f"{what} = {number:g} lies {FARTHEST:g} times the width of the range away from it: leave it out or widen the range."
        )
    return number


def checked_range(label: str, low: Any, high: Any, *, log: bool = False) -> tuple[float, float]:
    """A range that floating point can resolve; on a logarithmic scale only the relative width matters."""
    try:
        low, high = _plain(low), _plain(high)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{label} must be a (lower, upper) pair of numbers, got {(low, high)!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{label} = ({low:g}, {high:g}) must be finite: give the range you would really try.")
    if low == high:
        raise ValueError(f"{label} = ({low:g}, {high:g}) has no width: leave a parameter that cannot vary out of the bounds.")
    if low > high:
        raise ValueError(f"{label} = ({low:g}, {high:g}) has lower above upper: swap them.")
    narrow = high - low < 1e-8 * max(abs(low), abs(high)) or (high - low < 1e-290 and not log)
    if narrow or not math.isfinite(high - low):
        raise ValueError(f"{label} = ({low:g}, {high:g}) cannot be resolved in floating point: rescale this parameter.")
    return low, high


def _plain(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError
    return float(value)


def _number(value: Any, what: str) -> float:
    try:
        return _plain(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be a number, got {value!r}.") from None


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{what} must be a whole number, got {value!r}: use Float for anything else.")
    if abs(int(value)) > _LARGEST_INT:
        raise ValueError(f"{what} must lie within 2^53 of 0, got {value}: use Float.")
    return int(value)


def _check_flag(kind: str, log: Any) -> None:
    if not isinstance(log, bool):
        raise ValueError(f"log of {kind} must be True or False, got {log!r}.")


def _same(a: Any, b: Any) -> bool:
    """Equal, and of one kind: True is not 1."""
    if isinstance(a, bool | np.bool_) != isinstance(b, bool | np.bool_):
        return False
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # arrays and the like
        return a is b


def _digest(value: Any) -> int | None:
    """A number that is equal for values that are ``_same``; None where there is none.

    NumPy's scalars have none: np.float32(0.1) == 0.1 and np.int64(1) == [1], but their hashes differ.
    """
    if isinstance(value, np.generic | np.dtype):
        return None
    if isinstance(value, float) and math.isnan(value):
        return 0
    if isinstance(value, list | tuple):
        parts = [_digest(each) for each in value]
        return None if None in parts else hash((isinstance(value, list), *parts))
    try:
        return hash(value)
    except (TypeError, ValueError):
        return None


def _cell(unit: np.ndarray, count: int) -> np.ndarray:
    return np.clip(np.floor(np.asarray(unit) * count), 0, count - 1).astype(int)
