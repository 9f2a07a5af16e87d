"""What a run achieved, in numbers that can be compared: one ``Row`` per run.

    gap  G = (f_first - f_best) / (f_first - f_min)                                              [eq:gap]   (the paper's)
    simple regret     f(best observed point) - f_min
    inference regret  f(recommended point) - f_min

f_first belongs to the best of the initial points, f_best to the best point observed in the whole run, "best" as the observer
sees it (the lowest observed value), f the value without noise. The paper takes the noisy values themselves: that is
``observed_gap``, which noise can lift above one. A run that starts at the minimum has gap 1, and so has one that goes below
it, where the minimum is only the best value known (``problems.best_known``); its regret is then negative.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from glasses_lab.problems import get

_NUMBERS = ("gap", "observed_gap", "simple_regret", "inference_regret", "seconds", "initial_regret")
_WHOLES = ("seed", "d", "evaluations")
TENTHS = 11  # the gap is kept at 0, 10, ..., 100 % of the evaluations


@dataclass(frozen=True)
class Row:
    """The measures of one run."""

    problem: str
    method: str
    seed: int
    d: int
    gap: float
    observed_gap: float
    simple_regret: float
    inference_regret: float
    seconds: float  # CPU seconds per decision, median of the run
    evaluations: int  # decided by the method
    failed: bool
    curve: tuple[float, ...]  # the gap along the run, TENTHS values
    initial_regret: float = math.nan  # simple regret before the first decision; nan in files of earlier versions


def gap(first: float, best: float, minimum: float) -> float:
    """[eq:gap]."""
    return (first - best) / (first - minimum) if first > minimum else 1.0


def measure(record: dict[str, Any]) -> Row:
    """The measures of a record of ``run``."""
    y = np.array(record["y"], dtype=float)
    n, minimum = record["initial"], record["minimum"]
    named: dict[str, Any] = {
        "problem": record["problem"],
        "method": record["method"],
        "seed": record["seed"],
        "failed": bool(record["error"]),
    }
    if y.size < n or minimum is None:  # the process died before anything was known
        nothing: dict[str, Any] = {
            "d": get(record["problem"]).d,
            "gap": 0.0,
            "observed_gap": 0.0,
            "evaluations": 0,
            "curve": (0.0,) * TENTHS,
        }
        return Row(**named, **nothing, simple_regret=math.nan, inference_regret=math.nan, seconds=math.nan)
    true = y if record["true"] is None else np.array(record["true"], dtype=float)
    incumbent = np.array([true[: k + 1][np.argmin(y[: k + 1])] for k in range(n - 1, y.size)])  # after 0, 1, .. decisions
    gaps = [min(1.0, gap(incumbent[0], value, minimum)) for value in incumbent]
    planned = [round(record["evaluations"] * tenth / (TENTHS - 1)) for tenth in range(TENTHS)]
    recommended = record["recommended_true"]
    return Row(
        **named,
        d=len(record["x"][0]),
        gap=gaps[-1],
        observed_gap=gap(float(y[:n].min()), float(y.min()), minimum),
        simple_regret=float(incumbent[-1] - minimum),
        inference_regret=float((incumbent[-1] if recommended is None else recommended) - minimum),
        seconds=float(np.median(record["seconds"])) if record["seconds"] else math.nan,
        evaluations=y.size - n,
        curve=tuple(gaps[min(k, len(gaps) - 1)] for k in planned),
        initial_regret=float(incumbent[0] - minimum),
    )


def normalized(rows: Sequence[Row]) -> list[float]:
    """The observed gaps as the paper normalises them: per problem and seed, divided by the largest of all methods."""
    largest: dict[tuple[str, int], float] = {}
    for row in rows:
        key = row.problem, row.seed
        largest[key] = max(largest.get(key, 0.0), row.observed_gap)
    return [row.observed_gap / largest[row.problem, row.seed] if largest[row.problem, row.seed] > 0 else 0.0 for row in rows]


def write_rows(rows: Iterable[Row], path: Path, about: dict[str, str]) -> None:
    """A small text file: ``about`` as comments, then one line per run with six significant digits."""
    names = [field.name for field in fields(Row)]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in about.items())
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in sorted(rows, key=lambda row: (row.problem, row.method, row.seed)):
            writer.writerow([_written(getattr(row, name)) for name in names])


def read_rows(path: Path) -> tuple[list[Row], dict[str, str]]:
    """What ``write_rows`` wrote: rows and what they are about."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    about = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    table = csv.DictReader(io.StringIO("\n".join(line for line in lines if not line.startswith("#"))))
    return [_read(line) for line in table], about


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{v:.4f}" for v in value)
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _read(line: dict[str, str]) -> Row:
    read: dict[str, Any] = {name: float(line.get(name, "nan")) for name in _NUMBERS}
    read |= {name: int(line[name]) for name in _WHOLES}
    curve = tuple(float(v) for v in line["curve"].split())
    return Row(problem=line["problem"], method=line["method"], failed=line["failed"] == "1", curve=curve, **read)
