"""``minimize``: the whole loop in one call, in this process or over the workers of an executor."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import replace
from typing import Any, NamedTuple, Unpack, overload

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.loop.broken import is_broken, sign_of
from glasses.loop.checks import called, caught, flag, values_of, whole
from glasses.loop.constraints import Evaluated, WrongValuesError, evaluated_values, with_constraints
from glasses.loop.evaluating import Negated, evaluate
from glasses.loop.executors import NEVER_STARTED, SPAWNING, check_executor, start_method, workers_of
from glasses.loop.forms import Floats, Mixed, Named, Running
from glasses.loop.ledger import ExhaustedError
from glasses.loop.optimizer import Optimizer
from glasses.loop.progress import Progress
from glasses.loop.result import Result
from glasses.loop.stopping import Criterion, Price, for_maximizing, is_criterion
from glasses.presets import Preset
from glasses.search.decision import Search
from glasses.surrogate.gaussian_process import GaussianProcess


@overload
def minimize(fun: Callable[..., float], bounds: Named, **settings: Unpack[Running]) -> Result[dict[str, Any]]: ...
@overload
def minimize(fun: Callable[..., float], bounds: Floats, **settings: Unpack[Running]) -> Result[np.ndarray]: ...
@overload
def minimize(fun: Callable[..., float], bounds: Mixed, **settings: Unpack[Running]) -> Result[list[Any]]: ...
def minimize(
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
    """Minimise ``fun`` over ``bounds`` with ``budget`` evaluations, planning every one of them for all that are left.

    An evaluation that raises (one of ``catch``) or does not return a finite number has failed: it is kept in ``failures``,
    costs budget (unless ``count_failures=False``), keeps the search away from its surroundings and does not end the run. But if
    the first three raise the same exception at the same line, the objective is taken to be broken, and a RuntimeError says so.
    Nothing paid for is lost: whatever else is raised carries the result so far as its attribute ``result``.

    Parameters
    ----------
    fun : callable
        The objective. Called as ``fun(x)`` with an array (a list, if some parameters are not floats), or as
        ``fun(**params)`` when the bounds have names.
    bounds : sequence, dict or scipy.optimize.Bounds
        ``(low, high)`` pairs, ``Float``, ``Int`` and ``Choice`` in a list or ``{name: ...}``.
    budget : int or float
        All evaluations, the initial ones and those of ``y0`` included. With ``cost`` an amount in its units.
    cost : callable or dict, optional
        What an evaluation costs: a function called like the objective, or a table ``{parameter: {value: cost}}`` or
        ``{parameter: cost per unit}``. Default: every evaluation costs 1.
    constraints : callable, list, dict or scipy.optimize.NonlinearConstraint, optional
        Functions ``g(x)``, called like ``fun`` and feasible where ``g(x) <= 0``, in a list or by name; their values are
        modelled. Where one run gives both: how many there are or their names, and ``fun`` returns ``y, [g1, g2]``.
    n_initial : int, optional
        Evaluations before the model decides. Default: 2 d, at least 3, at most half the budget.
    x0 : array_like, optional
        Points to try first; with ``y0``, points already evaluated.
    y0 : array_like, optional
        The values at ``x0``; None or NaN for an evaluation that failed.
    noise : float, optional
        Standard deviation of an evaluation in the units of y; 0 declares them exact. Default: learned.
    count_failures : bool, default True
        Whether a failed evaluation costs budget. If not, as many as ``budget`` are free.
    best_possible : float, optional
        A value that none can beat, such as 0 for an error: forecasts and ``stop`` expect nothing beyond it.
    catch : exception class or tuple of them, optional
        What makes an evaluation a failure when ``fun`` raises it; then it never ends the run, whatever fails. Default: every
        ``Exception``, until the objective is seen to be broken. ``()`` lets every exception through.
    executor : concurrent.futures.Executor, optional
        Where evaluations run, side by side: each is decided with the others as pending, and a slow one does not delay the
        others. Processes must not be started by fork, because JAX is used in this one:
        ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``.
    workers : int, optional
        How many evaluations run side by side. Default: the number of workers of the executor, if it has one.
    loss, model, search : optional
        What is minimised at each decision, what is assumed of ``fun``, and how the next point is found. Each replaces its part
        of the preset.
    preset : Preset, default glasses.DEFAULT
        A loss, a model and a search that belong together, such as ``glasses.PAPER``.
    seed : int, optional
        Same seed, same suggestions (with an executor: while evaluations end in the same order). Default: a fresh one, kept in
        the result.
    stop : Criterion, optional
        Such as ``Price(0.1) | Target(0)``. Once it is met nothing new is begun; pending evaluations are awaited and kept.
    callback : callable, optional
        Called after each evaluation with the result so far, as ``intermediate_result`` if it has such a parameter, like
        SciPy's. Stops the run by raising ``StopIteration``.
    verbose : bool, default False
        Print one line per evaluation.

    Returns
    -------
    Result
        The best point ``x`` and its value ``fun``, every evaluation, and the point that the model recommends.
        ``status`` and ``message`` say why the run ended: 0 budget spent, 3 nothing new left to evaluate, 4 the executor
        broke, 5 ``stop`` was met, 99 stopped by ``callback``; ``success`` is False for 4 and 99, and where every evaluation
        failed or violates a constraint (2, the budget spent).

    Raises
    ------
    ValueError
        Before anything is evaluated, if an argument cannot be used; the message says what to change.
    RuntimeError
        From the last exception of an objective whose first three evaluations failed in the same way.

    Examples
    --------
    >>> from glasses import minimize
    >>> result = minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], budget=6, noise=0, seed=1)
    >>> result.nfev, round(float(result.x[0]), 1)
    (6, 0.3)
    """
    fun, names = with_constraints(fun, constraints)
    optimizer = Optimizer(
        bounds,
        budget=budget,
        cost=cost,
        constraints=names,
        n_initial=n_initial,
        x0=x0,
        y0=y0,
        noise=noise,
        count_failures=count_failures,
        best_possible=best_possible,
        loss=loss,
        model=model,
        search=search,
        preset=preset,
        seed=seed,
    )
    return run(optimizer, fun, catch=catch, executor=executor, workers=workers, stop=stop, callback=callback, verbose=verbose)


def run(
    optimizer: Optimizer,
    fun: Callable[..., float],
    *,
    catch: type[Exception] | tuple[type[Exception], ...] | None,
    executor: Executor | None,
    workers: int | None,
    stop: Criterion | None,
    callback: Callable[..., Any] | None,
    verbose: bool,
    upwards: bool = False,
) -> Result:
    """The loop of ``minimize`` and, ``upwards``, of ``maximize``: then ``optimizer`` and ``fun`` have negated values, and
    ``stop``, what is printed and what comes back are in the user's sense."""
    called("fun", fun.fun if isinstance(fun, Negated) else fun, "a function of a point")
    catch, verbose = caught(catch), flag("verbose", verbose)
    if callback is not None:
        called("callback", callback, "a function of the result so far")
    if stop is not None and not is_criterion(stop):
        raise ValueError(f"stop must be a criterion such as {Price(0.1)!r}, got {stop!r}.")
    end = _End(optimizer, for_maximizing(stop) if upwards and stop is not None else stop)
    shown = turned if upwards else _as_it_is
    if executor is None:
        if workers is not None:
            raise ValueError(f"workers = {workers!r} needs an executor: executor={SPAWNING}.")
        outcomes = _one_by_one(optimizer, fun, end)
    else:
        check_executor(executor, fun)
        outcomes = _side_by_side(optimizer, fun, executor, whole("workers", workers_of(executor, workers), 1), end)
    progress = Progress(optimizer, verbose=verbose, upwards=upwards)
    signs: list[str | None] = [None] if catch is not None or optimizer.values else []
    catch = Exception if catch is None else catch
    try:
        for batch in outcomes:
            told = []
            for each in batch:  # no comprehension: its frame would count in the place that the warning of a failure names
                if _is_caught(each, catch):
                    told.append((each.x, *_tell(optimizer, each)))
            for outcome in batch:
                if not _is_caught(outcome, catch):
                    assert outcome.error is not None
                    raise outcome.error
            for x, value, reason, feasible in told:
                progress.row(x, value, reason, feasible=feasible)
                if callback is not None:
                    _call(callback, shown(optimizer.result()))
            signs += [None if each.error is None else sign_of(each.error) for each in batch]
            if is_broken(signs):
                raise RuntimeError(
                    f"The first {len(signs)} evaluations failed in the same way ({signs[0]}), so the objective seems to be "
                    "broken: mend it, or say catch=Exception to go on whatever fails."
                ) from batch[-1].error
    except StopIteration:
        return progress.end(_ended(shown(optimizer.result()), 99, "`callback` raised `StopIteration`."))
    except BrokenExecutor as error:
        waiting = len(optimizer.pending)
        words = f"The executor broke ({error}) with {waiting} evaluations under way, which are lost."
        if not optimizer.record().nfev and start_method(executor) is not None:
            words += NEVER_STARTED
        return progress.end(_ended(shown(optimizer.result()), 4, words))
    except BaseException as error:
        error.result = shown(optimizer.record())  # type: ignore[attr-defined]
        error.add_note(f"{error.result.nfev} evaluations were done before; they are in this exception's `result`.")  # type: ignore[attr-defined]
        raise
    finally:
        outcomes.close()
    result = shown(optimizer.result())
    if end.reason is not None:
        return progress.end(_ended(result, 5, end.reason))
    return progress.end(_ended(result, 3, str(_exhaustion(optimizer))) if optimizer.remaining else result)


