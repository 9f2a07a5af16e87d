"""Were the forecasts right? Stored runs played again, with a forecast before each evaluation beside what came of it.

A run keeps every point and value, so nothing is optimised again: before evaluation m + 1 the model is fitted to the first m,
the forecast made for the point that was evaluated next, and compared with the best values that followed:

    bias      mean of (realised gain - expected gain) / scale,  scale = mean of the initial values - minimum         [eq:bias]
    coverage  share of realised best values inside the 80 % band, its ends included                              [eq:coverage]

What is kept is the model's own forecast; it is judged as it is and with the correction that users get, ``loop.hindsight``,
whose shares ``fitted_stretch`` finds.

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
from typing import Any, NamedTuple

import numpy as np
from glasses.campaign.measures import gap
from glasses.campaign.protocols import PROTOCOLS
from glasses.campaign.run import use_one_thread
from glasses.campaign.statistics import estimate
from glasses.campaign.store import read_records
from glasses.campaign.suite import Task

from glasses.lookahead.myopic import ExpectedLoss
from glasses.loop.correction import HINDSIGHT, Stretch, cautious, spread, stretched
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Forecast
from glasses_lab.problems import get

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


def replay(task: Task, results: Path, *, peer: bool = False) -> dict[str, Any]:
    """``foresee_run`` of the stored run of a task; or, with ``peer``, where Optuna's terminators would have stopped it."""
    record = _records(results)[task.key]
    if not peer:
        return foresee_run(record)
    from glasses.campaign.peers import terminator

    return terminator(record)


@lru_cache(maxsize=1)
def _records(results: Path) -> dict[str, dict[str, Any]]:
    return {record["key"]: record for record in read_records(results, lambda _: None)}


class Gathered(NamedTuple):
    """One entry per forecast and k, gains in parts of the scale of their run."""

    run: np.ndarray  # number of the run
    told: np.ndarray  # values the forecast was made from
    spread: np.ndarray  # from their median to the best of them; 0 where hyperparameters are known and nothing is corrected
    steps: np.ndarray
    expected: np.ndarray
    most: np.ndarray
    least: np.ndarray
    realised: np.ndarray
    first: np.ndarray  # ``least`` of the same forecast, one step ahead

    def corrected(self, stretch: Stretch) -> Gathered:
        """[eq:stretch], [eq:idle]; as they are where hyperparameters are known."""
        where = self.told, self.spread, self.steps
        return self._replace(
            expected=stretched(self.expected, stretch.gain, *where),
            most=stretched(self.most, stretch.most, *where),
            least=cautious(self.least, self.first, stretch.idle, self.steps),
        )

    def at(self, k: int) -> Gathered:
        """Those k steps ahead."""
        return Gathered(*(column[self.steps == k] for column in self))


def gathered(played: Iterable[dict[str, Any]]) -> Gathered:
    """All forecasts of all runs, as the model made them."""
    parts = []
    for number, run in enumerate(played):
        scale = float(np.mean(run["y"][: run["initial"]])) - run["minimum"] or 1.0
        for each in run["forecasts"]:
            told, steps, r = _basis(run, each)
            gains = [(each["best"] - np.array(each[name])) / scale for name in ("expected", "low", "high", "realised")]
            same = [np.full(steps.size, value) for value in (number, told, (r or 0.0) / scale)]
            first = gains[2] if r is None else np.full(steps.size, gains[2][0])
            parts.append(np.array([*same, steps, *gains, first], dtype=float))
    return Gathered(*np.concatenate(parts or [np.zeros((len(Gathered._fields), 0))], axis=1))


def _basis(run: dict[str, Any], forecast: dict[str, Any]) -> tuple[int, np.ndarray, float | None]:
    """What a correction rests on: values told, steps, and r; None where the hyperparameters are known."""
    told = run["y"][: run["initial"] + forecast["done"]]
    known = run["protocol"] == "known"
    return len(told), np.array(forecast["steps"]), None if known else spread(told, forecast["best"])


@dataclass(frozen=True)
class Calibration:
    """How forecasts k evaluations ahead did, over all moments of all runs."""

    steps: int
    count: int
    expected: float  # mean expected gain, in parts of the scale
    realised: float
    bias: float  # [eq:bias]
    error: float  # its standard error; runs are independent, the forecasts of one are not
    missed: float  # root of the mean squared difference
    coverage: float  # [eq:coverage]


def calibration(forecasts: Gathered, ahead: Sequence[int] = AHEAD) -> list[Calibration]:
    """One line per k that some forecast has."""
    return [_calibrated(k, forecasts.at(k)) for k in ahead if np.any(forecasts.steps == k)]


def _calibrated(k: int, found: Gathered) -> Calibration:
    missed = found.realised - found.expected
    bias = float(missed.mean())
    runs = np.unique(found.run)
    sums = np.array([np.sum(missed[found.run == run] - bias) for run in runs])
    return Calibration(
        k,
        missed.size,
        float(found.expected.mean()),
        float(found.realised.mean()),
        bias,
        float(np.sqrt(np.sum(sums**2)) / missed.size) if runs.size > 1 else float("nan"),
        float(np.sqrt(np.mean(missed**2))),
        float(np.mean(_inside(found))),
    )


