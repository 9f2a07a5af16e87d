"""Pictures of a run: numbers out of the optimiser first, drawing out of the numbers second (so that plots are tested
without pixels).

Needs matplotlib (``pip install glasses[plot]``), loaded on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Forecast, Plan
from glasses.space.parameters import Choice
from glasses.space.space import Space

LEVELS = (0.025, 0.5, 0.975)  # of a prediction: its median and the central 95 %


@dataclass(frozen=True)
class RunData:
    """A run over two parameters, in the user's units."""

    names: list[str]
    points: np.ndarray  # (n, 2) evaluated
    values: np.ndarray  # (n,)
    best: np.ndarray  # (n,) best value so far
    axes: tuple[np.ndarray, np.ndarray]
    mean: np.ndarray  # posterior mean on the grid of the axes
    plan: np.ndarray  # (k, 2) next point first; empty when nothing was left
    recommended: np.ndarray | None


def run_data(optimizer: Optimizer, plan: Plan | None = None, resolution: int = 80) -> RunData:
    """Everything ``draw_run`` shows, for an optimiser over two parameters with at least one observation."""
    space = optimizer.space
    if space.d != 2:
        raise ValueError(f"This picture needs 2 parameters, got {space.d}: plot convergence from result().func_vals instead.")
    result = optimizer.result()
    if not len(result.func_vals):
        raise ValueError("There is nothing to draw yet: tell at least one evaluation first.")
    names = [space.name(i) for i in range(2)]
    points, _ = space.read(result.x_iters, outside=True)
    a, b = (np.linspace(low, high, resolution) for low, high in zip(space.lower, space.upper, strict=True))
    mean, _ = optimizer.predict(np.stack(np.meshgrid(a, b, indexing="xy"), axis=-1).reshape(-1, 2))
    ahead = space.read(plan.points)[0] if plan is not None else np.zeros((0, 2))
    return RunData(
        names=list(names),
        points=points,
        values=result.func_vals,
        best=_best_so_far(space, points, result.func_vals),
        axes=(a, b),
        mean=mean.reshape(resolution, resolution),
        plan=ahead,
        recommended=space.read(result.recommended.x)[0][0] if result.recommended else None,
    )


def draw_run(moments: list[tuple[str, RunData]], path: str | Path) -> None:
    """One map per moment of the run (posterior mean, evaluations, plan), and the convergence of the last."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(moments) + 1, figsize=(4.6 * (len(moments) + 1), 4.2), constrained_layout=True)
    low = min(float(data.mean.min()) for _, data in moments)
    high = max(float(data.mean.max()) for _, data in moments)
    levels = np.linspace(low, high, 25)
    for panel, (title, data) in zip(panels, moments, strict=False):
        shades = panel.contourf(*data.axes, data.mean, levels=levels, cmap="viridis_r")
        panel.plot(*data.points.T, "o", clip_on=False, color="white", markeredgecolor="black", markersize=5, label="evaluated")
        if len(data.plan):
            panel.plot(
                *data.plan[1:].T, "o", markerfacecolor="none", markeredgecolor="tab:red", markersize=9, label="predicted steps"
            )
            panel.plot(
                *data.plan[0],
                "*",
                clip_on=False,
                zorder=5,
                color="tab:red",
                markeredgecolor="white",
                markersize=16,
                label="next point",
            )
        elif data.recommended is not None:
            panel.plot(*data.recommended, "X", color="tab:orange", markeredgecolor="black", markersize=11, label="recommended")
        panel.set(title=title, xlabel=data.names[0], ylabel=data.names[1])
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=8, frameon=False)
    figure.colorbar(shades, ax=panels[len(moments) - 1], label="posterior mean")
    last = moments[-1][1]
    count = np.arange(1, len(last.values) + 1)
    panels[-1].plot(count, last.values, "o", color="0.6", markersize=4, label="evaluation")
    panels[-1].step(count, last.best, where="post", color="tab:blue", label="best so far")
    panels[-1].set(title="Convergence", xlabel="evaluation", ylabel="value")
    panels[-1].legend(fontsize=8, frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


@dataclass(frozen=True)
class Slice:
    """The model along one parameter through the recommended point, in the user's units."""

    name: str
    log: bool
    labels: list[str] | None  # of a choice; its positions are 0, 1, ...
    at: np.ndarray  # (g,) positions
    model: np.ndarray  # (g, 3): the prediction's LEVELS
    evaluated: np.ndarray  # (n,) positions of the evaluations
    failed: np.ndarray  # (f,)
    plan: np.ndarray  # (k,) next point first; empty when nothing is left
    recommended: float


