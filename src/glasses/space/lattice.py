"""Where steps, integers and choices lie in the unit cube, as arrays: what compiled programs know of them (``snapping``)."""

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


def lattice_of(parameters: list[Parameter]) -> Lattice | None:
    """The lattice of a space, or None if every parameter is continuous."""
    if all(each.count is None for each in parameters):
        return None
    edges = [each.log_edges() if isinstance(each, Int) and each.log else (0.0, 0.0) for each in parameters]
    return Lattice(
        cells=np.array([0.0 if b > a else float(each.count or 0) for each, (a, b) in zip(parameters, edges, strict=True)]),
        log_low=np.array([a for a, _ in edges]),
        log_width=np.array([b - a for a, b in edges]),
        is_choice=np.array([isinstance(each, Choice) for each in parameters]),
    )
