"""``python -m benchmarks.conditional [SEEDS]``: objectives with conditional parameters; makes docs/how_to/conditional.png.

Three functions with known minima, 25 trials each: the choice of a classifier, each with settings of its own; layers with a
width each; a range that depends on another parameter. Planned with the rest, or drawn independently as this package did before
(``sampler.conditional = False``); Optuna's TPE as it comes and with ``group=True`` beside them. The same seeds for all;
differences are paired.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import optuna

from glasses.optuna import GlassesSampler

FIGURE = Path(__file__).parents[1] / "docs" / "how_to" / "conditional.png"
TRIALS = 25
METHODS = ("planned", "independent", "TPE", "TPE, groups")
COLOURS = dict(zip(METHODS, ("#2a6f97", "#c2611f", "#888888", "#bbbbbb"), strict=True))


def classifier(trial):
    kind = trial.suggest_categorical("classifier", ["svm", "forest", "neighbours"])
    value = 0.2 * (trial.suggest_float("scale", 0, 1) - 0.6) ** 2
    if kind == "svm":
        a = np.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) - 1.2
        b = np.log10(trial.suggest_float("gamma", 1e-4, 1e1, log=True)) + 2.2
        return value + 0.02 * (a + 0.6 * b) ** 2 + 0.05 * b**2
    if kind == "forest":
        depth, features = trial.suggest_int("depth", 1, 20), trial.suggest_float("features", 0.1, 1)
        return value + 0.03 + 0.002 * (depth - 12) ** 2 + 0.3 * (features - 0.4) ** 2
    return value + 0.08 + 0.03 * np.log(trial.suggest_int("k", 1, 50, log=True) / 9) ** 2


def layers(trial):
    n, rate = trial.suggest_int("layers", 1, 3), trial.suggest_float("rate", 1e-4, 1, log=True)
    value = 0.05 * (np.log10(rate) + 2.3) ** 2 + (0.2, 0.0, 0.05)[n - 1]
    widths = (np.log2(trial.suggest_float(f"width {i}", 4, 256, log=True)) for i in range(n))
    return value + sum(0.02 * (width - 6 + i) ** 2 for i, width in enumerate(widths))


def narrowing(trial):
    n = trial.suggest_float("limit", 1, 10)
    return (trial.suggest_float("x", 0, n) - 4.2) ** 2 / 4 + 0.1 * (n - 6) ** 2


FUNCTIONS = {"a classifier and its settings": classifier, "layers and their widths": layers, "a range that changes": narrowing}


def run(function, method, seed):
    if method.startswith("TPE"):
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=method != "TPE")
    else:
        sampler = GlassesSampler(budget=TRIALS, seed=seed, warn_independent_sampling=False)
        sampler.conditional = method == "planned"
    study = optuna.create_study(sampler=sampler)
    study.optimize(function, n_trials=TRIALS)
    return np.minimum.accumulate([trial.value for trial in study.trials])


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    curves = {}
    print(f"| objective | {' | '.join(METHODS)} | planned − independent, paired |")
    print(f"|---|{'---|' * len(METHODS)}---|")
    for name, function in FUNCTIONS.items():
        for method in METHODS:
            curves[name, method] = np.array([run(function, method, seed) for seed in range(seeds)])
        last = {method: curves[name, method][:, -1] for method in METHODS}
        change = last["planned"] - last["independent"]
        shown = " | ".join(f"{np.mean(last[method]):.4f}" for method in METHODS)
        wins = f"{np.sum(change < 0)} of {seeds}"
        print(f"| {name} | {shown} | {np.mean(change):+.4f} ± {np.std(change, ddof=1) / seeds**0.5:.4f}, {wins} |", flush=True)
    draw(curves, seeds)


def draw(curves, seeds):
    from matplotlib import pyplot as plt

    figure, rows = plt.subplots(1, len(FUNCTIONS), figsize=(9.0, 3.0), layout="constrained")
    for axes, name in zip(rows, FUNCTIONS, strict=True):
        for method in METHODS:
            axes.plot(np.arange(1, TRIALS + 1), np.median(curves[name, method], axis=0), color=COLOURS[method], label=method)
        axes.set(xlabel="trials", title=name, yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
    rows[0].set_ylabel(f"regret, median of {seeds} seeds")
    rows[0].legend(frameon=False, fontsize="small")
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
