"""How much of the initial regret is left, in powers of ten, and paired comparisons in it: for problems that many methods solve.

    D = log10 max(regret / initial regret, floor)                                              [eq:decades]

Both regrets are simple regrets, at the end and before the first decision; -3 means that a thousandth is left. The floor is 1e-8
where the minimum is known and 1e-3 where it is the best value known (tuning, laboratory), which a run may go below: then
nothing is left either. A run that begins at the minimum has D = log10 floor, one that died before its first value D = 0.

Two runs whose D differ by less than ``TIE_DECADES`` are tied, and so are two at the floor. Differences are of runs that both
methods have, from the same initial points. They have two standard errors: of new runs, every run counting by itself, and of new
functions (``elsewhere``), where dimensions, instances and losses of one function are averaged first. Wilcoxon's test is over
runs without ties; the p-values are corrected by Holm's method over the methods.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.statistics import Estimate, estimate, holm, signed_rank, tied_ranks

FLOOR, FLOOR_OF_BEST_KNOWN = 1e-8, 1e-3
TIE_DECADES = 0.05
_BEST_KNOWN = ("tune-", "lab-")
Key = tuple[str, int]


@dataclass(frozen=True)
class Duel:
    """A champion against one other method: differences in gap and in decades (positive: the champion is better)."""

    gap: Estimate
    gap_elsewhere: Estimate
    decades: Estimate
    decades_elsewhere: Estimate
    wins: int  # by more than TIE_DECADES
    losses: int
    p: float
    p_holm: float


def floor_of(problem: str) -> float:
    """The part of the initial regret below which nothing is left."""
    return FLOOR_OF_BEST_KNOWN if problem.startswith(_BEST_KNOWN) else FLOOR


def decades(row: Row) -> float:
    """[eq:decades]; nan for rows of earlier versions, which do not have the initial regret."""
    if row.failed and math.isnan(row.simple_regret):
        return 0.0
    if math.isnan(row.initial_regret):
        return math.nan
    left = row.simple_regret / row.initial_regret if row.initial_regret > 0 else 0.0
    return math.log10(max(left, floor_of(row.problem)))


def function_of(problem: str) -> str:
    """What counts as one function: ``BBOB-7-d5-i2`` is BBOB-7, ``tune-knn-digits-error`` is tune-knn-digits."""
    bbob = re.fullmatch(r"(BBOB-\d+)-d\d+-i\d+", problem)
    tuned = re.fullmatch(r"(tune-\w+-\w+)-\w+", problem)
    found = bbob or tuned
    return found[1] if found else problem


def below_best_known(rows: Sequence[Row]) -> list[str]:
    """The problems of which a run found a lower value than the best known."""
    return sorted({row.problem for row in rows if row.problem.startswith(_BEST_KNOWN) and row.simple_regret < 0})


def by_run(rows: Sequence[Row], measure: Callable[[Row], float]) -> dict[str, dict[Key, float]]:
    """method -> (problem, seed) -> measure."""
    table: dict[str, dict[Key, float]] = {}
    for row in rows:
        table.setdefault(row.method, {})[row.problem, row.seed] = measure(row)
    return table


def ranks(rows: Sequence[Row], methods: Sequence[str]) -> dict[str, float]:
    """Mean rank by decades (1 is best, ties shared) over the runs that all the methods have."""
    table = by_run(rows, decades)
    common = sorted(set.intersection(*(set(table.get(method, {})) for method in methods)))
    if not common:
        return dict.fromkeys(methods, math.nan)
    each = [tied_ranks([-table[method][key] for method in methods], TIE_DECADES) for key in common]
    return dict(zip(methods, np.mean(each, axis=0).tolist(), strict=True))


def duels(rows: Sequence[Row], champion: str, methods: Sequence[str]) -> dict[str, Duel]:
    """The champion against every other method that shares runs with it."""
    gaps, left = by_run(rows, lambda row: row.gap), by_run(rows, decades)
    found: dict[str, tuple[list[Key], list[float], list[float]]] = {}
    for method in methods:
        common = sorted(gaps.get(method, {}).keys() & gaps.get(champion, {}).keys())
        if method != champion and common:
            higher = [gaps[champion][key] - gaps[method][key] for key in common]
            lower = [left[method][key] - left[champion][key] for key in common]
            found[method] = common, higher, lower
    p = {method: signed_rank(lower, TIE_DECADES) for method, (_, _, lower) in found.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    return {
        method: Duel(
            estimate(higher),
            by_function(common, higher),
            estimate(lower),
            by_function(common, lower),
            sum(difference > TIE_DECADES for difference in lower),
            sum(difference < -TIE_DECADES for difference in lower),
            p[method],
            corrected[method],
        )
        for method, (common, higher, lower) in found.items()
    }


def by_function(keys: Sequence[Key], values: Sequence[float]) -> Estimate:
    """The mean of the functions' means, with its standard error."""
    groups: dict[str, list[float]] = {}
    for (problem, _), value in zip(keys, values, strict=True):
        groups.setdefault(function_of(problem), []).append(value)
    return estimate([float(np.mean(group)) for group in groups.values()])
