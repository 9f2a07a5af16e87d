"""Test problems with their boxes and minima: ``get("Branin")``, ``names()``, and the wrappers."""

from glasses_lab.problems.functions import NINE, PAPER, get, names
from glasses_lab.problems.problem import Counter, Point, Problem, counted, embedded, mixed, negated, noisy, shifted

__all__ = [
    "NINE",
    "PAPER",
    "Counter",
    "Point",
    "Problem",
    "counted",
    "embedded",
    "get",
    "mixed",
    "names",
    "negated",
    "noisy",
    "shifted",
]
