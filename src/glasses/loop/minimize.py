"""``minimize``: the whole loop in one call, in this process or over the workers of an executor."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any, NamedTuple

from glasses.lookahead.loss import Loss
from glasses.loop.checks import values_of, whole
from glasses.loop.ledger import ExhaustedError
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Result
from glasses.loop.stopping import Criterion, Price, is_criterion
from glasses.presets import Preset
from glasses.search.decision import Search
from glasses.surrogate.gaussian_process import GaussianProcess


def minimize(
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
    catch: type[Exception] | tuple[type[Exception], ...] = Exception,
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
    """Minimise ``fun`` over ``bounds`` with ``budget`` evaluations, planning every one of them for all that are left.

    ``fun(x)`` gets an array (a list, if some parameters are not floats), or ``fun(**params)`` when the bounds have names.
    ``executor`` with ``workers``: any ``concurrent.futures.Executor``; as many evaluations run side by side, each decided with
    the others as pending, and a slow one holds nobody up. ``stop``: a criterion, such as ``Price(0.1) | Target(0)``; once it is
    met nothing new is begun, what is under way is awaited and kept, and the result has status 5 with the reason as its message.
    ``callback`` is called after each evaluation with the result so far (as ``intermediate_result`` if it has such a parameter,
    like SciPy's) and stops the run by raising ``StopIteration``. ``verbose`` prints one line per evaluation. The other
    arguments are those of ``Optimizer``.

    An evaluation that raises (one of ``catch``) or does not return a finite number has failed: it is kept in ``failures``,
    costs budget (unless ``count_failures=False``), keeps the search away from its surroundings and does not end the run.
    Nothing paid for is lost: whatever else is raised carries the result so far as its attribute ``result``.
    """
    optimizer = Optimizer(
        bounds,
        budget=budget,
        cost=cost,
        n_initial=n_initial,
        x0=x0,
        y0=y0,
        noise=noise,
        count_failures=count_failures,
        loss=loss,
        model=model,
        search=search,
        preset=preset,
        seed=seed,
    )
    if stop is not None and not is_criterion(stop):
        raise ValueError(f"stop must be a criterion such as {Price(0.1)!r}, got {stop!r}.")
    end = _End(optimizer, stop)
    if executor is None:
        if workers is not None:
            raise ValueError(f"workers = {workers!r} needs an executor: executor=concurrent.futures.ProcessPoolExecutor().")
        outcomes = _one_by_one(optimizer, fun, end)
    else:
        if not callable(getattr(executor, "submit", None)):
            raise ValueError(f"executor must be a concurrent.futures.Executor, got {executor!r}.")
        outcomes = _side_by_side(optimizer, fun, executor, whole("workers", _workers(executor, workers), 1), end)
    report = Table(optimizer) if verbose else None
    try:
        for batch in outcomes:
            told = [(outcome.x, _tell(optimizer, outcome)) for outcome in batch if _is_caught(outcome, catch)]
            for outcome in batch:
                if not _is_caught(outcome, catch):
                    assert outcome.error is not None
                    raise outcome.error
            for x, reason in told:
                if report:
                    report.row(x, reason)
                if callback is not None:
                    _call(callback, optimizer.result())
    except StopIteration:
        return _ended(optimizer, 99, "`callback` raised `StopIteration`.")
    except BrokenExecutor as error:
        waiting = len(optimizer.pending)
        return _ended(optimizer, 4, f"The executor broke ({error}) with {waiting} evaluations under way, which are lost.")
    except BaseException as error:
        error.result = optimizer.record()  # type: ignore[attr-defined]
        error.add_note(f"{error.result.nfev} evaluations were done before; they are in this exception's `result`.")  # type: ignore[attr-defined]
        raise
    finally:
        outcomes.close()
    if end.reason is not None:
        return _ended(optimizer, 5, end.reason)
    return _ended(optimizer, 3, str(_exhaustion(optimizer))) if optimizer.remaining else optimizer.result()


class _End:
    """Whether something new may still be begun; once a criterion is met that remains so, with its reason."""

    def __init__(self, optimizer: Optimizer, criterion: Criterion | None) -> None:
        self.optimizer, self.criterion = optimizer, criterion
        self.reason: str | None = None

    def reached(self) -> bool:
        if self.reason is None and self.criterion is not None and self.optimizer.remaining:
            self.reason = self.criterion.reason(self.optimizer)
        return self.reason is not None or self.optimizer.remaining == 0


class Outcome(NamedTuple):
    """What came back from one evaluation."""

    x: Any
    y: Any = None
    error: BaseException | None = None


def _evaluate(fun: Callable[..., Any], x: Any) -> Any:
    return fun(**x) if isinstance(x, dict) else fun(x)


def _one_by_one(optimizer: Optimizer, fun: Callable[..., Any], end: _End) -> Generator[list[Outcome]]:
    while not end.reached():
        try:
            x = optimizer.ask()
        except ExhaustedError:
            return
        try:
            outcome = Outcome(x, _evaluate(fun, x))
        except Exception as error:
            outcome = Outcome(x, error=error)
        yield [outcome]


def _side_by_side(
    optimizer: Optimizer, fun: Callable[..., Any], executor: Executor, workers: int, end: _End
) -> Generator[list[Outcome]]:
    running: dict[Future[Any], Any] = {}
    more = True
    try:
        while True:
            while more and len(running) < workers and not end.reached():
                try:
                    x = optimizer.ask()
                except ExhaustedError:
                    more = False
                    break
                running[executor.submit(_evaluate, fun, x)] = x
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            more = True  # a failure that costs nothing may make room again
            finished = [_outcome(running.pop(future), future) for future in sorted(done, key=list(running).index)]
            broken = [each.error for each in finished if isinstance(each.error, BrokenExecutor)]
            yield [each for each in finished if not isinstance(each.error, BrokenExecutor)]
            if broken:
                raise broken[0]
    finally:
        for future in running:
            future.cancel()


def _outcome(x: Any, future: Future[Any]) -> Outcome:
    if future.cancelled():
        return Outcome(x, error=RuntimeError("cancelled"))
    error = future.exception()
    return Outcome(x, future.result()) if error is None else Outcome(x, error=error)


def _is_caught(outcome: Outcome, catch: Any) -> bool:
    return outcome.error is None or isinstance(outcome.error, catch)


def _tell(optimizer: Optimizer, outcome: Outcome) -> str | None:
    """Record an outcome; the reason if it is a failure."""
    x, y, error = outcome
    reason = f"{type(error).__name__}: {error}" if error is not None else f"returned {y!r}"
    try:
        value = values_of(y, "y", single=True)[0]
    except ValueError as unusable:
        reason, value = str(unusable), None
    if error is None and value is not None:
        optimizer.tell(x, value)
        return None
    if not optimizer.record().failures:
        warnings.warn(f"The evaluation at {x} failed ({reason}) and is kept as failed; the run goes on.", stacklevel=3)
    optimizer.tell(x, None, reason=reason)
    return reason


def _workers(executor: Executor, workers: int | None) -> int:
    if workers is not None:
        return workers
    known = getattr(executor, "_max_workers", None)
    if not isinstance(known, int):
        raise ValueError("workers must say how many evaluations to run side by side: this executor does not tell.")
    return known


def _exhaustion(optimizer: Optimizer) -> Exception | str:
    try:
        optimizer.plan()
    except ExhaustedError as error:
        return error
    return "The run ended before its budget."


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
    result.success, result.status, result.message = status in (3, 5), status, message
    return result


class Table:
    """One printed line per evaluation."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.start = time.perf_counter()
        print(f"{'eval':>5} {'left':>5} {'value':>13} {'best':>13} {'seconds':>8}  point", flush=True)

    def row(self, x: Any, failure: str | None = None) -> None:
        values = self.optimizer.values
        done = self.optimizer.record().nfev
        best = f"{min(values):13.6g}" if values else f"{'-':>13}"
        shown = f"{'failed':>13} " if failure else f"{values[-1]:13.6g}{'*' if values[-1] == min(values) else ' '}"
        pairs = x.items() if isinstance(x, dict) else ((None, value) for value in x)
        point = ", ".join(f"{name}={_short(value)}" if name else _short(value) for name, value in pairs)
        seconds = time.perf_counter() - self.start
        print(f"{done:5d} {self.optimizer.remaining:5d} {shown}{best} {seconds:8.1f}  {point}", flush=True)
        if failure:
            print(f"{'':12}{failure}", flush=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
