"""Evaluations whose worker died, was stopped or never came back: found by their silence, and queued again.

A worker gives a sign of life per heartbeat: a stored number that changes. Whoever waits measures with its own clock how long
it has stood still: no stored time is compared with any clock. A lost trial ends with the mark ``LOST`` and costs nothing. One
that was begun is queued again at the same point, up to ``retries`` times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.distributions import Placing
from glasses.optuna.liveness import Watch
from glasses.optuna.marks import ASKED, LOST
from glasses.optuna.storage import HEARTBEAT, StudyStorage
from glasses.optuna.trials import is_complete, is_taken_back
from glasses.study.file import StudyFile
from glasses.study.objective import Evaluation
from glasses.study.storage import PatientStorage

DEATHS = "glasses:deaths"  # system attribute of a repetition: how many workers died with this configuration
_MISSED = 3  # heartbeats without a sign of life: the worker is taken for dead
_SLACK = 3.0  # seconds more for a worker that has begun an evaluation: a busy machine, a slow database
_AFTER_OUTAGE = 8.0  # the same after an outage: SQLite lets a call wait for five, and not in the order they came


class Requeueing:
    """What a stored study does about trials whose worker is gone."""

    file: StudyFile
    distributions: dict[str, BaseDistribution]
    placing: Placing
    storage: StudyStorage
    _database: PatientStorage

    def __init__(self) -> None:
        self._looked = -math.inf  # when lost trials were last looked for, by the monotonic clock
        self._heartbeats = Watch()
        self._outages = 0

    def remaining(self) -> int:
        """Evaluations that may still be begun."""
        raise NotImplementedError

    def finish(self, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any]) -> int:
        """Store a result."""
        raise NotImplementedError

    def give_back(self, trial: FrozenTrial) -> None:
        """Queue an interrupted evaluation again, unless a person has cancelled it."""
        if self._lose(trial) and not is_taken_back(self.storage.trials()[trial.number]):
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
            if deaths > self.file.retries and is_complete(trial):
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
        undecided = {trial.number for trial in self.storage.trials(TrialState.RUNNING) if not is_complete(trial)}
        while undecided and self.remaining() < count:
            self.requeue_lost()
            running = self.storage.trials(TrialState.RUNNING)
            undecided &= {trial.number for trial in running if not is_complete(trial)}
            time.sleep(0.1)

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
            decided = is_complete(trial)
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
        if not is_complete(found):
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
