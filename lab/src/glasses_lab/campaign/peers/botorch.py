"""BoTorch as a method, in the optional environment (``make peers``).

Each decision fits BoTorch's own model from scratch to all evaluations so far, on the unit cube. Restarts and raw samples are
those of its tutorials.

Where a problem has parameters, BoTorch sees them ``one_hot``: LogEI is maximised over the cube from all its restarts, each
result is moved to a point that can be run (whole numbers rounded, of a choice the largest column), and of those the one with
the highest LogEI is taken. The recommendation is found in the same way. BoTorch's other rules are for boxes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.one_hot import OneHot
from glasses_lab.problems import Point

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


def _logei_exact(start: Start) -> Player:
    if not start.exact:
        raise ValueError("botorch-logei-exact assumes evaluations without noise: use botorch-logei under this protocol.")
    return Botorch(start, logei, True)


PEERS: dict[str, Callable[[Start], Player]] = {
    "botorch-logei": lambda start: Botorch(start, logei, False),
    "botorch-logei-exact": _logei_exact,
    "botorch-tree-2": lambda start: Botorch(start, partial(tree, steps=2), start.exact),
    "botorch-tree-3": lambda start: Botorch(start, partial(tree, steps=3), start.exact),
    "botorch-tree-4": lambda start: Botorch(start, partial(tree, steps=4), start.exact),
    "botorch-binoculars": lambda start: Botorch(start, binoculars, start.exact),
}
