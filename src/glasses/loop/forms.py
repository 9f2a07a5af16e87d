"""The form of a point, for type checkers: what the bounds were says what ``ask`` gives and what a result holds.

    {"rate": (0.1, 1.0), ...}             dict[str, Any]     names
    [(0.1, 1.0), Float(...)], an array    np.ndarray         floats alone
    [(0.1, 1.0), Int(1, 9), Choice(...)]  list[Any]          anything else

``Settings`` are the keyword arguments of ``Optimizer``, ``Running`` those of ``minimize`` and ``maximize``, once for all their
overloads. A test compares them with the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Required, TypedDict

import numpy as np

from glasses.space.parameters import Float

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from typing_extensions import TypeVar

    from glasses.lookahead.loss import Loss
    from glasses.loop.stopping import Criterion
    from glasses.presets import Preset
    from glasses.search.decision import Search
    from glasses.surrogate.gaussian_process import GaussianProcess

    X = TypeVar("X", default=Any)  # a bare Optimizer or Result is one of any form
else:
    from typing import TypeVar

    X = TypeVar("X")


class _Box(Protocol):
    """``scipy.optimize.Bounds``."""

    lb: Any
    ub: Any


Named = Mapping[str, Any]
Floats = Sequence[Sequence[float] | Float] | np.ndarray | _Box
Mixed = Sequence[Any]


class _Common(TypedDict, total=False):
    budget: Required[float]
    cost: Any
    n_initial: int | None
    x0: Any
    y0: Any
    noise: float | None
    count_failures: bool
    best_possible: float | None
    loss: Loss | None
    model: GaussianProcess | None
    search: Search | None
    preset: Preset | None
    seed: int | None


class Settings(_Common, total=False):
    """Of ``Optimizer``."""

    constraints: int | Sequence[str | int] | None


class Running(_Common, total=False):
    """Of ``minimize`` and ``maximize``."""

    constraints: Any
    catch: type[Exception] | tuple[type[Exception], ...] | None
    executor: Executor | None
    workers: int | None
    stop: Criterion | None
    callback: Callable[..., Any] | None
    verbose: bool
