"""Drawing numbers onto matplotlib's axes. Nothing here makes a figure, writes a file or touches matplotlib's settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from glasses.plot.numbers import ForecastData, OverviewData, RunData, Slice


def draw_surface(axis: Any, data: RunData, levels: np.ndarray | int = 25) -> Any:
    """The posterior mean over two parameters, the evaluations, and the plan or the recommended point; the shades."""
    shades = axis.contourf(*data.axes, data.mean, levels=levels, cmap="viridis_r")
    axis.plot(*data.points.T, "o", clip_on=False, color="white", markeredgecolor="black", markersize=5, label="evaluated")
    if len(data.plan):
        axis.plot(
            *data.plan[1:].T, "o", markerfacecolor="none", markeredgecolor="tab:red", markersize=9, label="predicted steps"
        )
        star = {"clip_on": False, "zorder": 5, "color": "tab:red", "markeredgecolor": "white", "markersize": 16}
        axis.plot(*data.plan[0], "*", label="next point", **star)
    elif data.recommended is not None:
        axis.plot(*data.recommended, "X", color="tab:orange", markeredgecolor="black", markersize=11, label="recommended")
    axis.set_xlabel(data.names[0], parse_math=False)
    axis.set_ylabel(data.names[1], parse_math=False)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=8, frameon=False)
    return shades


def draw_convergence(axis: Any, values: np.ndarray, best: np.ndarray, data: OverviewData | None = None) -> None:
    """Values and the best so far against the number of evaluations; with ``data`` what is planned after them."""
    count = np.arange(1, len(values) + 1)
    axis.plot(count, values, "o", color="0.6", markersize=4, label="evaluation")
    axis.step(count, best, where="post", color="tab:blue", label="best so far")
    if data is not None and len(data.plan):
        ahead = len(count) + np.arange(1, len(data.plan) + 1)
        band = {"fmt": "o", "color": "tab:red", "markerfacecolor": "none", "elinewidth": 0.6, "markersize": 4}
        axis.errorbar(ahead, data.plan[:, 1], _around(data.plan), label="plan, 95 %", **band)
        if data.expected_best is not None:
            axis.plot(ahead[-1], data.expected_best, "D", color="tab:red", markersize=6, label="expected best at the end")
    axis.set(title="Convergence", xlabel="evaluation", ylabel="value")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=8, frameon=False)


def draw_slice(axis: Any, each: Slice, data: OverviewData) -> None:
    """What the model says along one parameter through the recommended point."""
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


def draw_forecast(axis: Any, data: ForecastData) -> None:
    """The expected best value against the number of further evaluations, with its band and its bounds."""
    from matplotlib.ticker import MaxNLocator

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
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=8, frameon=False)


def _around(levels: np.ndarray) -> np.ndarray:
    """How far a band reaches below and above its middle, (2, k)."""
    return np.stack([levels[:, 1] - levels[:, 0], levels[:, 2] - levels[:, 1]])
