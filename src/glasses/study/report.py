"""Reports of a study: its state as numbers, as a table, as rows for other programs. Runs no code of the user's."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError, TooFewValuesError
from glasses.optuna.marks import BROKEN, DETAILS, LATE, OUTSIDE, REASON
from glasses.optuna.trials import has_result, is_lost, state_of, superseded
from glasses.study import tables
from glasses.study.budget import amount_words
from glasses.study.deciding import keep_suggestion
from glasses.study.differences import differences
from glasses.study.kept import State
from glasses.study.objective import printable
from glasses.study.stored import StoredStudy

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Forecast, Plan

FORECAST = "forecast"  # the name under which that of all that is left is kept
_STATES = ("complete", "failed", "retried", "running", "waiting", "lost", "withdrawn", "cancelled")


def summary(stored: StoredStudy, *, plan: bool = True) -> dict[str, Any]:
    """State, best, recommended and plan of a study."""
    file, trials = stored.file, stored.trials()
    replaced = superseded(trials) - {number for trial in trials for number in trial.system_attrs.get(BROKEN, [])}
    states = ["retried" if state_of(trial) == "failed" and trial.number in replaced else state_of(trial) for trial in trials]
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.value is not None]
    best = stored.best()
    report: dict[str, Any] = {
        "name": file.name,
        "direction": "maximize" if file.maximize else "minimize",
        "unit": file.unit,
        "units": file.units,
        "budget": file.budget,
        "left": stored.left(),
        **{state: states.count(state) for state in _STATES},
        "outside_budget": sum(OUTSIDE in trial.system_attrs and has_result(trial) for trial in trials),
        "best": None
        if best is None
        else {"trial": best.number, "value": best.value, "params": _ordered(stored, stored.placing.point(best.params))},
        "open": [
            {"trial": each.number, "params": _ordered(stored, each.params)}
            for each in trials
            if each.state == TrialState.RUNNING and each.params
        ],
        "queued": [
            {"trial": each.number, "params": _ordered(stored, each.params)}
            for each in trials
            if each.state == TrialState.WAITING and each.params
        ],
        "recommended": None,
        "plan": [],
        "expected_best": None,
        "expected_band": None,
        "note": None,
        "stop": None,
        "changed": differences(stored),
        "free_failures": _free_failures(trials),
        "last_failure": _last_failure(trials),
    }
    if file.cost is not None:
        report["cost_unit"] = file.cost_unit
    if plan and complete:
        state = stored.state()
        report.update(state.once("summary", lambda: _model(stored, state)))
        report["stop"] = stored.reason_to_stop(state)
    return report


def _free_failures(trials: Sequence[FrozenTrial]) -> int:
    """How many failures cost nothing because the objective was broken."""
    return len({number for trial in trials for number in trial.system_attrs.get(BROKEN, [])})


def _last_failure(trials: Sequence[FrozenTrial]) -> dict[str, Any] | None:
    """The last evaluation that failed by itself, with its reason and its traceback."""
    failed = [trial for trial in trials if trial.state == TrialState.FAIL and REASON in trial.system_attrs]
    if not failed:
        return None
    marks = failed[-1].system_attrs
    return {"trial": failed[-1].number, "reason": marks[REASON], "details": marks.get(DETAILS)}


def _model(stored: StoredStudy, state: State) -> dict[str, Any]:
    """What the model says: the recommended point and the plan."""
    optimizer, sign = state.optimizer, -1.0 if stored.file.maximize else 1.0
    report: dict[str, Any] = {}
    if not optimizer.values:  # none that today's file can use
        return report
    found = optimizer.result().recommended
    if found is not None:
        report["recommended"] = {"params": found.x, "mean": sign * found.mean, "sd": found.sd}
    if optimizer.remaining:
        with suppress(ExhaustedError):
            report |= _ahead(stored, state, optimizer.plan())
    return report


def _ahead(stored: StoredStudy, state: State, plan: Plan) -> dict[str, Any]:
    """The plan, and what it is expected to end with."""
    sign = -1.0 if stored.file.maximize else 1.0
    report: dict[str, Any] = {
        "plan": [
            {"params": x, "mean": _number(sign * mean), "sd": _number(sd)}
            for x, mean, sd in zip(plan.points, plan.mean, plan.sd, strict=True)
        ]
    }
    forecast, report["note"] = forecast_or_note(state.optimizer)
    keep_suggestion(state, stored.distributions)
    if forecast is not None:
        state.keep(FORECAST, plain_forecast(forecast, report["note"], state.optimizer))
        report["expected_best"] = sign * float(forecast.expected[-1])
        report["expected_band"] = sorted(sign * float(end[-1]) for end in (forecast.low, forecast.high))
    return report


def spent_words(stored: StoredStudy) -> str:
    """How many evaluations the budget has paid for, failures included; and what is under way or came from elsewhere."""
    counted = stored.counted()
    done = sum(each.state.is_finished() for each in counted)
    running = sum(each.state == TrialState.RUNNING for each in counted)
    outside = sum(OUTSIDE in each.system_attrs and has_result(each) for each in stored.trials())
    more = [f"{running} under way"] if running else []
    more += [f"{outside} from outside the budget"] if outside else []
    if stored.budget.cost is not None:
        spent = stored.budget.sum(each for each in counted if each.state.is_finished())
        return ", ".join([f"{done} evaluations for {stored.budget.words(spent)}", *more])
    return ", ".join([f"{done} of {stored.file.budget} evaluations", *more])


def forecast_or_note(optimizer: Optimizer, steps: int | None = None) -> tuple[Forecast | None, str | None]:
    """The forecast, and what is to be said about it; None where too few values are told, with the sentence that says so."""
    try:
        return forecast_with_note(optimizer, steps)
    except TooFewValuesError as error:
        return None, str(error)


def forecast_with_note(optimizer: Optimizer, steps: int | None = None) -> tuple[Forecast, str | None]:
    """The forecast, and what was to be said about the best possible value."""
    with without_notes() as said:
        forecast = optimizer.forecast(steps)
    return forecast, said[0] if said else None


def plain_forecast(forecast: Forecast, note: str | None, optimizer: Optimizer) -> dict[str, Any]:
    """A forecast as it is kept."""
    values = {each.name: getattr(forecast, each.name) for each in fields(forecast)}
    plain = {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in values.items()}
    return {"forecast": plain, "note": note, "under_way": len(optimizer.pending)}


@contextmanager
def without_notes() -> Iterator[list[str]]:
    """Sentences about the best possible value are kept in this list instead of being written to the terminal."""
    from glasses.loop.limits import BestPossibleWarning

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", BestPossibleWarning)
        yield notes
    for each in said:
        if issubclass(each.category, BestPossibleWarning):
            notes.append(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def as_text(report: Mapping[str, Any], names: Sequence[str]) -> str:
    """The summary for a person."""
    words = {"retried": "tried again", "waiting": "queued"}
    counts = ", ".join(f"{report[state]} {words.get(state, state)}" for state in _STATES if report[state])
    if report["outside_budget"]:
        counts += f" ({report['outside_budget']} of them outside the budget)"
    lines = [
        f"{printable(report['name'])} ({report['direction']}): {counts or 'nothing evaluated yet'}; "
        f"{amount_words(report['left'], report['budget'], report.get('cost_unit'))} left."
    ]
    if report["free_failures"]:
        lines.append(f"{report['free_failures']} of the failed ones cost nothing: the objective was broken.")
    rows = []
    if report["best"]:
        rows.append(["best observed", f"{report['best']['value']:.6g}", "", *_cells(report["best"]["params"], names)])
    if report["recommended"]:
        found = report["recommended"]
        rows.append(["recommended", f"{found['mean']:.6g}", f"± {found['sd']:.2g}", *_cells(found["params"], names)])
    for each in report["open"]:
        rows.append([f"running: trial {each['trial']}", "", "", *_cells(each["params"], names)])
    for each in report["queued"]:
        rows.append([f"queued: trial {each['trial']}", "", "", *_cells(each["params"], names)])
    for i, each in enumerate(report["plan"][:10]):
        word = "next" if i == 0 else f"then, {i + 1}."
        predicted = ["", ""] if each["mean"] is None else [f"{each['mean']:.6g}", f"± {each['sd']:.2g}"]
        rows.append([word, *predicted, *_cells(each["params"], names)])
    if rows:
        unit, units = report["unit"], report["units"]
        labels = [labelled(name, units.get(name)) for name in names]
        lines += ["", table(["", labelled("value", unit), "sd", *labels], rows)]
    if len(report["plan"]) > 10:
        lines.append(f"... and {len(report['plan']) - 10} more planned.")
    if report["expected_best"] is not None:
        low, high = report["expected_band"]
        lines.append(
            f"Expected best value at the end of the budget: {report['expected_best']:.4g}, 80 % from {low:.4g} to {high:.4g}."
        )
    if report["note"] is not None:
        lines.append(report["note"])
    if report["stop"] is not None:
        lines.append(f"[stop] of the study file is met: {report['stop']}")
    return "\n".join([*lines, *map(printable, report["changed"])])


def rows_of(stored: StoredStudy) -> list[dict[str, Any]]:
    """One row per attempt that began, as it is understood now: number, state, parameters, value, times, remarks. With
    ``[cost]`` also what it takes of the budget, nothing where it does not count.

    What it said besides is in columns named ``extra:...``; names of parameters hold no colon, so no column has two meanings.
    """
    rows = []
    dropped = [name for name in stored.file.dropped if any(name in trial.params for trial in stored.trials())]
    costs = None if stored.budget.cost is None else {each.number: stored.budget.of(each) for each in stored.counted()}
    for trial in stored.trials():
        if trial.state == TrialState.WAITING:
            continue
        rows.append(
            {
                "trial": trial.number,
                "state": state_of(trial),
                **{name: trial.params.get(name) for name in [*stored.distributions, *dropped]},
                "value": trial.value if trial.state == TrialState.COMPLETE else None,
                **({} if costs is None else {"cost": costs.get(trial.number, 0.0)}),
                "started": None if trial.datetime_start is None else trial.datetime_start.isoformat(timespec="milliseconds"),
                "finished": None
                if trial.datetime_complete is None
                else trial.datetime_complete.isoformat(timespec="milliseconds"),
                **_remarks(trial),
            }
        )
    return rows


def history_rows(stored: StoredStudy) -> list[dict[str, Any]]:
    """One row per result and per change: who, when, what before, what after, and why."""
    rows = []
    for entry in stored.history():
        sides: dict[str, Any] = {}
        for side in ("before", "after"):
            found = entry[side] or {"state": None, "value": None, "params": {}}
            sides |= {f"{side}:state": found["state"], f"{side}:value": found["value"]}
            sides |= {f"{side}:{name}": found["params"].get(name) for name in stored.distributions}
        rows.append({**{key: value for key, value in entry.items() if key not in ("before", "after")}, **sides})
    return rows


def _remarks(trial: FrozenTrial) -> dict[str, Any]:
    """Why it failed, whose late result it is, and what the objective said besides."""
    remarks: dict[str, Any] = {}
    extras = dict(trial.user_attrs)
    if REASON in trial.system_attrs:
        remarks["reason"] = trial.system_attrs[REASON]
    elif trial.state == TrialState.FAIL and not is_lost(trial) and "reason" in extras:
        remarks["reason"] = extras.pop("reason")  # stored by a version that kept it among the extras
    if LATE in trial.system_attrs:
        remarks[LATE] = trial.system_attrs[LATE]
    if OUTSIDE in trial.system_attrs:
        remarks[OUTSIDE] = True
    return remarks | {f"extra:{key}": value for key, value in extras.items()}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; every column that any row has, in one order whatever the rows."""
    return tables.as_csv(rows, ["reason", LATE, OUTSIDE])


def as_json(value: Any) -> str:
    """Plain JSON: no NaN."""
    return json.dumps(value, indent=2, default=str, allow_nan=False)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side."""
    cells = [[printable(each) for each in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join("  ".join(each.ljust(width) for each, width in zip(row, widths, strict=True)).rstrip() for row in cells)


def labelled(name: str, unit: str | None) -> str:
    """A name with its unit, if it has one, as tables and pictures show it."""
    return name if unit is None else f"{name} ({unit})"


def shown(value: Any) -> str:
    """A parameter's value in a table."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _cells(params: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [shown(params[name]) if name in params else "" for name in names]


def _ordered(stored: StoredStudy, params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in stored.distributions if name in params}
