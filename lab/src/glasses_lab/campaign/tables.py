"""Tables of a campaign as Markdown: what people read, made from rows alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from glasses_lab.campaign.measures import Row, normalized
from glasses_lab.campaign.methods import METHODS
from glasses_lab.campaign.statistics import (
    Comparison,
    Estimate,
    against,
    against_by_problem,
    average_ranks,
    by_problem,
    estimate,
    lead,
    over_problems,
    paired,
)

BASELINE = "el"
CLAIM = 0.05


def title(method: str) -> str:
    """A method's name in tables and figures."""
    return METHODS[method].title if method in METHODS else method


def in_order(rows: Sequence[Row]) -> list[str]:
    """The methods of these rows in the order of the catalogue."""
    have = {row.method for row in rows}
    return [method for method in METHODS if method in have] + sorted(have - set(METHODS))


def problems_of(rows: Sequence[Row]) -> list[str]:
    """The problems of these rows, small dimensions first."""
    return list(dict.fromkeys(row.problem for row in sorted(rows, key=lambda row: (row.d, row.problem.lower()))))


def by_function(rows: Sequence[Row]) -> str:
    """Mean gap with standard error, a line per problem and a column per method.

    Bold: the best. A mark follows where a method differs from EL on that problem: + better, - worse, p < .05 after Holm's
    correction over all cells of the table.
    """
    methods, table = in_order(rows), by_problem(rows)
    tests = against_by_problem(rows, BASELINE, methods)
    lines = [["function", "d", "runs", *map(title, methods)]]
    for problem in problems_of(rows):
        cells = {m: estimate([row.gap for row in table[problem, m].values()]) for m in methods if (problem, m) in table}
        best = max(round(cell.mean, 3) for cell in cells.values())
        some = next(iter(table[problem, next(iter(cells))].values()))
        line = [problem, str(some.d), str(max(cell.count for cell in cells.values()))]
        for method in methods:
            if method not in cells:
                line.append("")
                continue
            text = f"{part(cells[method].mean)} ± {part(cells[method].error)}"
            mark = ""
            if (problem, method) in tests and tests[problem, method].p_holm < CLAIM:
                mark = " +" if tests[problem, method].favours > 0 else " −"
            line.append((f"**{text}**" if round(cells[method].mean, 3) == best else text) + mark)
        lines.append(line)
    return markdown(lines)


def overall(rows: Sequence[Row], *, timed: bool = True) -> str:
    """A line per method: mean gap, average rank, difference to EL with its test, runs above .99, seconds, failures.

    The mean of a method that lacks some of the problems says over how many it was taken. ``timed=False``: without seconds, for
    runs of several machines.
    """
    methods, table = in_order(rows), by_problem(rows)
    problems, tests, ranks = problems_of(rows), against(rows, BASELINE, methods), average_ranks(rows, methods)
    lines = [
        [
            "method",
            "mean gap",
            "average rank",
            "against EL",
            "wins : losses",
            "by > .01",
            "p (Holm)",
            "solved",
            *(["CPU s per decision"] if timed else []),
            "failed",
        ]
    ]
    for method in methods:
        mine = [row for row in rows if row.method == method]
        have = [problem for problem in problems if (problem, method) in table]
        mean = over_problems([estimate([row.gap for row in table[problem, method].values()]) for problem in have])
        partly = "" if len(have) == len(problems) else f" ({len(have)} of {len(problems)} functions)"
        line = [title(method), f"{part(mean.mean)} ± {part(mean.error)}{partly}", f"{ranks[method]:.2f}"]
        if method in tests:
            test = tests[method]
            line += [_with_error(test.difference), f"{test.wins} : {test.losses}"]
            line += [f"{test.clear_wins} : {test.clear_losses}"]
            line += [_p_value(test, title(method), title(BASELINE))]
        else:
            line += ["", "", "", ""]
        solved = np.mean([row.gap > 0.99 for row in mine])
        seconds = [_median([row.seconds for row in mine])] if timed else []
        line += [f"{solved:.0%}", *seconds, str(sum(row.failed for row in mine))]
        lines.append(line)
    return markdown(lines)


