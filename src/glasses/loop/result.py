"""What a run gives back, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
