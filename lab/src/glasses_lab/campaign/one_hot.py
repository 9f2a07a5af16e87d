"""Points as rows of a unit cube for models that know numbers only: choices one-hot, everything else in its unit coordinate.

    Float, Int    one column, the unit coordinate of ``glasses.space`` (logarithmic where the parameter is)
    Choice of K   K columns, 1 for the value taken and 0 for the others

``decode`` takes any row of the cube: steps and whole numbers go to the nearest value, of a choice the largest column counts (of
equal ones the first). ``rounded`` is the row of what ``decode`` gives. A box is left as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glasses.space.parameters import Choice
from glasses_lab.problems import Point, Problem


class OneHot:
    """The encoding of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        parameters = [] if problem.parameters is None else [*problem.parameters.values()]
        self.widths = [each.count if isinstance(each, Choice) else 1 for each in parameters] or [1] * problem.d
        self.choice = [isinstance(each, Choice) for each in parameters] or [False] * problem.d
        self.width = sum(self.widths)

    def encode(self, x: Any) -> np.ndarray:
        """A point (width,), or several (n, width)."""
        unit = self.problem.to_unit(x)
        rows = np.atleast_2d(unit)
        columns = []
        for i, (width, choice) in enumerate(zip(self.widths, self.choice, strict=True)):
            taken = np.floor(rows[:, i] * width).astype(int)
            columns.append(np.eye(width)[taken] if choice else rows[:, i : i + 1])
        wide = np.concatenate(columns, axis=1)
        return wide[0] if unit.ndim == 1 else wide

    def decode(self, row: np.ndarray) -> Point:
        """The point that can be run nearest to this row."""
        unit, at = [], 0
        for width, choice in zip(self.widths, self.choice, strict=True):
            part = np.clip(row[at : at + width], 0.0, 1.0)
            unit.append((np.argmax(part) + 0.5) / width if choice else part[0])
            at += width
        return self.problem.from_unit(np.array(unit))

    def rounded(self, rows: np.ndarray) -> np.ndarray:
        """Rows (n, width) moved to points that can be run."""
        return np.array([self.encode(self.decode(row)) for row in rows])
