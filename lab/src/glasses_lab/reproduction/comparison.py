"""Figures of a campaign: where look-ahead differs from the myopic loss, problem by problem, and the gap along the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glasses_lab.campaign.measures import Row
from glasses_lab.campaign.statistics import Comparison, against_by_problem, by_problem, estimate, over_problems
from glasses_lab.campaign.tables import BASELINE, CLAIM, in_order, problems_of, title

COLOURS = {
    "el": "black",
    "glasses": "tab:blue",
    "two-stage": "tab:red",
    "random": "0.55",
    "sobol": "0.75",
    "mpi": "tab:olive",
    "lcb": "tab:brown",
    "el-2": "#9ecae1",
    "el-3": "#c994c7",
    "el-5": "#a1d99b",
    "el-10": "#fdae6b",
    "botorch-logei": "tab:orange",
    "botorch-logei-exact": "tab:green",
    "optuna-gp": "tab:purple",
    "binoculars": "tab:cyan",
}


@dataclass(frozen=True)
class Differences:
    """Paired differences in gap to EL: problems x methods."""

    problems: list[str]
    methods: list[str]
    cells: dict[tuple[str, str], Comparison]


@dataclass(frozen=True)
class Curves:
    """Mean gap along the run, every problem of the same weight."""

    part: np.ndarray  # of the evaluations
    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]


def differences(rows: Sequence[Row], methods: Sequence[str]) -> Differences:
    """The numbers behind ``draw_differences``; the correction is over all methods of the rows."""
    cells = against_by_problem(rows, BASELINE, in_order(rows))
    return Differences(problems_of(rows), list(methods), {key: cell for key, cell in cells.items() if key[1] in methods})


def curves(rows: Sequence[Row]) -> Curves:
    """The numbers behind ``draw_curves``."""
    table, mean, error = by_problem(rows), {}, {}
    for method in in_order(rows):
        runs = [np.array([row.curve for row in table[p, method].values()]) for p in problems_of(rows) if (p, method) in table]
        points = [over_problems([estimate(run[:, k].tolist()) for run in runs]) for k in range(runs[0].shape[1])]
        mean[method] = np.array([point.mean for point in points])
        error[method] = np.array([point.error for point in points])
    return Curves(np.linspace(0, 1, len(next(iter(mean.values())))), mean, error)


def draw(suites: Mapping[str, Sequence[Row]], path: Path, methods: Sequence[str] = ("glasses", "two-stage")) -> None:
    """One row per suite: differences by problem on the left (of these methods), curves on the right."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sizes = [1.6 + 0.42 * len(problems_of(rows)) for rows in suites.values()]
    figure, panels = plt.subplots(
        len(suites), 2, figsize=(13, sum(max(size, 4.2) for size in sizes)), squeeze=False, constrained_layout=True,
        gridspec_kw={"height_ratios": [max(size, 4.2) for size in sizes], "width_ratios": [1.15, 1]},
    )  # fmt: skip
    for (name, rows), (left, right) in zip(suites.items(), panels, strict=True):
        _draw_differences(differences(rows, methods), left)
        left.set_title(f"{name}: gap against EL, paired, mean ± 2 standard errors", fontsize=11)
        _draw_curves(curves(rows), right)
        right.set_title(f"{name}: mean gap along the run", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_differences(data: Differences, panel: Any) -> None:
    panel.axvline(0, color="black", linewidth=1)
    for k, method in enumerate(data.methods):
        colour = COLOURS.get(method, "tab:pink")
        for place, problem in enumerate(data.problems):
            if (cell := data.cells.get((problem, method))) is not None:
                fill = colour if cell.p_holm < CLAIM else "white"
                where = place + 0.34 / max(1, len(data.methods) - 1) * (k - (len(data.methods) - 1) / 2)
                error = 2 * cell.difference.error
                panel.errorbar(cell.difference.mean, where, xerr=error, fmt="o", color=colour, capsize=3, markerfacecolor=fill)
        panel.plot([], [], "o", color=colour, label=title(method))
    panel.set_yticks(range(len(data.problems)), data.problems)
    panel.invert_yaxis()
    panel.set_xlabel("worse   ←   difference in gap to EL   →   better   (filled: p < .05 after Holm)")
    panel.grid(axis="x", alpha=0.3)
    panel.legend(frameon=False, fontsize=9)


def _draw_curves(data: Curves, panel: Any) -> None:
    for method, mean in data.mean.items():
        colour = COLOURS.get(method, "tab:pink")
        strong = method in ("el", "glasses", "two-stage")
        panel.plot(
            100 * data.part,
            mean,
            color=colour,
            label=title(method),
            linewidth=2.2 if strong else 1.1,
            zorder=3 if strong else 2,
        )
        if strong:
            panel.fill_between(100 * data.part, mean - data.error[method], mean + data.error[method], color=colour, alpha=0.15)
    panel.set(xlabel="evaluations spent, %", ylabel="mean gap", xlim=(0, 100))
    panel.grid(alpha=0.3)
    panel.legend(frameon=False, fontsize=8, ncols=2, loc="lower right")
