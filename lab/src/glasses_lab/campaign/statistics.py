"""Comparing methods on the same problems and seeds: means with standard errors, paired tests, ranks.

Everything is paired: two methods are compared on the runs (problem, seed) that both have, which start from the same points.
A difference in gap below ``TIE`` is a tie: both have solved the problem. Tests are Wilcoxon's signed-rank test; the p-values
of one family are corrected by Holm's method, which controls the chance of even one false claim:

    p_(i) -> max_{j <= i} min(1, (m - j + 1) p_(j)),   p_(1) <= ... <= p_(m)                      [eq:holm]

The mean over a suite weighs every problem the same; its standard error combines those of the problems: it is that of new runs
on these problems. For new problems like these (``elsewhere``) it is the standard error of the problems' means, often larger.
Wins, tests and ranks count every run the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.stats import rankdata, wilcoxon

from glasses_lab.campaign.measures import Row

TIE, CLEAR = 1e-4, 1e-2
K = TypeVar("K")


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error over ``count`` runs."""

    mean: float
    error: float
    count: int


@dataclass(frozen=True)
class Comparison:
    """A method against the baseline on the runs both have: mean difference (positive: better), test, corrected test."""

    difference: Estimate
    elsewhere: float  # the standard error of the difference for new problems
    wins: int
    losses: int
    clear_wins: int  # by more than CLEAR
    clear_losses: int
    favours: int  # sign of the signed-rank sum: what the test is about, which the mean need not agree with
    p: float
    p_holm: float


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error; the error of one value is unknown."""
    v = np.asarray(values, dtype=float)
    error = float(v.std(ddof=1) / np.sqrt(v.size)) if v.size > 1 else float("nan")
    return Estimate(float(v.mean()), error, v.size)


def over_problems(parts: Sequence[Estimate]) -> Estimate:
    """The mean over problems, each of the same weight."""
    error = float(np.sqrt(sum(part.error**2 for part in parts)) / len(parts))
    return Estimate(float(np.mean([part.mean for part in parts])), error, sum(part.count for part in parts))


def signed_rank(differences: Sequence[float], tie: float = TIE) -> float:
    """p-value of Wilcoxon's two-sided signed-rank test; ties with zero say nothing, and nothing but ties gives 1."""
    d = np.asarray(differences, dtype=float)
    d = d[np.abs(d) > tie]
    return float(wilcoxon(d).pvalue) if d.size else 1.0


def rank_sign(differences: Sequence[float]) -> int:
    """Whom the signed ranks favour: 1, 0 or -1."""
    d = np.asarray(differences, dtype=float)
    d = d[np.abs(d) > TIE]
    return int(np.sign(np.sum(np.sign(d) * rankdata(np.abs(d)))))


def holm(p: Sequence[float]) -> list[float]:
    """[eq:holm], in the order given."""
    order = np.argsort(p)
    scaled = [min(1.0, (len(p) - i) * p[j]) for i, j in enumerate(order)]
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(scaled)
    return corrected.tolist()


def by_problem(rows: Sequence[Row]) -> dict[tuple[str, str], dict[int, Row]]:
    """(problem, method) -> seed -> row."""
    table: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        table[row.problem, row.method][row.seed] = row
    return dict(table)


def paired(rows: Sequence[Row], method: str, baseline: str, problem: str | None = None) -> dict[str, list[float]]:
    """problem -> differences in gap, method minus baseline, over the seeds both have."""
    table = by_problem(rows)
    found = {}
    for name in dict.fromkeys(row.problem for row in rows):
        ours, theirs = table.get((name, method), {}), table.get((name, baseline), {})
        common = sorted(ours.keys() & theirs.keys())
        if common and problem in (None, name):
            found[name] = [ours[seed].gap - theirs[seed].gap for seed in common]
    return found


def against(rows: Sequence[Row], baseline: str, methods: Sequence[str]) -> dict[str, Comparison]:
    """Every method against the baseline over all problems; Holm over the methods."""
    return _over_all({method: paired(rows, method, baseline) for method in methods if method != baseline})


def lead(rows: Sequence[Row], champion: str, methods: Sequence[str]) -> dict[str, Comparison]:
    """The champion against every other method over all problems; Holm over the methods."""
    return _over_all({method: paired(rows, champion, method) for method in methods if method != champion})


def _over_all(pairs: dict[str, dict[str, list[float]]]) -> dict[str, Comparison]:
    return _compared({method: list(found.values()) for method, found in pairs.items() if found})


def against_by_problem(rows: Sequence[Row], baseline: str, methods: Sequence[str]) -> dict[tuple[str, str], Comparison]:
    """Every method against the baseline on each problem; Holm over all of them together."""
    cells = {}
    for method in methods:
        if method != baseline:
            for problem, differences in paired(rows, method, baseline).items():
                cells[problem, method] = [differences]
    return _compared(cells)


def _compared(cells: dict[K, list[list[float]]]) -> dict[K, Comparison]:
    together = {key: [d for part in parts for d in part] for key, parts in cells.items()}
    p = {key: signed_rank(d) for key, d in together.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    return {
        key: Comparison(
            over_problems([estimate(part) for part in parts]),
            estimate([float(np.mean(part)) for part in parts]).error,
            sum(d > TIE for d in together[key]),
            sum(d < -TIE for d in together[key]),
            sum(d > CLEAR for d in together[key]),
            sum(d < -CLEAR for d in together[key]),
            rank_sign(together[key]),
            p[key],
            corrected[key],
        )
        for key, parts in cells.items()
    }


def average_ranks(
    rows: Sequence[Row], methods: Sequence[str], tie: float = TIE, *, by_problem_first: bool = False
) -> dict[str, float]:
    """Mean rank by gap (1 is best, ties shared) over the runs that all the methods have, or over the means of the problems."""
    table = by_problem(rows)
    ranks: list[np.ndarray] = []
    for problem in dict.fromkeys(row.problem for row in rows):
        columns = [table.get((problem, method), {}) for method in methods]
        seeds = sorted(set.intersection(*(set(column) for column in columns)))
        each = [tied_ranks([column[seed].gap for column in columns], tie) for seed in seeds]
        ranks += [np.mean(each, axis=0)] if by_problem_first and each else each
    if not ranks:
        return dict.fromkeys(methods, float("nan"))
    return dict(zip(methods, np.mean(ranks, axis=0).tolist(), strict=True))


def tied_ranks(gaps: Sequence[float], tie: float = TIE) -> np.ndarray:
    """Ranks, 1 for the largest gap; neighbours closer than ``tie`` share theirs."""
    order = np.argsort(-np.asarray(gaps), kind="stable")
    falls = -np.diff(np.asarray(gaps)[order])
    level = np.concatenate([[0], np.cumsum(falls > tie)])
    ranks = np.empty(len(order))
    ranks[order] = rankdata(level)
    return ranks
