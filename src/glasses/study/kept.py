"""What the model said of a study, kept on disk: suggestions, plans, forecasts, and what the page shows.

Whatever the model says is a function of what it is told, of the settings, of this code and of the machine. A file is named by a
digest of all of these, so what is recalled is what would be computed, to the last bit, and nothing is ever out of date. A
command in a state that was looked at before needs no model, and loads no numerics. Files that are damaged, written by something
else or cannot be written are as if they were not there (``runtime.cache``).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glasses.runtime.cache import cache_folder, read, write
from glasses.runtime.machine import machine

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer

_MOST = 500  # files
_FLAGS = (
    "JAX_",
    "XLA_",
    "CUDA_",
    "GLASSES_OPTIMIZATION",
    "OPENBLAS_",
    "OMP_",
)  # of the environment, that results may depend on
_STARTED = time.time()


class State:
    """A state of a study, by its digest. Its optimiser is made when something is asked that was not asked before."""

    def __init__(self, digest: str, make: Callable[[], Optimizer]) -> None:
        self.digest, self._make = digest, make

    @cached_property
    def optimizer(self) -> Optimizer:
        """The study in this state."""
        return self._make()

    def once(self, what: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """``make()``, plain values for JSON from the optimiser of this state: made once, whichever process asks."""
        found = self.recall(what)
        if found is None:
            found = make()
            self.keep(what, found)
        return found

    def recall(self, what: str) -> dict[str, Any] | None:
        """What was kept in this state."""
        return recall(what, self.digest)

    def keep(self, what: str, found: dict[str, Any]) -> None:
        """Keep it for this state."""
        keep(what, self.digest, found)


def digest_of(*told: Any) -> str:
    """A digest of values with a complete ``repr``, of this code and of the machine."""
    flags = sorted(item for item in os.environ.items() if item[0].startswith(_FLAGS))
    return hashlib.sha256(_code() + repr((_accelerators(), flags, *told)).encode()).hexdigest()[:32]


def recall(what: str, digest: str) -> dict[str, Any] | None:
    """What was kept under this digest."""
    path = _path(what, digest)
    payload = None if path is None else read(path)
    try:
        found = None if payload is None else json.loads(payload)
    except ValueError:  # whole, but written by something else
        return None
    return found if isinstance(found, dict) else None


def keep(what: str, digest: str, found: dict[str, Any]) -> None:
    """Keep it, if anything is to be kept."""
    path = _path(what, digest)
    if path is not None:
        write(path, json.dumps(found).encode(), most=_MOST)


def _path(what: str, digest: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "said" / f"{what}-{digest}"


@cache
def _code() -> bytes:
    """A digest of this code and the machine; of this process alone where its files may be others than those that it loaded."""
    digest = hashlib.sha256("|".join(machine()).encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        if path.stat().st_mtime >= _STARTED:
            return os.urandom(32)
        digest.update(path.read_bytes())
    return digest.digest()


def _accelerators() -> list[str]:
    """What JAX may run programs on besides the processor."""
    found = find_spec("jax_plugins")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    return sorted(each.name for folder in folders for each in Path(folder).iterdir())
