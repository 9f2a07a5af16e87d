"""GLASSES: Bayesian optimisation that plans for all the evaluations you have left.

``minimize(fun, bounds, budget=30)`` is the front door; ``Optimizer`` is the same as ask/tell.
"""

from glasses.acquisition.myopic import ExpectedLoss, LowerConfidenceBound, ProbabilityOfImprovement
from glasses.gaussian.ep import EP
from glasses.gaussian.expected_min import expected_min
from glasses.gaussian.qmc import QMC
from glasses.lookahead.losses import Glasses, TwoStage
from glasses.lookahead.oracles import KrigingBeliever, LocalPenalization
from glasses.loop.ledger import ExhaustedError, Failure
from glasses.loop.minimize import minimize
from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Plan, Recommendation, Result
from glasses.parameters import Choice, Float, Int
from glasses.presets import default, paper
from glasses.search.cascade import Cascade
from glasses.search.direct import Direct
from glasses.surrogate.fit import MAP, GaussianProcess, Known, MaximumLikelihood
from glasses.surrogate.kernels import Matern52, SquaredExponential

__version__ = "0.1.0"

__all__ = [
    "EP",
    "MAP",
    "QMC",
    "Cascade",
    "Choice",
    "Direct",
    "ExhaustedError",
    "ExpectedLoss",
    "Failure",
    "Float",
    "GaussianProcess",
    "Glasses",
    "Int",
    "Known",
    "KrigingBeliever",
    "LocalPenalization",
    "LowerConfidenceBound",
    "Matern52",
    "MaximumLikelihood",
    "Optimizer",
    "Plan",
    "ProbabilityOfImprovement",
    "Recommendation",
    "Result",
    "SquaredExponential",
    "TwoStage",
    "default",
    "expected_min",
    "minimize",
    "paper",
]
