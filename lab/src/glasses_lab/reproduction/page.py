"""``glasses-lab paper``: every table and figure of the reproduction, from the results in the repository or fresh ones.

``stored`` says where results come from; ``glasses-lab paper run`` makes fresh ones.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.suite import read_suite
from glasses_lab.campaign.tables import by_function, overall, paper_gaps, regrets
from glasses_lab.reproduction.stored import Loaded, fresh, stored

SUITES = ("fair", "nine", "samples", "protocol")
_TABLES: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "fair-overall": ("fair", overall),
    "fair": ("fair", by_function),
    "fair-simple": ("fair", regrets),
    "fair-inference": ("fair", partial(regrets, measure="inference_regret")),
    "nine-overall": ("nine", overall),
    "nine": ("nine", by_function),
    "nine-simple": ("nine", regrets),
    "nine-inference": ("nine", partial(regrets, measure="inference_regret")),
    "samples-overall": ("samples", overall),
    "samples": ("samples", by_function),
    "samples-simple": ("samples", regrets),
    "samples-inference": ("samples", partial(regrets, measure="inference_regret")),
    "protocol": ("protocol", paper_gaps),
    "protocol-overall": ("protocol", overall),
}


def make(what: str, out: Path, results: Path | None = None, page: Path | None = None) -> None:
    """``what``: table, loss, steps, values or all."""
    begun = time.monotonic()
    if what in ("loss", "all"):
        from glasses_lab.reproduction.loss_surface import draw_loss_surfaces, loss_surfaces

        draw_loss_surfaces(loss_surfaces(), out / "loss.png")
        print(f"figure {out / 'loss.png'}")
    if what in ("steps", "all"):
        from glasses_lab.reproduction.steps_ahead import draw_steps_ahead, steps_ahead

        draw_steps_ahead(steps_ahead(), out / "steps.png")
        print(f"figure {out / 'steps.png'}")
    if what in ("values", "all"):
        from glasses_lab.reproduction.values import draw_planner_values, planner_values, remark, table

        data = planner_values()
        draw_planner_values(data, out / "values.png")
        print(f"{table(data)}\n\n{remark(data)}\nfigure {out / 'values.png'}")
    if what in ("table", "all"):
        _tables(out, load(results), page)
    print(f"done in {time.monotonic() - begun:.0f} s")


def load(folder: Path | None = None) -> Loaded:
    """Suite -> rows and what they are about: from ``folder`` (fresh records before kept rows) or the repository."""
    if folder is None:
        return {name: stored(name) for name in SUITES}
    found = {}
    for name in SUITES:
        if (folder / f"{name}.jsonl").is_file():
            rows = fresh(name, folder / f"{name}.jsonl", {task.key for task in read_suite(name).tasks})
            if rows is not None:
                found[name] = rows
        elif (folder / f"{name}.csv").is_file():
            found[name] = stored(name, folder)
    if not found:
        files = ", ".join(f"{name}.jsonl" for name in SUITES)
        raise ValueError(f"{folder} holds no results ({files}): run `glasses-lab paper run` first.")
    return found


def _tables(out: Path, loaded: Loaded, page: Path | None) -> None:
    from glasses_lab.reproduction.comparison import draw

    out.mkdir(parents=True, exist_ok=True)
    made = texts(loaded)
    lines = []
    for name in loaded:
        lines += [f"## {name}", made[f"{name}-about"], *(made[key] for key, (suite, _) in _TABLES.items() if suite == name)]
    (out / "tables.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    for name in loaded:
        print(
            f"\n{name}: {loaded[name][1]['runs']} runs, {loaded[name][1]['date']}\n\n{overall(loaded[name][0])}\n\n{made[name]}"
        )
    print(f"\ntables {out / 'tables.md'}")
    shown = {name: rows for name, (rows, _) in loaded.items() if name != "protocol"}
    if shown:
        draw(shown, out / "comparison.png")
        print(f"figure {out / 'comparison.png'}")
    if page is not None:
        page.write_text(filled(page.read_text(encoding="utf-8"), made), encoding="utf-8")
        print(f"page   {page}")


def texts(loaded: Loaded) -> dict[str, str]:
    """Every table, and a line about every suite, by name."""
    made = {name: table(loaded[suite][0]) for name, (suite, table) in _TABLES.items() if suite in loaded}
    for name, (_, told) in loaded.items():
        made[f"{name}-about"] = f"`{told['command']}`: {told['runs']} runs, {told['date']}; {told['versions']}."
    return made


def filled(text: str, tables: dict[str, str]) -> str:
    """The page with every ``<!-- table NAME -->`` ... ``<!-- end -->`` holding that table."""

    def put(match: re.Match[str]) -> str:
        if match[1] not in tables:
            raise ValueError(f"The page asks for a table {match[1]!r} that was not made: known are {', '.join(tables)}.")
        return f"<!-- table {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- table ([\w-]+) -->\n.*?<!-- end -->", put, text, flags=re.DOTALL)
