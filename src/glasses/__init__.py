"""GLASSES: Bayesian optimisation that plans for all the evaluations you have left.

``minimize(fun, bounds, budget=30)`` is the front door; ``Optimizer`` is the same as ask/tell. The parts that a decision is
composed of are in subpackages: ``glasses.lookahead`` (losses and oracles), ``glasses.surrogate`` (models and kernels),
``glasses.search``, ``glasses.gaussian`` (expected minima). Names are loaded when they are first used, so that commands which
need no numerics do not wait for JAX. What is evaluated, decided and fitted is logged by the loggers below ``"glasses"``
(``glasses.loop.progress``); nothing is written until the user gives one of them a handler.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glasses.lookahead.losses import Glasses, TwoStage
    from glasses.lookahead.myopic import ExpectedLoss
    from glasses.loop.ledger import ExhaustedError, Failure
    from glasses.loop.maximize import maximize
    from glasses.loop.minimize import minimize
    from glasses.loop.optimizer import Optimizer
    from glasses.loop.result import Forecast, Plan, Recommendation, Result
    from glasses.loop.stopping import NoGain, Price, Target
    from glasses.presets import DEFAULT, PAPER, Preset
    from glasses.space.parameters import Choice, Float, Int
    from glasses.surrogate.gaussian_process import GaussianProcess

__version__ = "0.1.0"
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "DEFAULT",
    "PAPER",
    "Choice",
    "ExhaustedError",
    "ExpectedLoss",
    "Failure",
    "Float",
    "Forecast",
    "GaussianProcess",
    "Glasses",
    "Int",
    "NoGain",
    "Optimizer",
    "Plan",
    "Preset",
    "Price",
    "Recommendation",
    "Result",
    "Target",
    "TwoStage",
    "maximize",
    "minimize",
]

_HOMES = {
    "lookahead.losses": ("Glasses", "TwoStage"),
    "lookahead.myopic": ("ExpectedLoss",),
    "loop.ledger": ("ExhaustedError", "Failure"),
    "loop.maximize": ("maximize",),
    "loop.minimize": ("minimize",),
    "loop.optimizer": ("Optimizer",),
    "loop.result": ("Forecast", "Plan", "Recommendation", "Result"),
    "loop.stopping": ("NoGain", "Price", "Target"),
    "presets": ("DEFAULT", "PAPER", "Preset"),
    "space.parameters": ("Choice", "Float", "Int"),
    "surrogate.gaussian_process": ("GaussianProcess",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_PARTS = (
    "ax",
    "botorch",
    "gaussian",
    "lookahead",
    "optuna",
    "plot",
    "search",
    "sklearn",
    "surrogate",
    "testing",
)  # spelled glasses.optuna, glasses.plot, ...


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"glasses.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'glasses' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"glasses.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *_PARTS, "__version__"]
