"""Forecasts against outcomes: expected gains and bands beside the realised gains, k evaluations ahead.

    bias      mean of (realised gain - expected gain) / scale,  scale = mean of the initial values - minimum         [eq:bias]
    coverage  share of realised best values inside the 80 % band, its ends included                              [eq:coverage]

Judged are the forecasts of runs that were replayed (``forecasts``): the model's own, and the same with the forecast correction
that users get (``glasses.loop.correction``), which ``fitted_correction`` finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from glasses.lookahead.forecast import BAND
from glasses.loop.correction import CORRECTION, ForecastCorrection, cautious, spread, stretched
from glasses_lab.campaign.forecasts import AHEAD

_SLACK = 1e-9
_TICKS = (1, 2, 3, 5, 8, 12, 20, 30, 50)  # of the picture


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

    def corrected(self, stretch: ForecastCorrection) -> Gathered:
        """[eq:stretch], [eq:idle], and the band around the mean (``limits``); as they are where hyperparameters are known."""
        where = self.told, self.spread, self.steps
        expected = self._never_down(stretched(np.maximum(self.expected, 0.0), stretch.gain, *where, stretch.saturation))
        most = stretched(np.maximum(self.most, 0.0), stretch.most, *where)
        least = cautious(self.least, self.first, stretch.idle, self.steps)
        return self._replace(expected=expected, most=np.maximum(most, expected), least=np.minimum(least, expected))

    def _never_down(self, gain: np.ndarray) -> np.ndarray:
        """The largest gain up to each k of the same forecast, whose entries follow each other."""
        begins = np.append(True, (np.diff(self.steps) <= 0) | (np.diff(self.run) != 0) | (np.diff(self.told) != 0))[: gain.size]
        apart = np.cumsum(begins) * (1.0 + np.ptp(gain)) if gain.size else gain
        return np.where(self.spread > 0, np.maximum.accumulate(gain + apart) - apart, gain)

    def at(self, k: int) -> Gathered:
        """Those k steps ahead."""
        return Gathered(*(column[self.steps == k] for column in self))


def gathered(replayed: Iterable[dict[str, Any]]) -> Gathered:
    """All forecasts of all runs, as the model made them."""
    parts = []
    for number, run in enumerate(replayed):
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


def fitted_correction(forecasts: Gathered, ahead: Sequence[int] = AHEAD, *, enough: int = 50) -> ForecastCorrection:
    """The correction that fits these forecasts, from every k > 1 with ``enough`` of them.

    a and s, on grids of 0.1 and 0.25, have the smallest sum over k of squared bias plus a tenth of the mean squared error: of
    corrections with as little bias the more accurate one. The band is fitted by what it holds: m, of 0 to 20, is the smallest
    with which at no k more than a tenth of the outcomes are below the cautious end, or comes nearest to that; b, on a grid of
    0.1, then brings the mean over k of |coverage - 0.8| to its smallest.
    """
    steps = [k for k in ahead if k > 1 and np.sum(forecasts.steps == k) >= enough]
    if not steps:
        raise ValueError(f"A correction needs {enough} forecasts for some number of evaluations ahead: replay more runs.")

    def parts(correction: ForecastCorrection) -> list[Gathered]:
        moved = forecasts.corrected(correction)
        return [moved.at(k) for k in steps]

    def wrong(mean: tuple[float, float]) -> float:
        off = (part.realised - part.expected for part in parts(ForecastCorrection(mean[0], 0.0, 0, mean[1])))
        return sum(float(np.mean(each)) ** 2 + 0.1 * float(np.mean(each**2)) for each in off)

    def below(idle: int) -> float:
        found = parts(ForecastCorrection(0.0, 0.0, idle))
        return max(0.1, *(float(np.mean(part.realised < part.least - _SLACK)) for part in found))

    def missed(correction: ForecastCorrection) -> float:
        return sum(abs(float(np.mean(_inside(part))) - BAND) for part in parts(correction))

    grid = product(np.arange(0.0, 3.0, 0.1).round(1).tolist(), np.arange(0.0, 5.1, 0.25).tolist())
    gain, saturation = min(grid, key=wrong)
    idle = min(range(21), key=below)
    shares = np.arange(0.0, 6.0, 0.1).round(1).tolist()
    return min((ForecastCorrection(gain, share, idle, saturation) for share in shares), key=missed)


def halves(replayed: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The runs of every other problem, and those of the rest: one half to fit on, one to judge by."""
    problems = sorted({run["problem"] for run in replayed})
    first = set(problems[::2])
    return [run for run in replayed if run["problem"] in first], [run for run in replayed if run["problem"] not in first]


