"""GLASSES: Bayesian optimisation that plans for all the evaluations you have left.

``minimize(fun, bounds, budget=30)`` is the front door; ``Optimizer`` is the same as ask/tell. Names are loaded when they are
first used, so that commands which need no numerics do not wait for JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glasses.acquisition.myopic import ExpectedLoss, LowerConfidenceBound, ProbabilityOfImprovement
    from glasses.gaussian.ep import EP
    from glasses.gaussian.expected_min import expected_min
    from glasses.gaussian.qmc import QMC
    from glasses.lookahead.determinantal import DeterminantalPoints
    from glasses.lookahead.losses import Glasses, Marginalized, TwoStage
    from glasses.lookahead.oracles import KrigingBeliever, LocalPenalization, ThompsonPaths
    from glasses.lookahead.rollout import Rollout
    from glasses.loop.ledger import ExhaustedError, Failure
    from glasses.loop.minimize import minimize
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Forecast, Plan, Recommendation, Result
    from glasses.loop.stopping import NoGain, Price, Target
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
    "DeterminantalPoints",
    "Direct",
    "ExhaustedError",
    "ExpectedLoss",
    "Failure",
    "Float",
    "Forecast",
    "GaussianProcess",
    "Glasses",
    "Int",
    "Known",
    "KrigingBeliever",
    "LocalPenalization",
    "LowerConfidenceBound",
    "Marginalized",
    "Matern52",
    "MaximumLikelihood",
    "NoGain",
    "Optimizer",
    "Plan",
    "Price",
    "ProbabilityOfImprovement",
    "Recommendation",
    "Result",
    "Rollout",
    "SquaredExponential",
    "Target",
    "ThompsonPaths",
    "TwoStage",
    "default",
    "expected_min",
    "minimize",
    "paper",
]

_HOMES = {
    "acquisition.myopic": ("ExpectedLoss", "LowerConfidenceBound", "ProbabilityOfImprovement"),
    "gaussian.ep": ("EP",),
    "gaussian.expected_min": ("expected_min",),
    "gaussian.qmc": ("QMC",),
    "lookahead.determinantal": ("DeterminantalPoints",),
    "lookahead.losses": ("Glasses", "Marginalized", "TwoStage"),
    "lookahead.oracles": ("KrigingBeliever", "LocalPenalization", "ThompsonPaths"),
    "lookahead.rollout": ("Rollout",),
    "loop.ledger": ("ExhaustedError", "Failure"),
    "loop.minimize": ("minimize",),
    "loop.optimizer": ("Optimizer",),
    "loop.result": ("Forecast", "Plan", "Recommendation", "Result"),
    "loop.stopping": ("NoGain", "Price", "Target"),
    "parameters": ("Choice", "Float", "Int"),
    "presets": ("default", "paper"),
    "search.cascade": ("Cascade",),
    "search.direct": ("Direct",),
    "surrogate.fit": ("MAP", "GaussianProcess", "Known", "MaximumLikelihood"),
    "surrogate.kernels": ("Matern52", "SquaredExponential"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_PARTS = ("optuna", "plot", "problems")  # modules that are spelled glasses.optuna, glasses.plot, ...


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"glasses.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'glasses' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"glasses.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *_PARTS, "__version__"]
