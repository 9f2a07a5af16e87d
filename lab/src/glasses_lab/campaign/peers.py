"""The peers as methods: BoTorch and Optuna, in the optional environment (``make peers``).

Each decision fits the peer's own model from scratch to all evaluations so far, on the unit cube. Restarts and raw samples
are those of BoTorch's tutorials.

Where a problem has parameters, Optuna is given the same ones as its distributions. BoTorch sees them ``one_hot``: LogEI is
maximised over the cube from all its restarts, each result is moved to a point that can be run (whole numbers rounded, of a
choice the largest column), and of those the one with the highest LogEI is taken. The recommendation is found in the same way.
BoTorch's other rules are for boxes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.one_hot import OneHot
from glasses_lab.problems import Point, Problem, get

SEARCH: dict[str, Any] = {"num_restarts": 10, "raw_samples": 512}
BINOCULARS_BATCH = 12
TREES = {2: [5], 3: [5, 3], 4: [5, 3, 1]}  # fantasies per step
Rounding = Callable[[np.ndarray], np.ndarray]


def botorch_model(X: np.ndarray, y: np.ndarray, exact: bool) -> tuple[Any, Any, float]:
    """A SingleTaskGP fitted to -y, standardised; the bounds of the unit cube; the best value in its units.

    ``exact`` fixes the noise at 1e-6 of the variance of y.
    """
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    inputs, outputs = torch.as_tensor(X), torch.as_tensor(-np.asarray(y))[:, None]
    outputs = (outputs - outputs.mean()) / (float(outputs.std(correction=0)) or 1.0)
    known = torch.full_like(outputs, 1e-6) if exact else None
    model = SingleTaskGP(inputs, outputs, train_Yvar=known, outcome_transform=None)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    d = inputs.shape[1]
    return model, torch.stack([torch.zeros(d), torch.ones(d)]).double(), float(outputs.max())


def maximised(acquisition: Any, bounds: Any, rounded: Rounding | None = None) -> np.ndarray:
    """The point with the highest value; with ``rounded``, the best of what the restarts become by rounding."""
    import torch
    from botorch.optim import optimize_acqf

    def moved(candidates: Any) -> Any:
        flat = candidates.detach().reshape(-1, bounds.shape[1]).numpy()
        return torch.as_tensor(flat if rounded is None else rounded(flat)).reshape(candidates.shape)

    found = optimize_acqf(acquisition, bounds, q=1, post_processing_func=None if rounded is None else moved, **SEARCH)[0]
    return found[0].numpy()


def logei(X: np.ndarray, y: np.ndarray, left: int, exact: bool, rounded: Rounding | None = None) -> np.ndarray:
    """The next point by LogEI."""
    from botorch.acquisition import LogExpectedImprovement

    model, bounds, best = botorch_model(X, y, exact)
    return maximised(LogExpectedImprovement(model, best), bounds, rounded)


def tree(X: np.ndarray, y: np.ndarray, left: int, exact: bool, steps: int) -> np.ndarray:
    """The next point by a one-shot tree (Jiang et al. 2020): EI at every one of ``steps`` evaluations, at most what is left."""
    from botorch.acquisition import ExpectedImprovement
    from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
    from botorch.optim import optimize_acqf

    steps = min(steps, left)
    if steps == 1:
        return logei(X, y, left, exact)
    model, bounds, _ = botorch_model(X, y, exact)
    fantasies = TREES[steps]
    planned = qMultiStepLookahead(
        model,
        batch_sizes=[1] * len(fantasies),
        num_fantasies=fantasies,
        valfunc_cls=[ExpectedImprovement] * steps,
        valfunc_argfacs=[_best_so_far] * steps,
    )
    q = planned.get_augmented_q_batch_size(1)
    return optimize_acqf(planned, bounds, q=q, **SEARCH)[0].reshape(-1, X.shape[1])[0].numpy()


def _best_so_far(model: Any, X: Any) -> dict[str, Any]:
    """The best value of each fantasy, with the last dimension that EI's moments have (BoTorch's own helper lacks it)."""
    return {"best_f": model.train_targets.max(dim=-1, keepdim=True).values}


def binoculars(X: np.ndarray, y: np.ndarray, left: int, exact: bool) -> np.ndarray:
    """The point of highest EI of a batch that maximises the joint qEI (after Jiang et al. 2020, "q.EI.b")."""
    from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from torch import Size

    q = min(BINOCULARS_BATCH, left)
    if q == 1:
        return logei(X, y, left, exact)
    model, bounds, best = botorch_model(X, y, exact)
    joint = qLogExpectedImprovement(model, best, sampler=SobolQMCNormalSampler(Size([128]), seed=0))
    batch = optimize_acqf(joint, bounds, q=q, **SEARCH)[0]
    alone = LogExpectedImprovement(model, best)(batch[:, None, :])
    return batch[int(alone.argmax())].detach().numpy()


class Botorch:
    """A decision rule of BoTorch, fitted anew before every decision."""

    def __init__(self, start: Start, decide: Callable[..., np.ndarray], exact: bool) -> None:
        self.decide, self.exact, self.budget, self.seed = decide, exact, start.budget, start.seed
        self.rounded: Rounding | None = None
        self.encoding = OneHot(start.problem)
        if start.problem.parameters is not None:
            if decide is not logei:
                raise ValueError(f"{start.problem.name} has parameters, which of BoTorch's rules only LogEI takes: use a box.")
            self.rounded = self.encoding.rounded
            self.decide = partial(logei, rounded=self.rounded)
        self.X, self.y = [self.encoding.encode(x) for x in start.X], list(start.y)

    def ask(self) -> Point:
        import torch

        torch.manual_seed(self.seed + len(self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unit = self.decide(np.array(self.X), np.array(self.y), self.budget - len(self.y), self.exact)
        return self.encoding.decode(unit)

    def tell(self, x: Point, y: float) -> None:
        self.X.append(self.encoding.encode(x))
        self.y.append(y)

    def recommend(self) -> Point | None:
        import torch
        from botorch.acquisition import PosteriorMean

        torch.manual_seed(self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, bounds, _ = botorch_model(np.array(self.X), np.array(self.y), self.exact)
            unit = maximised(PosteriorMean(model), bounds, self.rounded)
        return self.encoding.decode(unit)


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


def _exact(start: Start) -> bool:
    """Whether evaluations are without noise, which our methods are told, and so the peers."""
    return start.protocol.noise_sd == 0


def _logei_exact(start: Start) -> Player:
    if not _exact(start):
        raise ValueError("botorch-logei-exact assumes evaluations without noise: use botorch-logei under this protocol.")
    return Botorch(start, logei, True)


def _gp_sampler(start: Start) -> Player:
    told = _exact(start)
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
    "botorch-logei": lambda start: Botorch(start, logei, False),
    "botorch-logei-exact": _logei_exact,
    "botorch-tree-2": lambda start: Botorch(start, partial(tree, steps=2), _exact(start)),
    "botorch-tree-3": lambda start: Botorch(start, partial(tree, steps=3), _exact(start)),
    "botorch-tree-4": lambda start: Botorch(start, partial(tree, steps=4), _exact(start)),
    "botorch-binoculars": lambda start: Botorch(start, binoculars, _exact(start)),
    "optuna-gp": _gp_sampler,
    "optuna-tpe": lambda start: Optuna(start, lambda samplers, seed: samplers.TPESampler(seed=seed, n_startup_trials=1)),
}
