"""The history of a study: every result and every change, with who, when, what before, what after. Nothing of it is ever lost.

Entries are in the order of the trials, and for each trial in the order in which they took effect. Times are UTC, by the clock
of whoever wrote them; they are shown and decide nothing.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.changes import Change, applied, standing
from glasses.optuna.marks import LOST, OUTSIDE, REASON, RETRIED, TOLD_BY
from glasses.optuna.storage import StudyStorage
from glasses.optuna.trials import state_of


def history(storage: StudyStorage, number: int | None = None) -> list[dict[str, Any]]:
    """The entries of one trial, or of all.

    Each holds ``trial``, ``what`` (``told``, ``imported``, ``lost``, ``retry``, or what a change is), ``when``, ``who``
    (None: a worker), ``before`` and ``after`` (state, value and parameters), ``reason``, and of a change also ``key``,
    ``undoes`` and whether it ``stands``.
    """
    changes = storage.changes()
    valid = {each.key for each in standing(changes)}
    entries = []
    for trial in storage.raw_trials():
        if number is None or trial.number == number:
            own = [each for each in changes if each.trial == trial.number]
            entries += _entries(trial, own, valid)
    return entries


def _entries(trial: FrozenTrial, changes: list[Change], valid: set[str]) -> list[dict[str, Any]]:
    entries = []
    retried = trial.system_attrs.get(RETRIED)
    if retried is not None:
        entries.append(_entry(trial, "retry", retried["when"], retried["who"], None, None, retried["reason"]))
    ended = _utc(trial.datetime_complete)
    unfinished = copy.copy(trial)
    unfinished.state, unfinished.value = TrialState.RUNNING, None
    unfinished.system_attrs = {key: value for key, value in trial.system_attrs.items() if key not in (LOST, REASON)}
    told = trial.state.is_finished()
    early = [each for each in changes if not told or ended is None or each.when < ended or each.what == "cancel"]
    for i, change in enumerate(changes):
        if told and change not in early:
            entries.append(_told(trial, changes[:i], ended))
            told = False
        stored = unfinished if trial.state.is_finished() and change in early else trial
        before, after = (_seen(stored, changes[:end]) for end in (i, i + 1))
        entry = _entry(trial, change.what, change.when, change.who, before, after, change.reason)
        entries.append(entry | {"key": change.key, "undoes": change.undoes, "stands": change.key in valid})
    if told:
        entries.append(_told(trial, changes, ended))
    return entries


def _told(trial: FrozenTrial, earlier: list[Change], ended: str | None) -> dict[str, Any]:
    what = state_of(trial) if state_of(trial) == "lost" else "imported" if OUTSIDE in trial.system_attrs else "told"
    return _entry(
        trial, what, ended, trial.system_attrs.get(TOLD_BY), None, _seen(trial, earlier), trial.system_attrs.get(REASON)
    )


def _entry(
    trial: FrozenTrial, what: str, when: str | None, who: str | None, before: Any, after: Any, reason: str | None
) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "what": what,
        "when": when,
        "who": who,
        "before": before,
        "after": after,
        "reason": reason,
        "key": None,
        "undoes": None,
        "stands": True,
    }


def _seen(trial: FrozenTrial, changes: list[Change]) -> dict[str, Any]:
    """A trial as it was understood after some changes."""
    found = applied([trial], changes)[0]
    return {
        "state": state_of(found),
        "value": found.value if found.state == TrialState.COMPLETE else None,
        "params": dict(found.params),
    }


def _utc(local: datetime | None) -> str | None:
    return None if local is None else local.astimezone(UTC).isoformat(timespec="milliseconds")
