"""The best values known of problems whose minimum nobody can write down, and the search that found them.

They are kept in ``best_known.toml``. ``glasses-lab best PROBLEM --count COUNT`` searches again with the count that is kept
there, and keeps a value only if it is lower. A run of a campaign may still find a lower one; its regret is then below zero and
``measures`` counts it as solved. The search is deterministic:

    1. ``count`` points of a scrambled Sobol sequence, decoded
    2. ``count`` steps of a random walk that takes what is not worse, around the best ten in turn: a third of the coordinates
       (at least one) moves, u -> u + s z with z normal and s falling from .2 to .01, a choice to any of its values
    3. in a box, L-BFGS-B from those ten
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from glasses.space.parameters import Choice
from glasses_lab.problems.problem import Point, Problem

FILE = Path(__file__).parent / "best_known.toml"
STARTS, WIDE, NARROW = 10, 0.2, 0.01


@dataclass(frozen=True)
class Best:
    """The lowest value known, where it is, and the count of its search; nan and nothing if none is known."""

    minimum: float
    point: Point | None  # a dict by name, or a list of numbers
    count: int


@lru_cache
def _kept() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def best_known(name: str) -> Best:
    """What the file has of that problem."""
    found = _kept().get(name)
    if found is None:
        return Best(float("nan"), None, 0)
    return Best(float(found["minimum"]), found["point"], int(found["count"]))


def search(problem: Problem, count: int) -> Best:
    """The lowest value of all stages."""
    d, rng = problem.d, np.random.default_rng(0)
    cover = qmc.Sobol(d, rng=np.random.default_rng(1)).random_base2((count - 1).bit_length())[:count]
    is_choice = np.array([isinstance(each, Choice) for each in problem.space.parameters])

    def value(unit: np.ndarray) -> float:
        return problem.true(problem.from_unit(unit))

    values = np.array([value(unit) for unit in cover])
    order = np.argsort(values, kind="stable")[:STARTS]
    walkers, lowest = cover[order], values[order]
    for step in range(count):
        k = step % len(walkers)
        moves = rng.random(d) < 1 / 3
        moves[rng.integers(d)] = True
        scale = WIDE * (NARROW / WIDE) ** (step / count)
        near = np.clip(walkers[k] + scale * rng.standard_normal(d), 0.0, 1.0)
        unit = np.where(moves, np.where(is_choice, rng.random(d), near), walkers[k])
        found = value(unit)
        if found <= lowest[k]:
            walkers[k], lowest[k] = unit, found
    for k in range(len(walkers)) if problem.parameters is None else ():
        polished = minimize(value, walkers[k], bounds=[(0.0, 1.0)] * d, method="L-BFGS-B")
        if polished.fun <= lowest[k]:
            walkers[k], lowest[k] = polished.x, polished.fun
    best = int(np.argmin(lowest))
    return Best(float(lowest[best]), problem.from_unit(walkers[best]), count)


def keep(found: Mapping[str, Best]) -> None:
    """Write the file with what is lower than what it has; other problems stay as they are."""
    kept = {name: best_known(name) for name in _kept()}
    for name, best in found.items():
        if name not in kept or best.minimum < kept[name].minimum:
            kept[name] = best
    lines = ["# The lowest values known; each was found by `glasses-lab best PROBLEM --count COUNT` (see best_known.py)."]
    for name in sorted(kept):
        best = kept[name]
        lines += ["", f"[{name}]", f"minimum = {best.minimum!r}", f"point = {_toml(best.point)}"]
        lines += [f"count = {best.count}"]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _kept.cache_clear()


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list | np.ndarray):
        return "[" + ", ".join(repr(float(part)) for part in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
