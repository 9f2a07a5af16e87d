"""Points as people give them: texts as values, values checked against the parameters of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution

from glasses.configuration.unknown import unknown
from glasses.optuna.distributions import internal
from glasses.space.parameters import Choice, Parameter
from glasses.space.space import Space


def values_of(texts: Mapping[str, str], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """What texts mean; a text that means nothing stays as it is, and is refused when the point is checked."""
    values = {}
    for name, text in texts.items():
        parameter = parameters.get(name)
        if isinstance(parameter, Choice):
            matches = [each for each in parameter.values if _means(text, each)]
            values[name] = matches[0] if matches else text
        else:
            values[name] = _maybe_number(text)
    return values


def checked_point(
    values: Mapping[str, Any], parameters: Mapping[str, Parameter], distributions: Mapping[str, BaseDistribution], what: str
) -> dict[str, Any]:
    """A whole point, as the database can keep it."""
    space = Space(dict(parameters))
    raw, _ = space.read(dict(values), what)
    point = dict(space.form(raw[0]))
    for name, value in point.items():
        if not internal({name: value}, {name: distributions[name]}):
            raise ValueError(f"{name} = {value} lies between two steps of {parameters[name]}: give the nearest.")
    return point


def checked_part(
    values: Mapping[str, Any], parameters: Mapping[str, Parameter], distributions: Mapping[str, BaseDistribution], what: str
) -> dict[str, Any]:
    """Some values of a point, as the database can keep them."""
    for name in values:
        if name not in parameters:
            raise ValueError(unknown("parameter", name, list(parameters)))
    return checked_point(values, {name: parameters[name] for name in values}, distributions, what) if values else {}


def differing(values: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not as they were."""
    return {name: value for name, value in values.items() if name not in before or before[name] != value}


def _maybe_number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _means(text: str, choice: Any) -> bool:
    """Whether a text means a choice: it must be exactly its text, except that a number may have spaces around it."""
    if isinstance(choice, bool):
        return text == str(choice).lower()
    return text == choice if isinstance(choice, str) else text.strip() == str(choice)
