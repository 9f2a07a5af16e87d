"""Stopping rules judged on replayed forecasts: where each would have stopped a run, what that saves and what it costs.

    saved = 1 - evaluations used / evaluations planned,    paid = gap at the end - gap where it stopped            [eq:saved]

Each rule is compared with stopping every run after the same number of evaluations, the mean of what the rule used, rounded up.
Rules see the corrected forecast, as users do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glasses.loop.correction import CORRECTION
from glasses.loop.limits import in_order
from glasses.loop.result import Forecast
from glasses_lab.campaign.measures import gap
from glasses_lab.campaign.statistics import estimate


@dataclass(frozen=True)
class Savings:
    """What a stopping rule did over many runs: [eq:saved], means with the standard error over runs."""

    rule: str
    runs: int
    saved: float
    paid: float
    error: float  # of ``paid``
    fixed: float  # paid by stopping every run after as many evaluations as the rule used on average


Rule = Callable[[dict[str, Any], dict[str, Any]], bool]  # (run, one of its forecasts) -> stop before the next evaluation?


def by_price(share: float) -> Rule:
    """``Price`` with a price of ``share`` standard deviations of the initial values, over the steps that are kept."""

    def stop(run: dict[str, Any], forecast: dict[str, Any]) -> bool:
        price = share * float(np.std(run["y"][: run["initial"]]))
        gain = forecast["best"] - np.array(forecast["expected"])
        return bool(np.max(gain - price * np.array(forecast["steps"])) <= 0)

    return stop


def by_no_gain(share: float) -> Rule:
    """``NoGain``."""

    def stop(run: dict[str, Any], forecast: dict[str, Any]) -> bool:
        seen = run["y"][: run["initial"] + forecast["done"]]
        most = max(forecast["best"] - forecast["expected"][-1], forecast["best"] - forecast["low"][-1])
        return bool(most < share * (max(seen) - min(seen)))

    return stop


def corrected(run: dict[str, Any], forecast: dict[str, Any]) -> dict[str, Any]:
    """The forecast that a user would have seen."""
    names = ("expected", "low", "high", "open_loop")
    expected, low, high, open_loop, steps = (np.array(forecast[name]) for name in (*names, "steps"))
    seen = Forecast(forecast["best"], expected, low, high, open_loop, forecast["clairvoyant"], steps)
    if run["protocol"] != "known":
        seen = CORRECTION.applied(seen, run["y"][: run["initial"] + forecast["done"]])
    seen = in_order(seen)
    return forecast | {name: getattr(seen, name) for name in (*names, "clairvoyant")}


def used(run: dict[str, Any], rule: Rule) -> int:
    """Evaluations decided before the rule stops the run; all of them if it never does."""
    stops = (each["done"] for each in run["forecasts"] if rule(run, corrected(run, each)))
    return next(stops, run["evaluations"])


def savings(name: str, runs: Sequence[dict[str, Any]], evaluations: Sequence[int]) -> Savings:
    """What stopping each run after so many evaluations saves and costs."""
    paid = [_gap_after(run, run["evaluations"]) - _gap_after(run, k) for run, k in zip(runs, evaluations, strict=True)]
    share = float(np.mean([k / run["evaluations"] for run, k in zip(runs, evaluations, strict=True)]))
    fixed = [_gap_after(run, run["evaluations"]) - _gap_after(run, math.ceil(share * run["evaluations"])) for run in runs]
    found = estimate(paid)
    return Savings(name, len(runs), 1.0 - share, found.mean, found.error, float(np.mean(fixed)))


def _gap_after(run: dict[str, Any], k: int) -> float:
    y, n = np.array(run["y"]), run["initial"]
    return gap(float(y[:n].min()), float(y[: n + k].min()), run["minimum"])


RULES: dict[str, Rule] = {
    **{f"price {share:g} sd": by_price(share) for share in (0.001, 0.01, 0.05)},
    **{f"no gain, {share:g} of the spread": by_no_gain(share) for share in (0.001, 0.01)},
}


def judged(runs: Sequence[dict[str, Any]], peer: Mapping[str, Mapping[str, int]] | None = None) -> list[Savings]:
    """Every rule on the same runs. ``peer``: by key, the evaluations that Optuna's terminators used; then on the runs of it."""
    common = [run for run in runs if run["key"] in (peer or {})]
    runs = common or runs
    ours = [savings(name, runs, [used(run, rule) for run in runs]) for name, rule in RULES.items()]
    if not peer or not common:
        return ours
    return ours + [savings(name, runs, [peer[run["key"]][name] for run in runs]) for name in peer[runs[0]["key"]]]


def savings_table(lines: Sequence[Savings]) -> str:
    """As Markdown."""
    head = "| rule | runs | evaluations saved | gap paid | paid by stopping all runs that early |\n|---|---|---|---|---|"
    body = [f"| {s.rule} | {s.runs} | {s.saved:.0%} | {s.paid:.3f} ± {s.error:.3f} | {s.fixed:.3f} |" for s in lines]
    return "\n".join([head, *body])
