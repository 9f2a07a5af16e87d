"""Named settings for ``minimize`` and ``Optimizer``: which loss, model and search decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from glasses.gaussian.ep import EP
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, TwoStage
from glasses.lookahead.oracles import LocalPenalization
from glasses.search.decision import Search
from glasses.search.direct import Direct
from glasses.search.multi_start import MultiStart
from glasses.surrogate.fit import MaximumLikelihood
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.kernels import Constant, SquaredExponential
from glasses.surrogate.outputs import Standardize


@dataclass(frozen=True)
class Preset:
    """A loss, a model and a search that belong together: ``minimize(f, bounds, budget=30, preset=glasses.PAPER)``.

    Arguments given beside a preset replace its parts. ``dataclasses.replace(PAPER, search=...)`` makes another one.

    Examples
    --------
    >>> from glasses import DEFAULT, ExpectedLoss
    >>> one_step = DEFAULT.with_parts(loss=ExpectedLoss())
    >>> one_step.model == DEFAULT.model
    True
    """

    loss: Loss
    model: GaussianProcess
    search: Search

    def with_parts(
        self, *, loss: Loss | None = None, model: GaussianProcess | None = None, search: Search | None = None
    ) -> Preset:
        """The same with the parts that are given."""
        return Preset(
            self.loss if loss is None else loss,
            self.model if model is None else model,
            self.search if search is None else search,
        )

    def with_noise(self, noise: float) -> Preset:
        """The same with this standard deviation of an evaluation."""
        return replace(self, model=replace(self.model, noise=noise))


DEFAULT = Preset(loss=TwoStage(), model=GaussianProcess(), search=MultiStart())
"""What is used by default: two-stage look-ahead as far as the model is trusted, bad outputs compressed, a partly additive
Matern-5/2 by MAP, multi-start search."""

PAPER = Preset(
    loss=Glasses(oracle=LocalPenalization(softplus=True), expectation=EP()),
    model=GaussianProcess(
        kernel=SquaredExponential() + Constant(),
        fit=MaximumLikelihood(starts=5),
        constant_mean=False,
        outputs=Standardize(),
    ),
    search=Direct(),
)
"""The paper's algorithm with its errors corrected: squared-exponential plus bias kernel, maximum likelihood from
the best of 5 starts, local penalisation of the soft-plus transformed myopic loss, EP for the expected minimum (centred and
normalised), DIRECT over the loss."""
