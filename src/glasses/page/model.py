"""What the model says, for the page: the plan, slices, the map of two parameters, the forecast in words. Plain values for JSON.

Each part is a function of a study and its optimiser; ``thinking`` calls them one after the other. Seconds, where the rest of
the page takes milliseconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from glasses.loop.ledger import ExhaustedError
from glasses.plot.numbers import LEVELS, forecast_data, overview_data
from glasses.space.parameters import Choice
from glasses.study import report
from glasses.study.stored import StoredStudy

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer
    from glasses.plot.numbers import ForecastData

_MAP = 48  # points along a side of the map
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def model_of(stored: StoredStudy, optimizer: Optimizer) -> dict[str, Any]:
    """The plan and the model along every parameter through the recommended point."""
    plan = None
    if optimizer.remaining:
        try:
            plan = optimizer.plan()
        except ExhaustedError:
            plan = None
    with report.without_notes():
        data = overview_data(optimizer, plan, maximize=stored.file.maximize)
    recommended = optimizer.result().recommended
    assert recommended is not None
    names = list(stored.file.parameters)
    sign = -1.0 if stored.file.maximize else 1.0
    return {
        "recommended": {"params": recommended.x, "mean": sign * recommended.mean, "sd": recommended.sd},
        "plan": [
            {"params": {name: point[name] for name in names}, "low": low, "middle": middle, "high": high}
            for point, (low, middle, high) in zip(plan.points if plan is not None else [], _plain(data.plan), strict=True)
        ],
        "slices": [
            {
                "name": name,
                "at": _plain(each.at),
                "low": _plain(each.model[:, 0]),
                "middle": _plain(each.model[:, 1]),
                "high": _plain(each.model[:, 2]),
                "recommended": each.recommended,
            }
            for name, each in zip(names, data.slices, strict=True)
        ],
        "map": _map(stored, optimizer),
    }


def _map(stored: StoredStudy, optimizer: Optimizer) -> dict[str, Any] | None:
    """The median over two parameters that are numbers; rows from the lowest value of the second one up."""
    parameters = list(stored.file.parameters.values())
    if len(parameters) != 2 or any(isinstance(each, Choice) for each in parameters):
        return None
    a, b = (_along(each) for each in parameters)
    points = [optimizer.space.form(np.array([x, y])) for y in b for x in a]
    median = optimizer.quantiles(points, LEVELS[1:2])[:, 0]
    sign = -1.0 if stored.file.maximize else 1.0
    return {"width": len(a), "height": len(b), "median": _plain(sign * median)}


def _along(parameter: Any) -> np.ndarray:
    """Values that the parameter can take, at places evenly spaced as they are drawn."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.log:
        places = np.exp(np.linspace(math.log(low), math.log(high), _MAP)).clip(low, high)
    else:
        places = np.linspace(low, high, _MAP)
    return parameter.from_unit(parameter.to_unit(places))


def forecast_of(stored: StoredStudy, optimizer: Optimizer, steps: int | None = None) -> dict[str, Any]:
    """What further evaluations are expected to bring: numbers, sentences, and whether to stop."""
    forecast, note = report.forecast_or_note(optimizer, steps)
    if forecast is None:
        return {"steps": [], "words": note, "advice": None, "note": None, "within": 0}
    data = forecast_data(forecast, maximize=stored.file.maximize)
    return {
        "best": data.best,
        "within": data.within,
        "steps": [
            {"k": int(k), "expected": float(e), "low": float(low), "high": float(high)}
            for k, e, low, high in zip(data.k, data.expected, data.low, data.high, strict=True)
        ],
        "words": in_words(data),
        "advice": advice(stored, optimizer) if steps is None else None,
        "note": note,
    }


def in_words(data: ForecastData) -> str:
    """What the next five are expected to bring, the ten after, and the rest; and how good the best value will be."""
    n = len(data.k)
    ends = [end for end in (5, 15) if end < n] + [n]
    gains = np.abs(np.append(0.0, data.expected - data.best))
    parts, done = [], 0
    for end in ends:
        count = end - done
        who = f"The next {_number(count)}" if not done else f"the {_number(count)} after"
        verb = (" is" if count == 1 else " are") + " expected to bring" if not done else ""
        parts.append(f"{who}{verb} {_amount(gains[end] - gains[done])}")
        done = end
    low, high = data.low[-1], data.high[-1]
    return (
        f"{', '.join(parts)}. Then the best value is expected to be {data.expected[-1]:.4g}, "
        f"with 80 % certainty between {low:.4g} and {high:.4g}; it is {data.best:.4g} now."
    )


def advice(stored: StoredStudy, optimizer: Optimizer) -> str:
    """Whether to go on, in words: the study's own criterion, or whether anything is left to gain."""
    from glasses.loop.stopping import NoGain

    if not optimizer.remaining:
        return "The budget is spent."
    criterion = stored.file.stop
    with report.without_notes():
        reason = (criterion or NoGain()).reason(optimizer)
    if reason is None:
        return "Go on: " + ("[stop] of the study file is not met." if criterion else "there is still something to gain.")
    return f"[stop] of the study file is met: {reason}" if criterion else f"You may stop. {reason}"


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _amount(value: float) -> str:
    return f"{value:.3g}" if value > 0 else "nothing"


def _plain(values: Any) -> Any:
    """Lists of numbers with six digits, which is what is drawn; None where there is no number."""
    if isinstance(values, np.ndarray):
        return [_plain(each) for each in values]
    value = float(values)
    return float(f"{value:.6g}") if math.isfinite(value) else None