def duels(rows: Sequence[Row], families: Mapping[str, str], champion: str | None = None) -> str:
    """Paired differences only, where methods have different runs: a line per method, all problems and each family.

    Without a champion every method against EL; with one, the champion against every other method. ``± elsewhere``: the
    standard error of the mean difference for new functions instead of new runs.
    """
    methods = [method for method in in_order(rows) if method != (champion or BASELINE)]
    ordered = list(dict.fromkeys(families.values()))
    groups = {"": list(rows)} | {family: [row for row in rows if families.get(row.problem) == family] for family in ordered}

    def compared(group: Sequence[Row]) -> dict[str, Comparison]:
        return against(group, BASELINE, methods) if champion is None else lead(group, champion, methods)

    found = {family: compared(group) for family, group in groups.items()}
    what = "against EL" if champion is None else f"{title(champion)} against it"
    lines = [["method", "functions", "pairs", what, "± elsewhere", "wins : losses", "by > .01", "p (Holm)", *ordered]]
    for method in methods:
        if method not in found[""]:
            continue
        test = found[""][method]
        sides = (method, BASELINE) if champion is None else (champion, method)
        line = [title(method), str(len(paired(rows, *sides))), str(test.difference.count)]
        line += [_with_error(test.difference), part(test.elsewhere), f"{test.wins} : {test.losses}"]
        line += [f"{test.clear_wins} : {test.clear_losses}", _p_value(test, *map(title, sides))]
        lines.append(
            [*line, *(_with_error(found[family][method].difference) if method in found[family] else "" for family in ordered)]
        )
    return markdown(lines)


def paper_gaps(rows: Sequence[Row]) -> str:
    """The paper's own table: mean gap of the noisy values, normalised over the methods of each replicate; best in bold."""
    methods = in_order(rows)
    means: dict[tuple[str, str], list[float]] = {}
    for row, value in zip(rows, normalized(rows), strict=True):
        means.setdefault((row.problem, row.method), []).append(value)
    lines = [["function", *map(title, methods)]]
    for problem in problems_of(rows):
        cells = [float(np.mean(means[problem, method])) if (problem, method) in means else math.nan for method in methods]
        best = round(max(cell for cell in cells if not math.isnan(cell)), 3)
        lines.append([problem, *(f"**{part(cell)}**" if round(cell, 3) == best else part(cell) for cell in cells)])
    return markdown(lines)


def regrets(rows: Sequence[Row], measure: str = "simple_regret") -> str:
    """Mean regret with standard error, a line per problem; ``measure``: simple_regret or inference_regret."""
    methods, table = in_order(rows), by_problem(rows)
    lines = [["function", *map(title, methods)]]
    for problem in problems_of(rows):
        line = [problem]
        for method in methods:
            values = [getattr(row, measure) for row in table.get((problem, method), {}).values()]
            known = estimate([value for value in values if not math.isnan(value)] or [math.nan])
            line.append(f"{known.mean:.2g} ± {known.error:.1g}" if values else "")
        lines.append(line)
    return markdown(lines)


def _median(values: list[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return f"{np.median(known):.2g}" if known else "?"


def part(value: float) -> str:
    """Three digits without the zero before the point."""
    return "?" if math.isnan(value) else f"{value:.3f}".replace("0.", ".", 1)


def _with_error(value: Estimate) -> str:
    return f"{_signed(value)} ± {part(value.error)}"


def _signed(value: Estimate) -> str:
    return ("+" if value.mean >= 0 else "−") + part(abs(value.mean))


def _p_value(test: Comparison, ours: str, theirs: str) -> str:
    """With whom it favours, where that is not who has the higher mean."""
    p = "< .001" if test.p_holm < 0.001 else part(test.p_holm)
    disagrees = test.p_holm < CLAIM and test.favours * test.difference.mean < 0
    return f"{p} (for {ours if test.favours > 0 else theirs})" if disagrees else p


def markdown(lines: list[list[str]]) -> str:
    """A table of these lines; the first is its head."""
    head, *body = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])
