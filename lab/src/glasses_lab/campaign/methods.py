"""The methods that can be compared: ours from the engine, two that do not learn, and the peers (loaded on demand).

A method starts from the initial evaluations. Then ``ask`` gives a point and ``tell`` takes its value; at the end ``recommend``
gives its estimate of the minimiser (None: the best observation). A point is an array, or a dict by name where the problem has
parameters: whole numbers and choices are then values that can be run.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from typing import Protocol as Interface

import numpy as np
from scipy.stats import qmc

from glasses.configuration.unknown import unknown
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, Marginalized, TwoStage
from glasses.lookahead.myopic import ExpectedLoss, LowerConfidenceBound, ProbabilityOfImprovement
from glasses.lookahead.oracles import ThompsonPaths
from glasses.lookahead.rollout import Rollout
from glasses.loop.optimizer import Optimizer
from glasses.presets import DEFAULT
from glasses.search.decision import Search
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses_lab.campaign.binoculars import Binoculars
from glasses_lab.campaign.protocols import Protocol
from glasses_lab.problems import Point, Problem
from glasses_lab.problems.own import is_own, own


@dataclass(frozen=True)
class Start:
    """What every method is given: the box, the same initial evaluations, what may be spent in all, and a seed."""

    problem: Problem  # for its name and its box or parameters; values come through tell
    protocol: Protocol
    X: Any  # (n, d), or a list of n dicts
    y: np.ndarray
    budget: int
    seed: int

    @property
    def exact(self) -> bool:
        """Whether evaluations are without noise, which our methods are told, and so the peers."""
        return self.protocol.noise_sd == 0


class Player(Interface):
    """One method in the middle of one run."""

    def ask(self) -> Point: ...

    def tell(self, x: Point, y: float) -> None: ...

    def recommend(self) -> Point | None: ...


class Ours:
    """An optimiser of this library."""

    def __init__(
        self,
        start: Start,
        loss: Loss,
        *,
        samples: int = 0,
        search: Search | None = None,
        model: GaussianProcess | None = None,
    ) -> None:
        model, usual = model or start.protocol.model(start.problem), start.protocol.search
        self.optimizer = Optimizer(
            start.problem.search_space,
            budget=start.budget,
            n_initial=len(start.y),
            x0=start.X,
            y0=start.y,
            loss=loss,
            model=replace(model, hyperparameter_samples=samples) if samples else model,
            search=search or usual,
            seed=start.seed,
        )

    def ask(self) -> Point:
        return self.optimizer.ask()

    def tell(self, x: Point, y: float) -> None:
        self.optimizer.tell(x, y)

    def recommend(self) -> Point | None:
        found = self.optimizer.result().recommended
        return None if found is None else found.x


class Blind:
    """Points that do not depend on the values."""

    def __init__(self, start: Start, points: np.ndarray) -> None:
        self.rest = iter(start.problem.from_unit(points))

    def ask(self) -> Point:
        return next(self.rest)

    def tell(self, x: Point, y: float) -> None:
        pass

    def recommend(self) -> Point | None:
        return None


def _default(start: Start) -> Player:
    """What ``minimize`` does unless told otherwise; told that evaluations are exact where they are."""
    model = DEFAULT.model if start.protocol.noise_sd else replace(DEFAULT.model, noise=0.0)
    return Ours(start, DEFAULT.loss, model=model, search=DEFAULT.search)


def _random(start: Start) -> Player:
    return Blind(start, np.random.default_rng(start.seed).random((start.budget - len(start.y), start.problem.d)))


def _sobol(start: Start) -> Player:
    count = max(1, start.budget - len(start.y))
    sequence = qmc.Sobol(start.problem.d, rng=np.random.default_rng(start.seed))
    return Blind(start, sequence.random_base2((count - 1).bit_length())[:count])


@dataclass(frozen=True)
class Method:
    """How to start it, what it is called in tables, the libraries it needs beyond the core, and the target of make for them."""

    start: Callable[[Start], Player]
    title: str
    needs: tuple[str, ...] = ()
    environment: str = "peers"

    def missing(self) -> list[str]:
        return [library for library in self.needs if importlib.util.find_spec(library) is None]


def _ahead(steps: int | None) -> Callable[[Start], Player]:
    return lambda start: Ours(start, start.protocol.looking_ahead(steps))


def _peer(name: str) -> Callable[[Start], Player]:
    def begin(start: Start) -> Player:
        from glasses_lab.campaign import peers

        return peers.PEERS[name](start)

    return begin


_BOTORCH, _OPTUNA = ("torch", "botorch"), ("optuna",)
METHODS = {
    "default": Method(_default, "default"),
    "mpi": Method(lambda start: Ours(start, ProbabilityOfImprovement()), "MPI"),
    "lcb": Method(lambda start: Ours(start, LowerConfidenceBound()), "GP-LCB"),
    "el": Method(lambda start: Ours(start, ExpectedLoss()), "EL"),
    "el-2": Method(_ahead(2), "EL-2"),
    "el-3": Method(_ahead(3), "EL-3"),
    "el-5": Method(_ahead(5), "EL-5"),
    "el-10": Method(_ahead(10), "EL-10"),
    "glasses": Method(_ahead(None), "GLASSES"),
    "two-stage": Method(lambda start: Ours(start, TwoStage(steps=None)), "two-stage"),
    "glasses-dpp": Method(lambda start: Ours(start, Glasses(DeterminantalPoints())), "GLASSES, DPP"),
    "marginal-dpp": Method(lambda start: Ours(start, Marginalized()), "marginal, DPP"),
    "marginal-ts": Method(lambda start: Ours(start, Marginalized(ThompsonPaths())), "marginal, Thompson"),
    "rollout": Method(lambda start: Ours(start, Rollout()), "rollout"),
    "el-samples": Method(lambda start: Ours(start, ExpectedLoss(), samples=8), "EL, samples"),
    "two-stage-samples": Method(lambda start: Ours(start, TwoStage(nodes=5, steps=None), samples=4), "two-stage, samples"),
    "binoculars": Method(lambda start: Ours(start, ExpectedLoss(), search=Binoculars()), "BINOCULARS, our model"),
    "random": Method(_random, "random"),
    "sobol": Method(_sobol, "Sobol"),
    "botorch-logei": Method(_peer("botorch-logei"), "BoTorch LogEI", _BOTORCH),
    "botorch-logei-exact": Method(_peer("botorch-logei-exact"), "BoTorch LogEI, noise-free", _BOTORCH),
    "botorch-tree-2": Method(_peer("botorch-tree-2"), "BoTorch tree, 2 steps", _BOTORCH),
    "botorch-tree-3": Method(_peer("botorch-tree-3"), "BoTorch tree, 3 steps", _BOTORCH),
    "botorch-tree-4": Method(_peer("botorch-tree-4"), "BoTorch tree, 4 steps", _BOTORCH),
    "botorch-binoculars": Method(_peer("botorch-binoculars"), "BINOCULARS, BoTorch", _BOTORCH),
    "optuna-gp": Method(_peer("optuna-gp"), "Optuna GPSampler", (*_OPTUNA, "torch")),
    "optuna-tpe": Method(_peer("optuna-tpe"), "Optuna TPE", _OPTUNA),
    "hebo": Method(_peer("hebo"), "HEBO", ("hebo",), "peers-hebo"),
    "smac": Method(_peer("smac"), "SMAC3, black box", ("smac",), "peers-smac"),
    "vizier": Method(_peer("vizier"), "Vizier GP bandit", ("vizier",), "peers-vizier"),
}


def method_of(name: str) -> Method:
    """The method of that name, or ``module:Class`` of the user's: started with a ``Start``, it has ``ask``, ``tell`` and
    ``recommend``."""
    if name in METHODS:
        return METHODS[name]
    if not is_own(name):
        raise ValueError(unknown("method", name, list(METHODS)))
    begin = own(name, "The method")
    if not callable(begin):
        raise ValueError(f"The method {name!r} must be a class that is made from a Start, got {begin!r}.")
    return Method(begin, name)
