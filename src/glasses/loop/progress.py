"""Progress: a printed line per evaluation (``verbose=True``), and the same for the logger ``glasses.evaluations``.

Plain lines, each printed once and never written over, so a terminal, a notebook and a file show the same. ``*`` marks the best
so far, ``!`` a value that violates a constraint. What the rest of the budget is expected to bring (``Optimizer.forecast``) is
printed where it is cheap: while forecasts took less than a tenth of the time since the start, the first one after ten seconds.
So a run whose evaluations take milliseconds does without.

Loggers. Nothing is configured here: without a handler of the user's nothing is written.

    glasses.evaluations   INFO each evaluation and the end of a run, WARNING an evaluation that failed, a run that broke
    glasses.decisions     INFO each point that the model decided on, with what it expects and how long that took
    glasses.fits          INFO each fit: values, hyperparameters, noise
    glasses.storage       WARNING a database that is out of reach, and that it is back
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from glasses.loop.ledger import ExhaustedError
from glasses.loop.shown import point_text
from glasses.loop.stopping import forecast_of_rest

if TYPE_CHECKING:
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Result

EVALUATIONS = logging.getLogger("glasses.evaluations")
SHARE = 0.1  # of the time since the start: what forecasts may take
_FIRST = 1.0  # seconds: what the first forecast is taken to cost


class Progress:
    """What is said of a run, evaluation by evaluation. ``upwards``: the optimiser was told negated values."""

    def __init__(self, optimizer: Optimizer, *, verbose: bool = True, upwards: bool = False) -> None:
        self.optimizer, self.verbose, self.sign = optimizer, verbose, -1.0 if upwards else 1.0
        self.start = time.perf_counter()
        self._done, self._best = optimizer.record().nfev, optimizer._ledger.best_value
        self._spent = 0.0  # seconds, by forecasts
        if verbose:
            print(f"{'eval':>7} {'left':>5} {'value':>13} {'best':>13} {'expected':>13} {'seconds':>8}  point", flush=True)

    def row(self, x: Any, value: float | None, failure: str | None = None, *, feasible: bool = True) -> None:
        """Say what one evaluation brought; ``value`` as it was told."""
        optimizer = self.optimizer
        self._done += 1
        if value is not None and feasible:
            self._best = min(self._best, value)
        record, left = optimizer.record(), optimizer.remaining
        count = f"{self._done}/{record.nfev + len(optimizer.pending) + left}"
        best = self.sign * self._best if math.isfinite(self._best) else None
        log_evaluation(count, x, None if value is None else self.sign * value, best, failure)
        if not self.verbose:
            return
        mark = "!" if not feasible else "*" if value == self._best else " "
        shown = f"{'failed':>13} " if value is None else f"{self.sign * value:13.6g}{mark}"
        numbers = f"{shown}{_number(self.sign, self._best)} {_number(self.sign, self._expected())}"
        pairs = x.items() if isinstance(x, dict) else ((None, each) for each in x)
        point = ", ".join(f"{name}={_short(each)}" if name else _short(each) for name, each in pairs)
        print(f"{count:>7} {left:5d} {numbers} {time.perf_counter() - self.start:8.1f}  {point}", flush=True)
        if failure:
            print(f"{'':14}{failure}", flush=True)

    def _expected(self) -> float:
        """The best value expected at the end of the budget; infinite where there is no forecast or it would take too long."""
        if not self.optimizer.remaining or (self._spent or _FIRST) > SHARE * (time.perf_counter() - self.start):
            return math.inf
        with suppress(ExhaustedError):
            self.optimizer._planner.next()  # what is asked for next and remembered until then: it costs nothing more
        began = time.perf_counter()
        forecast = forecast_of_rest(self.optimizer)
        if forecast is None:
            return math.inf
        self._spent += time.perf_counter() - began
        return float(forecast.expected[-1])

    def end(self, result: Result) -> Result:
        """Say how the run ended."""
        EVALUATIONS.log(logging.WARNING if result.status == 4 else logging.INFO, "%s", result.message)
        if self.verbose:
            print(result.message, flush=True)
        return result


def log_evaluation(which: str, x: Any, value: float | None, best: float | None, failure: str | None) -> None:
    """One evaluation for the logger, in the user's sense."""
    if value is None:
        EVALUATIONS.warning("evaluation %s failed at %s: %s", which, point_text(x), failure)
    elif EVALUATIONS.isEnabledFor(logging.INFO):
        EVALUATIONS.info("evaluation %s: %.6g at %s; best %.6g", which, value, point_text(x), value if best is None else best)


def _number(sign: float, value: float) -> str:
    return f"{sign * value:13.6g}" if math.isfinite(value) else f"{'-':>13}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
