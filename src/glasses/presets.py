"""Named settings for ``minimize`` and ``Optimizer``: which loss, model and search decide."""

from __future__ import annotations

from dataclasses import dataclass

from glasses.gaussian.ep import EP
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, TwoStage
from glasses.lookahead.oracles import LocalPenalization
from glasses.search.cascade import Cascade
from glasses.search.decision import Search
from glasses.search.direct import Direct
from glasses.surrogate.fit import MaximumLikelihood
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.kernels import SquaredExponential


@dataclass(frozen=True)
class Preset:
    """A loss, a model and a search that belong together: ``minimize(f, bounds, budget=30, preset=glasses.PAPER)``.

    Arguments given beside a preset replace its parts. ``dataclasses.replace(PAPER, search=...)`` makes another one.
    """

    loss: Loss
    model: GaussianProcess
    search: Search


DEFAULT = Preset(loss=TwoStage(), model=GaussianProcess(), search=Cascade())
"""What is used when nothing is said: two-stage look-ahead, Matern-5/2 by MAP, multi-start search."""

PAPER = Preset(
    loss=Glasses(oracle=LocalPenalization(softplus=True), expectation=EP()),
    model=GaussianProcess(kernel=SquaredExponential(), fit=MaximumLikelihood(starts=5), bias=True),
    search=Direct(),
)
"""The paper's algorithm, to the letter where the letter is right: squared-exponential plus bias kernel, maximum likelihood from
the best of 5 starts, local penalisation of the soft-plus transformed myopic loss, EP for the expected minimum (centred and
normalised), DIRECT over the loss."""
