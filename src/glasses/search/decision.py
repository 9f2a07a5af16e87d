"""What a search is given and what it returns: the next point, its acquisition value and the steps predicted to follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from glasses.lookahead.candidates import CandidateSet
from glasses.lookahead.loss import Loss
from glasses.runtime.padding import MAX_HORIZON
from glasses.space.lattice import Lattice
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior


class Trust(NamedTuple):
    """How far ahead the model is trusted (``loop.trust``)."""

    steps: int  # evaluations that are planned
    share: float  # of what a plan says that the later ones bring


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Everything that is known when a decision is made, in the unit cube and the model's units."""

    post: Posterior  # given the values, and told of the failures
    fitted: Posterior  # given the values alone
    pending: np.ndarray  # (P, d)
    remaining: int  # evaluations, the one being decided included
    lattice: Lattice | None = None
    feasibility: Feasibility | None = None  # None while nothing has failed
    configurations: np.ndarray | None = None  # all of a small finite space
    cost: Callable[[np.ndarray], np.ndarray] | None = None  # at points of the unit cube, (n, d) -> (n,); None: all cost 1
    budget: float = 0.0  # what may still be spent, in the units of ``cost``
    trust: Trust | None = None  # how far the model is trusted; None: to the end
    samples: Posterior | None = None  # ``post`` under several hyperparameter samples, stacked

    @property
    def d(self) -> int:
        return int(self.post.X.shape[1])

    def cost_at(self, X: Any) -> np.ndarray | None:
        """The cost of each row of X; None where there are no costs."""
        return None if self.cost is None else self.cost(np.asarray(X))


def horizon(loss: Loss, remaining: int, trust: Trust | None = None) -> int:
    """How many evaluations a loss plans when so many remain, the current one included."""
    steps = loss.steps if loss.steps != "trusted" else None if trust is None else trust.steps
    return min(remaining, MAX_HORIZON if steps is None else min(steps, MAX_HORIZON))


def trusting(loss: Loss, candidates: CandidateSet, trust: Trust | None) -> CandidateSet:
    """The candidate set with the share of a plan that is believed."""
    if loss.steps != "trusted" or trust is None:
        return candidates
    return candidates._replace(trust=np.asarray(trust.share))


class Valued(NamedTuple):
    """Points with their acquisition values and the steps they were valued with; one row each."""

    x: Any
    value: Any  # larger is better; log(eta - Lambda) for an expected minimum
    mean: Any
    sd: Any
    steps: Any  # indices of candidates: (M, H - 1); further axes before the last for outcomes, draws, hyperparameter samples


class Decision(NamedTuple):
    """One decision, in the units of the unit cube and of the model."""

    x: np.ndarray  # (d,)
    value: float
    eta: float
    steps: np.ndarray  # (at most H - 1, d): where the following evaluations are predicted to go; only the first n - 1 count
    mean: np.ndarray  # (H,) posterior mean at x and the steps
    sd: np.ndarray  # (H,)


def decide(candidates: CandidateSet | None, eta: Any, *rounds: Valued) -> Decision:
    """The best point of all rounds, the first on a tie, with its predicted steps (those of the middle outcome), which are
    indices of ``candidates``."""
    every = Valued(*(np.concatenate([np.asarray(a) for a in column]) for column in zip(*rounds, strict=True)))
    best = int(np.argmax(every.value))
    steps = every.steps[best]
    while steps.ndim > 1:
        steps = steps[steps.shape[0] // 2]
    steps = steps[steps >= 0]
    mean, sd, points = every.mean[best : best + 1], every.sd[best : best + 1], np.zeros((0, every.x.shape[1]))
    if candidates is not None:
        mean = np.append(mean, np.asarray(candidates.mu)[steps])
        sd = np.append(sd, np.sqrt(np.asarray(candidates.var)[steps]))
        points = np.asarray(candidates.points)[steps]
    return Decision(every.x[best], float(every.value[best]), float(eta), points, mean, sd)


class Search(Protocol):
    """Minimises a loss over the unit cube; ``candidates``: how many points it considers for one decision."""

    @property
    def candidates(self) -> int: ...

    def decide(self, loss: Loss, kernel: Kernel, problem: Problem, rng: np.random.Generator) -> Decision: ...
