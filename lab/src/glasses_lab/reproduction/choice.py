"""The campaign that chose the default planner, as tables and a figure, from the results in the repository.

The suite ``development`` has two batches of seeds. The ``first`` is looked at while choosing, with as many runs per method as
are needed to drop it; the ``last`` is run when the choice has been made, in full, and only it says how good the choice is. What
was aimed at is checked line by line in ``goals``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.statistics import CLEAR, against, average_ranks, by_problem, estimate, lead, over_problems
from glasses_lab.campaign.suite import read_suite
from glasses_lab.campaign.tables import BASELINE, CLAIM, by_function, duels, in_order, overall, problems_of, title
from glasses_lab.reproduction.page import filled
from glasses_lab.reproduction.stored import Loaded, fresh, stored

SUITE, BATCHES, CHOSEN = "development", {"first": 1000, "last": 2000}, "two-stage"
RIVAL = "botorch-logei-exact"


def load(results: Path | None = None) -> Loaded:
    """Batch -> rows and what they are about: of a file of fresh records, or the kept rows of a folder or of the repository."""
    if results is None or results.is_dir():
        return {name: stored(f"{SUITE}-{name}", results) for name in BATCHES}
    suite, found = read_suite(SUITE), {}
    for name, first in BATCHES.items():
        batch = fresh(SUITE, results, {task.key for task in suite.from_seed(first).tasks})
        if batch is not None:
            rows, told = batch
            found[name] = rows, told | {"command": f"{told['command']} --first-seed {first}"}
    if not found:
        raise ValueError(f"{results} holds no run of suite {SUITE}: run `glasses-lab campaign run {SUITE}` first.")
    return found


def texts(loaded: Loaded) -> dict[str, str]:
    """Every table, and a line about every batch, by name."""
    families = read_suite(SUITE).families
    made = {
        f"{name}-about": f"`{told['command']}`: {told['runs']} runs, {told['date']}; {told['versions']}."
        for name, (_, told) in loaded.items()
    }
    if "first" in loaded:
        made["first"] = duels(loaded["first"][0], families)
    if "last" in loaded:
        rows = loaded["last"][0]
        made |= {
            "last": overall(rows, timed=False),
            "lead": duels(rows, families, CHOSEN),
            "functions": by_function(rows),
            "goals": goals(rows),
        }
    return made


def goals(rows: Sequence[Row]) -> str:
    """What was aimed at, whether it was reached, and the figures. What cannot be said from these rows is said to be so."""
    methods, table, problems = in_order(rows), by_problem(rows), problems_of(rows)
    ranks, leads = average_ranks(rows, methods), lead(rows, CHOSEN, methods)
    means = {
        method: over_problems([estimate([row.gap for row in table[problem, method].values()]) for problem in problems]).mean
        for method in methods
        if all((problem, method) in table for problem in problems)
    }
    by_mean, by_rank = sorted(means, key=lambda m: -means[m]), sorted(ranks, key=lambda m: ranks[m])
    all_ranked = not any(math.isnan(rank) for rank in ranks.values())
    weighed, coarse = average_ranks(rows, methods, by_problem_first=True), average_ranks(rows, methods, tie=CLEAR)
    ranked = "; ".join(
        words + _listed(sorted(each, key=lambda m: each[m]), each, 2)
        for words, each in (
            ("", ranks),
            ("afterwards: all functions of one weight ", weighed),
            (f"ties below {CLEAR:g} ", coarse),
        )
    )
    lines = [
        ("highest mean gap", by_mean[0] == CHOSEN if CHOSEN in means else None, _listed(by_mean, means, 3)),
        ("best average rank", by_rank[0] == CHOSEN if all_ranked else None, ranked),
    ]
    for rival in (BASELINE, RIVAL):
        what = f"better than {title(rival)}, p < .05"
        if rival in leads:
            found = leads[rival]
            figures = f"p = {found.p_holm:.2g} after Holm, {found.wins} : {found.losses}"
            lines.append((what, found.p_holm < CLAIM and found.favours > 0, figures))
        else:
            lines.append((what, None, ""))
    families = read_suite(SUITE).families
    sides = {
        family: against([row for row in rows if families.get(row.problem) == family], BASELINE, [CHOSEN])
        for family in dict.fromkeys(families.values())
    }
    known = {family: found[CHOSEN].difference for family, found in sides.items() if CHOSEN in found}
    enough = len(known) == len(sides) and not any(math.isnan(each.error) for each in known.values())
    held = all(each.mean >= -2 * each.error for each in known.values()) if enough else None
    figures = ", ".join(f"{family} {each.mean:+.3f} ± {each.error:.3f}" for family, each in known.items())
    lines.append(("in no family worse than EL by two standard errors", held, figures))
    said = {True: "yes", False: "**no**", None: "not enough runs"}
    return "\n".join(
        [
            "| goal | reached | figures |",
            "|---|---|---|",
            *(f"| {what} | {said[held]} | {words} |" for what, held, words in lines),
        ]
    )


def _listed(order: Sequence[str], values: Mapping[str, float], digits: int) -> str:
    return ", ".join(f"{title(method)} {values[method]:.{digits}f}" for method in order)


def make(out: Path, results: Path | None = None, page: Path | None = None) -> None:
    """Print the tables, draw the figure into the folder ``out`` and fill the page."""
    from glasses_lab.reproduction.comparison import draw

    loaded = load(results)
    made = texts(loaded)
    for name in ("first", "goals", "last", "lead", "functions"):
        if name in made:
            print(f"\n{name}\n\n{made[name]}")
    if "last" in loaded:
        others = [method for method in in_order(loaded["last"][0]) if method not in (BASELINE, CHOSEN)]
        draw({"last batch": loaded["last"][0]}, out / "choice.png", methods=(CHOSEN, *others))
        print(f"\nfigure {out / 'choice.png'}")
    if page is not None:
        page.write_text(filled(page.read_text(encoding="utf-8"), made), encoding="utf-8")
        print(f"page   {page}")
