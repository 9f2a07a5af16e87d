"""What a run gives back, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from glasses.loop.forms import X
from glasses.loop.shown import (
    forecast_columns,
    forecast_html,
    forecast_text,
    frame_of,
    plan_columns,
    result_frame,
    result_html,
    result_text,
    table_html,
    table_text,
)

if TYPE_CHECKING:
    from glasses.lookahead.forecast import ForecastGains
    from glasses.loop.ledger import Failure, Ledger
    from glasses.surrogate.outputs import Outputs


FIVE = 5  # evaluations: the steps in which forecasts go beyond a budget
_NAMED = 6  # such steps named in a sentence


class Result(dict[str, Any], Generic[X]):
    """SciPy's result fields and ours, as attributes or by name, like its ``OptimizeResult`` (whose import takes 0.15 s).

    ``x``, ``fun``: the best observed point and its value. ``recommended``: where the model puts the minimum. ``x_iters``,
    ``func_vals``: every evaluation that gave a value, in order of arrival. ``nfev``: the number of all of them. ``nit``:
    those beyond the initial ones.
    ``failures``: the evaluations that failed, each with its point and reason; they count in ``nfev``.
    ``constraints`` (n, k), ``feasible`` (n,): of a run with constraints, their values beside ``func_vals`` and which of those
    violate none; ``x``, ``fun`` and ``recommended`` are feasible.
    ``success``, ``status``, ``message``: how the run ended. ``seed``: what reproduces it. Points have the form the
    objective takes: arrays, or dicts for named bounds.
    """

    if TYPE_CHECKING:  # a type checker knows these attributes and finds a misspelt one
        x: X
        fun: float
        success: bool
        status: int
        message: str
        nfev: int
        nit: int
        x_iters: list[X]
        func_vals: np.ndarray
        failures: list[Failure[X]]
        recommended: Recommendation[X] | None
        seed: int
        constraints: np.ndarray
        feasible: np.ndarray
    else:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(f"a result has no {name!r}: it has {', '.join(self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        return result_html(self)

    def to_frame(self) -> Any:
        """Every evaluation as a row of a pandas.DataFrame, those that failed last."""
        return result_frame(self)


def record_of(ledger: Ledger, n_initial: int, seed: int) -> Result:
    """What a ledger holds, without a recommendation."""
    done = ledger.remaining == 0 and not ledger.pending
    words = f"{ledger.spent:g} of {ledger.budget:g} {'evaluations done' if ledger.cost is None else 'spent'}."
    if ledger.failed:
        words = f"{words[:-1]}, {len(ledger.failed)} failed{'' if ledger.count_failures else ' and not counted'}."
    best = ledger.best
    nfev = len(ledger.y) + len(ledger.failed)
    constrained, none_feasible = {}, False
    if ledger.constraints:
        none_feasible = nfev > 0 and not np.any(ledger.feasible)
        constrained = {"constraints": np.array(ledger.G).reshape(-1, len(ledger.constraints)), "feasible": ledger.feasible}
        if none_feasible:
            words = f"nothing feasible was found: {words}"
    return Result(
        x=None if best is None else ledger.space.form(ledger.X[best]),
        fun=math.nan if best is None else ledger.y[best],
        success=done and best is not None,
        status=1 if not done else 2 if none_feasible else 0,
        message="Budget spent: " + words if done else "Unfinished: " + words,
        nfev=nfev,
        nit=max(0, nfev - n_initial),
        x_iters=[ledger.space.form(x) for x in ledger.X],
        func_vals=np.array(ledger.y),
        failures=ledger.failures(),
        recommended=None,
        seed=seed,
        **constrained,
    )


@dataclass(frozen=True)
class Recommendation(Generic[X]):
    """The minimum of the posterior mean: the point, what is predicted there and how far: sd, and the central 80 %.

    ``feasibility``: with constraints, the probability that an evaluation there is feasible: 95 % or more, or that of the best
    evaluation that was; while there is none, of the point that is most likely to be. None: there are no constraints.
    """

    x: X
    mean: float
    sd: float
    low: float
    high: float
    feasibility: float | None = None


@dataclass(frozen=True, repr=False)
class Plan(Generic[X]):
    """The next point and the points predicted to follow it, with what the model predicts at each of them now.

    A plan made while the initial points are not all asked for holds the rest of those only.
    """

    points: list[X]
    mean: np.ndarray
    sd: np.ndarray
    at_the_end: Callable[[], float | None] = field(repr=False, compare=False)  # computes ``expected_best``

    @cached_property
    def expected_best(self) -> float | None:
        """The best value expected at the end of the budget: the last one of ``Optimizer.forecast()`` at the moment of the plan.

        Computed when it is first read. None while too few values are told for a forecast.
        """
        return self.at_the_end()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("points", "mean", "sd", "expected_best")}

    @property
    def next(self) -> X:
        """The point that ``ask`` would give."""
        return self.points[0]

    def __repr__(self) -> str:
        return table_text(plan_columns(self))

    def _repr_html_(self) -> str:
        return table_html(plan_columns(self))

    def to_frame(self) -> Any:
        """A row of a pandas.DataFrame per planned evaluation."""
        return frame_of(plan_columns(self))

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, repr=False)
class Forecast:
    """The best value after k more evaluations; entry k - 1 of every array, in the units of y.

    ``expected``: its mean; ``low`` to ``high``: an 80 % band. ``open_loop``: the expected best value of a plan fixed now; the
    best policy gains at least as much. ``clairvoyant``: the expected minimum, as if the function were known; no policy gains
    more. Both bounds hold under the model and are moved with the expected value where that is corrected (``correction``);
    ``limits`` says how band and bounds are kept in order.
    ``best``: the best value now. ``evaluations``: how many of the k evaluations happen on average, all of them or as many as
    can be paid for. ``left``: how many of them the budget leaves; the others are beyond it. None: all.
    """

    best: float
    expected: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_loop: np.ndarray
    clairvoyant: float
    evaluations: np.ndarray
    left: int | None = None

    @classmethod
    def of(cls, found: ForecastGains, n: int, outputs: Outputs, left: int | None = None) -> Forecast:
        """From gains in the model's units."""
        eta = float(found.eta)

        def value(gain: Any) -> np.ndarray:
            return outputs.inverse(eta - np.asarray(gain)[:n])

        return cls(
            best=float(outputs.inverse(eta)),
            expected=value(found.expected),
            low=value(found.most),
            high=value(found.least),
            open_loop=value(found.open_loop),
            clairvoyant=float(outputs.inverse(eta - float(found.clairvoyant))),
            evaluations=np.asarray(found.evaluations)[:n],
            left=left,
        )

    @property
    def payable(self) -> int:
        """How many of the evaluations can be paid for in any of the simulated futures: all, where there are no costs."""
        return int(np.sum(np.diff(self.evaluations, prepend=0.0) > 0))

    def first(self, n: int) -> Forecast:
        """The same forecast for n evaluations only."""
        cut = {name: getattr(self, name)[:n] for name in ("expected", "low", "high", "open_loop", "evaluations")}
        return replace(self, **cut)

    @property
    def within(self) -> int:
        """How many of the evaluations are within the budget."""
        return len(self) if self.left is None else min(self.left, len(self))

    @property
    def gain(self) -> np.ndarray:
        """How much lower the best value is expected to be after k more evaluations."""
        return self.best - self.expected

    def __len__(self) -> int:
        return len(self.expected)

    def __repr__(self) -> str:
        return forecast_text(self)

    def _repr_html_(self) -> str:
        return forecast_html(self)

    def to_frame(self) -> Any:
        """A row of a pandas.DataFrame per number of further evaluations."""
        return frame_of(forecast_columns(self))

    def __str__(self) -> str:
        """In words: what the first half of the budget is expected to buy, what the second, and what each five beyond it."""
        n = self.within
        half = n // 2 or n
        inside = _bought([half, n], self.gain)
        ends = [*range(n + FIVE, len(self), FIVE), len(self)]
        if len(ends) > _NAMED:
            ends = [*ends[: _NAMED - 1], len(self)]
        beyond = _bought(ends, self.gain, n)
        return " ".join(([f"{inside}."] if inside else []) + ([f"Beyond the budget, {beyond}."] if beyond else []))


def _bought(ends: list[int], gain: np.ndarray, done: int = 0) -> str:
    """What the evaluations up to each end are expected to buy, one part after the other."""
    words: list[str] = []
    for end in ends:
        if end > done:
            buys = f"{gain[end - 1] - (gain[done - 1] if done else 0.0):.3g}"
            count = end - done
            more = f"{count} more {'evaluations are' if count > 1 else 'evaluation is'} expected to buy {buys}"
            words.append(f"the next {count} {buys}" if words else more)
            done = end
    return ", ".join(words)
