"""What the page says of a state of a study, kept on disk (``study.kept``): it opens at once after a restart."""

from __future__ import annotations

from typing import Any

from glasses.optuna.storage import HEARTBEAT
from glasses.study import kept
from glasses.study.stored import StoredStudy

_PAGE = "page"


def model_key(stored: StoredStudy) -> str:
    """Changes with everything that the model depends on. A trial that has no point yet says nothing."""
    told = []
    for trial in stored.trials():
        if trial.params or trial.state.is_finished():
            marks = sorted(item for item in trial.system_attrs.items() if item[0] != HEARTBEAT)
            told.append((trial.number, trial.state, trial.values, sorted(trial.params.items()), marks))
    return kept.digest_of(stored.file, told)


def recall(key: str) -> dict[str, Any] | None:
    """What was kept for a state."""
    return kept.recall(_PAGE, key)


def keep(key: str, found: dict[str, Any]) -> None:
    """Keep it, if anything is to be kept."""
    kept.keep(_PAGE, key, found)
