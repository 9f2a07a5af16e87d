"""Results from tables: a preview of what would be stored, then its storing. The whole table is checked before any is stored.

A table is CSV with commas, semicolons or tabs; with the latter two, decimal commas are understood. A row is the result of a
point, if it has a value for every parameter, or of an open trial, if it has a ``trial``. A table that ``glasses export`` wrote
comes back as it was: states, reasons, times and extras; only the numbers of the trials are new.

A row is a duplicate if the study holds that point with that result already, as often as the table does. Results that a person
corrected or withdrew are still known by what was told first, so an old table does not bring them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.marks import OUTSIDE
from glasses.optuna.trials import has_result, state_of
from glasses.space.parameters import Choice
from glasses.study import by_hand
from glasses.study.by_hand import Told
from glasses.study.columns import columns_of
from glasses.study.objective import Evaluation
from glasses.study.points import checked_part, checked_point, differing, values_of
from glasses.study.stored import StoredStudy
from glasses.study.tables import number_of, records, unguarded, value_of

_EXPORT = {"trial", "state", "value", "started", "finished"}  # columns by which our own export is known
_SKIPPED = ("lost", "running", "waiting", "withdrawn", "cancelled", "pruned")
_YES = ("1", "yes", "true", "failed")


@dataclass
class Preview:
    """What a table holds, and what of it would be stored.

    ``rows`` is for showing: line, trial, params, value and what becomes of it. ``points`` are all results of points, duplicates
    included: which of them are duplicates is looked at again when they are stored.
    """

    columns: dict[str, str]  # column: what it means; one that is not used is missing
    again: bool
    notes: list[str]
    told: list[Told] = field(default_factory=list)
    points: list[Told] = field(default_factory=list)
    duplicates: int = 0
    blank: int = 0
    known: int = 0  # results of trials that were told before
    skipped: dict[str, int] = field(default_factory=dict)  # by state, of a table that we exported
    rows: list[dict[str, Any]] = field(default_factory=list)

    def remarks(self) -> list[str]:
        """What is to be said about the rows that are not stored, and about the table."""
        counts = [
            (self.blank, "had no value yet"),
            (self.known, "were told before"),
            (self.duplicates, "are in the study already (--again stores them once more)"),
            *((count, f"are {state} and left out") for state, count in self.skipped.items()),
        ]
        return [*(f"{count} rows {why}." for count, why in counts if count), *self.notes]


def preview(
    stored: StoredStudy,
    text: str,
    *,
    again: bool = False,
    outside_budget: bool = True,
    by_trial: bool = False,
    value_column: str | None = None,
    name: str = "The table",
) -> Preview:
    """Check a table whole. ``by_trial``: a row with a trial is of that trial of this study, even if it has a whole point."""
    separator, columns = columns_of(stored.file, text, value_column, name)
    notes = columns.check(name)
    found = Preview(columns.used, again, notes)
    reader = _Reader(stored, found, separator, outside_budget, by_trial)
    lines = records(text, separator, name)
    next(lines)
    for line, cells in lines:
        if len(cells) != len(columns.header):
            raise ValueError(f"{name}, line {line}: expected {len(columns.header)} cells, one for each column.")
        row = {meaning: cell for meaning, cell in zip(columns.meanings, cells, strict=True) if meaning}
        try:
            reader.row(line, row)
        except ValueError as error:
            raise ValueError(f"{name}, line {line}: {error}") from None
    _keep_empty_extras(found)
    if reader.commas:
        notes.append("Decimal commas were read as points.")
    return found


def store(stored: StoredStudy, preview: Preview) -> list[int]:
    """Store what the preview says, but for what has become a duplicate since; the numbers of the trials."""
    of_trials = [each for each in preview.told if each.trial is not None]
    seen = None if preview.again else _Seen(stored)
    preview.told = [*of_trials, *(each for each in preview.points if seen is None or not seen.take(each))]
    return by_hand.store(stored, preview.told)


class _Seen:
    """The results that a study holds, each found once: as they are now, or as they were told."""

    def __init__(self, stored: StoredStudy) -> None:
        self._held: dict[Any, list[int]] = {}
        self._found: set[int] = set()
        for trial in [*stored.trials(), *stored.storage.raw_trials()]:
            if has_result(trial) and trial.state != TrialState.PRUNED:
                value = trial.value if trial.state == TrialState.COMPLETE else None
                self._held.setdefault(_key(trial.params, value), []).append(trial.number)

    def take(self, told: Told) -> bool:
        """Whether there is such a result that was not found before."""
        for number in self._held.get(_key(told.params, told.outcome.value), []):
            if number not in self._found:
                self._found.add(number)
                return True
        return False


def _key(params: Mapping[str, Any], value: float | None) -> Any:
    return frozenset(params.items()), value


class _Reader:
    """Reads the rows of one table into a preview."""

    def __init__(self, stored: StoredStudy, found: Preview, separator: str, outside: bool, by_trial: bool) -> None:
        self.stored, self.found, self.separator = stored, found, separator
        self.outside, self.by_trial = outside, by_trial
        self.commas = False
        self.ours = set(found.columns.values()) >= _EXPORT
        self.trials = stored.trials()
        self.raw = stored.storage.raw_trials()
        self.told: set[int] = set()
        self.seen = _Seen(stored)

    def row(self, line: int, row: Mapping[str, str]) -> None:
        """One row: checked, and added to what is stored or not."""
        state = row["state"].strip().lower() if self.ours else ""
        names = list(self.stored.distributions)
        texts = {name: row[name] for name in names if row.get(name, "").strip() or name in self._blank_choices(row)}
        outcome, params = None, dict(texts)
        if not row["value"].strip() and row.get("failed", "").strip().lower() not in _YES and state != "failed":
            if state in _SKIPPED:
                does = self._skip(state)
            else:
                self.found.blank += 1
                does = "no value"
        else:
            outcome = self._outcome(row, state)
            number = row.get("trial", "").strip()
            if number and (self.by_trial or len(texts) < len(names) or self._is_open_there(number, texts)):
                does, params = self._of_trial(_whole(number), outcome, texts, ended=state in ("complete", "failed"))
            else:
                params = self._checked({name: row.get(name, "") for name in names}, whole=True)
                does = self._of_point(row, outcome, params)
        value = None if outcome is None else "failed" if outcome.value is None else outcome.value
        self.found.rows.append({"line": line, "trial": row.get("trial", ""), "params": params, "value": value, "does": does})

    def _outcome(self, row: Mapping[str, str], state: str) -> Evaluation:
        failed = state == "failed" or row.get("failed", "").strip().lower() in _YES
        outcome = by_hand.outcome_of(self._number(unguarded(row["value"])), failed)
        if not self.ours:
            return outcome
        reason = None if outcome.value is not None else unguarded(row.get("reason", "")) or None
        extras = {
            name.removeprefix("extra:"): value_of(cell) for name, cell in row.items() if name.startswith("extra:") and cell
        }
        return Evaluation(outcome.value, reason, extras)

    def _of_trial(
        self, number: int, outcome: Evaluation, texts: Mapping[str, str], *, ended: bool
    ) -> tuple[str, dict[str, Any]]:
        trial = self.trials[number] if 0 <= number < len(self.trials) else None
        if trial is not None and state_of(trial) == "withdrawn":
            return self._skip("withdrawn"), trial.params
        if trial is not None and has_result(trial):
            if outcome.value not in (trial.value, self.raw[number].value):
                raise ValueError(
                    f"trial {number} was told before, with another result ({trial.value}): `glasses correct` gives it this one."
                )
            self.found.known += 1
            return "told before", trial.params
        if trial is None or number in self.told or not by_hand.takes_result(self.stored, trial):
            raise ValueError(
                f"there is no open trial {number}: `glasses show` lists them, `glasses import` takes rows with every parameter."
            )
        self.told.add(number)
        moved = self._moved(trial, texts)
        if moved and ended:  # it had ended where the table was exported, so that was another study
            raise ValueError(
                f"trial {number} is open here, and at another point: `glasses import` takes rows of another study."
            )
        point = {**trial.params, **moved}
        self.found.told.append(Told(outcome, trial, point))
        return "stored", point

    def _of_point(self, row: Mapping[str, str], outcome: Evaluation, point: dict[str, Any]) -> str:
        outside = self.outside or (self.ours and row.get(OUTSIDE, "").strip().lower() == "true")
        told = Told(outcome, None, point, {OUTSIDE: True} if outside else {}, _times(row) if self.ours else None)
        self.found.points.append(told)
        if not self.found.again and self.seen.take(told):
            self.found.duplicates += 1
            return "duplicate"
        self.found.told.append(told)
        return "stored, outside the budget" if outside else "stored"

    def _skip(self, state: str) -> str:
        self.found.skipped[state] = self.found.skipped.get(state, 0) + 1
        return f"left out: {state}"

    def _is_open_there(self, number: str, texts: Mapping[str, str]) -> bool:
        """Whether this study has an open trial of that number at the row's own point."""
        if not (number.isdecimal() and len(number) < 10 and int(number) < len(self.trials)):
            return False
        trial = self.trials[int(number)]
        return by_hand.takes_result(self.stored, trial) and not self._moved(trial, texts)

    def _moved(self, trial: FrozenTrial, texts: Mapping[str, str]) -> dict[str, Any]:
        """What a row says differently from its trial; a number rounded as ``ask`` shows it is no difference."""
        found = differing(self._checked(texts, whole=False), trial.params)
        return {
            name: value
            for name, value in found.items()
            if not (isinstance(value, float) and name in trial.params and value == float(f"{trial.params[name]:.6g}"))
        }

    def _checked(self, texts: Mapping[str, str], *, whole: bool) -> dict[str, Any]:
        parameters, check = self.stored.file.parameters, checked_point if whole else checked_part
        return check({name: self._value(name, text) for name, text in texts.items()}, parameters, self.stored.distributions, "")

    def _value(self, name: str, text: str) -> Any:
        parameters = self.stored.file.parameters
        parameter = parameters[name]
        if not isinstance(parameter, Choice):
            return values_of({name: self._number(unguarded(text))}, parameters)[name]
        for read in (unguarded, str, self._number):
            value = values_of({name: read(text)}, parameters)[name]
            if value in parameter.values:
                return value
        return text

    def _blank_choices(self, row: Mapping[str, str]) -> list[str]:
        """Parameters of which a blank text is a choice, and this row has it."""
        choices = {name: each for name, each in self.stored.file.parameters.items() if isinstance(each, Choice)}
        return [name for name, each in choices.items() if name in row and row[name] in each.values]

    def _number(self, text: str) -> str:
        """A number with a decimal comma as one with a point."""
        found = number_of(text) if self.separator != "," else text
        self.commas = self.commas or found != text
        return found


def _keep_empty_extras(found: Preview) -> None:
    """Extras that are empty in every row, so that an export of the study has their columns again."""
    names = [each.removeprefix("extra:") for each in found.columns.values() if each.startswith("extra:")]
    for name in names:
        if not any(name in told.outcome.extras for told in found.points):
            for told in found.points:
                told.outcome.extras[name] = None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"trial must be a whole number, got {text!r}.") from None


def _times(row: Mapping[str, str]) -> tuple[datetime, datetime] | None:
    """When an evaluation that we exported began and ended, in local time."""
    found = []
    for name in ("started", "finished"):
        text = row[name].strip()
        if not text:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            time = None
        if time is None or not 1970 < time.year < 9999:
            raise ValueError(f"{name} must be a time such as 2026-01-31T12:00:00, got {text!r}.")
        found.append(time.astimezone().replace(tzinfo=None) if time.tzinfo else time)
    return found[0], found[1]
