"""What a person does on the page, each one call: ask, tell, correct, withdraw, cancel, undo, try again, import.

Each is thin over the study's own functions, which the commands use as well. All are safe to repeat: a result that was told
before is a success if it is the same, a change that is there already is not made again, and an undo names what it undoes. Every
answer has a sentence, ``said``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError
from glasses.optuna.changes import Change, standing
from glasses.optuna.trials import has_result, state_of
from glasses.page.served import Served
from glasses.page.state import is_being_decided, text_of, words_of
from glasses.study import by_hand, importing
from glasses.study.objective import Evaluation
from glasses.study.points import values_of
from glasses.study.report import shown
from glasses.study.stored import StoredStudy

MOST = 50  # experiments asked for at once
_MOST_SHOWN = 200  # rows of a preview
_ANSWERS = 200  # remembered, by the requests' own numbers

Body = dict[str, object]


class ConflictError(ValueError):
    """A result for a trial that has another one already; ``trial`` may be corrected."""

    def __init__(self, words: str, trial: int) -> None:
        super().__init__(words)
        self.trial = trial


class Actions:
    """The actions of one served study."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._answers: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._answering = threading.Lock()

    def ask(self, body: Body) -> dict[str, Any]:
        """The next experiments. A request that comes twice is given the same ones."""
        count, request = _whole(body, "n", 1, MOST), _text(body, "request", 100)
        if not request:
            raise ValueError("request is missing: expected a text that is new for every click.")
        self.served.decisions += 1
        try:
            with self.served.asking:
                with self._answering:
                    if request in self._answers:
                        return self._answers[request]
                stored = self.served.writer
                if count > stored.remaining():
                    words = stored.budget.words(stored.left(), "evaluations")
                    raise ValueError(
                        f"{count} asked but {words} are left: tell results first, or raise the budget in "
                        f"{self.served.budget_line}."
                    )
                try:
                    found = by_hand.ask(stored, count)
                except ExhaustedError as error:
                    raise ValueError(str(error)) from None
        finally:
            self.served.decisions -= 1
        numbers = [trial.number for trial, _ in found]
        if not numbers:
            raise ValueError("Others took what was left of the budget in this moment: nothing is left to ask for.")
        answer = {"said": f"{_trials(numbers)} to be done.", "trials": numbers}
        with self._answering:
            self._answers[request] = answer
            while len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return answer

    def tell(self, body: Body) -> dict[str, Any]:
        """The result of an open experiment, at its point or at one slightly different."""
        outcome = _outcome(body)
        number = _whole(body, "trial", 0)
        with self.served.turn:
            stored = self.served.writer
            trial = _trial(stored, number)
            point = {name: text for name, text in _texts(body, "params").items() if _differs(trial, name, text)}
            if trial.state == TrialState.WAITING:
                raise ValueError(f"Trial {number} is not begun: get it as the next experiment first.")
            if is_being_decided(trial):
                raise ValueError(f"Trial {number} is being decided: wait for its point.")
            if has_result(trial) or state_of(trial) == "withdrawn":
                if not point and state_of(trial) != "withdrawn" and trial.value == outcome.value:
                    return {"said": f"Trial {number} has this result already.", "trials": [number]}
                raise ConflictError(
                    f"Trial {number} has a result already ({_result(trial)}): correct it instead of telling it again.", number
                )
            told = by_hand.check(stored, outcome, number, point)
            numbers = by_hand.store(stored, [told])
            left = stored.remaining()
        word = "failed" if outcome.value is None else f"{outcome.value:.6g}"
        spent = "" if left else " The budget is spent."
        return {
            "said": f"Stored for trial {numbers[0]}: {word}.{spent}",
            "trials": numbers,
            "undo": {"path": "withdraw", "body": {"trial": numbers[0], "reason": "taken back on the page"}},
        }

    def correct(self, body: Body) -> dict[str, Any]:
        """Another result or another point for a trial."""
        number, reason = _whole(body, "trial", 0), _text(body, "reason", 2000)
        given = body.get("failed") is True or _text(body, "value", 100).strip() != ""
        outcome = _outcome(body) if given else None
        with self.served.turn:
            stored = self.served.writer
            trial = _trial(stored, number)
            texts = {name: text for name, text in _texts(body, "params").items() if _differs(trial, name, text)}
            params = values_of(texts, stored.file.parameters)
            if outcome is not None and trial.value == outcome.value and (trial.value is not None or has_result(trial)):
                outcome = None
            if outcome is None and not params and has_result(trial):
                return {"said": f"Trial {number} is as you say already ({_result(trial)}).", "trials": [number]}
            return _changed(stored.correct(number, outcome=outcome, params=params, reason=reason))

    def withdraw(self, body: Body) -> dict[str, Any]:
        """Take a result out of the data."""
        return self._once(body, "withdrawn", lambda stored, number, reason: stored.withdraw(number, reason))

    def cancel(self, body: Body) -> dict[str, Any]:
        """An experiment could not be done."""
        return self._once(body, "cancelled", lambda stored, number, reason: stored.cancel(number, reason))

    def _once(self, body: Body, state: str, change: Callable[[StoredStudy, int, str | None], Change]) -> dict[str, Any]:
        number, reason = _whole(body, "trial", 0), _text(body, "reason", 2000)
        with self.served.turn:
            stored = self.served.writer
            if state_of(_trial(stored, number)) == state:
                return {"said": f"Trial {number} is {state} already.", "trials": [number]}
            return _changed(change(stored, number, reason))

    def undo(self, body: Body) -> dict[str, Any]:
        """Take back one change."""
        key = _text(body, "key", 200)
        with self.served.turn:
            stored = self.served.writer
            changes = stored.changes()
            found = next((each for each in changes if each.key == key), None)
            if found is None:
                raise ValueError("There is no such change: load the page again to see the last one.")
            if found not in standing(changes):
                return {"said": "That is taken back already.", "trials": [found.trial]}
            undone = stored.undo(key)
        words = words_of(found)
        return {"said": f"Taken back: {words[0].lower()}{words[1:]}", "trials": [undone.trial], "undo": _undo_of(undone)}

    def retry(self, body: Body) -> dict[str, Any]:
        """Queue a failed trial again."""
        number = _whole(body, "trial", 0)
        with self.served.turn:
            numbers = self.served.writer.retry([number])
        return {
            "said": f"Trial {number} is queued again as {_trials(numbers).lower()}.",
            "trials": numbers,
            "undo": {"path": "cancel", "body": {"trial": numbers[0], "reason": "not tried again after all"}},
        }

    def preview(self, body: Body) -> dict[str, Any]:
        """What would be stored of a table of results; nothing is."""
        text, again, outside = _import(body)
        stored = self.served.writer
        found = importing.preview(stored, text, again=again, outside_budget=outside)
        return {"said": f"{len(found.told)} results can be stored.", **_shown_preview(stored, found)}

    def store(self, body: Body) -> dict[str, Any]:
        """Store a table of results; what is there already is not stored again."""
        text, again, outside = _import(body)
        with self.served.turn:
            stored = self.served.writer
            found = importing.preview(stored, text, again=again, outside_budget=outside)
            numbers = importing.store(stored, found)
        said = f"Stored {len(numbers)} results." if numbers else "Nothing new to store."
        return {"said": said, "trials": numbers}


