"""The setting of the paper's figures: ten evaluations of the Six-hump camel function and its Gaussian process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from glasses import PAPER
from glasses.lookahead.losses import Glasses
from glasses.lookahead.oracles import LocalPenalization
from glasses.loop.optimizer import Optimizer
from glasses.search.propose import cover
from glasses_lab.problems import get

ORACLE = LocalPenalization()


def camel(left: int) -> Optimizer:
    """The paper's open loop after ten evaluations with ``left`` to go; the squared exponential fitted by likelihood."""
    problem = get("Sixhumpcamel")
    X = problem.from_unit(cover(2, 16, np.random.default_rng(3))[:10])
    return Optimizer(
        {"x1": problem.bounds[0], "x2": problem.bounds[1]},
        budget=len(X) + left,
        x0=X,
        y0=[problem(x) for x in X],
        n_initial=len(X),
        loss=Glasses(oracle=ORACLE),
        model=replace(PAPER.model, noise=0.0),
        seed=1,
    )


def grid(optimizer: Optimizer, resolution: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two axes and the (resolution^2, 2) points of their grid, in the user's units."""
    a, b = (np.linspace(low, high, resolution) for low, high in zip(optimizer.space.lower, optimizer.space.upper, strict=True))
    return a, b, np.stack(np.meshgrid(a, b, indexing="xy"), axis=-1).reshape(-1, 2)
