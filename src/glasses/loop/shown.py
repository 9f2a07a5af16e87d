"""How optimisers, results, plans and forecasts show themselves: a few lines of text, HTML in notebooks, frames of pandas.

Text and HTML hold what a person asks first; every number stays in the attributes. The picture in the HTML is a small SVG of our
own, so nothing has to be installed. Names and values are escaped: they are data.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Forecast, Plan, Result

_ROWS = 10  # of a table: the rest is counted
_WIDTH, _HEIGHT, _EDGE = 360, 120, 8  # of the picture
_STEPS = (1, 2, 5, 10, 20, 50, 100)


def point_text(x: Any) -> str:
    """A point in one line."""
    if isinstance(x, dict):
        return ", ".join(f"{name} = {number_text(value)}" for name, value in x.items())
    return "[" + ", ".join(number_text(value) for value in x) + "]"


def number_text(value: Any) -> str:
    """A value in a table."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def columns_of(points: Sequence[Any]) -> dict[str, list[Any]]:
    """Points as columns, by name or as x[0], x[1], ..."""
    if not points:
        return {}
    rows = [point if isinstance(point, dict) else {f"x[{i}]": value for i, value in enumerate(point)} for point in points]
    return {name: [row[name] for row in rows] for name in rows[0]}


def table_text(columns: dict[str, list[Any]]) -> str:
    """Columns side by side, the first rows of them."""
    count = len(next(iter(columns.values()), []))
    texts = {name: [name, *map(number_text, values[:_ROWS])] for name, values in columns.items()}
    widths = {name: max(map(len, cells)) for name, cells in texts.items()}
    lines = ["  ".join(texts[name][k].ljust(widths[name]) for name in texts).rstrip() for k in range(min(count, _ROWS) + 1)]
    return "\n".join([*lines, *([f"... and {count - _ROWS} more"] if count > _ROWS else [])])


def table_html(columns: dict[str, list[Any]]) -> str:
    """The same as an HTML table."""
    count = len(next(iter(columns.values()), []))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    rows = (
        "".join(f"<td>{html.escape(number_text(values[k]))}</td>" for values in columns.values())
        for k in range(min(count, _ROWS))
    )
    more = f"<p>... and {count - _ROWS} more</p>" if count > _ROWS else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def result_text(result: Result) -> str:
    """How the run ended, the best point and the recommended one."""
    lines = [result.message]
    if result.x is not None:
        lines.append(f"best observed: {result.fun:.6g} at {point_text(result.x)}")
    found = result.recommended
    if found is not None:
        chance = "" if found.feasibility is None else f", feasible with {100 * found.feasibility:.3g} %"
        lines.append(f"recommended:   {found.mean:.6g} ± {found.sd:.2g} at {point_text(found.x)}{chance}")
    if "feasible" in result and not all(result.feasible):
        lines.append(f"infeasible:    {len(result.feasible) - sum(result.feasible)} of {len(result.feasible)}")
    if result.failures:
        lines.append(f"failed:        {len(result.failures)}, the last at {point_text(result.failures[-1].x)}")
    return "\n".join([*lines, f"fields:        {', '.join(result)}"])


def result_html(result: Result) -> str:
    """The same with the convergence."""
    text = "<br>".join(html.escape(line) for line in result_text(result).split("\n")[:-1])
    return f"<div><p>{text}</p>{_convergence(result.func_vals, result.get('feasible'))}</div>"


def optimizer_text(optimizer: Optimizer) -> str:
    """Where the run stands."""
    record = optimizer.record()
    words = [record.message.rstrip(".").replace("Unfinished: ", "")]
    if optimizer.pending:
        words.append(f"{len(optimizer.pending)} pending")
    words.append(f"{optimizer.remaining} left")
    best = "" if record.x is None else f"; best {record.fun:.6g} at {point_text(record.x)}"
    return f"Optimizer: {', '.join(words)}{best}"


def optimizer_html(optimizer: Optimizer) -> str:
    """The same with the convergence and what is pending."""
    pending = table_html(columns_of(optimizer.pending)) if optimizer.pending else ""
    waiting, record = f"<p>pending</p>{pending}" if pending else "", optimizer.record()
    picture = _convergence(record.func_vals, record.get("feasible"))
    return f"<div><p>{html.escape(optimizer_text(optimizer))}</p>{picture}{waiting}</div>"


