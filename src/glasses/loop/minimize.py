"""``minimize``: the whole loop in one call."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

from glasses.lookahead.loss import Loss
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Result
from glasses.search.decision import Search
from glasses.surrogate.fit import GaussianProcess


def minimize(
    fun: Callable[..., float],
    bounds: Any,
    *,
    budget: int,
    n_initial: int | None = None,
    x0: Any = None,
    y0: Any = None,
    loss: Loss | None = None,
    model: GaussianProcess | None = None,
    search: Search | None = None,
    seed: int | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: bool = False,
) -> Result:
    """Minimise ``fun`` over ``bounds`` with ``budget`` evaluations, planning every one of them for all that are left.

    ``fun(x)`` gets an array, or ``fun(**params)`` when the bounds have names. The other arguments are those of
    ``Optimizer``. ``callback`` is called after each evaluation with the result so far (as ``intermediate_result`` if it has
    such a parameter, like SciPy's) and stops the run by raising ``StopIteration``. ``verbose`` prints one line per
    evaluation.

    Nothing paid for is lost: a value that is not a finite number ends the run with ``success=False`` and everything before
    it, and an exception in ``fun`` is passed on with the result so far as its attribute ``result``.
    """
    optimizer = Optimizer(
        bounds, budget=budget, n_initial=n_initial, x0=x0, y0=y0, loss=loss, model=model, search=search, seed=seed
    )
    report = Table(optimizer) if verbose else None
    while optimizer.remaining:
        try:
            x = optimizer.ask()
            y = fun(**x) if optimizer.space.names is not None else fun(x)
        except BaseException as error:
            error.result = optimizer.record()  # type: ignore[attr-defined]
            error.add_note(f"{len(optimizer.values)} evaluations were done before; they are in this exception's `result`.")
            raise
        try:
            optimizer.tell(x, y)
        except ValueError as error:
            return _ended(optimizer, 2, f"The objective returned something unusable at {x}: {error}")
        if report:
            report.row(x)
        if callback is not None:
            try:
                _call(callback, optimizer.result())
            except StopIteration:
                return _ended(optimizer, 99, "`callback` raised `StopIteration`.")
    return optimizer.result()


def _call(callback: Callable[..., Any], result: Result) -> None:
    try:
        named = "intermediate_result" in inspect.signature(callback).parameters
    except (TypeError, ValueError):
        named = False
    if named:
        callback(intermediate_result=result)
    else:
        callback(result)


def _ended(optimizer: Optimizer, status: int, message: str) -> Result:
    result = optimizer.result()
    result.success, result.status, result.message = False, status, message
    return result


class Table:
    """One printed line per evaluation."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.start = time.perf_counter()
        print(f"{'eval':>5} {'left':>5} {'value':>13} {'best':>13} {'seconds':>8}  point", flush=True)

    def row(self, x: Any) -> None:
        values = self.optimizer.values
        star = "*" if values[-1] == min(values) else " "
        point = ", ".join(f"{k}={v:.4g}" for k, v in x.items()) if isinstance(x, dict) else ", ".join(f"{v:.4g}" for v in x)
        seconds = time.perf_counter() - self.start
        print(
            f"{len(values):5d} {self.optimizer.remaining:5d} "
            f"{values[-1]:13.6g}{star}{min(values):13.6g} {seconds:8.1f}  {point}",
            flush=True,
        )
