"""The model of a served study, computed on a thread of its own, kept on disk, and never in the way of a decision.

A state of the study is thought about in two parts, what the model says and what the rest is worth, each shown as soon as it is
there. While a person waits for the next experiment no part is begun. A state that is known from before costs nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from optuna.trial import TrialState

from glasses.page import kept
from glasses.page.served import Served
from glasses.study.deciding import keep_suggestion
from glasses.study.stored import StoredStudy

_SETTLE = 0.15  # seconds after a change: a decision that follows it at once goes first
_REMEMBERED = 64  # what-ifs


class Thinking:
    """``changed()`` whenever the study has; ``said(found)`` is called with every new state of the model."""

    def __init__(self, served: Served, said: Callable[[dict[str, Any]], None]) -> None:
        self.served, self.said = served, said
        self.found: dict[str, Any] = {"key": None, "state": "waiting"}
        self._wanted = threading.Event()
        self._turn = threading.Lock()  # of the model: what-ifs come in between
        self._what_ifs: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
        self._thread = threading.Thread(target=self._think, name="glasses-page-model", daemon=True)
        self.busy = False

    def start(self) -> None:
        """Begin, once."""
        self._thread.start()

    def changed(self) -> None:
        """Think about the study as it is now, soon."""
        self._wanted.set()

    def recall(self) -> None:
        """What is known of the present state, before the page is shown for the first time."""
        stored = self.served.reader
        if has_values(stored):
            self._remembered(kept.model_key(stored))

    def what_if(self, budget: int) -> dict[str, Any]:
        """The forecast for another budget."""
        from glasses.page.model import forecast_of

        stored = self.served.reader
        if stored.budget.cost is not None:
            raise ValueError(f"Experiments have costs: to see another budget, edit {self.served.budget_line}.")
        used = int(stored.file.budget - stored.left())
        if not used < budget <= used + 128:
            raise ValueError(f"The budget must be between {used + 1} and {used + 128} to be looked at, got {budget}.")
        key = (kept.model_key(stored), budget)
        with self._turn:
            if key not in self._what_ifs:
                self._what_ifs[key] = forecast_of(stored, stored.optimizer(), budget - used)
                while len(self._what_ifs) > _REMEMBERED:
                    self._what_ifs.popitem(last=False)
            return self._what_ifs[key]

    def _think(self) -> None:
        while not self.served.ending.is_set():
            self._wanted.wait(1.0)
            if not self._wanted.is_set() or self.served.ending.wait(_SETTLE):
                continue
            if self.served.decisions:
                continue
            self._wanted.clear()
            self.busy = True
            try:
                self._once(self.served.reader)
            except Exception as error:  # shown on the page; the next state is a new attempt
                self._say(self.found | {"state": "failed", "words": f"The model could not be computed: {error}"})
            finally:
                self.busy = False

    def _once(self, stored: StoredStudy) -> None:
        from glasses.page.model import forecast_of, model_of

        key = kept.model_key(stored)
        if self.found.get("key") == key and self.found["state"] in ("ready", "nothing"):
            return
        if not has_values(stored):
            self._say({"key": key, "state": "nothing"})
            return
        if self._remembered(key):
            return
        self._say(self.found | {"state": "thinking"})
        with self._turn:
            state = stored.state()
            optimizer = state.optimizer
            found: dict[str, Any] = model_of(stored, optimizer)
            keep_suggestion(state, stored.distributions)
        if self._wanted.is_set() and kept.model_key(stored) != key:
            return  # something was told meanwhile
        self._say({"key": key, "state": "thinking", **found})
        self._wait_for_decisions()
        with self._turn:
            found["forecast"] = forecast_of(stored, optimizer)
        kept.keep(key, found)
        self._say({"key": key, "state": "ready", **found})

    def _wait_for_decisions(self) -> None:
        while self.served.decisions and not self.served.ending.wait(0.05):
            pass

    def _remembered(self, key: str) -> bool:
        found = kept.recall(key)
        if found is not None:
            self._say({"key": key, "state": "ready", **found})
        return found is not None

    def _say(self, found: dict[str, Any]) -> None:
        self.found = found
        self.said(found)


def has_values(stored: StoredStudy) -> bool:
    """Whether there is anything to model."""
    return any(
        trial.state == TrialState.COMPLETE and trial.value is not None and stored.placing.point(trial.params)
        for trial in stored.trials()
    )
