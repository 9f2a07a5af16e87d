"""What is sent to the workers of an executor: the objective, called once. It needs no numerics, so that a process that is
started afresh does not load JAX for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def evaluate(fun: Callable[..., Any], x: Any) -> Any:
    """The objective at a point: by name where the bounds have names."""
    return fun(**x) if isinstance(x, dict) else fun(x)


class Negated:
    """The negated function; a class, so that processes can be sent it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *point: Any, **named: Any) -> Any:
        return negated(self.fun(*point, **named))


def negated(y: Any) -> Any:
    """-y, or y itself where it is no number: the failure then says what was really returned."""
    try:
        return -y
    except TypeError:
        return y


def negated_values(y: Any) -> Any:
    """Each of several values negated; what is no collection of them as one value is."""
    if y is None or isinstance(y, str | bytes):
        return y
    try:
        return [negated(each) for each in y]
    except TypeError:
        return negated(y)
