"""What the rest of a study's budget is expected to buy, in words and numbers; in the units and the direction of the study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glasses.loop.result import FIVE, Forecast
from glasses.plot.numbers import ForecastData, forecast_data
from glasses.study.budget import amount_words
from glasses.study.deciding import keep_suggestion
from glasses.study.kept import State
from glasses.study.objective import printable
from glasses.study.report import FORECAST, forecast_with_note, plain_forecast, table
from glasses.study.stored import StoredStudy


def forecast_of(stored: StoredStudy, steps: int | None) -> tuple[dict[str, Any], ForecastData]:
    """The forecast as plain values and as the numbers of its picture."""
    file = stored.file
    if file.cost is not None and stored.remaining() == 0:
        words = stored.budget.words(stored.left())
        raise ValueError(
            f"{words} is left, which pays for nothing more: raise budget in {file.path} to forecast what that buys."
        )
    state = stored.state()
    name = FORECAST if steps is None else f"{FORECAST}-{steps}"
    found = state.once(name, lambda: _said(stored, state, steps))
    values: dict[str, Any] = {
        key: np.array(each) if isinstance(each, list) else each for key, each in found["forecast"].items()
    }
    forecast = Forecast(**values)
    data = forecast_data(forecast, maximize=file.maximize)
    report = {
        "name": file.name,
        "direction": "maximize" if file.maximize else "minimize",
        "budget": file.budget,
        "left": stored.left(),
        "within": data.within,
        "under_way": found["under_way"],
        "best": data.best,
        "best_possible": file.best_possible,
        "clairvoyant": data.clairvoyant,
        "steps": [
            {"k": int(k), "expected": float(e), "low": float(low), "high": float(high), "open_loop": float(fixed)}
            for k, e, low, high, fixed in zip(data.k, data.expected, data.low, data.high, data.open_loop, strict=True)
        ],
        "words": str(forecast),
        "note": found["note"],
    }
    if file.cost is not None:
        report["cost_unit"] = file.cost_unit
    return report, data


def _said(stored: StoredStudy, state: State, steps: int | None) -> dict[str, Any]:
    """What the model says of so many steps."""
    forecast, note = forecast_with_note(state.optimizer, steps)
    keep_suggestion(state, stored.distributions)
    return plain_forecast(forecast, note, state.optimizer)


def as_text(report: dict[str, Any]) -> str:
    """The forecast for a person: a few numbers of evaluations, and a sentence."""
    under_way = f", {report['under_way']} under way" if report["under_way"] else ""
    left = amount_words(report["left"], report["budget"], report.get("cost_unit"))
    steps = {each["k"]: each for each in report["steps"]}
    within = report["within"]
    rows = [
        [
            str(k),
            *(f"{steps[k][name]:.4g}" for name in ("expected", "low", "high", "open_loop")),
            f"{report['clairvoyant']:.4g}",
        ]
        for k in _shown(len(steps), within)
    ]
    lines = [
        f"{printable(report['name'])} ({report['direction']}): {left} left{under_way}; best value now {report['best']:.6g}.",
        "",
        table(["more", "expected best", "80 % from", "to", "by a fixed plan", "knowing all"], rows),
        "",
        report["words"],
    ]
    if 0 < within < len(steps):
        end = steps[within]
        lines.append(
            f"The budget ends after {within} more: {end['expected']:.4g} is expected then, 80 % from {end['low']:.4g} to "
            f"{end['high']:.4g}."
        )
    if report["note"] is not None:
        lines.append(report["note"])
    if under_way:
        lines.append("What the evaluations under way bring is included.")
    return "\n".join(lines)


def _shown(n: int, within: int) -> Iterator[int]:
    """1, 2, 5, 10, 20, ... up to the end of the budget, then every fifth beyond it, and n."""
    if within:
        yield from (10**p * digit for p in range(len(str(within))) for digit in (1, 2, 5) if 10**p * digit < within)
        yield within
    if n > within:
        yield from range(within + FIVE, n, FIVE)
        yield n
