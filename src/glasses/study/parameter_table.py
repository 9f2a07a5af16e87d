"""The ``[parameters]`` of a study file: each a range, choices, its unit, and the value that older trials are taken to have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from glasses.configuration.unknown import unknown
from glasses.space.parameters import Choice, Float, Int, Parameter

_NUMBERS = ("type", "low", "high", "log", "step")
_BESIDES = ("unit", "default")
_LONGEST_UNIT = 40


@dataclass(frozen=True)
class Described:
    """A parameter as the file describes it."""

    parameter: Parameter
    unit: str | None = None
    default: Any = None  # None: trials without it cannot be used


def described(given: Any) -> Described:
    """One entry of the table; a ``ValueError`` says what is wrong with it."""
    if isinstance(given, list):
        if len(given) == 2 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in given):
            return Described(Float(*given))
        raise ValueError(f"expected [low, high], or {{ choices = [...] }} for values without an order, got {given!r}.")
    if not isinstance(given, dict):
        raise ValueError(f"expected [low, high], {{ low = ..., high = ... }} or {{ choices = [...] }}, got {given!r}.")
    rest = {key: value for key, value in given.items() if key not in _BESIDES}
    parameter = _choice(rest) if "choices" in rest else _number(rest)
    unit = checked_unit(given["unit"]) if "unit" in given else None
    return Described(parameter, unit, _default(parameter, given["default"]) if "default" in given else None)


def checked_unit(given: Any) -> str:
    """A unit, such as "°C"."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable() or len(given) > _LONGEST_UNIT:
        raise ValueError(f'a unit is a text in quotes of at most {_LONGEST_UNIT} characters, such as "°C", got {given!r}.')
    return given.strip()


def _default(parameter: Parameter, given: Any) -> Any:
    """The value that trials from before the parameter are taken to have; of a number also one outside today's range."""
    return parameter.value(parameter.read(given, "default", "the range", outside=True))


def _choice(given: dict[str, Any]) -> Choice:
    if set(given) - {"choices", "type"} or given.get("type", "choice") != "choice":
        raise ValueError(f"a parameter with choices has nothing else, got {', '.join(given)}.")
    if not isinstance(given["choices"], list):
        raise ValueError(f"choices must be a list, got {given['choices']!r}.")
    if not all(isinstance(each, str | int | float | bool) for each in given["choices"]):
        raise ValueError(f"choices must be texts, numbers or true and false, got {given['choices']!r}.")
    if any(isinstance(each, float) and not math.isfinite(each) for each in given["choices"]):
        raise ValueError(f"choices must be finite, got {given['choices']!r}.")
    if any(isinstance(each, str) and "\0" in each for each in given["choices"]):
        raise ValueError("choices must not hold the character of code 0.")
    if len(set(given["choices"])) < len(given["choices"]):
        raise ValueError(f"choices must differ, also 1 and true or 2 and 2.0 in the database, got {given['choices']!r}.")
    return Choice(given["choices"])


def _number(given: dict[str, Any]) -> Float | Int:
    for key in given:
        if key not in _NUMBERS:
            raise ValueError(unknown("key", key, [*_NUMBERS, *_BESIDES, "choices"]))
    for key in ("low", "high"):
        if key not in given:
            raise ValueError(f"{key} is missing.")
    kind = given.get("type", "float")
    if kind not in ("float", "int"):
        raise ValueError(f'type must be "float", "int" or "choice", got {kind!r}.')
    settings = {key: value for key, value in given.items() if key != "type"}
    return Int(**settings) if kind == "int" else Float(**settings)
