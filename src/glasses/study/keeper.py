"""A study in its database: who evaluates what, what came out, what was lost. Exactly once, exactly the budget.

A trial of the database is one attempt. It is WAITING (to be evaluated), RUNNING, COMPLETE, or FAIL: failed, or lost with its
worker (attribute ``LOST``). A *place* is a trial that counts against the budget: everything but lost ones (and failed ones,
where failures are free). Rules, each kept by one atomic step of the database:

    claim    only the first ``budget`` places, by number, may be run; WAITING becomes RUNNING for one worker alone
    finish   RUNNING becomes COMPLETE or FAIL once
    reap     RUNNING without a sign of life becomes lost, and a WAITING trial with the same point takes its place

A trial's rank among the places can only fall, because lower ones can only be lost, and whatever replaces them has a higher
number; hence never more than ``budget`` of them are run, however many workers there are. A worker that was taken for dead and
comes back with a result after all does not lose it: the repetition that waits gets it, or it is added if somebody has begun
that one (only then is there one evaluation more than the budget).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import DuplicatedStudyError, UpdateFinishedTrialError
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

import glasses
from glasses.loop.ledger import ExhaustedError
from glasses.optuna.sampler import LATE, LOST, REASON, GlassesSampler, distribution_of, is_lost
from glasses.study.file import StudyFile
from glasses.study.objective import Evaluation
from glasses.study.storage import NothingYetError, PatientStorage, UnreachableError, open_storage

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

ASKED = "glasses:asked"  # system attribute: a person has this one on the bench; no worker waits for it
DEATHS = "glasses:deaths"  # system attribute of a repetition: how many workers died with this configuration
_AFTER_OUTAGE = 8.0  # seconds: SQLite lets a call wait for five, and not in the order they came
_NOBODY = optuna.samplers.RandomSampler(seed=0)  # until the one that decides is needed
_REMEDY = "give this one another name, or use the old file."
_PLANNERS = {"two-stage": "TwoStage", "glasses": "Glasses", "el": "ExpectedLoss"}


class Keeper:
    """The study of a file. ``writing=False`` only looks."""

    def __init__(self, file: StudyFile, *, writing: bool = True, patience: float = 3600.0) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # what matters of its warnings is said here in other words
        self.file = file
        self.distributions = {name: distribution_of(each) for name, each in file.parameters.items()}
        storage = open_storage(file.storage, heartbeat=file.heartbeat, writing=writing, patience=patience)
        self._engine = storage.engine
        self._reaped = 0.0
        self._silent: dict[int, float] = {}  # trials whose worker has not been heard of, and since when this one knows
        self._patient = storage
        self._outages = 0
        self._judged: tuple[Any, str | None] | None = None  # a state of the study, and the reason to stop in it
        try:
            self.study = self._open(storage, writing)
            self.storage: Any = self.study._storage
            self.study_id = self.study._study_id
            self._check_same_study()
        except BaseException:
            self.close()
            raise

    @cached_property
    def sampler(self) -> GlassesSampler:
        """What decides; made when it is first needed."""
        sampler = GlassesSampler(
            budget=self.file.budget,
            seed=self.file.seed,
            n_initial=self.file.n_initial,
            noise=self.file.noise,
            count_failures=self.file.count_failures,
            loss=getattr(glasses, _PLANNERS[self.file.planner])(),
            search_space=self.distributions,
            stale_after=math.inf,  # the dead are found by their missing heartbeat
        )
        sampler.while_waiting = self.reap_now_and_then  # of a worker that died in its turn
        sampler.repeat_when_exhausted = False
        return sampler

    @property
    def give_up_waiting(self) -> Callable[[], bool] | None:
        """Asked while the database is out of reach: whether to stop waiting for it."""
        return self._patient.give_up

    @give_up_waiting.setter
    def give_up_waiting(self, asked: Callable[[], bool] | None) -> None:
        self._patient.give_up = asked

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, storage: PatientStorage, writing: bool) -> optuna.Study:
        direction = StudyDirection.MAXIMIZE if self.file.maximize else StudyDirection.MINIMIZE
        try:
            study = optuna.load_study(study_name=self.file.name, storage=storage, sampler=_NOBODY)
            if study.direction == direction or not writing or study.get_trials(deepcopy=False):
                return study
            optuna.delete_study(study_name=self.file.name, storage=storage)  # nothing was tried yet: no harm in turning round
        except KeyError:
            if not writing:
                words = f"There is no study {self.file.name!r} in the database yet: nothing has been evaluated."
                raise NothingYetError(words) from None
        try:
            return optuna.create_study(study_name=self.file.name, storage=storage, sampler=_NOBODY, direction=direction)
        except DuplicatedStudyError:  # another worker was faster
            return optuna.load_study(study_name=self.file.name, storage=storage, sampler=_NOBODY)

    def _check_same_study(self) -> None:
        """The file and the database must mean the same study; ranges and the budget may change, kinds may not."""
        if (self.study.direction == StudyDirection.MAXIMIZE) != self.file.maximize:
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
        """All attempts, by number."""
        return self.study.get_trials(deepcopy=False)

    def places(self, trials: list[FrozenTrial] | None = None) -> list[FrozenTrial]:
        """The attempts that count, the first ``budget`` of which may be run."""
        free = 0 if self.file.count_failures else self.file.budget
        counted = []
        trials = self.trials() if trials is None else trials
        back = {trial.user_attrs[LATE] for trial in trials if LATE in trial.user_attrs}
        for trial in trials:
            if trial.state == TrialState.FAIL:
                if is_lost(trial) or trial.number in back:
                    continue
                if free:
                    free -= 1
                    continue
            counted.append(trial)
        return counted

    def left(self) -> int:
        """Evaluations that are neither finished nor under way."""
        begun = [trial for trial in self.places() if trial.state != TrialState.WAITING]
        return max(0, self.file.budget - len(begun))

    def claim(self, *, by_hand: bool = False) -> FrozenTrial | None:
        """A trial that is now this worker's, or None if the budget leaves none."""
        while True:
            places = self.places()
            waiting = [trial for trial in places[: self.file.budget] if trial.state == TrialState.WAITING]
            for trial in waiting:
                self.storage.record_heartbeat(trial._trial_id)  # before the claim: who dies right after it is missed
                if self._take(trial):
                    if by_hand:
                        self.storage.set_trial_system_attr(trial._trial_id, ASKED, True)
                    return self.storage.get_trial(trial._trial_id)
            if waiting:
                continue  # others were faster
            if len(places) >= self.file.budget:
                return None
            self.storage.create_new_trial(self.study_id, optuna.trial.create_trial(state=TrialState.WAITING))

    def _take(self, trial: FrozenTrial) -> bool:
        try:
            return self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
        except UpdateFinishedTrialError:
            return False

    def point(self, trial: FrozenTrial) -> dict[str, Any] | None:
        """The configuration of a claimed trial, decided if it has none yet; None if the trial was lost meanwhile.

        Raises ``ExhaustedError``, and withdraws the trial, when nothing new is left in a finite space.
        """
        try:
            self.study.sampler = self.sampler
            active = optuna.trial.Trial(self.study, trial._trial_id)
            return {name: active._suggest(name, each) for name, each in self.distributions.items()}
        except UpdateFinishedTrialError:
            return None
        except ExhaustedError:
            self._lose(trial)
            raise

    def finish(self, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any]) -> None:
        """Store what came out. A result is never dropped, not even one that nobody waits for any more."""
        try:
            self._note(trial, outcome.extras)
            if outcome.value is None:
                self.storage.set_trial_user_attr(trial._trial_id, REASON, outcome.reason)
                self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            else:
                self.storage.set_trial_state_values(trial._trial_id, TrialState.COMPLETE, [outcome.value])
        except UpdateFinishedTrialError:
            stored = self.storage.get_trial(trial._trial_id)
            if stored.state == TrialState.COMPLETE and stored.value == outcome.value:
                return  # it had arrived although the connection broke
            if outcome.value is not None and not self._end_repetition(trial, outcome):
                self.add(params, outcome, {LATE: trial.number})

    def _note(self, trial: FrozenTrial, extras: Mapping[str, Any]) -> None:
        """What the objective said besides; nothing of it may stand in the way of the value."""
        for name, each in extras.items():
            try:
                self.storage.set_trial_user_attr(trial._trial_id, name, each)
            except (UpdateFinishedTrialError, UnreachableError):
                raise
            except Exception as error:
                print(f"glasses: {name!r} of evaluation {trial.number} could not be stored: {error}.", file=sys.stderr)

    def add(self, params: Mapping[str, Any], outcome: Evaluation, notes: Mapping[str, Any] | None = None) -> int:
        """Store an evaluation that no trial asked for; its number."""
        attributes = {**outcome.extras, **(notes or {})}
        if outcome.value is None:
            attributes[REASON] = outcome.reason
        template = optuna.trial.create_trial(
            state=TrialState.FAIL if outcome.value is None else TrialState.COMPLETE,
            value=outcome.value,
            params=dict(params),
            distributions=self.distributions,
            user_attrs=attributes,
        )
        return self.storage.get_trial(self.storage.create_new_trial(self.study_id, template)).number

    def give_back(self, trial: FrozenTrial) -> None:
        """An evaluation that was interrupted: somebody will do it again."""
        if self._lose(trial):
            self._repeat(trial, trial.system_attrs.get(DEATHS, 0))

    def reap_now_and_then(self) -> list[int]:
        """``reap``, but not more often than once per heartbeat."""
        if time.monotonic() - self._reaped < self.file.heartbeat:
            return []
        self._reaped = time.monotonic()
        return self.reap()

    def reap(self) -> list[int]:
        """Queue the trials of dead workers again; their numbers."""
        lost = []
        for trial_id in self._dead():
            trial = self.storage.get_trial(trial_id)
            deaths = trial.system_attrs.get(DEATHS, 0) + 1
            if deaths > self.file.retries and trial.params.keys() == self.distributions.keys():
                words = f"its worker died {deaths} times" if deaths > 1 else "its worker died"
                self.finish(trial, Evaluation(None, words), trial.params)
                lost.append(trial.number)
            elif self._lose(trial):
                self._repeat(trial, deaths)
                lost.append(trial.number)
        return lost

    def _dead(self) -> list[int]:
        """Trials whose worker stays silent while this one listens.

        After an outage everybody seems to have been silent: so whoever has begun an evaluation is given another heartbeat, and
        some seconds to find the database again, from when this worker itself misses the first.
        """
        stale = self.storage._get_stale_trial_ids(self.study_id)
        if self._outages != self._patient.outages:
            self._outages, self._silent = self._patient.outages, {}
        now = time.monotonic()
        self._silent = {trial_id: self._silent.get(trial_id, now) for trial_id in stale}
        dead = []
        for trial_id in stale:
            trial = self.storage.get_trial(trial_id)
            decided = trial.params.keys() == self.distributions.keys()
            if decided and ASKED in trial.system_attrs:
                continue  # on somebody's bench, for as long as it takes
            if not decided or now - self._silent[trial_id] > self.file.heartbeat + (_AFTER_OUTAGE if self._outages else 3.0):
                dead.append(trial_id)
        return dead

    def _lose(self, trial: FrozenTrial) -> bool:
        """RUNNING becomes lost; False if it ended meanwhile."""
        try:
            self.storage.set_trial_system_attr(trial._trial_id, LOST, True)
            return self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        except UpdateFinishedTrialError:
            return False

    def _repeat(self, trial: FrozenTrial, deaths: int) -> None:
        params = self.storage.get_trial(trial._trial_id).params
        if params.keys() != self.distributions.keys():
            return  # it had not begun: its place is simply free again
        history = [*trial.system_attrs.get("retry_history", []), trial.number]
        try:
            template = optuna.trial.create_trial(
                state=TrialState.WAITING,
                params=params,
                distributions=self.distributions,
                system_attrs={"retry_history": history, DEATHS: deaths},
            )
        except ValueError:
            return  # the ranges have changed: there is no such point any more
        self.storage.create_new_trial(self.study_id, template)

    def _end_repetition(self, trial: FrozenTrial, outcome: Evaluation) -> bool:
        """Give a late result to the repetition that waits in the trial's place, if nobody has begun it."""
        for each in self.trials():
            repeats = trial.number in each.system_attrs.get("retry_history", [])
            if repeats and each.state == TrialState.WAITING:
                self.storage.record_heartbeat(each._trial_id)
                if self._take(each):
                    self._note(each, {**outcome.extras, LATE: trial.number})
                    return self.storage.set_trial_state_values(each._trial_id, TrialState.COMPLETE, [outcome.value])
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
