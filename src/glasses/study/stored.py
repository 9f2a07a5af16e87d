"""A study in its database: who evaluates what, what came out, what was lost. The budget is met exactly, a result stored once.

A trial of the database is one attempt. It is WAITING (to be evaluated), RUNNING, COMPLETE, or FAIL: failed, or lost with its
worker (attribute ``LOST``). The *counted* trials are those that count against the budget: all but lost ones (and failed ones,
where failures are free). Rules, each kept by one atomic step of the database:

    claim          only the first ``budget`` counted trials, by number, may be run; WAITING becomes RUNNING for one worker alone
    finish         RUNNING becomes COMPLETE or FAIL once
    point          with ``[cost]``, where the budget is an amount: an evaluation begins only if, its own point stored, all that
                   is finished or under way fits
    requeue_lost   RUNNING without a sign of life becomes lost, and a WAITING trial with the same point is counted instead

A trial's rank among the counted ones can only fall, because lower ones can only be lost, and whatever replaces them has a
higher number; hence never more than ``budget`` of them are run, however many workers there are. A worker that was taken for
dead and comes back with a result after all does not lose it: the repetition that waits gets it, or it is added if a worker has
begun that one (only then is there one evaluation more than the budget).

With ``[cost]`` a trial is claimed as long as the cheapest evaluation fits besides those that are done, running or waiting, and
its point is decided in turn within what is left. Whoever finds then that it is too much gives way, and of two that both stored
their points at least the later one finds it; so the sum of the costs never passes the budget by deciding.

What a person changes afterwards (a result withdrawn, a cancellation undone) may move ranks either way, and may so lead to one
evaluation more than the budget; a result that was measured is kept, however many there are.

A worker shows that it is alive by changing an attribute of its trial once per heartbeat. A worker that sees it unchanged for
three heartbeats, by its own clock, takes the other for dead. No stored time is compared with any clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError
from glasses.optuna.distributions import Placing, distribution_of, including, internal
from glasses.optuna.marks import ASKED as ASKED
from glasses.optuna.marks import BROKEN, DETAILS, LATE, OUTSIDE, REASON, SIGN, UNPAID
from glasses.optuna.storage import StudyStorage
from glasses.optuna.trials import has_result, is_complete, known_point, state_of, superseded
from glasses.study.amendments import Amendable
from glasses.study.budget import Budget
from glasses.study.deciding import StudySampler
from glasses.study.differences import check_same_study
from glasses.study.file import StudyFile
from glasses.study.kept import State
from glasses.study.objective import Evaluation
from glasses.study.requeueing import Requeueing
from glasses.study.storage import NothingYetError, PatientStorage, UnreachableError, open_storage

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

_UNUSED = optuna.samplers.RandomSampler(seed=0)  # until the sampler that decides is needed


class StoredStudy(Amendable, Requeueing):
    """The study of a study file, in its database. What a person changes afterwards is in ``Amendable``, what becomes
    of evaluations whose worker died in ``Requeueing``.

    ``writing=False`` only reads. ``patience``: seconds to wait for a database that is out of reach.
    """

    def __init__(self, file: StudyFile, *, writing: bool = True, patience: float = 3600.0) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # what matters of its warnings is said here in other words
        self.file = file
        self.distributions = {name: distribution_of(each) for name, each in file.parameters.items()}
        self.placing = Placing(self.distributions, file.defaults)
        self.budget = Budget(file, self.placing)
        self._database = open_storage(file.storage, writing=writing, patience=patience)
        Requeueing.__init__(self)
        self._judged: tuple[Any, str | None] | None = None  # a state of the study, and the reason to stop in it
        try:
            self.study = self._open(self._database, writing)
            self.storage = StudyStorage(self.study)
            if self.study.directions != [self._direction]:
                raise ValueError(f"The stored study {file.name!r} has the other direction: give this one another name.")
            check_same_study(file, self.trials(), self.distributions)
        except BaseException:
            self.close()
            raise

    @cached_property
    def sampler(self) -> StudySampler:
        """The sampler that decides; made when it is first needed."""
        sampler = StudySampler(self.file, self.distributions)
        sampler.while_waiting = self.requeue_lost_if_due  # of a worker that died in its turn
        return sampler

    @property
    def give_up_waiting(self) -> Callable[[], bool] | None:
        """Asked while the database is out of reach: whether to stop waiting for it."""
        return self._database.give_up

    @give_up_waiting.setter
    def give_up_waiting(self, asked: Callable[[], bool] | None) -> None:
        self._database.give_up = asked

    def close(self) -> None:
        """Give the connections back."""
        self._database.engine.dispose()

    def __enter__(self) -> StoredStudy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _direction(self) -> StudyDirection:
        return StudyDirection.MAXIMIZE if self.file.maximize else StudyDirection.MINIMIZE

    def _open(self, storage: PatientStorage, writing: bool) -> optuna.Study:
        try:
            study = optuna.load_study(study_name=self.file.name, storage=storage, sampler=_UNUSED)
            if study.directions == [self._direction] or not writing or study.get_trials(deepcopy=False):
                return study
            optuna.delete_study(study_name=self.file.name, storage=storage)  # nothing was tried yet
        except KeyError:
            if not writing:
                words = f"There is no study {self.file.name!r} in the database yet: nothing has been evaluated."
                raise NothingYetError(words) from None
        try:
            return optuna.create_study(study_name=self.file.name, storage=storage, sampler=_UNUSED, direction=self._direction)
        except DuplicatedStudyError:  # another worker was faster
            return optuna.load_study(study_name=self.file.name, storage=storage, sampler=_UNUSED)

    def trials(self) -> list[FrozenTrial]:
        """All attempts, by number, with what people changed afterwards."""
        return self.storage.trials()

    def counted(self) -> list[FrozenTrial]:
        """The trials that count against the budget; without costs the first ``budget`` of them may be run."""
        free: float = 0 if self.file.count_failures else self.file.budget
        counted = []
        trials = self.trials()
        replaced = superseded(trials)
        for trial in trials:
            if OUTSIDE in trial.system_attrs:
                continue
            if trial.state == TrialState.FAIL:
                if not has_result(trial) or trial.number in replaced:
                    continue
                price = self.budget.of(trial)
                if price <= free:
                    free -= price
                    continue
            counted.append(trial)
        return counted

    def best(self) -> FrozenTrial | None:
        """The best completed trial inside today's ranges that violates no constraint."""
        found = [
            each
            for each in self.trials()
            if each.state == TrialState.COMPLETE
            and each.value is not None
            and all(value <= 0 for value in each.constraints.values())
            and internal(self.placing.point(each.params), self.distributions)
        ]
        sign = -1.0 if self.file.maximize else 1.0
        return min(found, key=lambda each: sign * (each.value or 0.0)) if found else None

    def used(self) -> float:
        """What is spent or held by what is running: evaluations, or with ``[cost]`` an amount."""
        return self.budget.used(self.counted())

    def left(self) -> float:
        """What is neither spent nor held by what is running: evaluations, or with ``[cost]`` an amount."""
        return self.budget.left(self.used())

    def remaining(self) -> int:
        """Evaluations that may still be begun; with ``[cost]``, if all were as cheap as the cheapest."""
        return self.budget.fitting(self.used())

    def claim(self, *, by_hand: bool = False) -> FrozenTrial | None:
        """A trial that is now this worker's, or None if the budget leaves none."""
        while True:
            counted = self.counted()
            if not self.budget.fitting(self.budget.used(counted)):
                return None
            waiting = self.budget.startable(counted)
            for trial in waiting:
                if self.storage.claim(trial):
                    if by_hand:
                        self.storage.mark(trial, ASKED, True)
                    return self.storage.current(trial)
            if waiting:
                continue  # others were faster
            if self.budget.cost is None and len(counted) >= self.file.budget:
                return None
            self.storage.add(optuna.trial.create_trial(state=TrialState.WAITING))

    def beat(self, trial: FrozenTrial) -> None:
        """A sign of life for a claimed trial, due once per heartbeat."""
        self.storage.beat(trial)

    def point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The configuration of a claimed trial, decided if it has none yet; None if the trial was lost meanwhile.

        Raises ``ExhaustedError``, and withdraws the trial, when nothing new is left in a finite space, or nothing that can be
        paid for.
        """
        known = self.storage.current(trial)
        try:
            if is_complete(known):
                found = self.placing.point(known.params)
                if internal(found, self.distributions):
                    if self._is_paid():
                        return found
                    self.give_back(trial)
                    return None
                self._lose(trial)  # it was queued before the ranges changed: there is no such point any more
                return None
            self.study.sampler = self.sampler
            found = self.storage.suggest(trial, self.distributions)
            if not self._is_paid():
                self.storage.mark(trial, UNPAID, True)
                raise ExhaustedError(
                    "Others have begun evaluations meanwhile, and the rest of the budget does not pay for this one."
                )
            return found
        except UpdateFinishedTrialError:
            return None
        except ExhaustedError:
            self._lose(trial)
            raise

    def _is_paid(self) -> bool:
        """With ``[cost]``, whether all that is done or has a point fits into the budget; those without one may give way."""
        if self.budget.cost is None:
            return True
        begun = [each for each in self.counted() if each.state != TrialState.WAITING]
        return self.budget.pays(
            self.budget.sum(each for each in begun if each.state.is_finished() or known_point(each, self.placing))
        )

    def finish(self, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any], broken: Sequence[int] = ()) -> int:
        """Store a result, also one whose trial was taken for lost; the number of the trial that holds it.

        ``broken``: the failures that cost nothing, this one included, because the objective is broken (``trials.broken_by``).
        """
        if self._finish(trial, outcome, broken):
            return trial.number
        stored = self.storage.current(trial)
        if outcome.value is None or (stored.state == TrialState.COMPLETE and stored.value == outcome.value):
            return trial.number  # it had arrived although the connection broke
        repetition = self._end_repetition(trial, outcome)
        if repetition is not None:
            return repetition
        own = {name: each for name, each in params.items() if name in stored.params or name not in self.file.defaults}
        return self.add(own, outcome, {LATE: trial.number}, distributions=stored.distributions)

    def _finish(self, trial: FrozenTrial, outcome: Evaluation, broken: Sequence[int] = ()) -> bool:
        try:
            self._note(trial, outcome.extras)
            if outcome.value is None:
                self.storage.mark(trial, REASON, outcome.reason)
                marks = ((SIGN, outcome.sign), (DETAILS, outcome.details), (BROKEN, list(broken)))
                for key, mark in marks:
                    if mark:
                        self.storage.mark(trial, key, mark)
        except UpdateFinishedTrialError:
            return False
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        return self.storage.finish(trial, state, outcome.value)

    def _note(self, trial: FrozenTrial, extras: Mapping[str, Any]) -> None:
        """What the objective said besides; nothing of it may stand in the way of the value."""
        for name, each in extras.items():
            try:
                self.storage.note(trial, name, each)
            except (UpdateFinishedTrialError, UnreachableError):
                raise
            except Exception as error:
                print(f"glasses: {name!r} of evaluation {trial.number} could not be stored: {error}.", file=sys.stderr)

    def add(
        self,
        params: Mapping[str, Any],
        outcome: Evaluation,
        marks: Mapping[str, Any] | None = None,
        times: tuple[datetime, datetime] | None = None,
        distributions: Mapping[str, BaseDistribution] | None = None,
    ) -> int:
        """Store an evaluation that no trial asked for, begun and ended now or at other ``times``; its number.

        ``distributions``: the ranges of its time, where they were others.
        """
        attributes, ranges = dict(marks or {}), dict(self.distributions)
        for name, each in (distributions or {}).items():
            if name in params and not internal(params, {name: ranges.get(name, each)}):
                ranges[name] = each
        if outcome.value is None:
            attributes[REASON] = outcome.reason
        template = optuna.trial.create_trial(
            state=TrialState.FAIL if outcome.value is None else TrialState.COMPLETE,
            value=outcome.value,
            params=dict(params),
            distributions={name: including(ranges[name], value) for name, value in params.items()},
            user_attrs=outcome.extras,
            system_attrs=attributes,
        )
        if times is not None:
            template.datetime_start, template.datetime_complete = times
        return self.storage.add(template).number

    def _end_repetition(self, trial: FrozenTrial, outcome: Evaluation) -> int | None:
        """Give a late result to the repetition that waits instead of the trial, if no worker has begun it."""
        for each in self.storage.trials(TrialState.WAITING):
            if trial.number in each.system_attrs.get("retry_history", []) and self.storage.claim(each):
                self.storage.mark(each, LATE, trial.number)
                return each.number if self._finish(each, outcome) else None
        return None

    def reason_to_stop(self, state: State | None = None) -> str | None:
        """Why the study's criterion says to begin nothing more; None to go on. Asked once per ``state`` of the study."""
        if self.file.stop is None or self.remaining() == 0:
            return None
        criterion = self.file.stop
        now = tuple((trial.number, state_of(trial), trial.value, tuple(trial.params.values())) for trial in self.trials())
        if self._judged is None or self._judged[0] != now:
            at = state or self.state()
            found = at.once("reason", lambda: {"reason": criterion.reason(at.optimizer)})
            self._judged = now, found["reason"]
        return self._judged[1]

    def state(self) -> State:
        """What is known at this moment, and what the model said of it: made where it was not kept."""
        return self.sampler.state(self.study, self.distributions)

    def optimizer(self) -> Optimizer:
        """What is known, as an optimiser: values to be minimised, so the negated ones of a study that maximises."""
        return self.sampler.optimizer(self.study, self.distributions)