def plan_columns(plan: Plan) -> dict[str, list[Any]]:
    """One row per planned evaluation: which one, what the model predicts there, where."""
    return {
        "step": list(range(1, len(plan) + 1)),
        "mean": [float(each) for each in plan.mean],
        "sd": [float(each) for each in plan.sd],
        **columns_of(plan.points),
    }


def forecast_columns(forecast: Forecast, steps: Sequence[int] | None = None) -> dict[str, list[Any]]:
    """One row per number of further evaluations."""
    shown = list(range(1, len(forecast) + 1)) if steps is None else list(steps)
    names = ("expected", "low", "high", "open_loop")
    return {"more": shown, **{name: [float(getattr(forecast, name)[k - 1]) for k in shown] for name in names}}


def forecast_text(forecast: Forecast) -> str:
    """A few numbers of further evaluations, and the sentence."""
    n = len(forecast)
    steps = [k for k in _STEPS if k < n] + [n]
    return f"best now {forecast.best:.6g}\n{table_text(forecast_columns(forecast, steps))}\n{forecast}"


def forecast_html(forecast: Forecast) -> str:
    """The same with the expected best value and its band."""
    n = len(forecast)
    steps = [k for k in _STEPS if k < n] + [n]
    start = [forecast.best]
    low, high, expected = (np.append(start, each) for each in (forecast.low, forecast.high, forecast.expected))
    scale = _Scale(n, np.concatenate([low, high]))
    band = " ".join(scale.at(k, v) for k, v in [*enumerate(low), *reversed(list(enumerate(high)))])
    line = " ".join(scale.at(k, v) for k, v in enumerate(expected))
    marks = f'<polygon points="{band}" fill="#0072B2" opacity=".18"/>{_line(line)}'
    words = html.escape(f"best now {forecast.best:.6g}; {forecast}")
    picture = _svg(marks, "the expected best value after so many more evaluations, with an 80 % band")
    return f"<div>{picture}{table_html(forecast_columns(forecast, steps))}<p>{words}</p></div>"


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A pandas.DataFrame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas.", name="pandas") from error
    return pandas.DataFrame(columns)


def result_frame(result: Result) -> Any:
    """One row per evaluation, those that failed last, with NaN and their reason."""
    points = [*result.x_iters, *(failure.x for failure in result.failures)]
    values = [*map(float, result.func_vals), *[math.nan] * len(result.failures)]
    reasons = [*[None] * len(result.func_vals), *(failure.reason for failure in result.failures)]
    columns = {**columns_of(points), "value": values, "reason": reasons}
    if "feasible" in result:
        told = np.concatenate([result.constraints, np.full((len(result.failures), result.constraints.shape[1]), math.nan)])
        columns |= {f"constraints[{i}]": list(each) for i, each in enumerate(told.T)}
    return frame_of(columns)


class _Scale:
    """From numbers of evaluations and values to the places of the picture."""

    def __init__(self, last: int, values: np.ndarray) -> None:
        self.last = max(1, last)
        self.low, self.high = float(np.min(values)), float(np.max(values))

    def at(self, k: int, value: float) -> str:
        share = (value - self.low) / (self.high - self.low or 1.0)
        x = _EDGE + (_WIDTH - 2 * _EDGE) * k / self.last
        return f"{x:.1f},{_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * share:.1f}"


def _convergence(values: np.ndarray, feasible: np.ndarray | None = None) -> str:
    if len(values) < 2:
        return ""
    first = 0 if feasible is None or not np.any(feasible) else int(np.argmax(feasible))
    counted = values if feasible is None or not np.any(feasible) else np.where(feasible, values, np.inf)
    scale, best = _Scale(len(values) - 1, values), np.minimum.accumulate(counted)
    corners = [(first, best[first]), *((k, v) for k in range(first + 1, len(best)) for v in (best[k - 1], best[k]))]
    places = (scale.at(k, value).split(",") for k, value in enumerate(values))
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="#777"/>' for x, y in places)
    return _svg(dots + _line(" ".join(scale.at(k, v) for k, v in corners)), "values in order, and the best so far")


def _line(points: str) -> str:
    return f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>'


def _svg(content: str, label: str) -> str:
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" {size}>{content}</svg>'
