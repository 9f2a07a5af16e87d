"""Stored runs replayed with a forecast before each evaluation, beside what came of it.

A run keeps every point and value, so nothing is optimised again: before evaluation m + 1 the model is fitted to the first m,
and the forecast is made for the point that was evaluated next. What is kept is the model's own forecast, without correction,
and the best values that followed. Next: ``calibration`` compares the two, ``stopping_rules`` judges rules on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from glasses.lookahead.myopic import ExpectedLoss
from glasses.loop.optimizer import Optimizer
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.campaign.store import read_records
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import get

AHEAD = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50)


def forecast_run(record: dict[str, Any], moments: Sequence[float] | None = None) -> dict[str, Any]:
    """The forecasts of one stored run: before every evaluation, or at these parts of its evaluations (0 is the first).

    Moments at which a user would get no forecast, with fewer than d + 2 values, are left out.
    """
    n, total = record["initial"], record["evaluations"]
    when = range(total) if moments is None else sorted({min(total - 1, round(part * total)) for part in moments})
    X, y = record["x"], np.array(record["y"])
    problem = get(record["problem"], seed=record["seed"])
    found = []
    for done in when:
        m = n + done
        if m < problem.d + 2:
            continue
        optimizer = Optimizer(
            problem.search_space,
            budget=n + total,
            n_initial=n,
            x0=X[:m],
            y0=y[:m],
            model=PROTOCOLS[record["protocol"]].model(problem),
            loss=ExpectedLoss(),
            seed=record["seed"],
        )
        forecast = optimizer.forecast(min(total - done, 128), x=X[m], raw=True)
        steps = [k for k in AHEAD if k <= len(forecast)]
        steps += [len(forecast)] if len(forecast) not in steps else []
        at = np.array(steps) - 1
        found.append(
            {
                "done": done,
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


def replay(task: Task, results: Path, *, moments: int | None = None, peer: bool = False) -> dict[str, Any]:
    """``forecast_run`` of the stored run of a task, at so many moments or before every evaluation.

    With ``peer``: where Optuna's terminators would have stopped it.
    """
    record = _records(results)[task.key]
    if not peer:
        return forecast_run(record, None if moments is None else [i / moments for i in range(moments)])
    from glasses_lab.campaign.peers.optuna import terminator

    return terminator(record)


@lru_cache(maxsize=1)
def _records(results: Path) -> dict[str, dict[str, Any]]:
    return {record["key"]: record for record in read_records(results, lambda _: None)}
