"""Taking turns: workers that decide at the same time, perhaps on different machines, decide one after the other.

Lamport's bakery, with attributes of the running trials as tickets, so it works with any storage of Optuna's. Each worker sees
the points of all before it as pending, and no two run the same configuration by accident. A ticket that has not changed for
``_LONGEST_TURN``, by the clock of the waiting worker, is passed over and closed, so that no worker waits for it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.liveness import Watch
from glasses.optuna.marks import POINT
from glasses.optuna.storage import StudyStorage

TURN = "glasses:turn"  # system attribute of a trial that decides: [ticket, refreshed]; the ticket is 0 while it is drawn
_LONGEST_TURN = 120.0  # seconds without a change of the ticket: compiling everything anew takes less
_PAUSE = 0.1  # seconds between two looks, times the number of turns before one's own: looking costs what deciding costs
_LONGEST_PAUSE = 1.0
_REFRESHED = 10.0  # seconds after which a waiting worker changes its ticket, to show that it is still there


class Turns:
    """The turns that one process takes. ``while_waiting``, if set, is called now and then during a wait."""

    def __init__(self) -> None:
        self._watch = Watch()
        self.while_waiting: Callable[[], object] | None = None

    def wait(self, storage: StudyStorage, trial: FrozenTrial) -> None:
        """Draw a ticket and wait for all earlier ones."""
        storage.mark(trial, TURN, [0, 0])
        ticket = 1 + max(self._deciding(storage, trial).values(), default=0)
        refreshed, pause = 1, 0.01
        storage.mark(trial, TURN, [ticket, refreshed])
        shown = time.monotonic()
        while ahead := self._ahead(storage, trial, ticket):
            if self.while_waiting is not None:
                self.while_waiting()
            if time.monotonic() - shown > _REFRESHED:
                refreshed += 1
                storage.mark(trial, TURN, [ticket, refreshed])
                shown = time.monotonic()
            time.sleep(pause)
            pause = min(1.3 * pause, _PAUSE * ahead, _LONGEST_PAUSE)
        if time.monotonic() - shown > 1.0:
            storage.mark(trial, TURN, [ticket, refreshed + 1])  # its turn begins now

    def _ahead(self, storage: StudyStorage, trial: FrozenTrial, ticket: int) -> int:
        """How many decide before this one, those who are drawing their ticket included."""
        others = self._deciding(storage, trial)
        return sum(theirs == 0 or (theirs, number) < (ticket, trial.number) for number, theirs in others.items())

    def end(self, storage: StudyStorage, trial: FrozenTrial, point: Mapping[str, float]) -> None:
        """Publish what was decided, in Optuna's internal numbers; an empty point if nothing was."""
        storage.mark(trial, POINT, dict(point))

    def _deciding(self, storage: StudyStorage, trial: FrozenTrial) -> dict[int, int]:
        """The tickets of the other trials that are deciding, by trial number; 0 for one that is being drawn."""
        tickets = {}
        for each in storage.trials(TrialState.RUNNING):
            if each.number != trial.number and TURN in each.system_attrs and POINT not in each.system_attrs:
                turn = each.system_attrs[TURN]
                if self._watch.unchanged((storage.key, each.number), turn) <= _LONGEST_TURN:
                    tickets[each.number] = turn[0]
                else:
                    with suppress(UpdateFinishedTrialError):
                        self.end(storage, each, {})
        return tickets
