"""Taking turns: one call at a time of an object that threads share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def in_turn(method: _F) -> _F:
    """One call at a time, whichever thread it comes from; the object holds the lock, ``_lock``."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(_F, call)
