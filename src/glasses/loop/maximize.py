"""``maximize``: ``minimize`` of the negated function, with everything said in the user's sense."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Unpack, overload

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.loop.constraints import with_constraints
from glasses.loop.evaluating import Negated, negated, negated_values
from glasses.loop.forms import Floats, Mixed, Named, Running
from glasses.loop.minimize import run
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Result
from glasses.loop.stopping import Criterion
from glasses.presets import Preset
from glasses.search.decision import Search
from glasses.surrogate.gaussian_process import GaussianProcess


@overload
def maximize(fun: Callable[..., float], bounds: Named, **settings: Unpack[Running]) -> Result[dict[str, Any]]: ...
@overload
def maximize(fun: Callable[..., float], bounds: Floats, **settings: Unpack[Running]) -> Result[np.ndarray]: ...
@overload
def maximize(fun: Callable[..., float], bounds: Mixed, **settings: Unpack[Running]) -> Result[list[Any]]: ...
def maximize(
    fun: Callable[..., float],
    bounds: Any,
    *,
    budget: float,
    cost: Any = None,
    constraints: Any = None,
    n_initial: int | None = None,
    x0: Any = None,
    y0: Any = None,
    noise: float | None = None,
    count_failures: bool = True,
    best_possible: float | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    loss: Loss | None = None,
    model: GaussianProcess | None = None,
    search: Search | None = None,
    preset: Preset | None = None,
    seed: int | None = None,
    stop: Criterion | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: bool = False,
) -> Result:
    """Maximise ``fun`` over ``bounds`` with ``budget`` evaluations, planning every one of them for all that are left.

    Everything is as in ``minimize`` with larger values better: ``y0``, ``best_possible`` (a ceiling), ``stop``
    (``Target(100)``: at least 100), what ``verbose`` prints, and the values in the result. Constraints keep their sense.

    Examples
    --------
    >>> from glasses import maximize
    >>> maximize(lambda x: 1 - (x[0] - 0.3) ** 2, [(0, 1)], budget=6, noise=0, seed=1).message
    'Budget spent: 6 of 6 evaluations done.'
    """
    fun, names = (Negated(fun), None) if constraints is None else with_constraints(fun, constraints, sign=-1.0)
    optimizer = Optimizer(
        bounds,
        budget=budget,
        cost=cost,
        constraints=names,
        n_initial=n_initial,
        x0=x0,
        y0=negated_values(y0),
        noise=noise,
        count_failures=count_failures,
        best_possible=best_possible if best_possible is None else negated(best_possible),
        loss=loss,
        model=model,
        search=search,
        preset=preset,
        seed=seed,
    )
    optimizer._planner.sign = -1.0
    return run(
        optimizer,
        fun,
        catch=catch,
        executor=executor,
        workers=workers,
        stop=stop,
        callback=callback,
        verbose=verbose,
        upwards=True,
    )
