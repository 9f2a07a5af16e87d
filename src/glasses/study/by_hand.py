"""Studies evaluated by a person: ask for experiments, tell their results. All input is checked before any is stored."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError
from glasses.optuna.distributions import internal
from glasses.optuna.trials import is_lost
from glasses.space.parameters import Choice
from glasses.space.space import Space
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy
from glasses.study.worker import Alive

_FAILED = ("failed", "fail", "nan", "inf", "-inf", "+inf")


@dataclass(frozen=True)
class Told:
    """A checked result that waits to be stored: for a trial, or for a point that was not asked for."""

    outcome: Evaluation
    trial: FrozenTrial | None
    params: dict[str, Any]


def ask(stored: StoredStudy, count: int) -> list[tuple[FrozenTrial, dict[str, Any]]]:
    """The next experiments."""
    stored.free(count)
    left = stored.left()
    if count < 1:
        raise ValueError(f"-n must be at least 1, got {count}.")
    if count > left:
        running = sum(each.state == TrialState.RUNNING for each in stored.trials())
        raise ValueError(
            f"{count} asked but {left} of {stored.file.budget} evaluations are left ({running} under way): tell results first, "
            f"or raise budget in {stored.file.path}."
        )
    experiments: list[tuple[FrozenTrial, dict[str, Any]]] = []
    while len(experiments) < count:
        trial = stored.claim(by_hand=True)
        if trial is None:
            break  # other workers took the rest meanwhile
        try:
            with Alive(stored, trial):
                params = stored.point(trial)
        except ExhaustedError:
            if experiments:
                break
            raise
        except BaseException:
            stored.give_back(trial)
            raise
        if params is not None:
            experiments.append((trial, params))
    return experiments


def check(stored: StoredStudy, outcome: Evaluation, trial: int | None, point: Mapping[str, str] | None) -> Told:
    """One result, checked against the study: of an open trial, or of a point given by the texts of its values."""
    if trial is not None and point:
        raise ValueError("Give either --trial or --at, not both: a trial already has its point.")
    if point:
        told = Told(outcome, None, _point(stored, point, "--at"))
        _check_budget(stored, [told])
        return told
    found = _open_trial(stored, trial)
    return Told(outcome, found, dict(found.params))


def check_csv(stored: StoredStudy, path: Path) -> tuple[list[Told], int, int]:
    """The results of a file, all of them checked; how many rows had no value yet, and how many were told before."""
    rows = _rows(path)
    names = list(stored.distributions)
    told, blank, known = [], 0, 0
    open_trials = {each.number: each for each in stored.trials() if each.state == TrialState.RUNNING}
    finished = {each.number: each for each in stored.trials() if each.state.is_finished() and not is_lost(each)}
    open_trials |= {each.number: each for each in stored.trials() if is_lost(each) and each.params}
    for line, row in rows:
        place = f"{path}, line {line}"
        if not row["value"].strip() and not row.get("failed", "").strip():
            blank += 1
            continue
        try:
            outcome = outcome_of(row["value"], row.get("failed", "").strip().lower() in ("1", "yes", "true", "failed"))
            if row.get("trial", "").strip():
                number = _whole(row["trial"])
                if number in finished:
                    if finished[number].value != outcome.value:
                        raise ValueError(f"trial {number} was told before, with another result ({finished[number].value}).")
                    known += 1
                    continue
                if number not in open_trials:
                    raise ValueError(f"there is no open trial {number}: `glasses show` lists them.")
                trial = open_trials.pop(number)
                told.append(Told(outcome, trial, dict(trial.params)))
            else:
                told.append(Told(outcome, None, _point(stored, {name: row.get(name, "") for name in names}, "")))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
    _check_budget(stored, told)
    return told, blank, known


def store(stored: StoredStudy, told: list[Told]) -> list[int]:
    """Store checked results; the numbers of their trials."""
    numbers = []
    for each in told:
        if each.trial is None:
            numbers.append(stored.add(each.params, each.outcome))
        else:
            stored.finish(each.trial, each.outcome, each.params)
            numbers.append(each.trial.number)
    return numbers


def ask_for_results(stored: StoredStudy, read: Callable[[str], str]) -> list[Told]:
    """Results typed in, one by one; an empty answer leaves that trial open."""
    told = []
    for trial in stored.trials():
        if trial.state == TrialState.RUNNING and trial.params:
            point = ", ".join(f"{name}={value}" for name, value in trial.params.items())
            answer = read(f"trial {trial.number} ({point}): ").strip()
            if answer:
                told.append(Told(outcome_of(answer, False), trial, dict(trial.params)))
    return told


def _open_trial(stored: StoredStudy, number: int | None) -> FrozenTrial:
    running = [each for each in stored.trials() if each.state == TrialState.RUNNING and each.params]
    if number is None:
        if len(running) != 1:
            numbers = ", ".join(str(each.number) for each in running)
            raise ValueError(
                f"Say which of the {len(running)} open trials this is: --trial N (open: {numbers})."
                if running
                else "No trial is open: `glasses ask` opens one, or --at name=value tells a point that nobody asked for."
            )
        return running[0]
    for each in running:
        if each.number == number:
            return each
    every = {each.number: each for each in stored.trials()}
    if number in every and is_lost(every[number]) and every[number].params.keys() == stored.distributions.keys():
        return every[number]  # taken for lost, and here is its result after all
    if number in every and every[number].state.is_finished():
        raise ValueError(f"Trial {number} was told before ({every[number].value}): results are not overwritten.")
    raise ValueError(f"There is no open trial {number}: `glasses show` lists the open ones.")


def outcome_of(result: str | None, failed: bool) -> Evaluation:
    """A result as typed in."""
    if failed:
        if result is not None and result.strip() and result.strip().lower() not in _FAILED:
            raise ValueError(f"An evaluation has a value or has failed, not both: got {result!r} and failed.")
        return Evaluation(None, "told as failed")
    if result is None or not result.strip():
        raise ValueError("A value is missing: type the number that was measured, or --failed.")
    if result.strip().lower() in _FAILED:
        return Evaluation(None, f"told as {result.strip()}")
    try:
        value = float(result)
    except ValueError:
        raise ValueError(f"The value must be a number, or `failed`, got {result!r}.") from None
    if not math.isfinite(value) or abs(value) > 1e100:
        raise ValueError(f"The value {result!r} is beyond 1e100 in size: check its units.")
    return Evaluation(value)


def _point(stored: StoredStudy, given: Mapping[str, str], what: str) -> dict[str, Any]:
    """A configuration from its texts."""
    values = {}
    for name, text in given.items():
        parameter = stored.file.parameters.get(name)
        if isinstance(parameter, Choice):
            matches = [each for each in parameter.values if _means(text, each)]
            values[name] = matches[0] if matches else text
        else:
            values[name] = _maybe_number(text)
    space = Space(stored.file.parameters)
    raw, _ = space.read(values, what or "the point")
    point = dict(space.form(raw[0]))
    for name, value in point.items():
        if not internal({name: value}, {name: stored.distributions[name]}):
            raise ValueError(f"{name} = {value} lies between two steps of {stored.file.parameters[name]}: give the nearest.")
    return point


def _maybe_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _means(text: str, choice: Any) -> bool:
    """Whether a text means a choice: it must be exactly its text, except that a number may have spaces around it."""
    if isinstance(choice, bool):
        return text == str(choice).lower()
    return text == choice if isinstance(choice, str) else text.strip() == str(choice)


def _check_budget(stored: StoredStudy, told: list[Told]) -> None:
    more = sum(each.trial is None and (each.outcome.value is not None or stored.file.count_failures) for each in told)
    if more > stored.left():
        raise ValueError(
            f"These are {more} evaluations that nobody asked for, but {stored.left()} of {stored.file.budget} are left: raise "
            f"budget in {stored.file.path} first."
        )


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"trial must be a whole number, got {text!r}.") from None


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = io.StringIO(file.read(), newline="")  # a cell in quotes keeps its line breaks as they are
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8: expected a CSV file.") from None
    try:
        reader = csv.DictReader(lines, strict=True)
        header = [each.strip() for each in reader.fieldnames or []]
        reader.fieldnames = header
        if "value" not in header:
            raise ValueError(
                f"{path} needs a column named value (and trial, or every parameter), got {', '.join(header) or 'nothing'}."
            )
        if len(set(header)) < len(header):
            raise ValueError(f"{path} has two columns of one name: {', '.join(header)}.")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"{path}, line {reader.line_num}: expected {len(header)} cells, one for each column.")
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}.") from None
    return rows
