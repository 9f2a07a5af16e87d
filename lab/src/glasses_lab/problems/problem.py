"""A test problem: a function, its box, its known minimum, and the wrappers that change one of them.

A wrapper takes a problem and returns a problem, so they compose: ``noisy(shifted(get("Ackley-5")), 0.1, seed=3)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Problem:
    """``problem(x)`` evaluates; ``problem.true(x)`` is the value without noise."""

    name: str
    function: Function
    bounds: tuple[tuple[float, float], ...]
    minimum: float  # of the true function over the box
    minimizers: np.ndarray  # (k, d): every known one
    noise: Callable[[], float] | None = None

    @property
    def d(self) -> int:
        return len(self.bounds)

    def true(self, x: Any) -> float:
        """The value at x, an array of d numbers, without noise."""
        point = np.asarray(x, dtype=float)
        if point.shape != (self.d,):
            raise ValueError(f"{self.name} takes {self.d} numbers, got an array of shape {point.shape}.")
        return float(self.function(point))

    def __call__(self, x: Any) -> float:
        value = self.true(x)
        return value if self.noise is None else value + self.noise()

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """Points of the unit cube in the box."""
        low, high = np.array(self.bounds).T
        return low + np.asarray(unit) * (high - low)

    @property
    def optimum_at_centre(self) -> bool:
        """Whether a minimiser is the centre of the box, where several search routines look first."""
        low, high = np.array(self.bounds).T
        distance = np.abs(self.minimizers - (low + high) / 2) / (high - low)
        return bool(np.any(np.max(distance, axis=1) < 1e-3))


def noisy(problem: Problem, sd: float, *, seed: int) -> Problem:
    """Gaussian noise of standard deviation ``sd`` on every evaluation; that of the k-th depends on the seed alone."""
    if not (np.isfinite(sd) and sd >= 0):
        raise ValueError(f"sd must be a standard deviation of at least 0, got {sd!r}.")
    rng = np.random.default_rng([seed, 0x6E6F6973])
    return replace(problem, noise=lambda: sd * float(rng.standard_normal()))


def shifted(problem: Problem, by: Sequence[float] | None = None) -> Problem:
    """The same function on a box moved by ``by`` (parts of each side), so that the optimum is not at its centre.

    Only for functions that are defined everywhere and whose minimum over the box is global: the minimisers must stay
    inside. The default moves coordinate i by between a tenth and a fifth of the side, to alternating sides.
    """
    k = np.arange(problem.d)
    part = (0.1 + 0.1 * (((k + 1) * 0.6180339887498949) % 1)) * (-1.0) ** k if by is None else np.asarray(by, dtype=float)
    if part.shape != (problem.d,):
        raise ValueError(f"by must hold {problem.d} numbers, one per side of {problem.name}, got shape {part.shape}.")
    low, high = np.array(problem.bounds).T
    low, high = low + part * (high - low), high + part * (high - low)
    inside = np.all((problem.minimizers >= low) & (problem.minimizers <= high), axis=1)
    if not inside.all():
        raise ValueError(f"Moved by {part.round(3).tolist()} the box of {problem.name} loses a minimiser: move it less.")
    return replace(problem, bounds=tuple(zip(low.tolist(), high.tolist(), strict=True)))


def negated(problem: Problem) -> Problem:
    """-f, for checking a maximiser. Its minimum is not known and set to nan, with no minimisers."""
    inner = problem.function
    return replace(
        problem,
        name=f"-{problem.name}",
        function=lambda x: -inner(x),
        minimum=float("nan"),
        minimizers=np.zeros((0, problem.d)),
    )


@dataclass
class Counter:
    """How often a counted problem was evaluated."""

    evaluations: int = 0


def counted(problem: Problem) -> tuple[Problem, Counter]:
    """The problem and a counter of its evaluations."""
    inner, counter = problem.function, Counter()

    def function(x: np.ndarray) -> float:
        counter.evaluations += 1
        return inner(x)

    return replace(problem, function=function), counter
