"""Boxes and parameters as HEBO, SMAC and Vizier take them: real numbers, whole numbers and labels, by name.

    Float          a real number, on a logarithmic scale where the parameter is
    Int            a whole number, likewise
    with a step    the whole number k of the k-th value, from 0
    Choice of K    one of the labels "0" to "K-1", the position of its value

A box is Floats named x0, x1, ... ``decode`` takes what a peer answers. Rounding may put that just outside the range, so it is
clipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses_lab.problems import Point, Problem


@dataclass(frozen=True)
class Axis:
    """One parameter; ``low`` and ``high`` are in the units that the peer sees, both included."""

    parameter: Parameter
    kind: Literal["real", "whole", "label"]
    low: float
    high: float
    log: bool = False

    @property
    def labels(self) -> list[str]:
        """All values of an axis of labels."""
        return [str(k) for k in range(int(self.high) + 1)]

    def encode(self, value: Any) -> float | int | str:
        raw = self.parameter.read(value, "value", "the range")
        if isinstance(self.parameter, Choice):
            return str(round(raw))
        if self.parameter.step is not None:
            return round((raw - self.parameter.low) / self.parameter.step)
        return raw if self.kind == "real" else round(raw)

    def decode(self, given: Any) -> Any:
        number = min(max(float(given), self.low), self.high)
        if self.kind == "real":
            return number
        if self.parameter.count is None or (isinstance(self.parameter, Int) and self.parameter.step is None):
            return round(number)
        centre = np.array([(round(number) + 0.5) / self.parameter.count])
        return self.parameter.value(self.parameter.from_unit(centre)[0])


def axis(parameter: Parameter) -> Axis:
    """How peers see this parameter."""
    if isinstance(parameter, Choice):
        return Axis(parameter, "label", 0, parameter.count - 1)
    if parameter.step is not None:
        return Axis(parameter, "whole", 0, (parameter.count or 1) - 1)
    return Axis(parameter, "whole" if isinstance(parameter, Int) else "real", parameter.low, parameter.high, parameter.log)


class Axes:
    """All parameters of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.named = problem.parameters is not None
        given = problem.parameters or {f"x{i}": Float(low, high) for i, (low, high) in enumerate(problem.bounds)}
        self.by_name = {name: axis(parameter) for name, parameter in given.items()}

    def encode(self, x: Point) -> dict[str, float | int | str]:
        """A point in the peer's values."""
        values = x if isinstance(x, Mapping) else dict(zip(self.by_name, x, strict=True))
        return {name: each.encode(values[name]) for name, each in self.by_name.items()}

    def decode(self, given: Mapping[str, Any]) -> Point:
        """The point of the peer's values."""
        values = {name: each.decode(given[name]) for name, each in self.by_name.items()}
        return values if self.named else np.array([*values.values()])
