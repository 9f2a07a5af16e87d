"""The figures of docs/how_to/constraints.md: constraints that are modelled, told as failures, and random points.

    python docs/constrained.py            # every problem and method, 6 seeds, 25 evaluations: some minutes of CPU time
    python docs/constrained.py --seeds 2

Runs with the same seed have the same initial points. The regret is the best feasible value less the lowest one of a fine grid,
improved from its best cells by SLSQP; of a run that found nothing feasible it is the largest feasible value less the lowest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize as slsqp

from glasses import Optimizer

FLOOR = 1e-4  # of a regret, for its logarithm
Function = Callable[[np.ndarray], float]


class Problem(NamedTuple):
    name: str
    f: Function
    constraints: list[Function]
    bounds: list[tuple[float, float]]


def branin(x: np.ndarray) -> float:
    a = x[1] - 5.1 * x[0] ** 2 / (4 * np.pi**2) + 5 * x[0] / np.pi - 6
    return float(a**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


def wave(x: np.ndarray) -> float:
    return float(1.5 - x[0] - 2 * x[1] - 0.5 * np.sin(2 * np.pi * (x[0] ** 2 - 2 * x[1])))


PROBLEMS = [
    Problem("Gramacy's toy", lambda x: float(x[0] + x[1]), [wave, lambda x: float(x @ x - 1.5)], [(0, 1)] * 2),
    Problem(
        "Gardner 1",
        lambda x: float(np.cos(2 * x[0]) * np.cos(x[1]) + np.sin(x[0])),
        [lambda x: float(np.cos(x[0] + x[1]) + 0.5)],
        [(0, 6)] * 2,
    ),
    Problem(
        "Gardner 2",
        lambda x: float(np.sin(x[0]) + x[1]),
        [lambda x: float(np.sin(x[0]) * np.sin(x[1]) + 0.95)],
        [(0, 6)] * 2,
    ),
    Problem(
        "Branin in a disk",
        branin,
        [lambda x: float((x[0] - 2.5) ** 2 + (x[1] - 7.5) ** 2 - 50)],
        [(-5, 10), (0, 15)],
    ),
]


def ends(problem: Problem) -> tuple[float, float]:
    """The lowest and the largest feasible value."""
    axes = [np.linspace(low, high, 301) for low, high in problem.bounds]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    good = [x for x in grid if all(g(x) <= 0 for g in problem.constraints)]
    values = np.array([problem.f(x) for x in good])
    rules = [{"type": "ineq", "fun": lambda x, g=g: -g(x)} for g in problem.constraints]
    found = [
        slsqp(problem.f, good[i], bounds=problem.bounds, constraints=rules)
        for i in np.argsort(values)[:: len(values) // 50 + 1]
    ]
    kept = [each.fun for each in found if all(g(each.x) <= 1e-9 for g in problem.constraints)]
    return min([*kept, values.min()]), float(values.max())


def run(problem: Problem, method: str, seed: int, budget: int) -> float:
    """The best feasible value of a run; infinite, if there is none."""
    count = len(problem.constraints) if method == "modelled" else None
    optimizer = Optimizer(problem.bounds, budget=budget, constraints=count, noise=0.0, seed=seed)
    if method == "random":
        low, high = np.array(problem.bounds).T
        drawn = low + (high - low) * np.random.default_rng(seed).random((budget - optimizer.n_initial, 2))
        optimizer_points = [*optimizer.ask(optimizer.n_initial), *drawn]
        return min((problem.f(x) for x in optimizer_points if all(g(x) <= 0 for g in problem.constraints)), default=np.inf)
    best = np.inf
    while optimizer.remaining:
        x = optimizer.ask()
        y, values = problem.f(x), [g(x) for g in problem.constraints]
        feasible = max(values) <= 0
        best = min(best, y) if feasible else best
        if method == "modelled":
            optimizer.tell(x, y, constraints=values)
        else:
            optimizer.tell(x, y if feasible else None)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--budget", type=int, default=25)
    parser.add_argument("--problems", nargs="*", default=[each.name for each in PROBLEMS])
    parser.add_argument("--methods", nargs="*", default=["modelled", "failures", "random"])
    given = parser.parse_args()
    begin, logs = time.process_time(), {}
    print("| problem | method | median regret | nothing feasible |\n|---|---|---|---|")
    for problem in PROBLEMS:
        if problem.name not in given.problems:
            continue
        lowest, largest = ends(problem)
        for method in given.methods:
            best = np.array([run(problem, method, seed, given.budget) for seed in range(given.seeds)])
            regret = np.where(np.isfinite(best), best, largest) - lowest
            logs.setdefault(method, []).extend(np.log10(np.maximum(regret, FLOOR)))
            print(
                f"| {problem.name} | {method} | {np.median(regret):.2g} | {np.sum(np.isinf(best))} of {given.seeds} |",
                flush=True,
            )
    first = np.array(logs[given.methods[0]])
    for method in given.methods[1:]:
        apart = first - np.array(logs[method])
        error = np.std(apart, ddof=1) / np.sqrt(len(apart))
        better, worse = np.sum(apart < -0.05), np.sum(apart > 0.05)
        print(f"{given.methods[0]} against {method}: {apart.mean():.2f} ± {error:.2f} decades, {better} : {worse}")
    print(f"{time.process_time() - begin:.0f} s of CPU time")


if __name__ == "__main__":
    main()
