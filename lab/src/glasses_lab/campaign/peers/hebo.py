"""HEBO 0.3 (Cowen-Rivers et al. 2022) as a method, in an environment of its own (``make peers-hebo``).

Its optimiser as it comes: power-transformed values, a GP, and a random point of the Pareto front of three acquisition
functions. It starts from the initial evaluations instead of its own Sobol points. It has no setting for exact evaluations: it
learns the noise, at least 8e-4 of the variance.

HEBO draws from the global generators of NumPy and torch. They are seeded before each decision with the seed of the run and the
number of evaluations, so a run can be repeated. This needs pymoo 0.6.0, which HEBO asks for: later ones draw from a generator
that nobody can seed here. Whole numbers are its ``int``, logarithmic scales its ``pow`` and ``pow_int``, choices its ``cat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.peers.axes import Axes, Axis
from glasses_lab.campaign.peers.calls import peer_call
from glasses_lab.problems import Point


class Hebo:
    """HEBO's optimiser, one suggestion at a time."""

    def __init__(self, start: Start) -> None:
        with peer_call():
            from hebo.design_space.design_space import DesignSpace
            from hebo.optimizers.hebo import HEBO
            from pymoo.config import Config

            Config.warnings["not_compiled"] = False  # printed otherwise

            self.axes, self.seed, self.count = Axes(start.problem), start.seed, 0
            space = DesignSpace().parse([described(name, each) for name, each in self.axes.by_name.items()])
            self.optimizer = HEBO(space, rand_sample=2, scramble_seed=start.seed)  # 2: the fewest it takes
        for x, y in zip(start.X, start.y, strict=True):
            self.tell(x, float(y))

    def ask(self) -> Point:
        import torch

        np.random.seed((self.seed + self.count) % 2**32)
        torch.manual_seed(self.seed + self.count)
        with peer_call():
            row = self.optimizer.suggest(1).iloc[0]
        return self.axes.decode(row.to_dict())

    def tell(self, x: Point, y: float) -> None:
        import pandas as pd

        with peer_call():
            self.optimizer.observe_new_data(pd.DataFrame([self.axes.encode(x)]), np.array([[y]]))
        self.count += 1

    def recommend(self) -> Point | None:
        return None


def described(name: str, axis: Axis) -> dict[str, Any]:
    """One entry of HEBO's design space."""
    if axis.kind == "label":
        return {"name": name, "type": "cat", "categories": axis.labels}
    kinds = {("real", False): "num", ("real", True): "pow", ("whole", False): "int", ("whole", True): "pow_int"}
    return {"name": name, "type": kinds[axis.kind, axis.log], "lb": axis.low, "ub": axis.high}


PEERS: dict[str, Callable[[Start], Player]] = {"hebo": Hebo}
