"""What the model says of a state of a study, kept on disk: the page opens at once after a restart.

A file per state: its name is a digest of the study file, of the trials as they mean something to the model, and of this code.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from glasses.optuna.storage import HEARTBEAT
from glasses.runtime.cache import cache_folder, read, write
from glasses.study.stored import StoredStudy


def model_key(stored: StoredStudy) -> str:
    """Changes with everything that the model depends on. A trial that has no point yet says nothing."""
    digest = hashlib.sha256(_code() + repr(stored.file).encode())
    for trial in stored.trials():
        if trial.params or trial.state.is_finished():
            marks = sorted(item for item in trial.system_attrs.items() if item[0] != HEARTBEAT)
            known = (trial.number, trial.state, trial.values, sorted(trial.params.items()), marks)
            digest.update(repr(known).encode())
    return digest.hexdigest()[:32]


def recall(key: str) -> dict[str, Any] | None:
    """What was kept for a state."""
    path = _path(key)
    payload = None if path is None else read(path)
    return None if payload is None else json.loads(payload)


def keep(key: str, found: dict[str, Any]) -> None:
    """Keep it, if anything is to be kept."""
    path = _path(key)
    if path is not None:
        write(path, json.dumps(found, allow_nan=False).encode())


def _path(key: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "pages" / key


@cache
def _code() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
