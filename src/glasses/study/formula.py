"""A formula in a study file, such as ``0.2 + 0.01 * temperature``: arithmetic over the names of parameters, and nothing else.

The text is parsed as Python and every part of it is looked at before anything is computed: numbers, parameters, ``+ - * / **``,
``min`` and ``max``, and ``A if CONDITION else B`` with comparisons as conditions. What is not on this list is refused, so a
file from others can compute a number and do nothing else. All numbers are floats, so a power is at once there or out of range.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from glasses.configuration.unknown import unknown
from glasses.space.parameters import Choice, Parameter

_LONGEST = 2000  # characters
_DEEPEST = 100  # parts within each other
_OPERATORS: dict[type, Callable[[float, float], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_ORDERS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EQUALITIES: dict[type, Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_ALLOWED = "numbers, names of parameters, + - * / **, min, max, and A if B == C else D"

_Number = Callable[[Mapping[str, Any]], float]
_Condition = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Formula:
    """A number for every point of these parameters, which are given by name; NaN where it is none (a division by zero)."""

    text: str
    parameters: dict[str, Parameter]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_number", _Reader(self.parameters).read(self.text))

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text, self.parameters)

    def __call__(self, /, **point: Any) -> float:
        number: _Number = self._number  # type: ignore[attr-defined]
        try:
            return number(point)
        except ArithmeticError:  # also the root of a negative number, a complex one
            return math.nan


class _Reader:
    """Turns a text into functions of a point, one within the other as its parts are."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = parameters
        self.depth = 0
        self.text = ""

    def read(self, text: str) -> _Number:
        if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST:
            raise ValueError(f'expected a formula in quotes of at most {_LONGEST} characters, such as "0.2 + 0.01 * x".')
        try:
            self.text = text.strip()
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            what = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
            raise ValueError(f"{text!r} is not a formula ({what}): it may hold {_ALLOWED}.") from None
        return self._number(tree.body)

    def _number(self, node: ast.expr) -> _Number:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(f"the formula has more than {_DEEPEST} parts within each other: make it shorter.")
        try:
            return self._part(node)
        finally:
            self.depth -= 1

    def _part(self, node: ast.expr) -> _Number:
        match node:
            case ast.Constant(value=bool() | str()):
                self._refuse(node, "is no number: a choice may only be compared, as in 5 if catalyst == 'zeolite' else 1")
            case ast.Constant(value=int() | float() as value):
                return _constant(value)
            case ast.Name(id=name):
                return self._named(name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign):
                inner = self._number(node.operand)
                return (lambda point: -inner(point)) if isinstance(sign, ast.USub) else inner
            case ast.BinOp() if type(node.op) in _OPERATORS:
                apply, left, right = _OPERATORS[type(node.op)], self._number(node.left), self._number(node.right)
                return lambda point: _real(apply(left(point), right(point)))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=arguments, keywords=[]):
                if len(arguments) < 2 or any(isinstance(each, ast.Starred) for each in arguments):
                    self._refuse(node, f"must have at least two numbers: {name}(a, b)")
                numbers = [self._number(each) for each in arguments]
                if name == "min":
                    return lambda point: min(number(point) for number in numbers)
                return lambda point: max(number(point) for number in numbers)
            case ast.IfExp():
                condition, then, otherwise = self._condition(node.test), self._number(node.body), self._number(node.orelse)
                return lambda point: then(point) if condition(point) else otherwise(point)
            case ast.Compare():
                self._refuse(node, "is no number: a comparison stands between if and else, as in 5 if x > 3 else 1")
        return self._refuse(node, f"is not allowed: a formula may hold {_ALLOWED}")

    def _named(self, name: str) -> _Number:
        self._check_known(name)
        if not self._is_number(name):
            raise ValueError(f"{name!r} is no number: compare it, as in 5 if {name} == {self._choices(name)[0]!r} else 1.")
        return lambda point: float(point[name])

    def _condition(self, node: ast.expr) -> _Condition:
        if not isinstance(node, ast.Compare):
            self._refuse(node, "is no comparison: between if and else stands one, as in 5 if x > 3 else 1")
        sides = [node.left, *node.comparators]
        pairs = [self._comparison(op, *both) for op, both in zip(node.ops, itertools.pairwise(sides), strict=True)]
        return lambda point: all(pair(point) for pair in pairs)

    def _comparison(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> _Condition:
        if type(op) in _EQUALITIES:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ast.Name) and one.id in self.parameters and not self._is_number(one.id):
                    return self._is_choice(one.id, other, _EQUALITIES[type(op)])
        apply = {**_EQUALITIES, **_ORDERS}.get(type(op))
        if apply is None:
            raise ValueError("comparisons in a formula are made with ==, !=, <, <=, > or >=.")
        a, b = self._number(left), self._number(right)
        return lambda point: apply(a(point), b(point))

    def _is_choice(self, name: str, node: ast.expr, apply: Callable[[Any, Any], bool]) -> _Condition:
        """The comparison of a choice with one of its values; anything else would never be true."""
        value: Any
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as size)) if _is_plain(size):
                value = -size
            case ast.Constant(value=str() | int() | float() as found):
                value = found
            case _:
                self._refuse(node, f"cannot be compared with {name}: give one of its values")
        choices = self._choices(name)
        if not any(each == value and isinstance(each, bool) == isinstance(value, bool) for each in choices):
            raise ValueError(unknown(f"choice of {name}", str(value), [str(each) for each in choices]))
        return lambda point: apply(point[name], value)

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        part = ast.get_source_segment(self.text, node) or self.text
        raise ValueError(f"{part if len(part) <= 60 else part[:57] + '...'!r} {why}.")

    def _check_known(self, name: str) -> None:
        if name not in self.parameters:
            raise ValueError(unknown("parameter", name, list(self.parameters)))

    def _is_number(self, name: str) -> bool:
        parameter = self.parameters[name]
        return not isinstance(parameter, Choice) or all(map(_is_plain, parameter.values))

    def _choices(self, name: str) -> list[Any]:
        parameter = self.parameters[name]
        assert isinstance(parameter, Choice)
        return list(parameter.values)


def _constant(given: float) -> _Number:
    try:
        value = float(given)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("a number of the formula is too large.")
    return lambda point: value


def _real(value: Any) -> float:
    if isinstance(value, complex):
        raise ArithmeticError
    return float(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
