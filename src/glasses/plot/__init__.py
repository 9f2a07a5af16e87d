"""Pictures of a run: functions that take axes and return axes, for notebooks and papers.

``from glasses import plot``, then

    plot.convergence(result)                          # on the current axes
    plot.forecast(optimizer.forecast(), ax=axes[1])
    plot.surface(optimizer); plot.slices(optimizer)   # what the model says

``maximize=True`` turns the values round for an optimiser that was told negated ones. Nothing is written and no setting of
matplotlib's is changed. Needs matplotlib (``pip install 'glasses[plot]'``), loaded when something is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glasses.loop.result import Forecast, Plan, Result
from glasses.plot.axes import draw_convergence, draw_forecast, draw_slice, draw_surface
from glasses.plot.numbers import forecast_data, overview_data, run_data

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

__all__ = ["convergence", "forecast", "slices", "surface"]


def convergence(run: Result | Optimizer, ax: Any = None, *, maximize: bool = False) -> Any:
    """Each value and the best feasible one so far against the number of evaluations."""
    _of_kind("run", run, "Result", "Optimizer")
    known = run if isinstance(run, Result) else run.record()
    values = np.asarray(known.func_vals, dtype=float)
    if not len(values):
        raise ValueError("There is nothing to draw yet: tell at least one evaluation first.")
    best = np.minimum.accumulate(np.where(known.get("feasible", True), values, np.inf))
    axis, best = _axes(ax), np.where(np.isfinite(best), best, np.nan)
    draw_convergence(axis, *((-values, -best) if maximize else (values, best)))
    return axis


def forecast(found: Forecast, ax: Any = None, *, maximize: bool = False) -> Any:
    """The best value expected after k more evaluations, with an 80 % band and the two bounds."""
    _of_kind("found", found, "Forecast")
    axis = _axes(ax)
    draw_forecast(axis, forecast_data(found, maximize=maximize))
    return axis


def surface(optimizer: Optimizer, ax: Any = None, *, plan: Plan | None = None) -> Any:
    """The posterior mean over two parameters, with the evaluations and the plan (or, without one, the recommended point)."""
    _check_run(optimizer, plan)
    data = run_data(optimizer, plan)
    axis = _axes(ax)
    draw_surface(axis, data)
    return axis


def slices(optimizer: Optimizer, axes: Any = None, *, plan: Plan | None = None, maximize: bool = False) -> np.ndarray:
    """One panel per parameter: median and 95 % of the model along it, through the recommended point; an array of axes."""
    _check_run(optimizer, plan)
    data = overview_data(optimizer, plan, maximize=maximize)
    if axes is None:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, len(data.slices), figsize=(4.0 * len(data.slices), 3.4), layout="constrained")
    panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(panels) < len(data.slices):
        raise ValueError(f"axes must hold {len(data.slices)} axes, one per parameter, got {len(panels)}.")
    for axis, each in zip(map(_axes, panels), data.slices, strict=False):
        draw_slice(axis, each, data)
    panels[0].legend(fontsize=8, frameon=False)
    return panels


def _axes(given: Any) -> Any:
    """The axes given, or pyplot's current ones."""
    if given is not None:
        if not hasattr(given, "plot"):
            raise ValueError(f"ax must be axes of matplotlib, got {given!r}: take them from plt.subplots().")
        return given
    import matplotlib.pyplot as plt

    return plt.gca()


def _check_run(optimizer: Any, plan: Any) -> None:
    _of_kind("optimizer", optimizer, "Optimizer")
    if plan is not None:
        _of_kind("plan", plan, "Plan")


def _of_kind(name: str, given: Any, *kinds: str) -> None:
    from glasses.loop.optimizer import Optimizer  # loads the numerics, which whoever has an optimiser has loaded

    makers = {
        "Result": (Result, "what minimize returns"),
        "Optimizer": (Optimizer, "an Optimizer"),
        "Forecast": (Forecast, "optimizer.forecast()"),
        "Plan": (Plan, "optimizer.plan()"),
    }
    if not isinstance(given, tuple(makers[kind][0] for kind in kinds)):
        raise ValueError(f"{name} must be {' or '.join(makers[kind][1] for kind in kinds)}, got {given!r}.")
