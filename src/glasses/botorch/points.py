"""The points of the candidate set: an even cover of the box, points around the best one, the maxima of expected improvement.

They are those of the engine's own search (``search.propose``), found through the model's posterior: the climbs start at the
best well-separated points, and what is climbed is the expected improvement over the best value and what is pending. Where
two climbs end at one point, another point of the cover stands for the second: the number of candidates, for which programs are
compiled, is always the same, and no step is predicted twice for the want of others.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from glasses.botorch.candidates import Box, ModelCandidates
from glasses.botorch.joint import JointPosterior
from glasses.botorch.value import values
from glasses.lookahead.myopic import ExpectedLoss
from glasses.numerics.bfgs import minimize_outside
from glasses.search.propose import cover, neighbourhood, separated

_STARTS = 16
_PASSES = 40
_SAME_TOP = 1e-4  # of the sides of the box: maxima nearer than that are one


def candidate_points(joint: JointPosterior, box: Box, count: int, pending: Tensor, best: Tensor, seed: int) -> Tensor:
    """``count`` points of a cover and some more, (C, d)."""
    d, rng = len(box.low), np.random.default_rng(seed)
    spread = cover(d, count + _STARTS, rng)
    spread, spare = spread[:count], spread[count:]
    near = neighbourhood(d, max(_STARTS, count // 8), rng)
    points = np.concatenate([spread, np.clip(_best_point(joint, box, spread) + near, 0.0, 1.0)])
    few = ModelCandidates(joint, box, box.point(spread[:_STARTS]), pending, best)
    with torch.no_grad():
        log_ei = values(few, box.point(points), 1, ExpectedLoss()).cpu().numpy()

    def descend(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = box.point(unit).requires_grad_(True)
        with torch.enable_grad():
            value = values(few, X, 1, ExpectedLoss())
            (slope,) = torch.autograd.grad(value.sum(), X)
        slope = slope * (box.high - box.low)
        return -value.detach().cpu().numpy(), -slope.double().cpu().numpy()

    starts = points[separated(log_ei, points, _STARTS)]
    tops = minimize_outside(descend, starts, passes=_PASSES, first_step=0.02, tolerance=1e-7).x
    near_earlier = np.tril(np.max(np.abs(tops[:, None] - tops[None]), axis=-1) < _SAME_TOP, -1).any(axis=1)
    return box.point(np.concatenate([points, np.where(near_earlier[:, None], spare, tops)]))


def cover_points(box: Box, seed: int) -> Tensor:
    """A few points spread over the box: enough to see its scale where no steps follow."""
    return box.point(cover(len(box.low), _STARTS, np.random.default_rng(seed)))


def _best_point(joint: JointPosterior, box: Box, spread: np.ndarray) -> np.ndarray:
    """The point inside the box with the best posterior mean, of those the model has seen, else of the cover."""
    X = inside(joint.data(), box)
    X = box.point(spread) if X is None else X
    with torch.no_grad():
        return box.unit(X)[int(joint(X)[0].mean(dim=0).argmin())]


def inside(X: Tensor | None, box: Box) -> Tensor | None:
    """The rows inside the box; None if there are none."""
    if X is None:
        return None
    kept = X[(box.high >= X).all(dim=1) & (box.low <= X).all(dim=1)]
    return kept if len(kept) else None
