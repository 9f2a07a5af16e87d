"""Optuna's distributions and this package's parameters: one as the other, and points in Optuna's internal numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from glasses.optuna.storage import contains
from glasses.space.parameters import Choice, Float, Int, Parameter


def parameter_of(distribution: BaseDistribution) -> Parameter | None:
    """Optuna's distribution as a parameter, or None if it cannot vary or cannot be resolved."""
    try:
        if isinstance(distribution, FloatDistribution):
            return Float(distribution.low, distribution.high, distribution.log, distribution.step)
        if isinstance(distribution, IntDistribution):
            step = None if distribution.step == 1 else distribution.step
            return Int(distribution.low, distribution.high, distribution.log, step)
        if isinstance(distribution, CategoricalDistribution):
            return Choice(distribution.choices)
    except ValueError:
        return None
    return None


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """A parameter as Optuna's distribution."""
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.top, parameter.log, parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.top, parameter.log, parameter.step or 1)
    return CategoricalDistribution(parameter.values)


def internal(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """The parameters in Optuna's internal numbers; empty unless they are a point of this space."""
    point = {}
    for name, distribution in distributions.items():
        try:
            point[name] = distribution.to_internal_repr(params[name])
        except (KeyError, TypeError, ValueError):
            return {}
    return point if is_point(point, distributions) else {}


def is_point(point: Mapping[str, float], distributions: Mapping[str, BaseDistribution]) -> bool:
    """Whether internal numbers are a point of this space."""
    return point.keys() == distributions.keys() and all(contains(distributions[name], v) for name, v in point.items())


def is_same_kind(stored: BaseDistribution, today: BaseDistribution) -> bool:
    """Whether a parameter is of the same kind as when a trial was stored; ranges, steps and choices may differ."""
    kind = type(stored) is type(today)
    return kind and getattr(stored, "log", False) == getattr(today, "log", False)


def including(distribution: BaseDistribution, value: Any) -> BaseDistribution:
    """The distribution, or one just wide enough for a number that was measured outside its range."""
    if internal({"it": value}, {"it": distribution}) or isinstance(distribution, CategoricalDistribution):
        return distribution
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return type(distribution)(min(distribution.low, value), max(distribution.high, value), log=distribution.log)  # type: ignore[arg-type]


class Placing:
    """Where stored trials lie in the space of today's ``distributions``, which may not be those of their time.

    Numbers outside a range keep their place beside it, for data that are measured. What cannot be placed: a choice that is none
    any more, a number that a logarithmic range cannot hold, a parameter without a default that the trial does not have.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], defaults: Mapping[str, Any] | None = None) -> None:
        self.distributions, self.defaults = distributions, dict(defaults or {})
        self._parameters = {name: parameter_of(each) for name, each in distributions.items()}

    def point(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The point of a trial; empty where it cannot be placed."""
        point = {**self.defaults, **params}
        if not params or any(name not in point or self.why_not(name, point[name]) for name in self.distributions):
            return {}
        return {name: point[name] for name in self.distributions}

    def part(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What can be placed of some parameters."""
        return {
            name: params[name] for name in self.distributions if name in params and self.why_not(name, params[name]) is None
        }

    def announced(self, decided: Mapping[str, float], known: Mapping[str, Any]) -> dict[str, Any]:
        """The point that was decided for a trial, from internal numbers; empty unless it is one. ``known``: what it has."""
        return external(decided, self.distributions) if is_point(decided, self.distributions) else {}

    def can_run(self, params: Mapping[str, Any]) -> bool:
        """Whether parameters are a point inside today's ranges."""
        return bool(internal(params, self.distributions))

    def why_not(self, name: str, value: Any) -> str | None:
        """Why this value of a parameter cannot be placed; None if it can."""
        parameter = self._parameters[name]
        if parameter is None:
            return "cannot be resolved"
        try:
            parameter.read(value, name, "the range", outside=True)
        except ValueError:
            return "is no choice any more" if isinstance(parameter, Choice) else "does not fit the range"
        return None


def external(point: Mapping[str, float], distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Internal numbers as parameters."""
    return {name: distributions[name].to_external_repr(value) for name, value in point.items()}


def sample_uniformly(distribution: BaseDistribution, u: float) -> Any:
    """The value at the share u of a distribution, in its own units: for ranges that no parameter can resolve."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(u * len(distribution.choices))]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if isinstance(distribution, IntDistribution):
        return min(
            distribution.low + int(u * ((distribution.high - distribution.low) // distribution.step + 1)) * distribution.step,
            distribution.high,
        )
    return min(distribution.low + u * (distribution.high - distribution.low), distribution.high)
