"""Second thoughts about a study: results corrected or withdrawn, trials cancelled or tried again, all of it undone.

Nothing is overwritten: every step adds a change to the study (``glasses.optuna.changes``), and what the sampler, the workers,
the commands and the page see are the stored trials with the changes applied. Every step is one insertion, so two people who
change something at the same moment lose nothing, and all see the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.checks import LARGEST
from glasses.optuna.changes import Change, login_name, new_change, standing
from glasses.optuna.marks import ASKED, RETRIED
from glasses.optuna.storage import StudyStorage
from glasses.optuna.trials import has_result, is_lost, is_taken_back, state_of, superseded
from glasses.study.file import StudyFile
from glasses.study.history import history
from glasses.study.objective import Evaluation
from glasses.study.points import checked_part, differing


class Amendable:
    """What a person may change in a stored study afterwards."""

    file: StudyFile
    distributions: dict[str, BaseDistribution]
    storage: StudyStorage

    def changes(self) -> list[Change]:
        """Everything that people changed, in its order, what was undone included."""
        return self.storage.changes()

    def history(self, number: int | None = None) -> list[dict[str, Any]]:
        """What was told and changed, of one trial or of all: when, by whom, what it was before and after."""
        if number is not None:
            self._trial(number)
        return history(self.storage, number)

    def correct(
        self,
        number: int,
        *,
        outcome: Evaluation | None = None,
        params: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> Change:
        """Another outcome, or another point, for a trial that ended; for one that a person has open, another point."""
        trial = self._trial(number)
        _check_not_taken_back(trial)
        if is_lost(trial):
            raise ValueError(f"Trial {number} was lost and has no result to correct: tell its result with --trial {number}.")
        if not trial.state.is_finished():
            if outcome is not None:
                raise ValueError(f"Trial {number} has no result to correct yet: tell it with --trial {number}.")
            if trial.state == TrialState.RUNNING and ASKED not in trial.system_attrs:
                raise ValueError(
                    f"Trial {number} is evaluated by a worker, at its own point: correct it once its result is there."
                )
        return self._correct(trial, outcome, params, reason)

    def move(self, number: int, params: Mapping[str, Any]) -> Change:
        """Say that a trial is, or was, done at another point than the suggested one, whoever does it."""
        return self._correct(self._trial(number), None, params, None)

    def _correct(
        self, trial: FrozenTrial, outcome: Evaluation | None, params: Mapping[str, Any] | None, reason: str | None
    ) -> Change:
        checked = checked_part(params or {}, self.file.parameters, self.distributions, "the point")
        if trial.state == TrialState.WAITING or checked.keys() - trial.params.keys():
            raise ValueError(f"Trial {trial.number} is not begun and has no point of its own yet: ask for it first.")
        moved = differing(checked, trial.params) or None
        value = None if outcome is None else outcome.value
        failed = outcome is not None and value is None
        if value is not None and not (math.isfinite(value) and abs(value) <= LARGEST):
            raise ValueError(f"The value {value!r} is beyond 1e100 in size: check its units.")
        same = outcome is None or (trial.state == TrialState.FAIL if failed else value == trial.value)
        if same and moved is None:
            words = (
                "failed"
                if trial.state == TrialState.FAIL
                else "without a result"
                if trial.value is None
                else f"{trial.value:g}"
            )
            raise ValueError(f"Nothing to correct: trial {trial.number} is {words} at that point already.")
        if same:
            value, failed = None, False
        return self._change("correct", trial.number, value=value, failed=failed, params=moved, reason=_reason(reason))

    def withdraw(self, number: int, reason: str | None = None) -> Change:
        """Take a finished result out of the data: no effect on the search, no cost."""
        trial = self._trial(number)
        _check_not_taken_back(trial)
        if not has_result(trial):
            raise ValueError(f"Trial {number} is {state_of(trial)} and has no result to withdraw: cancel it instead.")
        return self._change("withdraw", number, reason=_reason(reason))

    def cancel(self, number: int, reason: str | None = None) -> Change:
        """A trial that was asked for is not done: no effect on the search, no cost."""
        trial = self._trial(number)
        _check_not_taken_back(trial)
        if trial.state.is_finished():
            raise ValueError(f"Trial {number} is {state_of(trial)} and cannot be cancelled: withdraw its result instead.")
        return self._change("cancel", number, reason=_reason(reason))

    def undo(self, key: str | None = None, reason: str | None = None) -> Change:
        """Take back one change: by default the latest that stands and is no undo itself."""
        changes = self.changes()
        valid = standing(changes)
        if key is None:
            undoable = [each for each in valid if each.what != "undo"]
            if not undoable:
                raise ValueError("There is no change to undo: nothing was corrected, withdrawn or cancelled, or all is undone.")
            found = undoable[-1]
        else:
            matches = [each for each in changes if each.key == key]
            if not matches:
                raise ValueError(f"There is no change {key!r}: `glasses export --history` lists them.")
            found = matches[0]
            if found not in valid:
                raise ValueError(f"The change {key!r} is undone already.")
        return self._change("undo", found.trial, undoes=found.key, reason=_reason(reason))

    def retry(self, numbers: Sequence[int] | None = None, reason: str | None = None) -> list[int]:
        """Queue failed trials again with the same points, all of them by default; the numbers of the new trials."""
        trials = self.storage.trials()
        replaced = superseded(trials)
        if numbers is None:
            failed = [each for each in trials if self._has_failed(each) and each.number not in replaced]
            if not failed:
                raise ValueError("No trial has failed: there is nothing to try again.")
        else:
            failed = [self._trial(number) for number in dict.fromkeys(numbers)]
        for each in failed:
            if not self._has_failed(each):
                raise ValueError(f"Trial {each.number} is {state_of(each)}: only failed trials are tried again.")
            if each.number in replaced:
                raise ValueError(f"Trial {each.number} is tried again already: cancel or withdraw its repetition first.")
        marks = {"who": login_name(), "when": datetime.now(UTC).isoformat(timespec="milliseconds"), "reason": _reason(reason)}
        templates = [self._repetition(each, marks) for each in failed]
        return [self._queue(each, template) for each, template in zip(failed, templates, strict=True)]

    def _has_failed(self, trial: FrozenTrial) -> bool:
        return trial.state == TrialState.FAIL and has_result(trial)

    def _repetition(self, trial: FrozenTrial, marks: Mapping[str, Any]) -> FrozenTrial:
        try:
            return optuna.trial.create_trial(
                state=TrialState.WAITING,
                params={name: trial.params[name] for name in self.distributions},
                distributions=self.distributions,
                system_attrs={
                    "retry_history": [*trial.system_attrs.get("retry_history", []), trial.number],
                    RETRIED: dict(marks),
                },
            )
        except (KeyError, ValueError):
            raise ValueError(
                f"Trial {trial.number} cannot be tried again: its point lies outside the study file's ranges."
            ) from None

    def _queue(self, trial: FrozenTrial, template: FrozenTrial) -> int:
        """Add a repetition; of two that people add at the same moment, the one with the lower number stays."""
        added = self.storage.add(template).number
        for each in self.storage.trials()[:added]:
            if trial.number in each.system_attrs.get("retry_history", []) and not is_taken_back(each):
                self._change("cancel", added, reason=f"trial {trial.number} is tried again as trial {each.number}")
                return each.number
        return added

    def _change(self, what: str, trial: int, **more: Any) -> Change:
        change = new_change(self.storage.changes(), what, trial, **more)
        self.storage.change(change)
        return change

    def _trial(self, number: int) -> FrozenTrial:
        trials = self.storage.trials()
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(trials):
            known = f"the study has trials 0 to {len(trials) - 1}" if trials else "the study has none yet"
            raise ValueError(f"There is no trial {number}: {known}.")
        return trials[number]


def _check_not_taken_back(trial: FrozenTrial) -> None:
    if is_taken_back(trial):
        raise ValueError(f"Trial {trial.number} is {state_of(trial)}: undo that first.")


def _reason(given: str | None) -> str | None:
    if given is None or not given.strip():
        return None
    if len(given) > 2000 or "\0" in given:
        raise ValueError(f"A reason is a text of at most 2000 characters, got {len(given)}.")
    return given.strip()