def across_halves(replayed: Sequence[dict[str, Any]]) -> str:
    """Each half of the problems judged with the correction that fits the other one, as Markdown; and the fit to all of them."""
    parts, text = halves(replayed), []
    for fitted, judged in (parts, parts[::-1]):
        correction, forecasts = fitted_correction(gathered(fitted)), gathered(judged)
        lines = calibration(forecasts), calibration(forecasts.corrected(correction))
        text.append(f"Fitted to one half of the problems, {correction}; on the other half:\n\n{calibration_table(*lines)}")
        text.append(worst(lines[1]))
    everything = gathered(replayed)
    correction = fitted_correction(everything)
    text.append(f"The forecast correction that fits all of these runs is {correction}; in use is {CORRECTION}.")
    text.append(f"On the runs that it was fitted to: {worst(calibration(everything.corrected(correction)))}")
    return "\n\n".join(text)


def worst(lines: Sequence[Calibration]) -> str:
    """The largest bias and the range of coverage, over k."""
    off = max(lines, key=lambda line: abs(line.bias))
    held = [line.coverage for line in lines]
    return (
        f"Largest bias {off.bias:+.3f} ± {off.error:.3f}, {off.steps} evaluations ahead; the band holds {min(held):.0%} to "
        f"{max(held):.0%}."
    )


def calibration_table(raw: Sequence[Calibration], corrected: Sequence[Calibration]) -> str:
    """As Markdown; gains in parts of the distance from the mean initial value to the minimum; the model / corrected."""
    lines = [
        "| more evaluations | forecasts | realised gain | expected | bias left | off by (root mean square) | inside the band |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {a.steps} | {a.count} | {a.realised:.3f} | {a.expected:.3f} / {b.expected:.3f} | {b.bias:+.3f} ± {b.error:.3f} "
        f"| {a.missed:.3f} / {b.missed:.3f} | {a.coverage:.0%} / {b.coverage:.0%} |"
        for a, b in zip(raw, corrected, strict=True)
    ]
    return "\n".join(lines)


def draw_calibration(raw: Sequence[Calibration], corrected: Sequence[Calibration], path: Path) -> None:
    """Forecasts against what came of them, by how far they looked: gains, and how often the band held."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    k = [line.steps for line in raw]
    figure, (gains, band) = plt.subplots(1, 2, figsize=(9.6, 3.6), constrained_layout=True)
    for lines, style, colour, words in ((raw, "o:", "0.45", "the model alone"), (corrected, "o-", "tab:blue", "corrected")):
        gains.plot(k, [line.expected for line in lines], style, color=colour, label=f"expected, {words}")
        band.plot(k, [100 * line.coverage for line in lines], style, color=colour, label=words)
    bars = [2 * line.error for line in corrected]
    gains.errorbar(
        k,
        [line.realised for line in raw],
        bars,
        fmt="s-",
        color="tab:orange",
        label="realised (± 2 standard errors of the bias)",
    )
    top = max(line.realised + bar for line, bar in zip(raw, np.nan_to_num(bars), strict=True))
    gains.set(ylabel="gain, in parts of what there was to gain", ylim=(0, 1.35 * top))  # room for the legend
    band.axhline(80, color="0.3", linewidth=1, linestyle="--")
    band.set(ylabel="% of best values inside the 80 % band", ylim=(0, 100))
    ticks = [each for each in k if each in _TICKS]
    for axis in (gains, band):
        axis.set(xscale="log", xlabel="more evaluations")
        axis.set_xticks(ticks, [str(each) for each in ticks])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    gains.legend(frameon=False, loc="upper left")
    band.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
