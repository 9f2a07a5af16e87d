"""Problems and methods of the user, named ``module:name`` in a suite. The module is in the current folder or installed."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def is_own(name: str) -> bool:
    """Whether a name in a suite is one of the user's modules."""
    return ":" in name


def own(name: str, what: str) -> Any:
    """What ``module:name`` names; ``what`` it should be, for the sentence if it cannot be had."""
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever a module of the user's raises
        raise ValueError(f"{what} {name!r} cannot be loaded ({type(error).__name__}: {error}): write module:name.") from error