@dataclass(frozen=True)
class OverviewData:
    """A run over any parameters: convergence, slices through the recommended point, and the plan."""

    values: np.ndarray  # (n,)
    best: np.ndarray  # (n,)
    plan: np.ndarray  # (k, 3): LEVELS of what is predicted at the plan's points
    expected_best: float | None
    slices: list[Slice]


def overview_data(
    optimizer: Optimizer, plan: Plan | None = None, *, maximize: bool = False, resolution: int = 121
) -> OverviewData:
    """Everything ``draw_overview`` shows. ``maximize``: the optimiser was told negated values."""
    space, sign = optimizer.space, -1.0 if maximize else 1.0
    result = optimizer.result()
    if not len(result.func_vals):
        raise ValueError("There is nothing to draw yet: tell at least one evaluation first.")
    evaluated, _ = space.read(result.x_iters, outside=True)
    failed = np.array([space.read(each.x, outside=True)[0][0] for each in result.failures]).reshape(-1, space.d)
    ahead = np.array([space.read(x)[0][0] for x in plan.points]) if plan is not None else np.zeros((0, space.d))
    centre = space.read(result.recommended.x)[0][0]

    def levels(points: np.ndarray) -> np.ndarray:
        if not len(points):
            return np.zeros((0, len(LEVELS)))
        return np.sort(sign * optimizer.quantiles([space.form(x) for x in points], LEVELS), axis=1)

    slices = []
    for i, parameter in enumerate(space.parameters):
        count = resolution if parameter.count is None else min(parameter.count, resolution)
        ends = parameter.to_unit(np.array([space.lower[i], space.upper[i]]))
        at = np.unique(parameter.from_unit(np.linspace(ends[0], ends[1], count)))
        along = np.repeat(centre[None], len(at), axis=0)
        along[:, i] = at
        slices.append(
            Slice(
                name=space.name(i),
                log=bool(getattr(parameter, "log", False)),
                labels=[str(each) for each in parameter.values] if isinstance(parameter, Choice) else None,
                at=at,
                model=levels(along),
                evaluated=evaluated[:, i],
                failed=failed[:, i],
                plan=ahead[:, i],
                recommended=float(centre[i]),
            )
        )
    values = sign * result.func_vals
    return OverviewData(
        values=values,
        best=sign * _best_so_far(space, evaluated, result.func_vals),
        plan=levels(ahead),
        expected_best=None if plan is None or plan.expected_best is None else sign * plan.expected_best,
        slices=slices,
    )


