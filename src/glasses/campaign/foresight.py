"""Were the forecasts right? Stored runs played again, with a forecast before each evaluation beside what came of it.

A run keeps every point and value, so nothing is optimised again: before evaluation m + 1 the model is fitted to the first m,
the forecast made for the point that was evaluated next, and compared with the best values that followed:

    bias      mean of (realised gain - expected gain) / scale,  scale the standard deviation of the values seen      [eq:bias]
    coverage  share of realised best values inside the 80 % band, its ends included                              [eq:coverage]

Stopping rules are judged on the same forecasts: where each would have stopped, what that saves and what it costs,

    saved = 1 - evaluations used / evaluations planned,    paid = gap at the end - gap where it stopped            [eq:saved]

against stopping every run after the same number of evaluations, the mean of what the rule used, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from glasses.acquisition.myopic import ExpectedLoss
from glasses.campaign.measures import gap
from glasses.campaign.protocols import PROTOCOLS
from glasses.campaign.run import use_one_thread
from glasses.campaign.statistics import estimate
from glasses.campaign.store import read_records
from glasses.campaign.suite import Task
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
        forecast = optimizer.forecast(min(total - done, 128), x=X[m])
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


def replay(task: Task, results: Path, *, peer: bool = False) -> dict[str, Any]:
    """``foresee_run`` of the stored run of a task; or, with ``peer``, where Optuna's terminator would have stopped it."""
    record = _records(results)[task.key]
    if not peer:
        return foresee_run(record)
    from glasses.campaign.peers import terminator

    return terminator(record)


@lru_cache(maxsize=1)
def _records(results: Path) -> dict[str, dict[str, Any]]:
    return {record["key"]: record for record in read_records(results, lambda _: None)}


@dataclass(frozen=True)
class Calibration:
    """How forecasts k evaluations ahead did, over all moments of all runs."""

    steps: int
    count: int
    expected: float  # mean expected gain, in standard deviations of the values seen
    realised: float
    bias: float  # [eq:bias], mean over runs
    error: float  # its standard error
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
    """``Price`` with a price of ``share`` standard deviations of the initial values."""

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


def used(run: dict[str, Any], rule: Rule) -> int:
    """Evaluations decided before the rule stops the run; all of them if it never does."""
    stops = (each["done"] for each in run["forecasts"] if rule(run, each))
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


def judged(runs: Sequence[dict[str, Any]], peer: Mapping[str, int] | None = None) -> list[Savings]:
    """Every rule on the same runs; ``peer``: by key, the evaluations that Optuna's terminator used."""
    ours = [savings(name, runs, [used(run, rule) for run in runs]) for name, rule in RULES.items()]
    common = [run for run in runs if run["key"] in (peer or {})]
    if not peer or not common:
        return ours
    return [*ours, savings("Optuna's terminator", common, [peer[run["key"]] for run in common])]


def calibration_table(lines: Sequence[Calibration]) -> str:
    """As Markdown; gains in standard deviations of the values seen."""
    head = (
        "| more evaluations | forecasts | expected gain | realised gain | bias | inside the band |\n|---|---|---|---|---|---|"
    )
    body = [
        f"| {c.steps} | {c.count} | {c.expected:.3f} | {c.realised:.3f} | {c.bias:+.3f} ± {c.error:.3f} | {c.coverage:.0%} |"
        for c in lines
    ]
    return "\n".join([head, *body])


def savings_table(lines: Sequence[Savings]) -> str:
    """As Markdown."""
    head = "| rule | runs | evaluations saved | gap paid | paid by stopping all runs that early |\n|---|---|---|---|---|"
    body = [f"| {s.rule} | {s.runs} | {s.saved:.0%} | {s.paid:.3f} ± {s.error:.3f} | {s.fixed:.3f} |" for s in lines]
    return "\n".join([head, *body])


def draw_calibration(lines: Sequence[Calibration], path: Path) -> None:
    """Forecasts against what came of them, by how far they looked: gains, and how often the band held."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    k = [line.steps for line in lines]
    figure, (gains, band) = plt.subplots(1, 2, figsize=(9.6, 3.6), constrained_layout=True)
    gains.plot(k, [line.expected for line in lines], "o-", color="tab:blue", label="expected")
    gains.errorbar(
        k, [line.realised for line in lines], [2 * line.error for line in lines], fmt="s-", color="tab:orange", label="realised"
    )
    gains.set(xscale="log", xlabel="more evaluations", ylabel="gain, in sd of the values seen")
    gains.legend(frameon=False)
    band.plot(k, [100 * line.coverage for line in lines], "o-", color="tab:blue")
    band.axhline(80, color="0.3", linewidth=1, linestyle=":")
    band.set(xscale="log", xlabel="more evaluations", ylabel="% of best values inside the 80 % band", ylim=(0, 100))
    for axis in (gains, band):
        axis.set_xticks(k, [str(each) for each in k])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
