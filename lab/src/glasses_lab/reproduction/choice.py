"""What the default was chosen on, and the last word on it: the tables of docs/how_to_choose.md, from the kept results.

``bbob`` was looked at while choosing. The others were run once the choice had been made: COCO's instances 4 and 5, a part of
them with slower peers (``bbob-peers``), models to be tuned, laboratory tables, and the suite of the earlier default
(``development``, seeds from 2000, with the peers' runs of that time; planners were compared on them too). What was aimed at
is checked line by line in ``goals``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glasses_lab.campaign.decades import Duel, decades, duels
from glasses_lab.campaign.decades_tables import CHAMPION, against_each, summary
from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.statistics import average_ranks, by_problem, estimate, over_problems
from glasses_lab.campaign.suite import read_suite
from glasses_lab.campaign.tables import BASELINE, CLAIM, in_order, overall, problems_of, title
from glasses_lab.campaign.tables import duels as gap_duels
from glasses_lab.reproduction.page import filled
from glasses_lab.reproduction.stored import Loaded, fresh, stored

SUITES = ("bbob", "bbob-last", "bbob-peers", "tuning", "laboratory", "development")
NO_LAST_WORD = ("bbob", "bbob-peers")  # chosen on, or a part of another one
OLD = "development"
FIRST_SEEDS = {OLD: 2000}
RIVAL = "botorch-logei-exact"
SAMPLERS = ("optuna-tpe", "optuna-gp")


def load(results: Path | None = None) -> Loaded:
    """Suite -> rows and what they are about: of a file of fresh records, or the kept rows of a folder or of the repository."""
    if results is None or results.is_dir():
        return {name: stored(name, results) for name in SUITES}
    found = {}
    for name in SUITES:
        suite = read_suite(name).from_seed(FIRST_SEEDS.get(name))
        batch = fresh(name, results, {task.key for task in suite.tasks})
        if batch is not None:
            found[name] = batch
    if not found:
        raise ValueError(f"{results} holds no run of {', '.join(SUITES)}: run `glasses-lab campaign run {SUITES[0]}` first.")
    return found


def texts(loaded: Loaded) -> dict[str, str]:
    """Every table, and a line about every suite, by name."""
    made = {"goals": goals({name: rows for name, (rows, _) in loaded.items()})}
    for name, (rows, told) in loaded.items():
        made[f"{name}-about"] = f"`{told['command']}`: {told['runs']} runs, {told['date']}; {told['versions']}."
        families = read_suite(name).families
        if name == OLD:  # the peers' rows were kept before there were decades
            made |= {name: overall(rows, timed=False), f"{name}-against": gap_duels(rows, families, CHAMPION)}
        else:
            made |= {name: summary(rows, families), f"{name}-against": against_each(rows)}
    return made


@dataclass(frozen=True)
class Goal:
    """What was aimed at, whether it was reached (None: these rows do not say), and the figures."""

    what: str
    reached: bool | None
    figures: str


def goals(suites: dict[str, list[Row]]) -> str:
    """What was aimed at, whether it was reached, and the figures."""
    lines = [*_coco(suites.get("bbob-last", [])), *_against_one_step(suites), *_old(suites.get(OLD, []))]
    lines += [line for name in ("tuning", "laboratory") for line in _tables(name, suites.get(name, []))]
    said = {True: "yes", False: "**no**", None: "not enough runs"}
    return "\n".join(
        ["| goal | reached | figures |", "|---|---|---|", *(f"| {g.what} | {said[g.reached]} | {g.figures} |" for g in lines)]
    )


def _coco(rows: Sequence[Row]) -> list[Goal]:
    small, large = ([row for row in rows if (row.d == 10) == ten] for ten in (False, True))
    gaps = [row.gap for row in small if row.method == CHAMPION]
    mean = estimate(gaps) if gaps else None
    found = _duels(small)
    rival = found.get(RIVAL)
    peers = {method: duel for method, duel in _duels(large).items() if method != BASELINE}
    what = f"BBOB, d 2, 3, 5: lead over {title(RIVAL)}"
    return [
        Goal(
            "BBOB, d 2, 3, 5: mean gap of at least .87",
            None if mean is None else mean.mean >= 0.87,
            "" if mean is None else f"{mean.mean:.3f} ± {mean.error:.3f}, {mean.count} runs",
        ),
        Goal(
            f"{what} of at least .08 in gap and .6 decades, p < .001",
            None if rival is None else rival.gap.mean >= 0.08 and rival.decades.mean >= 0.6 and rival.p_holm < 0.001,
            "" if rival is None else _figures(rival),
        ),
        Goal(
            "BBOB, d 10: ahead of every peer in both",
            all(duel.gap.mean > 0 and duel.decades.mean > 0 for duel in peers.values()) if peers else None,
            "; ".join(f"{title(method)} {_figures(duel)}" for method, duel in peers.items()),
        ),
    ]


def _against_one_step(suites: dict[str, list[Row]]) -> list[Goal]:
    """Never below in gap or in decades, and above on two suites at least."""
    found = {name: _duels(rows).get(BASELINE) for name, rows in suites.items() if name not in NO_LAST_WORD}
    known = {name: duel for name, duel in found.items() if duel is not None}
    held = all(each.mean >= -each.error for duel in known.values() for each in (duel.gap, duel.decades))
    above = [name for name, duel in known.items() if duel.p_holm < CLAIM and duel.wins > duel.losses]
    words = "; ".join(f"{name} {_figures(duel)}" for name, duel in known.items())
    return [
        Goal("on no suite below EL by more than a standard error", held if known else None, words),
        Goal(
            "above EL with p < .05 on two suites",
            len(above) >= 2 if known else None,
            ", ".join(above) or "none" if known else "",
        ),
    ]


def _old(rows: Sequence[Row]) -> list[Goal]:
    methods, table, problems = in_order(rows), by_problem(rows), problems_of(rows)
    whole = [m for m in methods if all((problem, m) in table for problem in problems)]
    means = {m: over_problems([estimate([r.gap for r in table[p, m].values()]) for p in problems]).mean for m in whole}
    ranks = {method: rank for method, rank in average_ranks(rows, whole).items() if not math.isnan(rank)} if whole else {}
    there, first = CHAMPION in means, min(ranks, key=lambda m: ranks[m]) if ranks else None
    return [
        Goal(
            "old suite: mean gap of at least .80",
            means[CHAMPION] >= 0.80 if there else None,
            ", ".join(f"{title(m)} {means[m]:.3f}" for m in sorted(means, key=lambda m: -means[m])),
        ),
        Goal(
            "old suite: best average rank",
            first == CHAMPION if there and len(ranks) > 1 else None,
            ", ".join(f"{title(m)} {ranks[m]:.2f}" for m in sorted(ranks, key=lambda m: ranks[m])),
        ),
    ]


def _tables(name: str, rows: Sequence[Row]) -> list[Goal]:
    found = {method: duel for method, duel in _duels(rows).items() if method != BASELINE}
    if not found:
        return [Goal(f"{name}: ahead of every peer in mean gap", None, "")]
    ahead = all(duel.gap.mean > 0 for duel in found.values())
    samplers = {method: found[method] for method in SAMPLERS if method in found}
    sure = all(duel.p_holm < CLAIM and duel.wins > duel.losses for duel in samplers.values()) if len(samplers) == 2 else None
    return [
        Goal(
            f"{name}: ahead of every peer in mean gap",
            ahead,
            ", ".join(f"{title(m)} {duel.gap.mean:+.3f} ± {duel.gap.error:.3f}" for m, duel in found.items()),
        ),
        Goal(
            f"{name}: better than {' and '.join(map(title, SAMPLERS))}, p < .05",
            sure,
            "; ".join(f"{title(m)} {duel.wins} : {duel.losses}, p = {duel.p_holm:.2g}" for m, duel in samplers.items()),
        ),
    ]


def _duels(rows: Sequence[Row]) -> dict[str, Duel]:
    rows = [row for row in rows if not math.isnan(decades(row))]
    methods = in_order(rows)
    return duels(rows, CHAMPION, methods) if CHAMPION in methods else {}


def _figures(duel: Duel) -> str:
    gap = f"{duel.gap.mean:+.3f} ± {duel.gap.error:.3f}"
    left = f"{duel.decades.mean:+.2f} ± {duel.decades.error:.2f} decades"
    return f"{gap}, {left}, {duel.wins} : {duel.losses}, p = {duel.p_holm:.2g}"


def make(results: Path | None = None, page: Path | None = None) -> None:
    """Print the tables and fill the page."""
    made = texts(load(results))
    for name, text in made.items():
        print(f"\n{name}\n\n{text}")
    if page is not None:
        page.write_text(filled(page.read_text(encoding="utf-8"), made), encoding="utf-8")
        print(f"page   {page}")