def _changed(change: Change) -> dict[str, Any]:
    return {"said": words_of(change), "trials": [change.trial], "undo": _undo_of(change)}


def _undo_of(change: Change) -> dict[str, Any]:
    return {"path": "undo", "body": {"key": change.key}}


def _import(body: Body) -> tuple[str, bool, bool]:
    text = body.get("text")
    if not isinstance(text, str):
        raise ValueError("text is missing: expected the content of a CSV file.")
    return text, body.get("again") is True, body.get("outside_budget") is not False


def _shown_preview(stored: StoredStudy, found: Any) -> dict[str, Any]:
    """What of a table would be stored, as texts; of a long one the first rows."""
    names = list(stored.file.parameters)
    rows = []
    for row in found.rows[:_MOST_SHOWN]:
        point = [shown(row["params"][name]) if name in row["params"] else "" for name in names]
        value = "" if row["value"] is None else shown(row["value"])
        rows.append([str(row["line"]), str(row["trial"]), *point, value, str(row["does"])])
    return {
        "count": len(found.told),
        "duplicates": found.duplicates,
        "blank": found.blank,
        "known": found.known,
        "skipped": dict(found.skipped),
        "notes": list(found.notes),
        "header": ["line", "trial", *names, "value", "what becomes of it"],
        "rows": rows,
        "more": max(0, len(found.rows) - _MOST_SHOWN),
    }


def _outcome(body: Body) -> Evaluation:
    """A result as it was typed."""
    value, reason, failed = _text(body, "value", 100), _text(body, "reason", 2000).strip(), body.get("failed", False)
    if not isinstance(failed, bool):
        raise ValueError("failed must be true or false.")
    if not failed and not value.strip():
        raise ValueError("A value is missing: type the number that was measured, or say that the experiment failed.")
    outcome = by_hand.outcome_of(value or None, failed)
    return Evaluation(None, reason) if outcome.value is None and reason else outcome


def _trial(stored: StoredStudy, number: int) -> FrozenTrial:
    trials = stored.trials()
    if number >= len(trials):
        raise ValueError(f"There is no trial {number}: load the page again to see all that there are.")
    return trials[number]


def _differs(trial: FrozenTrial, name: str, text: str) -> bool:
    """Whether a text changes a value: not if it is the value as it is stored, or as it is shown."""
    if name not in trial.params:
        return True
    value = trial.params[name]
    return text.strip() not in (text_of(value), shown(value), str(value))


def _result(trial: FrozenTrial) -> str:
    return state_of(trial) if trial.value is None else f"{trial.value:.6g}"


def _trials(numbers: list[int]) -> str:
    return f"Trial {numbers[0]}" if len(numbers) == 1 else f"Trials {', '.join(map(str, numbers))}"


def _whole(body: Body, name: str, least: int, most: int = 2**31) -> int:
    value = body.get(name, 1 if name == "n" else None)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {str(value)[:40]!r}.")
    return value


def _text(body: Body, name: str, most: int) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > most or "\0" in value or not _is_unicode(value):
        raise ValueError(f"{name} must be a text of at most {most} characters.")
    return value


def _is_unicode(text: str) -> bool:
    """Half of a surrogate pair can be written in JSON, but not stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(body: Body, name: str) -> dict[str, str]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > 1000 or not all(isinstance(each, str) for each in value.values()):
        raise ValueError(f"{name} must be an object of texts, one for each parameter that differs.")
    for each in value.values():
        if len(each) > 1000 or "\0" in each or not _is_unicode(each):
            raise ValueError(f"{name} holds a text that is no value: at most 1000 characters.")
    return value
