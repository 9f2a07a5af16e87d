"""``glasses paper``: every table and figure of the reproduction, from the results that come with the library.

The results are one CSV file per suite, a line per run, made by ``glasses paper run`` and ``glasses campaign table --rows``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from glasses.campaign.measures import Row, measure, read_rows
from glasses.campaign.store import read_records
from glasses.campaign.suite import read_suite
from glasses.campaign.tables import by_function, overall, paper_gaps, regrets

Loaded = dict[str, tuple[list[Row], dict[str, str]]]
RESULTS = Path(__file__).parent / "results"
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
        from glasses.reproduction.loss_surface import draw_loss_surfaces, loss_surfaces

        draw_loss_surfaces(loss_surfaces(), out / "loss.png")
        print(f"figure {out / 'loss.png'}")
    if what in ("steps", "all"):
        from glasses.reproduction.steps_ahead import draw_steps_ahead, steps_ahead

        draw_steps_ahead(steps_ahead(), out / "steps.png")
        print(f"figure {out / 'steps.png'}")
    if what in ("values", "all"):
        from glasses.reproduction.values import draw_planner_values, planner_values, remark, table

        data = planner_values()
        draw_planner_values(data, out / "values.png")
        print(f"{table(data)}\n\n{remark(data)}\nfigure {out / 'values.png'}")
    if what in ("table", "all"):
        _tables(out, load(results), page)
    print(f"done in {time.monotonic() - begun:.0f} s")


def load(folder: Path | None = None) -> Loaded:
    """Suite -> rows and what they are about: from fresh results in ``folder``, or those of the library."""
    if folder is None:
        return {name: read_rows(RESULTS / f"{name}.csv") for name in SUITES}
    found = {}
    for name in SUITES:
        if (folder / f"{name}.jsonl").is_file():
            wanted = {task.key for task in read_suite(name).tasks}
            records = [record for record in read_records(folder / f"{name}.jsonl") if record["key"] in wanted]
            found[name] = ([measure(record) for record in records], about(name, records))
    if not found:
        raise ValueError(f"{folder} holds no results ({', '.join(f'{name}.jsonl' for name in SUITES)}): `glasses paper run`.")
    return found


def about(suite: str, records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What was run, when and with which versions."""
    versions: dict[str, set[str]] = {}
    for record in records:
        for library, version in record["versions"].items():
            versions.setdefault(library, set()).add(version)
    days = sorted(record["began"][:10] for record in records)
    return {
        "suite": suite,
        "command": f"glasses campaign run {suite}",
        "runs": str(len(records)),
        "date": days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}",
        "versions": ", ".join(f"{library} {'/'.join(sorted(found))}" for library, found in sorted(versions.items())),
    }


def _tables(out: Path, loaded: Loaded, page: Path | None) -> None:
    from glasses.reproduction.comparison import draw

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
