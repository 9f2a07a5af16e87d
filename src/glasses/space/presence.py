"""Which parameters a point has, learned from known points: for spaces where some exist beside certain values of others only.

A tree of questions, each about one parameter that all points reaching it have. A choice has one branch per value that was
seen, a number two, on both sides of a threshold half-way between two known points. At each node the question is taken that
separates the sets of parameters best (Gini impurity); on a tie a choice before a number with steps before a continuous one, the
one with the fewest branches, the first. A leaf names the parameters that all of its points have. So does a value of a choice
that was not seen yet: those of all points that reached its question.

Rows are points of the unit cube, NaN where a point does not have a parameter. The parameters that a path asks about are among
those of its leaf: putting another number in the place of an absent parameter leads to the same leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_SAME = 1e-5  # values of a choice lie at least 1e-4 apart in the unit cube


@dataclass(frozen=True, eq=False)
class Presence:
    """A node. ``own`` (d,): the parameters that all of its points have; of a leaf, those that a point there has."""

    own: np.ndarray
    column: int = -1  # what is asked; -1: a leaf
    threshold: float | None = None  # of a number: branch 0 lies below it
    values: tuple[float, ...] = ()  # of a choice: one per branch
    branches: tuple[Presence, ...] = field(default=())

    def of(self, X: np.ndarray) -> np.ndarray:
        """Which parameters the rows of X (n, d) have, (n, d)."""
        found = np.tile(self.own, (len(X), 1))
        for k, branch in enumerate(self.branches):
            rows = self._takes(k, X[:, self.column])
            found[rows] = branch.of(X[rows])
        return found

    @property
    def most(self) -> int:
        """The most parameters that a known point has."""
        return max([int(np.sum(self.own)), *(branch.most for branch in self.branches)])

    @property
    def varies(self) -> bool:
        """Whether points differ in the parameters that they have."""
        return bool(self.branches) or not np.all(self.own)

    def _takes(self, k: int, column: np.ndarray) -> np.ndarray:
        if self.threshold is None:
            return np.abs(column - self.values[k]) < _SAME
        return column < self.threshold if k == 0 else column >= self.threshold


def learned(X: np.ndarray, choice: np.ndarray, stepped: np.ndarray) -> Presence:
    """The tree that the rows of X (n, d) tell; ``choice`` and ``stepped`` (d,) mark choices and numbers with steps."""
    has = ~np.isnan(X)
    own = np.all(has, axis=0)
    if np.all(has == has[0]):
        return Presence(own)
    kinds = np.unique(has, axis=0, return_inverse=True)[1].reshape(-1)
    asked = [
        (round(impurity, 9), 0 if choice[i] else 1 if stepped[i] else 2, count, i, threshold)
        for i in np.flatnonzero(own)
        for impurity, count, threshold in _questions(X[:, i], kinds, bool(choice[i]))
    ]
    if not asked:
        return Presence(own)
    *_, column, cut = min(asked, key=lambda each: each[:4])
    values, threshold = (tuple(np.unique(X[:, column])), None) if np.isnan(cut) else ((), float(cut))
    node = Presence(own, int(column), threshold, tuple(map(float, values)))
    rows = [node._takes(k, X[:, column]) for k in range(len(values) or 2)]
    return Presence(own, node.column, threshold, node.values, tuple(learned(X[each], choice, stepped) for each in rows))


def _questions(column: np.ndarray, kinds: np.ndarray, choice: bool) -> list[tuple[float, int, float]]:
    """The best question about one parameter, if there is one: impurity afterwards, number of branches, threshold or NaN."""
    values = np.unique(column)
    if len(values) < 2:
        return []
    if choice:
        return [(sum(_impurity(np.bincount(kinds[column == value])) for value in values), len(values), np.nan)]
    order = np.argsort(column, kind="stable")
    before = np.cumsum(np.eye(kinds.max() + 1)[kinds[order]], axis=0)
    ends = np.flatnonzero(np.diff(column[order]) > 0)
    mixed = [_impurity(before[k]) + _impurity(before[-1] - before[k]) for k in ends]
    best = int(np.argmin(np.round(mixed, 9)))
    low, high = column[order][ends[best]], column[order][ends[best] + 1]
    return [(mixed[best], 2, low + (high - low) / 2)]


def _impurity(counts: np.ndarray) -> float:
    """Gini impurity times the number of points."""
    total = float(np.sum(counts))
    return total - float(np.sum(counts.astype(float) ** 2)) / total
