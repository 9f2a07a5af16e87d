"""The numbers of the pictures of a run, in the user's units: no drawing here, so that plots are tested without pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from glasses.loop.result import Forecast, Plan
from glasses.space.parameters import Choice
from glasses.space.space import Space

if TYPE_CHECKING:  # a forecast that was kept is drawn without the numerics
    from glasses.loop.optimizer import Optimizer

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
        best=best_so_far(space, points, result.func_vals, result.get("feasible")),
        axes=(a, b),
        mean=mean.reshape(resolution, resolution),
        plan=ahead,
        recommended=space.read(result.recommended.x)[0][0] if result.recommended else None,
    )


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
    if result.recommended is None:
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
        best=sign * best_so_far(space, evaluated, result.func_vals, result.get("feasible")),
        plan=levels(ahead),
        expected_best=None if plan is None or plan.expected_best is None else sign * plan.expected_best,
        slices=slices,
    )


def best_so_far(space: Space, points: np.ndarray, values: np.ndarray, feasible: np.ndarray | None = None) -> np.ndarray:
    """The best feasible value inside today's ranges after each evaluation; NaN before there is one."""
    counts = space.is_inside(points) if feasible is None else space.is_inside(points) & feasible
    best = np.minimum.accumulate(np.where(counts, values, np.inf))
    return np.where(np.isfinite(best), best, np.nan)


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
