"""``maximize``: ``minimize`` of the negated function, with everything said in the user's sense."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from glasses.lookahead.loss import Loss
from glasses.loop.minimize import run
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Result
from glasses.loop.stopping import Criterion
from glasses.presets import Preset
from glasses.search.decision import Search
from glasses.surrogate.gaussian_process import GaussianProcess


def maximize(
    fun: Callable[..., float],
    bounds: Any,
    *,
    budget: float,
    cost: Any = None,
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
    (``Target(100)``: at least 100), what ``verbose`` prints, and the values in the result.

    Examples
    --------
    >>> from glasses import maximize
    >>> maximize(lambda x: 1 - (x[0] - 0.3) ** 2, [(0, 1)], budget=6, noise=0, seed=1).message
    'Budget spent: 6 of 6 evaluations done.'
    """
    optimizer = Optimizer(
        bounds,
        budget=budget,
        cost=cost,
        n_initial=n_initial,
        x0=x0,
        y0=y0 if y0 is None else [_negated(y) for y in (y0 if isinstance(y0, list | tuple) else list(y0))],
        noise=noise,
        count_failures=count_failures,
        best_possible=best_possible if best_possible is None else _negated(best_possible),
        loss=loss,
        model=model,
        search=search,
        preset=preset,
        seed=seed,
    )
    optimizer._planner.sign = -1.0
    return run(
        optimizer,
        Negated(fun),
        catch=catch,
        executor=executor,
        workers=workers,
        stop=stop,
        callback=callback,
        verbose=verbose,
        upwards=True,
    )


class Negated:
    """The negated function; a class, so that processes can be sent it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *point: Any, **named: Any) -> Any:
        return _negated(self.fun(*point, **named))


def _negated(y: Any) -> Any:
    """-y, or y itself where it is no number: the failure then says what was really returned."""
    try:
        return -y
    except TypeError:
        return y
