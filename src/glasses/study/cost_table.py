"""The ``[cost]`` of a study file: a formula, or what each parameter costs; checked to be positive wherever one looks."""

from __future__ import annotations

import math
from typing import Any

from glasses.configuration.tomlfile import TomlFile
from glasses.configuration.unknown import unknown
from glasses.space.parameters import Choice, Parameter
from glasses.study.formula import Formula
from glasses.study.parameter_table import checked_unit

_EXPECTED = 'formula = "0.2 + 0.01 * x", or a price per unit such as x = 0.01, or a table of prices such as [cost.size]'
_NAMES = ("formula", "unit")


def read_cost(file: TomlFile, parameters: dict[str, Parameter]) -> tuple[Formula | dict[str, Any] | None, str | None, float]:
    """What evaluations cost, as ``Cost`` takes it, the unit, and the cheapest; None, None and 1 where they are counted."""
    if "cost" not in file.content:
        return None, None, 1
    from glasses.loop.cost import Cost
    from glasses.space.space import Space

    given = file.content["cost"]
    if not isinstance(given, dict) or not given:
        file.refuse("cost", f"expected a table: [cost], then {_EXPECTED}.")
    if "cost" in parameters:
        file.refuse("cost", "is the name of a column of its own where evaluations differ in price: rename it.", "parameters")
    prices = {key: each for key, each in given.items() if not _is_ours(key, each, parameters)}
    unit = None
    if "unit" in given and "unit" not in prices:
        try:
            unit = checked_unit(given["unit"])
        except ValueError as error:
            file.refuse("unit", str(error), "cost")
    cost: Formula | dict[str, Any]
    if "formula" in given and "formula" not in prices:
        if prices:
            file.refuse(next(iter(prices)), "give either a formula or prices of parameters, not both.", "cost")
        try:
            cost = Formula(given["formula"], parameters)
        except ValueError as error:
            file.refuse("formula", str(error), "cost")
    elif prices:
        cost = {name: _price(file, name, each, parameters) for name, each in prices.items()}
    else:
        file.refuse("cost", f"says no price: write {_EXPECTED}.")
    try:
        return cost, unit, Cost(Space(parameters), cost).cheapest
    except ValueError as error:
        key = "formula" if isinstance(cost, Formula) else next(iter(prices))
        file.refuse(key, str(error).replace("give a function", "give a formula"), "cost")


def _is_ours(key: str, value: Any, parameters: dict[str, Parameter]) -> bool:
    """Whether this key is one of ``[cost]`` itself, and no parameter of that name."""
    return key in _NAMES and (key not in parameters or isinstance(value, str))


def _price(file: TomlFile, name: str, given: Any, parameters: dict[str, Parameter]) -> Any:
    """A price per unit, or the price of each value."""
    if name not in parameters:
        file.refuse(name, unknown("parameter", name, [*parameters, *_NAMES]), "cost")
    parameter = parameters[name]
    if isinstance(given, dict):
        return _prices(file, name, given, parameter)
    if isinstance(parameter, Choice):
        file.refuse(name, f"expected a price for each choice: [cost.{name}], then {_text(parameter.values[0])} = 1.0.", "cost")
    if not _is_number(given):
        file.refuse(name, f"expected a price per unit, such as 0.3, got {given!r}.", "cost")
    return given


def _prices(file: TomlFile, name: str, given: dict[str, Any], parameter: Parameter) -> dict[Any, float]:
    from glasses.space.space import all_raw

    if parameter.count is None:
        file.refuse(name, "has no list of values: give a price per unit, such as 0.3, or a formula.", "cost")
    for text, price in given.items():
        if not _is_number(price):
            file.refuse(text, f"expected a price, got {price!r}.", f"cost.{name}")
    if parameter.count > len(given):
        lacking = "" if parameter.count > 1000 else _lacking([parameter.value(raw) for raw in all_raw(parameter)], given)
        file.refuse(name, f"expected a price for each of its {parameter.count:g} values, got {len(given)}{lacking}.", "cost")
    values = [parameter.value(raw) for raw in all_raw(parameter)]
    texts = [_text(value) for value in values]
    if len(set(texts)) < len(texts):
        file.refuse(name, "has two values of the same name, which a table cannot tell apart: give a formula.", "cost")
    for text in given:
        if text not in texts:
            file.refuse(text, unknown(f"value of {name}", text, texts), f"cost.{name}")
    return {value: given[text] for value, text in zip(values, texts, strict=True)}


def _lacking(values: list[Any], given: dict[str, Any]) -> str:
    return f": {', '.join(text for text in map(_text, values) if text not in given)} has none"


def _text(value: Any) -> str:
    """A value as the key of a table."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e100 and math.isfinite(given)
