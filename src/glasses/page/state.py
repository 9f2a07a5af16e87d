"""What the page shows without the model: trials, the best, what is open, what was changed last. Plain values for JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.changes import Change, standing
from glasses.optuna.marks import ASKED, REASON
from glasses.optuna.storage import HEARTBEAT
from glasses.optuna.trials import is_complete, state_of, superseded
from glasses.space.parameters import Choice, Float, Parameter
from glasses.study.report import shown
from glasses.study.stored import StoredStudy

LONGEST = 2000  # characters of one text in the table


def page_state(stored: StoredStudy) -> dict[str, Any]:
    """The head of the page and the rows of its table; ``version`` changes with anything of it."""
    trials = stored.trials()
    rows = {str(trial.number): row_of(stored, trial) for trial in trials}
    for number in superseded(trials):
        if rows[str(number)]["state"] == "failed":  # tried again, or of a broken objective
            rows[str(number)]["state"] = "failed, not counted"
    head = head_of(stored, rows)
    text = json.dumps([head, rows], sort_keys=True, default=str)
    return {"version": hashlib.sha256(text.encode()).hexdigest()[:16], "head": head, "rows": rows}


def fingerprint(stored: StoredStudy) -> str:
    """Changes whenever a trial is added, begins, ends or is changed; not with signs of life. Cheap: looked at often."""
    digest = hashlib.sha256()
    for trial in stored.trials():
        marks = [name for name in trial.system_attrs if name != HEARTBEAT]
        digest.update(repr((trial.number, trial.state, trial.values, trial.params, marks)).encode())
    digest.update(repr([change.key for change in stored.changes()]).encode())
    return digest.hexdigest()


def head_of(stored: StoredStudy, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Name, budget, counts, the best, the open experiments, the last change."""
    file = stored.file
    states = [row["state"] for row in rows.values()]
    best = stored.best()
    return {
        "name": file.name,
        "file": file.path.name,
        "direction": "maximize" if file.maximize else "minimize",
        "budget": file.budget,
        "left": stored.left(),
        "remaining": stored.remaining(),
        "left_words": f"{stored.budget.words(stored.left(), 'evaluations')} left",
        "priced": stored.budget.cost is not None,
        "counts": {state: states.count(state) for state in dict.fromkeys(states)},
        "by_workers": file.objective is not None,
        "unit": file.unit,
        "parameters": [parameter_of(name, each, file.units.get(name)) for name, each in stored.file.parameters.items()],
        "best": None if best is None else best.number,
        "open": [row["trial"] for row in rows.values() if row["state"] == "running" and not row["deciding"]],
        "deciding": sum(row["deciding"] for row in rows.values()),
        "last_change": last_change(stored),
    }


def parameter_of(name: str, parameter: Parameter, unit: str | None) -> dict[str, Any]:
    """A parameter as the page shows it and takes it from a person."""
    if isinstance(parameter, Choice):
        texts = [text_of(each) for each in parameter.values]
        return {"name": name, "kind": "choice", "choices": texts, "values": list(parameter.values), "unit": unit}
    return {
        "name": name,
        "kind": "float" if isinstance(parameter, Float) else "int",
        "low": parameter.low,
        "high": parameter.high,
        "log": parameter.log,
        "step": parameter.step,
        "unit": unit,
    }


def text_of(value: Any) -> str:
    """A value as ``by_hand`` reads it from a text."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def row_of(stored: StoredStudy, trial: FrozenTrial) -> dict[str, Any]:
    """One attempt as a row of the table."""
    reason = trial.system_attrs.get(REASON)
    return {
        "trial": trial.number,
        "state": state_of(trial),
        "params": {name: trial.params[name] for name in stored.distributions if name in trial.params},
        "value": trial.value if trial.state == TrialState.COMPLETE else None,
        "by_hand": ASKED in trial.system_attrs,
        "deciding": is_being_decided(trial),
        "started": _moment(trial.datetime_start),
        "finished": _moment(trial.datetime_complete),
        "reason": None if reason is None else str(reason)[:LONGEST],
    }


def is_being_decided(trial: FrozenTrial) -> bool:
    """Whether a trial was asked for and has no whole point yet; its parameters are stored one after the other."""
    return trial.state == TrialState.RUNNING and not is_complete(trial)


def last_change(stored: StoredStudy) -> dict[str, Any] | None:
    """The latest change that was not taken back, with a sentence of what it was."""
    found = [change for change in standing(stored.changes()) if change.what != "undo"]
    return {"key": found[-1].key, "trial": found[-1].trial, "words": words_of(found[-1])} if found else None


def words_of(change: Change) -> str:
    """One sentence about a change of a stored result."""
    where = f"trial {change.trial}"
    if change.what == "correct":
        parts = [f"{name} = {shown(each)}" for name, each in (change.params or {}).items()]
        if change.failed:
            parts.append("failed")
        elif change.value is not None:
            parts.append(f"{change.value:.6g}")
        words = f"Corrected {where} to {', '.join(parts)}"
    elif change.what == "withdraw":
        words = f"Withdrew {where}"
    elif change.what == "cancel":
        words = f"Cancelled {where}"
    else:
        words = "Took back the change before"
    return f"{words} ({change.reason})." if change.reason else f"{words}."


def _moment(value: Any) -> str | None:
    return None if value is None else value.isoformat(timespec="seconds")
