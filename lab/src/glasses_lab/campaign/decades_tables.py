"""Tables of ``decades`` as Markdown: who is better and by how much, in all, by family and by function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from glasses_lab.campaign.decades import TIE_DECADES, Duel, below_best_known, by_run, decades, duels, function_of, ranks
from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.statistics import Estimate
from glasses_lab.campaign.tables import BASELINE, in_order, markdown, part, title

CHAMPION = "default"


def champion_of(rows: Sequence[Row]) -> str:
    """Who is compared with the others: the default planner, or EL where it has no runs."""
    return CHAMPION if any(row.method == CHAMPION for row in rows) else BASELINE


def decades_tables(rows: Sequence[Row], families: Mapping[str, str]) -> str:
    """All of them, with what they say in words; empty for rows that do not have the initial regret."""
    if all(math.isnan(decades(row)) for row in rows):
        return ""
    champion = title(champion_of(rows))
    text = [
        "Decades: log10 of the part of the initial regret that is left (lower is better).",
        summary(rows, families),
        f"{champion} against each: gap higher by, decades lower by (± of new runs, ± of new functions), wins and losses by "
        f"more than {TIE_DECADES:g} decades, Wilcoxon's test over runs after Holm's correction.",
        against_each(rows),
        "Mean decades by function.",
        functions(rows),
    ]
    lower = below_best_known(rows)
    if lower:
        text.append(
            f"Runs found lower values than the best known of {', '.join(lower)}: they count as solved; `glasses-lab best` "
            "searches again."
        )
    return "\n\n".join(text)


def summary(rows: Sequence[Row], families: Mapping[str, str]) -> str:
    """A line per method: mean gap and decades, mean rank in all and in each family, over the runs that all methods have."""
    methods, ordered = in_order(rows), [family for family in dict.fromkeys(families.values()) if family]
    groups = {family: [row for row in rows if families.get(row.problem) == family] for family in ordered}
    in_all, gaps, left = ranks(rows, methods), by_run(rows, lambda row: row.gap), by_run(rows, decades)
    in_family = {family: ranks(group, methods) for family, group in groups.items() if group}
    common = set.intersection(*(set(gaps[method]) for method in methods))
    lines = [["method", "runs", "mean gap", "mean decades", "rank", *(f"rank, {family}" for family in in_family)]]
    for method in methods:
        line = [title(method), str(len(gaps[method]))]
        line += [part(_mean([gaps[method][key] for key in common])), f"{_mean([left[method][key] for key in common]):.2f}"]
        lines.append([*line, f"{in_all[method]:.2f}", *(f"{found[method]:.2f}" for found in in_family.values())])
    return markdown(lines)


def against_each(rows: Sequence[Row]) -> str:
    """The champion against every other method."""
    champion = champion_of(rows)
    lines = [["method", "runs", "functions", "gap", "decades", "wins : losses", "p (Holm)"]]
    for method, duel in duels(rows, champion, in_order(rows)).items():
        line = [title(method), str(duel.gap.count), str(duel.gap_elsewhere.count)]
        line += [_two_errors(duel.gap, duel.gap_elsewhere, 3), _two_errors(duel.decades, duel.decades_elsewhere, 2)]
        lines.append([*line, f"{duel.wins} : {duel.losses}", _p(duel)])
    return markdown(lines)


def functions(rows: Sequence[Row]) -> str:
    """Mean decades, a line per function and a column per method; the lowest in bold."""
    methods, left = in_order(rows), by_run(rows, decades)
    names = dict.fromkeys(function_of(row.problem) for row in sorted(rows, key=lambda row: _natural(row.problem)))
    lines = [["function", *map(title, methods)]]
    for name in names:
        cells = [_mean([value for key, value in left[method].items() if function_of(key[0]) == name]) for method in methods]
        best = min((round(cell, 2) for cell in cells if not math.isnan(cell)), default=math.nan)
        texts = ["" if math.isnan(cell) else f"{cell:.2f}" for cell in cells]
        lines.append([name, *(f"**{t}**" if t and round(c, 2) == best else t for t, c in zip(texts, cells, strict=True))])
    return markdown(lines)


def _two_errors(value: Estimate, elsewhere: Estimate, digits: int) -> str:
    sign = "+" if value.mean >= 0 else "−"
    errors = [f"{each.error:.{digits}f}" for each in (value, elsewhere)]
    return f"{sign}{abs(value.mean):.{digits}f} ± {errors[0]} ± {errors[1]}"


def _p(duel: Duel) -> str:
    return "< .001" if duel.p_holm < 0.001 else part(duel.p_holm)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Sorts BBOB-2 before BBOB-10."""
    return [(not piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in name.split("-")]
