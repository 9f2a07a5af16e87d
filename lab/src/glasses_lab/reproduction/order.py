"""How far a loss distinguishes which point of its plan should come first.

The open loop values a *set*: E[min] over x* and the steps predicted after it. If x* is any member of a good set and the oracle
fills in the others, the value is the same, so the open loop hardly tells which member to evaluate first. Here it is measured:
draws from a GP with a known kernel, six evaluations, ten left. Each of the ten points of the plan is valued as the first one.

    firmness = 1 - (smallest gain) / (largest gain) over the points of the plan, each as the first          [eq:firm]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, TwoStage
from glasses.loop.optimizer import Optimizer
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import get

PROBLEM, EVALUATED, LEFT = "GP-SE-2-0.1", 6, 10


@dataclass(frozen=True)
class Order:
    """Medians over the draws."""

    firmness: float
    better_ei: float  # points of the plan, out of LEFT, with a higher EI than the chosen one


def order_matters(loss: Loss, draws: int = 40) -> Order:
    """The measures of one loss."""
    found = []
    for seed in range(draws):
        problem = get(PROBLEM, seed=seed)
        X = np.random.default_rng([seed, EVALUATED]).random((EVALUATED, problem.d))
        optimizer = Optimizer(
            problem.bounds,
            budget=EVALUATED + LEFT,
            n_initial=EVALUATED,
            x0=X,
            y0=[problem(x) for x in X],
            model=PROTOCOLS["known"].model(problem),
            loss=loss,
            seed=seed,
        )
        points, best = np.array(optimizer.plan().points), min(optimizer.values)
        gain, ei = best - optimizer.loss_at(points), best - optimizer.loss_at(points, left=1)
        found.append((1 - gain.min() / gain.max(), np.sum(ei > ei[0] * (1 + 1e-6))))
    return Order(*np.median(found, axis=0).tolist())


def table(draws: int = 40) -> str:
    """Both losses, as Markdown."""
    lines = ["| loss | firmness | points of the plan with a higher EI than the first |", "| --- | --- | --- |"]
    for name, loss in (("GLASSES (open loop)", Glasses()), ("two-stage", TwoStage())):
        order = order_matters(loss, draws)
        lines.append(f"| {name} | {order.firmness:.1%} | {order.better_ei:.0f} of {LEFT - 1} |")
    return "\n".join(lines)
