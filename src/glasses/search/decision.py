"""What a search is given and what it returns: the next point, its merit and the steps predicted to follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.lookahead.scene import Scene
from glasses.space.lattice import Lattice
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior
from glasses.surrogate.success import Success

Price = Callable[[np.ndarray], np.ndarray]  # what evaluations cost at points of the unit cube: (n, d) -> (n,)


class Situation(NamedTuple):
    """Everything that is known when a decision is made, in the unit cube and standardised outputs."""

    post: Posterior
    pending: np.ndarray  # (P, d)
    left: int  # evaluations, the one being decided included
    lattice: Lattice | None = None
    success: Success | None = None  # None while nothing has failed
    every: np.ndarray | None = None  # all configurations of a small finite space
    price: Price | None = None  # what evaluations cost at points of the unit cube; None: budgets count evaluations
    purse: float = 0.0  # what may still be spent, in the units of ``price``
    doubt: Posterior | None = None  # the posterior under several draws of the hyperparameters, stacked
    fitted: Posterior | None = None  # the posterior of the values alone, where ``post`` also knows of failures


class Valued(NamedTuple):
    """Points with their merits and the futures they were valued under; one row each."""

    x: Any
    merit: Any  # larger is better; log(eta - Lambda) for an expected minimum
    mean: Any
    sd: Any
    futures: Any  # places of the scene: (M, H - 1); further axes before the last for outcomes, futures, members of an ensemble


class Decision(NamedTuple):
    """One decision, in the units of the unit cube and of standardised outputs."""

    x: np.ndarray  # (d,)
    merit: float
    eta: float
    steps: np.ndarray  # (at most H - 1, d): where the following evaluations are predicted to go; only the first n - 1 count
    mean: np.ndarray  # (H,) posterior mean at x and the steps
    sd: np.ndarray  # (H,)


def conclude(scene: Scene, *rounds: Valued) -> Decision:
    """The best point of all rounds, the first on a tie, with its predicted steps (those of the middle outcome)."""
    every = Valued(*(np.concatenate([np.asarray(a) for a in column]) for column in zip(*rounds, strict=True)))
    best = int(np.argmax(every.merit))
    steps = every.futures[best]
    while steps.ndim > 1:
        steps = steps[steps.shape[0] // 2]
    steps = steps[steps >= 0]
    mean = np.append(every.mean[best], np.asarray(scene.mu)[steps])
    sd = np.append(every.sd[best], np.sqrt(np.diagonal(np.asarray(scene.cov)))[steps])
    return Decision(every.x[best], float(every.merit[best]), float(scene.eta), np.asarray(scene.points)[steps], mean, sd)


class Search(Protocol):
    """Minimises a loss over the unit cube; ``places``: how many it surveys for one decision."""

    @property
    def places(self) -> int: ...

    def decide(self, loss: Loss, kernel: Kernel, situation: Situation, rng: np.random.Generator) -> Decision: ...
