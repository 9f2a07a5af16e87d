"""Were the forecasts right? Stored runs played again, with a forecast before each evaluation beside what came of it.

A run keeps every point and value, so nothing is optimised again: before evaluation m + 1 the model is fitted to the first m,
the forecast made for the point that was evaluated next, and compared with the best values that followed:

    bias      mean of (realised gain - expected gain) / scale,  scale the standard deviation of the values seen      [eq:bias]
    coverage  share of realised best values inside the 80 % band, its ends included                              [eq:coverage]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glasses.acquisition.myopic import ExpectedLoss
from glasses.campaign.protocols import PROTOCOLS
from glasses.campaign.run import use_one_thread
from glasses.loop.optimizer import Optimizer
from glasses.problems import get

AHEAD = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)
_SLACK = 1e-9


def foresee_run(record: dict[str, Any], moments: Sequence[float] | None = None) -> dict[str, Any]:
    """The forecasts of one stored run: before every evaluation, or at these parts of its evaluations (0 is the first)."""
    use_one_thread()
    n, total = record["initial"], record["evaluations"]
    when = range(total) if moments is None else sorted({min(total - 1, round(part * total)) for part in moments})
    X, y = np.array(record["x"]), np.array(record["y"])
    problem = get(record["problem"], seed=record["seed"])
    found = []
    for done in when:
        m = n + done
        optimizer = Optimizer(
            problem.bounds,
            budget=n + total,
            n_initial=n,
            x0=X[:m],
            y0=y[:m],
            model=PROTOCOLS[record["protocol"]].model(problem),
            loss=ExpectedLoss(),
            seed=record["seed"],
        )
        forecast = optimizer.prospect(X[m], min(total - done, 128))
        steps = [k for k in AHEAD if k <= len(forecast)]
        steps += [len(forecast)] if len(forecast) not in steps else []
        at = np.array(steps) - 1
        found.append(
            {
                "done": done,
                "scale": float(np.std(y[:m])),
                "best": forecast.best,
                "steps": steps,
                "expected": forecast.expected[at].tolist(),
                "low": forecast.low[at].tolist(),
                "high": forecast.high[at].tolist(),
                "open_loop": forecast.open_loop[at].tolist(),
                "clairvoyant": forecast.clairvoyant,
                "realised": [float(y[: m + k].min()) for k in steps],
            }
        )
    kept = ("key", "problem", "method", "seed", "protocol", "initial", "evaluations", "minimum", "y")
    return {**{name: record[name] for name in kept}, "forecasts": found, "error": None}


@dataclass(frozen=True)
class Calibration:
    """How forecasts k evaluations ahead did, over all moments of all runs."""

    steps: int
    count: int
    expected: float  # mean expected gain, in standard deviations of the values seen
    realised: float
    bias: float  # [eq:bias], mean over problems
    error: float  # its standard error, over runs
    coverage: float  # [eq:coverage]


def calibration(played: Iterable[dict[str, Any]], ahead: Sequence[int] = AHEAD) -> list[Calibration]:
    """One line per k that some forecast has."""
    rows: dict[int, list[tuple[str, int, float, float, bool]]] = {k: [] for k in ahead}
    for run in played:
        for each in run["forecasts"]:
            scale = each["scale"] or 1.0
            for k, expected, low, high, realised in zip(
                each["steps"], each["expected"], each["low"], each["high"], each["realised"], strict=True
            ):
                if k in rows:
                    slack = _SLACK * scale
                    inside = low - slack <= realised <= high + slack
                    gains = (each["best"] - expected) / scale, (each["best"] - realised) / scale
                    rows[k].append((run["problem"], run["seed"], *gains, inside))
    return [_calibrated(k, found) for k, found in rows.items() if found]


def _calibrated(k: int, found: list[tuple[str, int, float, float, bool]]) -> Calibration:
    runs: dict[tuple[str, int], list[float]] = {}
    for problem, seed, expected, realised, _ in found:
        runs.setdefault((problem, seed), []).append(realised - expected)
    each = np.array([np.mean(differences) for differences in runs.values()])
    return Calibration(
        k,
        len(found),
        float(np.mean([row[2] for row in found])),
        float(np.mean([row[3] for row in found])),
        float(each.mean()),
        float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else float("nan"),
        float(np.mean([row[4] for row in found])),
    )
