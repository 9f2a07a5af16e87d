"""The sampler of a stored study: it decides as its file says, and keeps what it decided (``kept``).

The numerics are loaded when something has to be decided that was not decided before in the same state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.study import Study

import glasses
from glasses.loop.ledger import ExhaustedError
from glasses.optuna.distributions import external, internal, is_point
from glasses.optuna.sampler import GlassesSampler, Told
from glasses.study.file import StudyFile
from glasses.study.kept import State, digest_of

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

_PLANNERS = {"two-stage": "TwoStage", "glasses": "Glasses", "el": "ExpectedLoss"}
_SUGGESTION = "suggestion"


class StudySampler(GlassesSampler):
    """Decides the next evaluation of the study of a file."""

    def __init__(self, file: StudyFile, distributions: Mapping[str, BaseDistribution]) -> None:
        self.file = file
        super().__init__(
            budget=file.budget,
            cost=file.cost,
            seed=file.seed,
            n_initial=file.n_initial,
            noise=file.noise,
            count_failures=file.count_failures,
            best_possible=file.best_possible,
            search_space=distributions,
            stale_after=math.inf,  # lost trials are found by their missing heartbeat
        )
        self.defaults = file.defaults
        self.conditional = False  # what the file names is what there is
        self.repeat_when_exhausted = False

    def _check_settings(self) -> None:
        """They were checked when the file was read."""

    def _made(self, told: Told) -> Optimizer:
        self._settings["loss"] = getattr(glasses, _PLANNERS[self.file.planner])()
        return super()._made(told)

    def state(self, study: Study, distributions: Mapping[str, BaseDistribution]) -> State:
        """The study at this moment."""
        return self._state(self._told(study, None, dict(distributions)), distributions)

    def _state(self, told: Told, distributions: Mapping[str, BaseDistribution]) -> State:
        file = self.file
        settings = (file.planner, file.noise, file.n_initial, file.seed, file.budget, file.cost, file.count_failures)
        ends = (file.best_possible, file.stop)
        _, *known = told  # the space is that of the distributions
        return State(digest_of(settings, ends, dict(distributions), known), lambda: self._made(told))

    def _decided(self, told: Told, space: dict[str, BaseDistribution]) -> dict[str, Any]:
        state = self._state(told, space)
        kept = state.recall(_SUGGESTION)
        if kept is not None and is_suggestion(kept, space):
            return external(kept, space)
        params = super()._decided(told, space)
        state.keep(_SUGGESTION, internal(params, space))
        return params


def is_suggestion(kept: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> bool:
    """Whether it is a point of the space, in internal numbers."""
    return all(isinstance(each, int | float) and math.isfinite(each) for each in kept.values()) and is_point(kept, space)


def keep_suggestion(state: State, space: Mapping[str, BaseDistribution]) -> None:
    """Keep what the optimiser of a state has decided on the way to a plan or a forecast, for whoever asks next."""
    optimizer = state.optimizer
    if optimizer.remaining:
        with suppress(ExhaustedError):
            state.keep(_SUGGESTION, internal(optimizer.space.form(optimizer._planner.next().x), space))
