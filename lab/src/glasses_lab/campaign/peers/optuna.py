"""Optuna's samplers as methods, and its terminators on stored runs; in the optional environment (``make peers``).

Each decision fits the sampler's own model from scratch to all evaluations so far. Where a problem has parameters, Optuna is
given the same ones as its distributions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses_lab.campaign.methods import Player, Start
from glasses_lab.problems import Point, Problem, get


def distributions(problem: Problem) -> dict[str, Any]:
    """A box or parameters as Optuna calls them; the coordinates of a box are x0, x1, ..."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def of(parameter: Parameter) -> Any:
        match parameter:
            case Choice():
                return CategoricalDistribution(parameter.values)
            case Int():
                return IntDistribution(parameter.low, parameter.top, log=parameter.log, step=parameter.step or 1)
            case Float():
                return FloatDistribution(parameter.low, parameter.top, log=parameter.log, step=parameter.step)

    if problem.parameters is None:
        return {f"x{i}": FloatDistribution(*pair) for i, pair in enumerate(problem.bounds)}
    return {name: of(parameter) for name, parameter in problem.parameters.items()}


def params(box: dict[str, Any], x: Point) -> dict[str, Any]:
    """A point by the names of its distributions."""
    return dict(x) if isinstance(x, Mapping) else dict(zip(box, map(float, x), strict=True))


class Optuna:
    """A sampler of Optuna; the initial evaluations enter as finished trials."""

    def __init__(self, start: Start, sampler: Callable[[Any, int], Any]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study = optuna.create_study(sampler=sampler(optuna.samplers, start.seed))
        self.box, self.named = distributions(start.problem), start.problem.parameters is not None
        for x, y in zip(start.X, start.y, strict=True):
            told = optuna.trial.create_trial(params=params(self.box, x), distributions=self.box, value=float(y))
            self.study.add_trial(told)

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask(self.box)
        point = {name: self.trial.params[name] for name in self.box}
        return point if self.named else np.array([*point.values()])

    def tell(self, x: Point, y: float) -> None:
        self.study.tell(self.trial, y)

    def recommend(self) -> Point | None:
        return None


def _gp_sampler(start: Start) -> Player:
    told = start.exact
    return Optuna(start, lambda samplers, seed: samplers.GPSampler(seed=seed, n_startup_trials=1, deterministic_objective=told))


def terminator(record: dict[str, Any]) -> dict[str, Any]:
    """After how many decided evaluations Optuna's terminators would have stopped a stored run, by name.

    Its two for objectives without cross-validation: the expected minimum model regret against its median over earlier trials
    (Ishibashi et al. 2023), told that evaluations are exact; and its default, a bound on the regret (Makarova et al. 2022),
    against an error that is given, a hundredth of the standard deviation of the initial values. All else is as it comes: none
    stops before twenty trials, the first not before thirty.
    """
    import optuna
    from optuna.terminator import (
        EMMREvaluator,
        MedianErrorEvaluator,
        RegretBoundEvaluator,
        StaticErrorEvaluator,
        Terminator,
    )

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    exact = record["true"] is None
    box, n = distributions(get(record["problem"], seed=record["seed"])), record["initial"]
    kept = {"key": record["key"], "evaluations": record["evaluations"], "error": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        improvement = EMMREvaluator(deterministic_objective=exact, seed=0)
        error = StaticErrorEvaluator(0.01 * float(np.std(record["y"][:n])))
        judges = {
            "Optuna, model regret": Terminator(improvement, MedianErrorEvaluator(improvement)),
            "Optuna, regret bound 0.01 sd": Terminator(RegretBoundEvaluator(seed=0), error),
        }
        used = dict.fromkeys(judges, record["evaluations"])
        study = optuna.create_study()
        for m, (x, y) in enumerate(zip(record["x"], record["y"], strict=True), start=1):
            study.add_trial(optuna.create_trial(params=params(box, x), distributions=box, value=y))
            for name in [name for name, judge in judges.items() if m >= n and judge.should_terminate(study)]:
                used[name] = m - n
                del judges[name]
    return {**kept, "used": used}


PEERS: dict[str, Callable[[Start], Player]] = {
    "optuna-gp": _gp_sampler,
    "optuna-tpe": lambda start: Optuna(start, lambda samplers, seed: samplers.TPESampler(seed=seed, n_startup_trials=1)),
}