def _best_so_far(space: Space, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The best value inside today's ranges after each evaluation; NaN before there is one."""
    best = np.minimum.accumulate(np.where(space.is_inside(points), values, np.inf))
    return np.where(np.isfinite(best), best, np.nan)


def draw_overview(data: OverviewData, path: str | Path, title: str = "") -> None:
    """Convergence with the plan ahead, and one panel per parameter: what the model says through the recommended point."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    panels = 1 + len(data.slices)
    columns = min(3, panels)
    rows = -(-panels // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(4.8 * columns, 3.7 * rows), constrained_layout=True, squeeze=False)
    axes = grid.ravel()
    for empty in axes[panels:]:
        empty.set_visible(False)
    figure.suptitle(title, parse_math=False)
    _draw_convergence(axes[0], data)
    for axis, each in zip(axes[1:], data.slices, strict=False):
        _draw_slice(axis, each, data)
    axes[0].legend(fontsize=8, frameon=False)
    axes[1].legend(fontsize=8, frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _around(levels: np.ndarray) -> np.ndarray:
    """How far a band reaches below and above its middle, (2, k)."""
    return np.stack([levels[:, 1] - levels[:, 0], levels[:, 2] - levels[:, 1]])


def _draw_convergence(axis: Any, data: OverviewData) -> None:
    count = np.arange(1, len(data.values) + 1)
    axis.plot(count, data.values, "o", color="0.6", markersize=4, label="evaluation")
    axis.step(count, data.best, where="post", color="tab:blue", label="best so far")
    if len(data.plan):
        ahead = len(count) + np.arange(1, len(data.plan) + 1)
        axis.errorbar(
            ahead,
            data.plan[:, 1],
            _around(data.plan),
            fmt="o",
            color="tab:red",
            markerfacecolor="none",
            elinewidth=0.6,
            markersize=4,
            label="plan, 95 %",
        )
        if data.expected_best is not None:
            axis.plot(ahead[-1], data.expected_best, "D", color="tab:red", markersize=6, label="expected best at the end")
    axis.set(title="Convergence", xlabel="evaluation", ylabel="value")
    axis.xaxis.get_major_locator().set_params(integer=True)


def _draw_slice(axis: Any, each: Slice, data: OverviewData) -> None:
    if each.labels is not None:
        axis.errorbar(each.at, each.model[:, 1], _around(each.model), fmt="s", color="tab:blue", capsize=4, label="model, 95 %")
        axis.set_xticks(range(len(each.labels)), each.labels, parse_math=False)
    else:
        axis.plot(each.at, each.model[:, 1], color="tab:blue", label="model, 95 %")
        axis.fill_between(each.at, each.model[:, 0], each.model[:, 2], color="tab:blue", alpha=0.15, linewidth=0)
        if each.log:
            axis.set_xscale("log")
    axis.plot(each.evaluated, data.values, "o", color="0.6", markersize=4, label="evaluated")
    low, high = axis.get_ylim()
    if len(each.failed):
        axis.plot(each.failed, np.full(len(each.failed), high), "x", color="black", clip_on=False, label="failed")
    if len(data.plan):
        axis.plot(each.plan[1:], data.plan[1:, 1], "o", markerfacecolor="none", markeredgecolor="tab:red")
        axis.plot(each.plan[0], data.plan[0, 1], "*", color="tab:red", markersize=13, label="next point, then the plan")
    axis.axvline(each.recommended, color="tab:orange", linewidth=1, linestyle="--", label="recommended")
    axis.set_ylim(low, high)
    axis.set_xlabel(each.name, parse_math=False)
    axis.set_ylabel("value")


@dataclass(frozen=True)
class ForecastData:
    """The best value after k more evaluations, in the user's units and sense; one entry per k."""

    k: np.ndarray  # (n,) 1, 2, ..., n
    best: float  # now
    expected: np.ndarray  # (n,)
    low: np.ndarray  # (n,) lower end of the 80 % band
    high: np.ndarray  # (n,) upper end
    open_loop: np.ndarray  # (n,) a plan fixed now: the best policy does at least as well
    clairvoyant: float  # as if the function were known: under the model, no policy does better
    within: int  # how many of the evaluations the budget leaves


def forecast_data(forecast: Forecast, *, maximize: bool = False) -> ForecastData:
    """Everything ``draw_forecast`` shows. ``maximize``: the optimiser was told negated values."""
    sign = -1.0 if maximize else 1.0
    low, high = (-forecast.high, -forecast.low) if maximize else (forecast.low, forecast.high)
    return ForecastData(
        k=np.arange(1, len(forecast) + 1),
        best=sign * forecast.best,
        expected=sign * forecast.expected,
        low=low,
        high=high,
        open_loop=sign * forecast.open_loop,
        clairvoyant=sign * forecast.clairvoyant,
        within=forecast.within,
    )


def draw_forecast(data: ForecastData, path: str | Path, title: str = "") -> None:
    """The expected best value against the number of further evaluations, with its band and its bounds."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, axis = plt.subplots(figsize=(6.4, 4.2), constrained_layout=True)
    k = np.append(0, data.k)
    expected, low, high, fixed = (np.append(data.best, each) for each in (data.expected, data.low, data.high, data.open_loop))
    axis.fill_between(k, low, high, color="tab:blue", alpha=0.15, linewidth=0, label="80 % band")
    axis.plot(k, expected, color="tab:blue", marker="o", markersize=3, label="expected best")
    axis.plot(k, fixed, color="tab:red", linewidth=0.9, label="expected, by a plan fixed now")
    axis.axhline(data.clairvoyant, color="tab:green", linewidth=0.9, label="expected, knowing the function")
    axis.axhline(data.best, color="0.3", linewidth=1, linestyle=":", label="best now")
    if data.within < len(data.k):
        axis.axvline(data.within, color="0.3", linewidth=1, linestyle="--", label="the budget ends")
    axis.set(xlabel="more evaluations", ylabel="best value", xlim=(0, k[-1]))
    axis.set_title(title, parse_math=False)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=8, frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