def _inside(found: Gathered) -> np.ndarray:
    """Whether what was gained lies in the band."""
    return (found.realised <= found.most + _SLACK) & (found.realised >= found.least - _SLACK)


def fitted_stretch(forecasts: Gathered, ahead: Sequence[int] = AHEAD, *, enough: int = 50) -> Stretch:
    """The shares that put these forecasts right, on a grid of 0.05, from every k > 1 with ``enough`` forecasts.

    Being right on average makes single forecasts worse. So the share of the expected gain is the one with the smallest sum of
    squared biases of those with which no k has a mean squared error more than a tenth above the model's own. That of the band's
    optimistic end has the smallest loss of a 90 % quantile, max(0.9 u, -0.1 u) with u = realised - end, in parts of the
    model's, summed over k; the idle evaluations of its cautious end, of 0 to 20, the smallest loss of a 10 % quantile.
    """
    parts = [part for k in ahead if k > 1 and (part := forecasts.at(k)).run.size >= enough]
    if not parts:
        raise ValueError(f"A correction needs {enough} forecasts for some number of evaluations ahead: play more runs.")

    def missed(part: Gathered) -> np.ndarray:
        return part.realised - part.expected

    def bias(share: float) -> float:
        return sum(float(np.mean(missed(part.corrected(Stretch(share, 0.0, 0))))) ** 2 for part in parts)

    def tolerable(share: float) -> bool:
        return all(
            np.mean(missed(part.corrected(Stretch(share, 0.0, 0))) ** 2) <= 1.1 * np.mean(missed(part) ** 2) for part in parts
        )

    def quantile_loss(part: Gathered, end: str, level: float) -> float:
        u = part.realised - getattr(part, end)
        return float(np.mean(np.maximum(level * u, (level - 1.0) * u)))

    def lost(stretch: Stretch, end: str, level: float) -> float:
        pairs = ((part.corrected(stretch), part) for part in parts)
        return sum(quantile_loss(new, end, level) / max(quantile_loss(old, end, level), 1e-300) for new, old in pairs)

    grid = np.linspace(0.0, 4.0, 81).round(2).tolist()
    return Stretch(
        min(filter(tolerable, grid), key=bias),
        min(grid, key=lambda share: lost(Stretch(0.0, share, 0), "most", 0.9)),
        min(range(21), key=lambda idle: lost(Stretch(0.0, 0.0, idle), "least", 0.1)),
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
    if run["protocol"] == "known":
        return forecast
    arrays = {name: np.array(forecast[name]) for name in ("expected", "low", "high", "open_loop")}
    raw = Forecast(best=forecast["best"], clairvoyant=forecast["clairvoyant"], made=np.array(forecast["steps"]), **arrays)
    seen = HINDSIGHT.applied(raw, run["y"][: run["initial"] + forecast["done"]])
    return forecast | {name: getattr(seen, name) for name in (*arrays, "clairvoyant")}


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


def calibration_table(raw: Sequence[Calibration], put_right: Sequence[Calibration]) -> str:
    """As Markdown; gains in parts of the distance from the mean initial value to the minimum; the model / corrected."""
    lines = [
        "| more evaluations | forecasts | realised gain | expected | bias left | off by (root mean square) | inside the band |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {a.steps} | {a.count} | {a.realised:.3f} | {a.expected:.3f} / {b.expected:.3f} | {b.bias:+.3f} ± {b.error:.3f} "
        f"| {a.missed:.3f} / {b.missed:.3f} | {a.coverage:.0%} / {b.coverage:.0%} |"
        for a, b in zip(raw, put_right, strict=True)
    ]
    return "\n".join(lines)


def savings_table(lines: Sequence[Savings]) -> str:
    """As Markdown."""
    head = "| rule | runs | evaluations saved | gap paid | paid by stopping all runs that early |\n|---|---|---|---|---|"
    body = [f"| {s.rule} | {s.runs} | {s.saved:.0%} | {s.paid:.3f} ± {s.error:.3f} | {s.fixed:.3f} |" for s in lines]
    return "\n".join([head, *body])


def draw_calibration(raw: Sequence[Calibration], put_right: Sequence[Calibration], path: Path) -> None:
    """Forecasts against what came of them, by how far they looked: gains, and how often the band held."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    k = [line.steps for line in raw]
    figure, (gains, band) = plt.subplots(1, 2, figsize=(9.6, 3.6), constrained_layout=True)
    for lines, style, colour, words in ((raw, "o:", "0.45", "the model alone"), (put_right, "o-", "tab:blue", "corrected")):
        gains.plot(k, [line.expected for line in lines], style, color=colour, label=f"expected, {words}")
        band.plot(k, [100 * line.coverage for line in lines], style, color=colour, label=words)
    bars = [2 * line.error for line in put_right]
    gains.errorbar(
        k,
        [line.realised for line in raw],
        bars,
        fmt="s-",
        color="tab:orange",
        label="realised (± 2 standard errors of the bias)",
    )
    gains.set(ylabel="gain, in parts of what there was to gain", ylim=(0, None))
    band.axhline(80, color="0.3", linewidth=1, linestyle="--")
    band.set(ylabel="% of best values inside the 80 % band", ylim=(0, 100))
    for axis in (gains, band):
        axis.set(xscale="log", xlabel="more evaluations")
        axis.set_xticks(k, [str(each) for each in k])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
