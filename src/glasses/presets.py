"""Named settings: keyword arguments for ``minimize`` and ``Optimizer``."""

from __future__ import annotations

from typing import Any

from glasses.gaussian.ep import EP
from glasses.lookahead.losses import Glasses, TwoStage
from glasses.lookahead.oracles import LocalPenalization
from glasses.search.cascade import Cascade
from glasses.search.direct import Direct
from glasses.surrogate.fit import GaussianProcess, MaximumLikelihood
from glasses.surrogate.kernels import SquaredExponential


def default() -> dict[str, Any]:
    """What ``minimize`` uses when nothing is said: two-stage look-ahead, Matern-5/2 by MAP, cascade search."""
    return {"loss": TwoStage(), "model": GaussianProcess(), "search": Cascade()}


def paper() -> dict[str, Any]:
    """The paper's algorithm, to the letter where the letter is right: ``minimize(f, bounds, budget=30, **glasses.paper())``.

    Squared-exponential plus bias kernel, maximum likelihood from the best of 5 starts, local penalisation of the soft-plus
    transformed myopic loss, EP for the expected minimum (centred and normalised), DIRECT over the loss.
    """
    return {
        "loss": Glasses(oracle=LocalPenalization(softplus=True), expectation=EP()),
        "model": GaussianProcess(kernel=SquaredExponential(), fit=MaximumLikelihood(starts=5), bias=True),
        "search": Direct(),
    }
