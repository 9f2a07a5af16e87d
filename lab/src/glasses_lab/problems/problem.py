"""A test problem: a function, its box, its known minimum, and the wrappers that change one of them.

A wrapper takes a problem and returns a problem, so they compose: ``noisy(shifted(get("Ackley-5")), 0.1, seed=3)``.

A point is an array of d numbers, or, where a problem has ``parameters`` (``glasses.Float``, ``Int`` and ``Choice`` by name), a
dict from name to value. ``bounds`` and ``minimizers`` are then in raw numbers: of a choice the position of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from glasses.space.parameters import Parameter
from glasses.space.space import Space

Function = Callable[[Any], float]
Point = Any  # an array of d numbers, or a dict of values by name


@dataclass(frozen=True)
class Problem:
    """``problem(x)`` evaluates; ``problem.true(x)`` is the value without noise."""

    name: str
    function: Function
    bounds: tuple[tuple[float, float], ...]
    minimum: float  # of the true function over the box
    minimizers: np.ndarray  # (k, d): every known one
    noise: Callable[[], float] | None = None
    parameters: Mapping[str, Parameter] | None = None  # where given, a point is a dict with these names

    @property
    def d(self) -> int:
        return len(self.bounds)

    @property
    def search_space(self) -> Any:
        """What ``glasses.Optimizer`` takes as its bounds."""
        return self.bounds if self.parameters is None else dict(self.parameters)

    @cached_property
    def space(self) -> Space:
        """The box or the parameters as the engine sees them."""
        return Space(self.search_space)

    def point(self, x: Point) -> Point:
        """x as it is evaluated and kept: an array of floats, or a dict of plain values in the order of the parameters."""
        if self.parameters is not None:
            if not isinstance(x, Mapping):
                raise ValueError(f"{self.name} takes a dict of {', '.join(self.parameters)}, got {x!r}.")
            return self.space.form(self.space.read(x)[0][0])
        array = np.asarray(x, dtype=float)
        if array.shape != (self.d,):
            raise ValueError(f"{self.name} takes {self.d} numbers, got an array of shape {array.shape}.")
        return array

    def true(self, x: Point) -> float:
        """The value at x without noise."""
        return float(self.function(self.point(x)))

    def __call__(self, x: Point) -> float:
        value = self.true(x)
        return value if self.noise is None else value + self.noise()

    def from_unit(self, unit: np.ndarray) -> Any:
        """Points of the unit cube in the box; with parameters a dict, or a list of them for several."""
        if self.parameters is None:
            low, high = np.array(self.bounds).T
            return low + np.asarray(unit) * (high - low)
        raw = self.space.from_unit(np.asarray(unit))
        return self.space.form(raw) if raw.ndim == 1 else [self.space.form(row) for row in raw]

    def to_unit(self, x: Any) -> np.ndarray:
        """A point, or several, in the unit cube; a step, a whole number or a choice at the centre of its cell."""
        if self.parameters is None:
            low, high = np.array(self.bounds).T
            return (np.asarray(x, dtype=float) - low) / (high - low)
        raw, single = self.space.read(x)
        unit = self.space.to_unit(raw)
        return unit[0] if single else unit

    @property
    def optimum_at_centre(self) -> bool:
        """Whether a minimiser is the centre of the box, where several search routines look first."""
        low, high = np.array(self.bounds).T
        distance = np.abs(self.minimizers - (low + high) / 2) / (high - low)
        return bool(np.any(np.max(distance, axis=1) < 1e-3))


def mixed(
    name: str, function: Function, parameters: Mapping[str, Parameter], minimum: float, minimizers: Sequence[Mapping[str, Any]]
) -> Problem:
    """A problem whose points are dicts; ``function`` takes one."""
    space = Space(dict(parameters))
    rows = [space.read(each)[0][0] for each in minimizers]
    bounds = tuple(zip(space.lower.tolist(), space.upper.tolist(), strict=True))
    return Problem(name, function, bounds, minimum, np.array(rows).reshape(-1, space.d), parameters=dict(parameters))


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
    if problem.parameters is not None:
        raise ValueError(f"{problem.name} has parameters and no box that could be moved: use it as it is.")
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


def embedded(problem: Problem, d: int, *, seed: int) -> Problem:
    """The problem as a function of d parameters in [-1, 1], of which only a random turn of as many as it has matters.

        g(v) = f(1/2 + A v / 2 in the unit cube of f, clipped to it),   A A' = I                        [eq:embedding]

    As in Wang et al. (2016), but for A with orthonormal rows, which keeps the minimisers inside: v = A' (2 u - 1) for u one of
    f's. Turns for which that leaves the box are drawn again.
    """
    if problem.parameters is not None:
        raise ValueError(f"{problem.name} has parameters and no box that could be turned: use it as it is.")
    if d < problem.d:
        raise ValueError(f"{problem.name} has {problem.d} inputs and fits into no fewer, got {d}: give at least {problem.d}.")
    rng = np.random.default_rng([seed, d, 0x656D6265])
    best = 2 * problem.to_unit(problem.minimizers) - 1
    for _ in range(1000):
        A = np.linalg.qr(rng.standard_normal((d, problem.d)))[0].T
        minimizers = best @ A
        inside = np.all(np.abs(minimizers) <= 1, axis=1)
        if inside.any():
            break
    else:
        raise ValueError(f"No turn of {problem.name} in {d} dimensions keeps a minimiser in the box: give more dimensions.")

    def function(v: np.ndarray) -> float:
        return problem.function(problem.from_unit(np.clip(0.5 + A @ v / 2, 0, 1)))

    return replace(problem, function=function, bounds=((-1.0, 1.0),) * d, minimizers=minimizers[inside])


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
