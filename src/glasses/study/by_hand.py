"""Studies evaluated by a person: ask for experiments, tell their results. All input is checked before any is stored.

A result may be told for another point than the suggested one: that is where it was done. The database keeps the suggestion, and
the difference as a correction. No result is refused for lack of budget: what was measured is measured. Tables are read by
``importing``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError
from glasses.optuna.changes import login_name
from glasses.optuna.marks import CANCELLED, TOLD_BY
from glasses.optuna.trials import has_result, is_complete, is_lost, state_of
from glasses.study.objective import Evaluation, printable
from glasses.study.points import checked_part, checked_point, differing, values_of
from glasses.study.report import shown
from glasses.study.stored import StoredStudy
from glasses.study.worker import Alive

_FAILED = ("failed", "fail", "nan", "inf", "-inf", "+inf")


@dataclass(frozen=True)
class Told:
    """A checked result that waits to be stored: for a trial, or for a point that was not asked for.

    ``params`` is where it was done. ``marks`` and ``times`` are those of an evaluation that comes from elsewhere.
    """

    outcome: Evaluation
    trial: FrozenTrial | None
    params: dict[str, Any]
    marks: dict[str, Any] = field(default_factory=dict)
    times: tuple[datetime, datetime] | None = None


def ask(stored: StoredStudy, count: int) -> list[tuple[FrozenTrial, dict[str, Any]]]:
    """The next experiments."""
    stored.free(count)
    left = stored.remaining()
    if count < 1:
        raise ValueError(f"-n must be at least 1, got {count}.")
    if count > left:
        running = sum(each.state == TrialState.RUNNING for each in stored.trials())
        if stored.budget.cost is not None:
            raise ValueError(
                f"{count} asked but {stored.budget.words(stored.left())} is left, which pays for {left} at most "
                f"({running} under way): tell results first, or raise budget in {stored.file.path}."
            )
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
    """One result, checked against the study.

    With a trial, ``point`` names what was done differently; without, it is the whole point, which nobody asked for. Texts.
    """
    parameters, distributions = stored.file.parameters, stored.distributions
    values = values_of(point or {}, parameters)
    if trial is None and point:
        return Told(outcome, None, checked_point(values, parameters, distributions, "--at"))
    found = open_trial(stored, trial)
    return Told(outcome, found, {**found.params, **checked_part(values, parameters, distributions, "--at")})


def store(stored: StoredStudy, told: list[Told]) -> list[int]:
    """Store checked results; the numbers of their trials."""
    who = login_name()
    numbers = []
    for each in told:
        if each.trial is None:
            numbers.append(stored.add(each.params, each.outcome, {TOLD_BY: who, **each.marks}, each.times))
        else:
            _store_of(stored, each.trial, each, who)
            numbers.append(each.trial.number)
    return numbers


def _store_of(stored: StoredStudy, trial: FrozenTrial, told: Told, who: str) -> None:
    """Store the result of a trial. Where it was done is stored first, so that nobody sees it at the wrong point."""
    moved = differing(told.params, trial.params)
    found = stored.storage.current(trial)
    if found.state == TrialState.WAITING:
        stored.storage.claim(trial)  # if a worker is faster, this result is the one that is kept
    with suppress(UpdateFinishedTrialError):
        stored.storage.mark(trial, TOLD_BY, who)
    if moved and not found.state.is_finished():
        stored.move(trial.number, moved)
    number = stored.finish(trial, told.outcome, told.params)
    if number != trial.number:  # it was taken for lost: a repetition has the result, perhaps at the suggested point
        moved = differing(told.params, stored.trials()[number].params)
        if moved:
            stored.move(number, moved)


def ask_for_results(stored: StoredStudy, read: Callable[[str], str], say: Callable[[str], object] = print) -> list[Told]:
    """Results typed in, one by one; an empty answer leaves that trial open, a mistyped one is asked for again."""
    told = []
    for trial in stored.trials():
        if trial.state == TrialState.RUNNING and trial.params:
            point = ", ".join(f"{name}={value}" for name, value in trial.params.items())
            try:
                outcome = _typed(f"trial {trial.number} ({point}): ", read, say)
            except EOFError:  # the end of the input: what was typed before counts
                break
            if outcome is not None:
                told.append(Told(outcome, trial, dict(trial.params)))
    return told


def _typed(question: str, read: Callable[[str], str], say: Callable[[str], object]) -> Evaluation | None:
    while True:
        answer = read(question).strip()
        if not answer:
            return None
        try:
            return outcome_of(answer, False)
        except ValueError as error:
            say(f"{error} Once more, or Enter to leave it open.")


def said(stored: StoredStudy, told: list[Told], numbers: list[int], remarks: Sequence[str] = ()) -> str:
    """One line: what is stored now, as what, and what is left."""
    named = {False: "Stored", True: "Stored as failed"}
    words = []
    for failed, beginning in named.items():
        some = [f"trial {n}" for n, each in zip(numbers, told, strict=True) if (each.outcome.value is None) == failed]
        if some:
            words.append(f"{beginning}: {', '.join(some)}.")
    for each in told:
        if each.trial is None:
            continue
        if CANCELLED in each.trial.system_attrs:
            words.append(f"Trial {each.trial.number} had been cancelled: its result counts after all.")
        for name, value in differing(each.params, each.trial.params).items():
            before = shown(each.trial.params[name])
            words.append(printable(f"Trial {each.trial.number} was done at {name} = {shown(value)}, not {before}."))
    return " ".join([*(words or ["Nothing to store."]), *remarks, left_words(stored, bool(numbers))])


def left_words(stored: StoredStudy, told: bool = False) -> str:
    """What is left of the budget; right after a result was told, also that it is beyond it."""
    budget, used = stored.budget, stored.used()
    left = f"{budget.words(budget.left(used))} left."
    if not told or budget.pays(used):
        return left
    if budget.cost is not None:
        return f"This makes {budget.priced(used)} of a budget of {budget.priced(budget.whole)}: {left}"
    return f"This is evaluation {used} of a budget of {budget.whole}: {left}"


def open_trial(stored: StoredStudy, number: int | None) -> FrozenTrial:
    """The trial whose result may be told: the only open one, or the one of that number."""
    trials = stored.trials()
    running = [each for each in trials if each.state == TrialState.RUNNING and each.params]
    if number is None:
        if len(running) != 1:
            numbers = ", ".join(str(each.number) for each in running)
            raise ValueError(
                f"Say which of the {len(running)} open trials this is: --trial N (open: {numbers})."
                if running
                else "No trial is open: `glasses ask` opens one, or --at name=value tells a point that nobody asked for."
            )
        return running[0]
    found = next((each for each in trials if each.number == number), None)
    if found is not None and takes_result(stored, found):
        return found
    if found is not None and has_result(found):
        raise ValueError(
            f"Trial {number} was told before ({found.value}): `glasses correct` gives it another result, and keeps the old one."
        )
    if found is not None and state_of(found) == "withdrawn":
        raise ValueError(f"Trial {number} is withdrawn: `glasses undo` brings it back, --at name=value tells its point anew.")
    raise ValueError(f"There is no open trial {number}: `glasses show` lists the open ones.")


def takes_result(stored: StoredStudy, trial: FrozenTrial) -> bool:
    """Whether a result of this trial may be told: it runs or waits, or was taken for lost, or was cancelled."""
    if not is_complete(trial):
        return trial.state == TrialState.RUNNING and bool(trial.params)
    return not trial.state.is_finished() or is_lost(trial) or CANCELLED in trial.system_attrs


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
