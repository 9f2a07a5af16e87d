"""What a run gives back, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from glasses.lookahead.forecast import ForecastGains
    from glasses.surrogate.outputs import Outputs


class Result(dict[str, Any]):
    """SciPy's result fields and ours, as attributes or by name, like its ``OptimizeResult`` (whose import takes 0.15 s).

    ``x``, ``fun``: the best observed point and its value. ``recommended``: where the model puts the minimum. ``x_iters``,
    ``func_vals``: every evaluation that gave a value, in order of arrival. ``nfev``: the number of all of them. ``nit``:
    those beyond the initial ones.
    ``failures``: the evaluations that failed, each with its point and reason; they count in ``nfev``.
    ``success``, ``status``, ``message``: how the run ended. ``seed``: what reproduces it. Points have the form the
    objective takes: arrays, or dicts for named bounds.
    """

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
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:>{width}}: {value!r}" for name, value in self.items())


@dataclass(frozen=True)
class Recommendation:
    """The minimum of the posterior mean: the point, its predicted mean and the standard deviation of that prediction."""

    x: Any
    mean: float
    sd: float


@dataclass(frozen=True)
class Plan:
    """The next point and the points predicted to follow it, with what the model predicts at each of them now.

    ``expected_best`` is the loss of the plan: the expected best value once all of it is done (None where the loss is not an
    expected minimum or there is no data yet).
    """

    points: list[Any]
    mean: np.ndarray
    sd: np.ndarray
    expected_best: float | None

    @property
    def next(self) -> Any:
        return self.points[0]

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class Forecast:
    """The best value after k more evaluations; entry k - 1 of every array, in the units of y.

    ``expected``: its mean; ``low`` to ``high``: an 80 % band. ``open_loop``: the expected best value of a plan fixed now; the
    best policy gains at least as much. ``clairvoyant``: the expected minimum, as if the function were known; no policy gains
    more. Both bounds hold under the model and are moved with the expected value where that is corrected (``correction``).
    ``best``: the best value now. ``evaluations``: how many of the k evaluations happen on average, all of them or as many as
    can be paid for.
    """

    best: float
    expected: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_loop: np.ndarray
    clairvoyant: float
    evaluations: np.ndarray

    @classmethod
    def of(cls, found: ForecastGains, n: int, outputs: Outputs) -> Forecast:
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
    def gain(self) -> np.ndarray:
        """How much lower the best value is expected to be after k more evaluations."""
        return self.best - self.expected

    def __len__(self) -> int:
        return len(self.expected)

    def __str__(self) -> str:
        """In words: what the first half of the evaluations is expected to buy, and what the second."""
        n, gain = len(self), self.gain
        half = n // 2
        first = gain[max(half, 1) - 1]
        words = f"{max(half, 1)} more {'evaluations are' if half > 1 else 'evaluation is'} expected to buy {first:.3g}"
        return f"{words}, the next {n - half} {gain[-1] - first:.3g}." if half else f"{words}."
