"""A study in its database: who evaluates what, what came out, what was lost. The budget is met exactly, a result stored once.

A trial of the database is one attempt. It is WAITING (to be evaluated), RUNNING, COMPLETE, or FAIL: failed, or lost with its
worker (attribute ``LOST``). The *counted* trials are those that count against the budget: all but lost ones (and failed ones,
where failures are free). Rules, each kept by one atomic step of the database:

    claim          only the first ``budget`` counted trials, by number, may be run; WAITING becomes RUNNING for one worker alone
    finish         RUNNING becomes COMPLETE or FAIL once
    requeue_lost   RUNNING without a sign of life becomes lost, and a WAITING trial with the same point is counted instead

A trial's rank among the counted ones can only fall, because lower ones can only be lost, and whatever replaces them has a
higher number; hence never more than ``budget`` of them are run, however many workers there are. A worker that was taken for
dead and comes back with a result after all does not lose it: the repetition that waits gets it, or it is added if a worker has
begun that one (only then is there one evaluation more than the budget).

What a person changes afterwards (a result withdrawn, a cancellation undone) may move ranks either way, and may so lead to one
evaluation more than the budget; a result that was measured is kept, however many there are.

A worker shows that it is alive by changing an attribute of its trial once per heartbeat. A worker that sees it unchanged for
three heartbeats, by its own clock, takes the other for dead. No stored time is compared with any clock.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

import glasses
from glasses.loop.ledger import ExhaustedError
from glasses.optuna.distributions import distribution_of
from glasses.optuna.liveness import Watch
from glasses.optuna.marks import ASKED as ASKED
from glasses.optuna.marks import LATE, LOST, OUTSIDE, REASON
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.storage import HEARTBEAT, StudyStorage
from glasses.optuna.trials import has_result, is_taken_back, state_of, superseded
from glasses.study.amendments import Amendable
from glasses.study.file import StudyFile
from glasses.study.objective import Evaluation
from glasses.study.storage import NothingYetError, PatientStorage, UnreachableError, open_storage

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

DEATHS = "glasses:deaths"  # system attribute of a repetition: how many workers died with this configuration
_MISSED = 3  # heartbeats without a sign of life: the worker is taken for dead
_SLACK = 3.0  # seconds more for a worker that has begun an evaluation: a busy machine, a slow database
_AFTER_OUTAGE = 8.0  # the same after an outage: SQLite lets a call wait for five, and not in the order they came
_UNUSED = optuna.samplers.RandomSampler(seed=0)  # until the sampler that decides is needed
_REMEDY = "give this one another name, or use the old file."
_PLANNERS = {"two-stage": "TwoStage", "glasses": "Glasses", "el": "ExpectedLoss"}


class StoredStudy(Amendable):
    """The study of a study file, in its database. What a person changes afterwards is in ``Amendable``.

    ``writing=False`` only reads. ``patience``: seconds to wait for a database that is out of reach.
    """

    def __init__(self, file: StudyFile, *, writing: bool = True, patience: float = 3600.0) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # what matters of its warnings is said here in other words
        self.file = file
        self.distributions = {name: distribution_of(each) for name, each in file.parameters.items()}
        self._database = open_storage(file.storage, writing=writing, patience=patience)
        self._looked = -math.inf  # when lost trials were last looked for, by the monotonic clock
        self._heartbeats = Watch()
        self._outages = 0
        self._judged: tuple[Any, str | None] | None = None  # a state of the study, and the reason to stop in it
        try:
            self.study = self._open(self._database, writing)
            self.storage = StudyStorage(self.study)
            self._check_same_study()
        except BaseException:
            self.close()
            raise

    @cached_property
    def sampler(self) -> GlassesSampler:
        """The sampler that decides; made when it is first needed."""
        sampler = GlassesSampler(
            budget=self.file.budget,
            seed=self.file.seed,
            n_initial=self.file.n_initial,
            noise=self.file.noise,
            count_failures=self.file.count_failures,
            best_possible=self.file.best_possible,
            loss=getattr(glasses, _PLANNERS[self.file.planner])(),
            search_space=self.distributions,
            stale_after=math.inf,  # lost trials are found by their missing heartbeat
        )
        sampler.while_waiting = self.requeue_lost_if_due  # of a worker that died in its turn
        sampler.repeat_when_exhausted = False
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

    def _check_same_study(self) -> None:
        """The file and the database must mean the same study; ranges and the budget may change, kinds may not."""
        if self.study.directions != [self._direction]:
            raise ValueError(f"The stored study {self.file.name!r} has the other direction: give this one another name.")
        for trial in self.trials():
            for name, stored in trial.distributions.items():
                if name not in self.distributions:
                    raise ValueError(
                        f"The stored study {self.file.name!r} has a parameter {name!r}, the file has not: {_REMEDY}"
                    )
                try:
                    optuna.distributions.check_distribution_compatibility(stored, self.distributions[name])
                except ValueError:
                    raise ValueError(
                        f"Parameter {name!r} of the stored study {self.file.name!r} is of another kind in the file: {_REMEDY}"
                    ) from None
            missing = [name for name in self.distributions if name not in trial.params]
            if missing and trial.state == TrialState.COMPLETE:
                raise ValueError(
                    f"The stored study {self.file.name!r} has no parameter {missing[0]!r}, the file has one: {_REMEDY}"
                )

    def trials(self) -> list[FrozenTrial]:
        """All attempts, by number, with what people changed afterwards."""
        return self.storage.trials()

    def counted(self) -> list[FrozenTrial]:
        """The trials that count against the budget, the first ``budget`` of which may be run."""
        free = 0 if self.file.count_failures else self.file.budget
        counted = []
        trials = self.trials()
        replaced = superseded(trials)
        for trial in trials:
            if OUTSIDE in trial.system_attrs:
                continue
            if trial.state == TrialState.FAIL:
                if not has_result(trial) or trial.number in replaced:
                    continue
                if free:
                    free -= 1
                    continue
            counted.append(trial)
        return counted

    def left(self) -> int:
        """Evaluations that are neither finished nor running."""
        return self._left(self.counted())

    def _left(self, counted: list[FrozenTrial]) -> int:
        return max(0, self.file.budget - sum(trial.state != TrialState.WAITING for trial in counted))

    def claim(self, *, by_hand: bool = False) -> FrozenTrial | None:
        """A trial that is now this worker's, or None if the budget leaves none."""
        while True:
            counted = self.counted()
            if self._left(counted) == 0:
                return None
            waiting = [trial for trial in counted[: self.file.budget] if trial.state == TrialState.WAITING]
            for trial in waiting:
                if self.storage.claim(trial):
                    if by_hand:
                        self.storage.mark(trial, ASKED, True)
                    return self.storage.current(trial)
            if waiting:
                continue  # others were faster
            if len(counted) >= self.file.budget:
                return None
            self.storage.add(optuna.trial.create_trial(state=TrialState.WAITING))

    def beat(self, trial: FrozenTrial) -> None:
        """A sign of life for a claimed trial, due once per heartbeat."""
        self.storage.beat(trial)

    def point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The configuration of a claimed trial, decided if it has none yet; None if the trial was lost meanwhile.

        Raises ``ExhaustedError``, and withdraws the trial, when nothing new is left in a finite space.
        """
        try:
            self.study.sampler = self.sampler
            return self.storage.suggest(trial, self.distributions)
        except UpdateFinishedTrialError:
            return None
        except ExhaustedError:
            self._lose(trial)
            raise

    def finish(self, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any]) -> int:
        """Store a result, also one whose trial was taken for lost; the number of the trial that holds it."""
        if self._finish(trial, outcome):
            return trial.number
        stored = self.storage.current(trial)
        if outcome.value is None or (stored.state == TrialState.COMPLETE and stored.value == outcome.value):
            return trial.number  # it had arrived although the connection broke
        repetition = self._end_repetition(trial, outcome)
        return self.add(params, outcome, {LATE: trial.number}) if repetition is None else repetition

    def _finish(self, trial: FrozenTrial, outcome: Evaluation) -> bool:
        try:
            self._note(trial, outcome.extras)
            if outcome.value is None:
                self.storage.mark(trial, REASON, outcome.reason)
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
    ) -> int:
        """Store an evaluation that no trial asked for, begun and ended now or at other ``times``; its number."""
        attributes = dict(marks or {})
        if outcome.value is None:
            attributes[REASON] = outcome.reason
        template = optuna.trial.create_trial(
            state=TrialState.FAIL if outcome.value is None else TrialState.COMPLETE,
            value=outcome.value,
            params=dict(params),
            distributions=self.distributions,
            user_attrs=outcome.extras,
            system_attrs=attributes,
        )
        if times is not None:
            template.datetime_start, template.datetime_complete = times
        return self.storage.add(template).number

    def give_back(self, trial: FrozenTrial) -> None:
        """Queue an interrupted evaluation again, unless a person has cancelled it."""
        if self._lose(trial) and not is_taken_back(self.trials()[trial.number]):
            self._repeat(trial, trial.system_attrs.get(DEATHS, 0))

    def requeue_lost_if_due(self) -> list[int]:
        """``requeue_lost``, but not more often than once per heartbeat."""
        if time.monotonic() - self._looked < self.file.heartbeat:
            return []
        self._looked = time.monotonic()
        return self.requeue_lost()

    def requeue_lost(self) -> list[int]:
        """Queue the trials of dead workers again; their numbers."""
        lost = []
        for trial in self._dead():
            deaths = trial.system_attrs.get(DEATHS, 0) + 1
            if deaths > self.file.retries and self._is_decided(trial):
                words = f"its worker died {deaths} times" if deaths > 1 else "its worker died"
                self.finish(trial, Evaluation(None, words), trial.params)
                lost.append(trial.number)
            elif self._lose(trial):
                self._repeat(trial, deaths)
                lost.append(trial.number)
        return lost

    def free(self, count: int) -> None:
        """If fewer than ``count`` evaluations are left, wait until running trials without a point have one or are lost.

        A command that was killed while it decided holds its trial until three heartbeats are missing.
        """
        undecided = {trial.number for trial in self.storage.trials(TrialState.RUNNING) if not self._is_decided(trial)}
        while undecided and self.left() < count:
            self.requeue_lost()
            running = self.storage.trials(TrialState.RUNNING)
            undecided &= {trial.number for trial in running if not self._is_decided(trial)}
            time.sleep(0.1)

    def _is_decided(self, trial: FrozenTrial) -> bool:
        return trial.params.keys() == self.distributions.keys()

    def _dead(self) -> list[FrozenTrial]:
        """Running trials whose heartbeat has not changed for three heartbeats, by this process's own clock.

        After an outage every heartbeat is old: all are watched anew from then on, and a worker that has begun an evaluation
        gets some seconds more to reach the database again.
        """
        running = self.storage.trials(TrialState.RUNNING)
        if self._outages != self._database.outages:
            self._outages = self._database.outages
            self._heartbeats.forget()
        dead = []
        for trial in running:
            silent = self._heartbeats.unchanged(trial.number, trial.system_attrs.get(HEARTBEAT))
            decided = self._is_decided(trial)
            if decided and ASKED in trial.system_attrs:
                continue  # evaluated by hand, for as long as it takes
            slack = 0.0 if not decided else _AFTER_OUTAGE if self._outages else _SLACK
            if silent > _MISSED * self.file.heartbeat + slack:
                dead.append(trial)
        return dead

    def _lose(self, trial: FrozenTrial) -> bool:
        """RUNNING becomes lost; False if it ended meanwhile."""
        try:
            self.storage.mark(trial, LOST, True)
        except UpdateFinishedTrialError:
            return False
        return self.storage.finish(trial, TrialState.FAIL)

    def _repeat(self, trial: FrozenTrial, deaths: int) -> None:
        found = self.storage.current(trial)
        if not self._is_decided(found):
            return  # it had not begun: the budget has it back
        history = [*trial.system_attrs.get("retry_history", []), trial.number]
        try:
            template = optuna.trial.create_trial(
                state=TrialState.WAITING,
                params=found.params,
                distributions=self.distributions,
                system_attrs={"retry_history": history, DEATHS: deaths},
            )
        except ValueError:
            return  # the ranges have changed: there is no such point any more
        self.storage.add(template)

    def _end_repetition(self, trial: FrozenTrial, outcome: Evaluation) -> int | None:
        """Give a late result to the repetition that waits instead of the trial, if no worker has begun it."""
        for each in self.storage.trials(TrialState.WAITING):
            if trial.number in each.system_attrs.get("retry_history", []) and self.storage.claim(each):
                self.storage.mark(each, LATE, trial.number)
                return each.number if self._finish(each, outcome) else None
        return None

    def reason_to_stop(self) -> str | None:
        """Why the study's criterion says to begin nothing more; None to go on. Asked once per state of the study."""
        if self.file.stop is None or self.left() == 0:
            return None
        state = tuple((trial.number, state_of(trial), trial.value, tuple(trial.params.values())) for trial in self.trials())
        if self._judged is None or self._judged[0] != state:
            self._judged = state, self.file.stop.reason(self.optimizer())
        return self._judged[1]

    def optimizer(self) -> Optimizer:
        """What is known, as an optimiser: values to be minimised, so the negated ones of a study that maximises."""
        return self.sampler.optimizer(self.study, self.distributions)