def turned(result: Result) -> Result:
    """The same with every value negated."""
    found = result.recommended
    result.fun, result.func_vals = -result.fun, -result.func_vals
    if found is not None:
        result.recommended = replace(found, mean=-found.mean, low=-found.high, high=-found.low)
    return result


def _as_it_is(result: Result) -> Result:
    return result


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


def _one_by_one(optimizer: Optimizer, fun: Callable[..., Any], end: _End) -> Generator[list[Outcome]]:
    while not end.reached():
        try:
            x = optimizer.ask()
        except ExhaustedError:
            return
        try:
            outcome = Outcome(x, evaluate(fun, x))
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
                running[executor.submit(evaluate, fun, x)] = x
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
    return outcome.error is None or (isinstance(outcome.error, catch) and not isinstance(outcome.error, WrongValuesError))


def _tell(optimizer: Optimizer, outcome: Outcome) -> tuple[float | None, str | None, bool]:
    """Record an outcome; its value, or the reason if it is a failure, and whether it violates no constraint."""
    x, y, error = outcome
    if isinstance(y, tuple) and len(y) == 2 and not isinstance(y, Evaluated):
        raise WrongValuesError(
            f"The objective must return one number, got {y!r}: if the second holds values of constraints, say their names, "
            'constraints=["stress"].'
        )
    y, given = y if isinstance(y, Evaluated) else (y, None)
    reason = f"{type(error).__name__}: {error}" if error is not None else f"returned {y!r}"
    try:
        value = values_of(y, "y", single=True)[0]
    except ValueError as unusable:
        reason, value = str(unusable), None
    if error is None and value is not None and optimizer._ledger.constraints:
        given, unusable_one = evaluated_values(given, optimizer._ledger.constraints)
        reason, value = (reason, value) if unusable_one is None else (unusable_one, None)
    if error is None and value is not None:
        optimizer.tell(x, value, constraints=given)
        return value, None, bool(optimizer._ledger.feasible[-1])
    if not optimizer.record().failures:
        warnings.warn(f"The evaluation at {x} failed ({reason}) and is kept as failed; the run goes on.", stacklevel=4)
    optimizer.tell(x, None, reason=reason)
    return None, reason, True


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


def _ended(result: Result, status: int, message: str) -> Result:
    found = len(result.func_vals) == 0 or result.x is not None
    result.success, result.status = status in (3, 5) and found, status
    result.message = message if found else f"Nothing feasible was found. {message}"
    return result
