"""``python -m benchmarks.acquisition speed|quality``: ``GlassesAcquisition`` beside BoTorch's LogEI over the same models.

``speed``: a SingleTaskGP of 25 observations in 2 dimensions, noise fixed, 20 evaluations left, one thread, CPU seconds, medians
of 5 data sets after a warm-up. ``quality``: paired runs on five functions, 5 initial points and 15 more, the model fitted anew
before every decision. What is measured is added to docs/botorch.json; needs the peers' environment.
"""

import json
import multiprocessing
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.setting import ONE_THREAD, cpu_seconds, data

KEPT = Path(__file__).parents[1] / "docs" / "botorch.json"
FUNCTIONS = ("Branin", "Sixhumpcamel", "McCormick", "Alpine2-2", "Cosines")
SEEDS, INITIAL, MORE = 24, 5, 15
TUTORIAL = {"num_restarts": 10, "raw_samples": 512, "retry_on_optimization_warning": False}


def decide(acquisition, bounds):
    """The next point by ``acquisition``, from its own starts where it has some."""
    from botorch.optim import optimize_acqf

    search = TUTORIAL
    if hasattr(acquisition, "starts"):
        search = TUTORIAL | {"num_restarts": 4, "raw_samples": None, "batch_initial_conditions": acquisition.starts(4)}
    return optimize_acqf(acquisition, bounds, q=1, **search)[0][0]


def speed(repeats=5):
    import numpy as np
    import torch
    from botorch.acquisition import LogExpectedImprovement

    from glasses import Glasses, TwoStage
    from glasses.botorch import GlassesAcquisition
    from glasses_lab.campaign.peers.botorch import botorch_model

    makes = {
        "BoTorch LogEI": lambda model, box, best: LogExpectedImprovement(model, best),
        "GlassesAcquisition, Glasses() (default)": lambda model, box, best: GlassesAcquisition(model, 20, box, best_f=best),
        "GlassesAcquisition, Glasses(steps=5)": lambda model, box, best: GlassesAcquisition(
            model, 20, box, best_f=best, loss=Glasses(steps=5)
        ),
        "GlassesAcquisition, TwoStage(steps=None)": lambda model, box, best: GlassesAcquisition(
            model, 20, box, best_f=best, loss=TwoStage(steps=None)
        ),
    }
    found = {name: [] for name in makes}
    for seed in range(-1, repeats):
        model, box, best = botorch_model(*data(25, 2, seed % 1000), True)
        queries = torch.as_tensor(np.random.default_rng(seed % 1000).random((512, 1, 2)))
        few = queries[:4].clone().requires_grad_(True)
        for name, make in makes.items():
            acquisition = make(model, box, best)
            if seed < 0:
                acquisition(queries), torch.autograd.grad(acquisition(few).sum(), few), decide(acquisition, box)
                continue
            with torch.no_grad():
                values = cpu_seconds(lambda: acquisition(queries)) / 512  # noqa: B023
            slopes = cpu_seconds(lambda: torch.autograd.grad(acquisition(few).sum(), few)) / 4  # noqa: B023
            whole = cpu_seconds(lambda: decide(make(model, box, best), box))  # noqa: B023
            found[name].append([values, slopes, whole])
    return {name: np.median(rows, axis=0).tolist() for name, rows in found.items()}


def quality():
    """A process per core, each with one thread."""
    makes = "LogEI", "Glasses"
    jobs = [(name, method, seed) for name in FUNCTIONS for method in makes for seed in range(SEEDS)]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = dict(zip(jobs, pool.map(one_run, *zip(*jobs, strict=True)), strict=True))
    return {name: {method: [found[name, method, seed] for seed in range(SEEDS)] for method in makes} for name in FUNCTIONS}


def one_run(name, method, seed):
    """The part of the gap that a run closes, and what it leaves."""
    import numpy as np
    import torch
    from botorch.acquisition import LogExpectedImprovement

    from glasses.botorch import GlassesAcquisition
    from glasses_lab.campaign.peers.botorch import botorch_model
    from glasses_lab.problems import get

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem = get(name)
    low, high = np.array(problem.bounds).T
    X = np.random.default_rng([2026, seed]).random((INITIAL, len(low)))
    y = np.array([problem(low + x * (high - low)) for x in X])
    first = y.min()
    for left in range(MORE, 0, -1):
        model, box, best = botorch_model(X, y, True)
        torch.manual_seed(seed)
        acquisition = LogExpectedImprovement(model, best)
        if method == "Glasses":
            acquisition = GlassesAcquisition(model, left, box, best_f=best)
        x = decide(acquisition, box).numpy()
        X, y = np.vstack([X, x]), np.append(y, problem(low + x * (high - low)))
    return float((first - y.min()) / (first - problem.minimum)), float(y.min() - problem.minimum)


def summary(found):
    """Tables as in docs/how_to/botorch.md."""
    import numpy as np

    if "speed" in found:
        one = found["speed"]["BoTorch LogEI"][2]
        for name, (value, slope, whole) in found["speed"].items():
            print(f"| {name} | {1e3 * value:.3f} | {1e3 * slope:.2f} | {whole:.3f} | {whole / one:.1f} |")
    for name, methods in found.get("quality", {}).items():
        gaps = {method: np.array(rows)[:, 0] for method, rows in methods.items()}
        difference = gaps["Glasses"] - gaps["LogEI"]
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        wins = f"{int((difference > 0.001).sum())} : {int((difference < -0.001).sum())}"
        means = " | ".join(f"{gaps[method].mean():.3f}" for method in ("LogEI", "Glasses"))
        print(f"| {name} | {means} | {difference.mean():+.3f} ± {error:.3f} | {wins} |")


def main():
    if any(os.environ.get(key) != value for key, value in ONE_THREAD.items()):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.acquisition", *sys.argv[1:]], os.environ | ONE_THREAD)
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in sys.argv[1:] or ("speed", "quality"):
        known[name] = {"speed": speed, "quality": quality}[name]()
        KEPT.write_text(json.dumps(known, indent=1) + "\n")
    summary(known)


if __name__ == "__main__":
    main()
