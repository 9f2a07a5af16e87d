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

A worker shows that it is alive by changing an attribute of its trial once per heartbeat. A worker that sees it unchanged for
three heartbeats, by its own clock, takes the other for dead. No stored time is compared with any clock.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

import glasses
from glasses.loop.ledger import ExhaustedError
from glasses.optuna.distributions import Placing, distribution_of, internal
from glasses.optuna.liveness import Watch
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.storage import HEARTBEAT, StudyStorage
from glasses.optuna.trials import BROKEN, DETAILS, LATE, LOST, REASON, SIGN, is_complete, is_lost, superseded
from glasses.study.differences import check_same_study
from glasses.study.file import StudyFile
from glasses.study.objective import Evaluation
from glasses.study.storage import NothingYetError, PatientStorage, UnreachableError, open_storage

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

ASKED = "glasses:asked"  # system attribute: a person evaluates this one by hand; no worker waits for it
DEATHS = "glasses:deaths"  # system attribute of a repetition: how many workers died with this configuration
_MISSED = 3  # heartbeats without a sign of life: the worker is taken for dead
_SLACK = 3.0  # seconds more for a worker that has begun an evaluation: a busy machine, a slow database
_AFTER_OUTAGE = 8.0  # the same after an outage: SQLite lets a call wait for five, and not in the order they came
_UNUSED = optuna.samplers.RandomSampler(seed=0)  # until the sampler that decides is needed
_PLANNERS = {"two-stage": "TwoStage", "glasses": "Glasses", "el": "ExpectedLoss"}


class StoredStudy:
    """The study of a study file, in its database.

    ``writing=False`` only reads. ``patience``: seconds to wait for a database that is out of reach.
    """

    def __init__(self, file: StudyFile, *, writing: bool = True, patience: float = 3600.0) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # what matters of its warnings is said here in other words
        self.file = file
        self.distributions = {name: distribution_of(each) for name, each in file.parameters.items()}
        self.placing = Placing(self.distributions, file.defaults)
        self._database = open_storage(file.storage, writing=writing, patience=patience)
        self._looked = -math.inf  # when lost trials were last looked for, by the monotonic clock
        self._heartbeats = Watch()
        self._outages = 0
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
        sampler.defaults = self.file.defaults
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

    def trials(self) -> list[FrozenTrial]:
        """All attempts, by number."""
        return self.storage.trials()

    def counted(self) -> list[FrozenTrial]:
        """The trials that count against the budget, the first ``budget`` of which may be run."""
        free = 0 if self.file.count_failures else self.file.budget
        counted = []
        trials = self.trials()
        replaced = superseded(trials)
        for trial in trials:
            if trial.state == TrialState.FAIL:
                if is_lost(trial) or trial.number in replaced:
                    continue
                if free:
                    free -= 1
                    continue
            counted.append(trial)
        return counted

    def best(self) -> FrozenTrial | None:
        """The best completed trial inside today's ranges."""
        found = [
            each
            for each in self.trials()
            if each.state == TrialState.COMPLETE
            and each.value is not None
            and internal(self.placing.point(each.params), self.distributions)
        ]
        sign = -1.0 if self.file.maximize else 1.0
        return min(found, key=lambda each: sign * (each.value or 0.0)) if found else None

    def left(self) -> int:
        """Evaluations that are neither finished nor running."""
        begun = [trial for trial in self.counted() if trial.state != TrialState.WAITING]
        return max(0, self.file.budget - len(begun))

    def claim(self, *, by_hand: bool = False) -> FrozenTrial | None:
        """A trial that is now this worker's, or None if the budget leaves none."""
        while True:
            counted = self.counted()
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
        known = self.storage.current(trial)
        try:
            if is_complete(known):
                found = self.placing.point(known.params)
                if internal(found, self.distributions):
                    return found
                self._lose(trial)  # it was queued before the ranges changed: there is no such point any more
                return None
            self.study.sampler = self.sampler
            return self.storage.suggest(trial, self.distributions)
        except UpdateFinishedTrialError:
            return None
        except ExhaustedError:
            self._lose(trial)
            raise

    def finish(self, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any], broken: Sequence[int] = ()) -> None:
        """Store a result. None is dropped, not even one whose trial was taken for lost.

        ``broken``: the failures that cost nothing, this one included, because the objective is broken (``trials.broken_by``).
        """
        if self._finish(trial, outcome, broken):
            return
        stored = self.storage.current(trial)
        if stored.state == TrialState.COMPLETE and stored.value == outcome.value:
            return  # it had arrived although the connection broke
        if outcome.value is not None and not self._end_repetition(trial, outcome):
            own = {name: each for name, each in params.items() if name in stored.params or name not in self.file.defaults}
            self.add(own, outcome, {LATE: trial.number}, stored.distributions)

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
        distributions: Mapping[str, BaseDistribution] | None = None,
    ) -> int:
        """Store an evaluation that no trial asked for; its number. ``distributions``: of its time, if they were others."""
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
            distributions={name: ranges[name] for name in params},
            user_attrs=outcome.extras,
            system_attrs=attributes,
        )
        return self.storage.add(template).number

    def give_back(self, trial: FrozenTrial) -> None:
        """Queue an interrupted evaluation again."""
        if self._lose(trial):
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
        return is_complete(trial)

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
                params=self.placing.point(found.params),
                distributions=self.distributions,
                system_attrs={"retry_history": history, DEATHS: deaths},
            )
        except ValueError:
            return  # the ranges have changed: there is no such point any more
        self.storage.add(template)

    def _end_repetition(self, trial: FrozenTrial, outcome: Evaluation) -> bool:
        """Give a late result to the repetition that waits instead of the trial, if no worker has begun it."""
        for each in self.storage.trials(TrialState.WAITING):
            if trial.number in each.system_attrs.get("retry_history", []) and self.storage.claim(each):
                self.storage.mark(each, LATE, trial.number)
                return self._finish(each, outcome)
        return False

    def reason_to_stop(self) -> str | None:
        """Why the study's criterion says to begin nothing more; None to go on. Asked once per state of the study."""
        if self.file.stop is None or self.left() == 0:
            return None
        state = tuple((trial.number, trial.state, trial.value, len(trial.params)) for trial in self.trials())
        if self._judged is None or self._judged[0] != state:
            self._judged = state, self.file.stop.reason(self.optimizer())
        return self._judged[1]

    def optimizer(self) -> Optimizer:
        """What is known, as an optimiser: values to be minimised, so the negated ones of a study that maximises."""
        return self.sampler.optimizer(self.study, self.distributions)
