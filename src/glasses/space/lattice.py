"""Where steps, integers and choices lie in the unit cube, as arrays for compiled programs (``snapping``).

Two points are the same experiment when they differ by less than ``resolution`` in every coordinate of the unit cube: a
millionth, or less than half the distance between two values that can be run. This one meaning holds everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glasses.space.parameters import Choice, Int, Parameter


class Lattice(NamedTuple):
    """One entry per coordinate."""

    cells: Any  # K values in equal cells; 0 where the scale is another
    log_low: Any  # a of a log integer
    log_width: Any  # b - a; 0 where the scale is another
    is_choice: Any
    resolution: Any  # what two different values differ by at least

    def folded(self, X: np.ndarray) -> np.ndarray:
        """Rows on the lattice, each in its one place: see ``conditional``."""
        return X


SAME_POINT = 1e-6


def resolution(lattice: Lattice | None) -> Any:
    """How far two points must differ in some coordinate to be two experiments: one number, or one per coordinate."""
    return SAME_POINT if lattice is None else lattice.resolution


def lattice_of(parameters: list[Parameter]) -> Lattice | None:
    """The lattice of a space, or None if every parameter is continuous."""
    return None if all(each.count is None for each in parameters) else entries(parameters)


def entries(parameters: list[Parameter]) -> Lattice:
    """The lattice of a space, also of one where every parameter is continuous."""
    edges = [each.log_edges() if isinstance(each, Int) and each.log else (0.0, 0.0) for each in parameters]
    return Lattice(
        cells=np.array([0.0 if b > a else float(each.count or 0) for each, (a, b) in zip(parameters, edges, strict=True)]),
        log_low=np.array([a for a, _ in edges]),
        log_width=np.array([b - a for a, b in edges]),
        is_choice=np.array([isinstance(each, Choice) for each in parameters]),
        resolution=np.array([min(SAME_POINT, 0.4 * _smallest_step(each)) for each in parameters]),
    )


def on_lattice(lattice: Lattice, X: np.ndarray) -> np.ndarray:
    """The rows of X moved to the lattice."""
    count = np.maximum(lattice.cells, 1.0)
    cells = (np.clip(np.floor(X * count), 0.0, count - 1.0) + 0.5) / count
    width = np.where(lattice.log_width > 0, lattice.log_width, 1.0)
    lowest = np.round(np.exp(lattice.log_low) + 0.5)
    highest = np.round(np.exp(lattice.log_low + lattice.log_width) - 0.5)
    whole = np.clip(np.round(np.exp(lattice.log_low + X * width)), lowest, highest)
    logs = (np.log(np.maximum(whole, 1.0)) - lattice.log_low) / width
    return np.where(lattice.cells > 0, cells, np.where(lattice.log_width > 0, logs, X))


def _smallest_step(parameter: Parameter) -> float:
    """The least distance of two values in the unit interval."""
    if parameter.count is None:
        return 1.0
    if isinstance(parameter, Int) and parameter.log:
        last = parameter.to_unit(np.array([parameter.high - 1.0, float(parameter.high)]))
        return float(last[1] - last[0])
    return 1.0 / parameter.count
