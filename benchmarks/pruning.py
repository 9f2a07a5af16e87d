"""``python -m benchmarks.pruning [SEEDS]``: what a pruner saves, in simulated epochs; makes docs/how_to/pruning.png.

Each seed is a problem of its own: a training of up to 27 epochs with a learning rate, a width and a dropout rate, whose best
values the seed draws. A slow rate converges late and a high one diverges, so early values mislead, as they do in practice. An
epoch costs 1. Without a pruner 12 trainings are planned, 324 epochs; with one as many trials as fit into the same epochs, with
30 given as the budget. The same seeds for all; differences are paired. "As it is": a pruned trial counts with its last value
instead of what that would have come to.
"""

import sys
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
import optuna
from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

from glasses.optuna import GlassesSampler
from glasses.optuna.pruned import Continuation

FIGURE = Path(__file__).parents[1] / "docs" / "how_to" / "pruning.png"
EPOCHS, TRAININGS, TRIALS = 27, 12, 30
SPENT = EPOCHS * TRAININGS
LOOKS = (SPENT // 2, 2 * SPENT // 3, SPENT)
PRUNERS = {
    "no pruner": NopPruner,
    "MedianPruner": lambda: MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    "SuccessiveHalvingPruner": lambda: SuccessiveHalvingPruner(min_resource=3, reduction_factor=3),
}
AS_IT_IS = "GLASSES, as it is"
COLOURS = dict(zip(PRUNERS, ("#888888", "#c2611f", "#2a6f97"), strict=True))


class Training:
    """The objective of one seed; ``best[e]`` is the best final loss once e + 1 epochs are spent."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rate, self.width, self.dropout = rng.uniform(-2.7, -1.3), rng.uniform(5.5, 8.0), rng.uniform(0.2, 0.7)
        self.spent, self.best = 0, np.full(SPENT, np.nan)

    def curve(self, rate, width, dropout):
        """The loss after each epoch."""
        e, off = np.arange(1, EPOCHS + 1), rate - self.rate
        floor = 0.08 + 0.009 * (width - self.width) ** 2 + 0.5 * (dropout - self.dropout) ** 2
        floor += 0.05 * off**2 + 0.12 * max(0.0, off) ** 2
        speed = 0.35 * 10 ** (0.5 * min(0.0, off))
        return floor + (2.3 - floor) * np.exp(-speed * e) + 0.5 * max(0.0, off - 0.5) * (1.0 - np.exp(-0.2 * e))

    def __call__(self, trial):
        rate = np.log10(trial.suggest_float("rate", 1e-4, 1.0, log=True))
        width = np.log2(trial.suggest_int("width", 8, 1024, log=True))
        for epoch, loss in enumerate(self.curve(rate, width, trial.suggest_float("dropout", 0.0, 0.9)), 1):
            self.spent += 1
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        if self.spent <= SPENT:
            self.best[self.spent - 1 :] = np.fmin(self.best[self.spent - 1 :], loss)
        return loss


def run(sampler, pruner, seed):
    training, alone = Training(seed), pruner == "no pruner"
    budget = TRAININGS if alone else TRIALS
    made = optuna.samplers.TPESampler(seed=seed) if sampler == "TPE" else GlassesSampler(budget=budget, seed=seed)
    study = optuna.create_study(sampler=made, pruner=PRUNERS[pruner]())

    def stop(study, trial):
        if training.spent >= SPENT:
            study.stop()

    with mock.patch.object(Continuation, "_line", return_value=None) if sampler == AS_IT_IS else nullcontext():
        study.optimize(training, n_trials=10 * TRIALS, callbacks=[stop])
    return training.best, len(study.trials)


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    curves = {}
    looks = " | ".join(f"{each} epochs" for each in LOOKS)
    print(f"| sampler | pruner | trials | {looks} | paired change after {SPENT // 2} | after {SPENT} |")
    print(f"|---|---|---|{'---|' * len(LOOKS)}---|---|")
    for sampler in ("GLASSES", AS_IT_IS, "TPE"):
        for pruner in PRUNERS:
            if (sampler, pruner) == (AS_IT_IS, "no pruner"):
                curves[sampler, pruner] = curves["GLASSES", pruner]
                continue
            found, trials = zip(*(run(sampler, pruner, seed) for seed in range(seeds)), strict=True)
            curves[sampler, pruner] = np.array(found)
            alone = curves[sampler, "no pruner"]
            shown = " | ".join(f"{np.mean(curves[sampler, pruner][:, each - 1]):.3f}" for each in LOOKS)
            changes = [curves[sampler, pruner][:, each - 1] - alone[:, each - 1] for each in (SPENT // 2, SPENT)]
            paired = [f"{np.mean(each):+.4f} ± {np.std(each, ddof=1) / seeds**0.5:.4f}" for each in changes]
            paired = ["", ""] if pruner == "no pruner" else paired
            print(f"| {sampler} | {pruner} | {np.mean(trials):.1f} | {shown} | {' | '.join(paired)} |", flush=True)
        if sampler == "GLASSES":
            draw(curves, seeds)


def draw(curves, seeds):
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
    epochs = np.arange(1, SPENT + 1)
    for pruner in PRUNERS:
        known = curves["GLASSES", pruner]
        shown = np.all(np.isfinite(known), axis=0)
        axes.plot(epochs[shown], np.mean(known, axis=0)[shown], color=COLOURS[pruner], label=pruner)
    axes.set(xlabel="epochs spent", ylabel="best final loss", title=f"Means of {seeds} seeds", xlim=(0, SPENT))
    axes.set_yscale("log")
    axes.set_yticks([0.08, 0.1, 0.15, 0.2, 0.3, 0.5], ["0.08", "0.1", "0.15", "0.2", "0.3", "0.5"], minor=False)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
