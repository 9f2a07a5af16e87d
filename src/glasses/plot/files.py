"""Whole pictures as files: what the commands write. Figures are made without pyplot, so the user's backend stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from glasses.plot.axes import draw_convergence, draw_forecast, draw_slice, draw_surface
from glasses.plot.numbers import ForecastData, OverviewData, RunData


def write_run(moments: list[tuple[str, RunData]], path: str | Path) -> None:
    """One map per moment of the run (posterior mean, evaluations, plan), and the convergence of the last."""
    figure = _figure(4.6 * (len(moments) + 1), 4.2)
    panels = figure.subplots(1, len(moments) + 1)
    low = min(float(data.mean.min()) for _, data in moments)
    high = max(float(data.mean.max()) for _, data in moments)
    for panel, (title, data) in zip(panels, moments, strict=False):
        shades = draw_surface(panel, data, np.linspace(low, high, 25))
        panel.set_title(title, parse_math=False)
    figure.colorbar(shades, ax=panels[len(moments) - 1], label="posterior mean")
    last = moments[-1][1]
    draw_convergence(panels[-1], last.values, last.best)
    _write(figure, path)


def write_overview(data: OverviewData, path: str | Path, title: str = "") -> None:
    """Convergence with the plan ahead, and one panel per parameter: what the model says through the recommended point."""
    _write(overview_figure(data, title), path)


def overview_figure(data: OverviewData, title: str = "") -> Any:
    """The same as a figure."""
    panels = 1 + len(data.slices)
    columns = min(3, panels)
    rows = -(-panels // columns)
    figure = _figure(4.8 * columns, 3.7 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for empty in axes[panels:]:
        empty.set_visible(False)
    figure.suptitle(title, parse_math=False)
    draw_convergence(axes[0], data.values, data.best, data)
    for axis, each in zip(axes[1:], data.slices, strict=False):
        draw_slice(axis, each, data)
    axes[1].legend(fontsize=8, frameon=False)
    return figure


def write_forecast(data: ForecastData, path: str | Path, title: str = "") -> None:
    """The expected best value against the number of further evaluations, with its band and its bounds."""
    figure = _figure(6.4, 4.2)
    axis = figure.subplots()
    draw_forecast(axis, data)
    axis.set_title(title, parse_math=False)
    _write(figure, path)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _write(figure: Any, path: str | Path) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
