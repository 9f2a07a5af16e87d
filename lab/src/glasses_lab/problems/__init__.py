"""Test problems with their boxes and minima: ``get("Branin")``, ``names()``, and the wrappers."""

from glasses_lab.problems.functions import NINE, PAPER, get, names
from glasses_lab.problems.problem import Counter, Problem, counted, negated, noisy, shifted

__all__ = ["NINE", "PAPER", "Counter", "Problem", "counted", "get", "names", "negated", "noisy", "shifted"]
