"""The default search: value many candidates coarsely, few accurately, then polish the best with gradients.

1. propose  the candidate set (``propose``)
2. screen   the candidates of highest EI, and the predicted plan, under one common plan with a coarse value (``screen``)
3. value    the best of the screen, each with its own predicted steps (``value``)
4. polish   the best few by gradients with their steps held fixed, then value them again with their new steps

A myopic loss is valued at every candidate and polished (``myopic``). A loss that is valued by simulation is raced instead of
valued and polished (``race``). Steps, integers and choices are moved to what can be run before they are valued. The winner is
never a point already observed or pending unless the noise makes a repetition worth something.

Where the model is trusted in part only (``loop.trust``), the best point by expected loss is valued with the rest: a plan is
followed where it promises more than that point. Nothing is polished then: the maxima of EI are among the candidates, EI is the
larger part of such a value, and on 216 pairs of runs on COCO polishing brought nothing (.05 +- .03 decades worse).

Deterministic given the candidate set. What depends on the data (``propose``, ``look``) and what values points (``screen``,
``value``, the slope of ``polish``) are separate programs: the latter are compiled once per loss and horizon size, whatever the
number of observations and parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.lookahead.myopic import ExpectedLoss
from glasses.runtime.padding import horizon_size
from glasses.search.decision import Decision, Problem, decide, horizon, trusting
from glasses.search.myopic import best_myopic
from glasses.search.polish import polished
from glasses.search.propose import candidates_over, propose
from glasses.search.screen import screen
from glasses.search.value import SCREENED, value_points, with_gain_after_failure
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel


@dataclass(frozen=True)
class MultiStart:
    """Propose ``candidates``, value the ``screened`` best of them, polish the ``polished`` best of those."""

    candidates: int = 256
    screened: int = SCREENED
    polished: int = 4

    def __post_init__(self) -> None:
        for name, least in (("candidates", 16), ("screened", 1), ("polished", 1)):
            number = getattr(self, name)
            if not (isinstance(number, int) and number >= least):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}.")
        if not self.polished <= self.screened <= self.candidates:
            raise ValueError(
                f"The search narrows: polished <= screened <= candidates, got {self.polished}, {self.screened}, "
                f"{self.candidates}."
            )

    def decide(self, loss: Loss, kernel: Kernel, problem: Problem, rng: np.random.Generator) -> Decision:
        proposal = propose(kernel, problem, self.candidates, rng)
        n = min(horizon(loss, problem.remaining, problem.trust), self.candidates)
        trusted = loss.steps == "trusted" and problem.trust is not None
        alone = not len(problem.pending) and problem.samples is None
        if (isinstance(loss, ExpectedLoss) and alone) or (trusted and n == 1):
            return decide(None, proposal.eta, proposal.valued(problem))
        candidates = candidates_over(kernel, problem, proposal.points)
        if not loss.looks_ahead:
            candidates = with_gain_after_failure(candidates, problem, n, kernel, loss)
            found = best_myopic(candidates, problem, kernel, loss, count=2 * self.polished)
            return decide(None, candidates.eta, found)
        size = horizon_size(n)
        candidates = trusting(loss, candidates, problem.trust)
        screened = screen(candidates, n, size=size, count=self.screened)
        if trusted and loss.race is None:
            screened = np.concatenate([proposal.best[None], screened[:-1]])
        candidates = with_gain_after_failure(candidates, problem, n, kernel, loss, screened)
        valued = value_points(candidates, screened, problem, n, kernel, loss, rows=self.screened, size=size)
        if loss.race is not None or trusted:
            return decide(candidates, candidates.eta, valued)
        top = np.argsort(-valued.value, kind="stable")[: self.polished]
        cost = problem.cost_at(screened[top])
        passes = 8 if size <= 32 else 4  # far ahead the loss is flat: more passes were measured to find nothing
        ends = polished(candidates, screened[top], valued.steps[top], cost, n, kernel, loss, rows=self.screened, passes=passes)
        ends = snap(problem.lattice, ends)
        again = value_points(candidates, ends, problem, n, kernel, loss, rows=self.screened, size=size)
        return decide(candidates, candidates.eta, again, valued)
