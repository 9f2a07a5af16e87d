"""The test functions: definitions, boxes and minima; ``get("Ackley-5")`` finds one by name.

The tests search every box for a value below its minimum. Sources: the
paper's table with its misprints corrected (signs of Cosines and Alpine2, domain of Alpine2, see docs/paper.md), Surjanovic
and Bingham's collection, and the nine functions that Jiang et al. (2020) compare multi-step trees on (names starting with a
lower-case letter where the box differs from the paper's).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from glasses.configuration.unknown import unknown
from glasses_lab.problems.bbob import bbob_by_name
from glasses_lab.problems.gp_draw import draw_by_name
from glasses_lab.problems.laboratory import LABORATORY, laboratory_by_name
from glasses_lab.problems.own import is_own, own
from glasses_lab.problems.problem import Function, Problem, embedded, shifted
from glasses_lab.problems.tuning import TUNING, tuning_by_name


def sincos(x: np.ndarray) -> float:
    return x[0] * np.sin(x[0]) + x[0] * np.cos(2 * x[0])


def cosines(x: np.ndarray) -> float:
    u = 1.6 * x - 0.5
    return np.sum(u**2 - 0.3 * np.cos(3 * np.pi * u)) - 1.0


def branin(x: np.ndarray) -> float:
    a, b = x
    return (b - 5.1 * a**2 / (4 * np.pi**2) + 5 * a / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def sixhumpcamel(x: np.ndarray) -> float:
    a, b = x
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (-4 + 4 * b**2) * b**2


def mccormick(x: np.ndarray) -> float:
    a, b = x
    return np.sin(a + b) + (a - b) ** 2 - 1.5 * a + 2.5 * b + 1


def dropwave(x: np.ndarray) -> float:
    r2 = np.sum(x**2)
    return -(1 + np.cos(12 * np.sqrt(r2))) / (0.5 * r2 + 2)


def beale(x: np.ndarray) -> float:
    a, b = x
    return (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2


def powers(x: np.ndarray) -> float:
    return np.sum(np.abs(x) ** np.arange(2, x.size + 2))


def alpine2(x: np.ndarray) -> float:
    return -np.prod(np.sqrt(x) * np.sin(x))


def ackley(x: np.ndarray) -> float:
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


def eggholder(x: np.ndarray) -> float:
    a, b = x
    return -(b + 47) * np.sin(np.sqrt(abs(b + a / 2 + 47))) - a * np.sin(np.sqrt(abs(a - b - 47)))


def shubert(x: np.ndarray) -> float:
    i = np.arange(1, 6)
    return np.prod(np.sum(i * np.cos((i + 1) * x[:, None] + i), axis=1))


def rastrigin(x: np.ndarray) -> float:
    return np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10)


def bukin(x: np.ndarray) -> float:
    a, b = x
    return 100 * np.sqrt(abs(b - 0.01 * a**2)) + 0.01 * abs(a + 10)


_SHEKEL_BETA = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10
_SHEKEL_C = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
)


def shekel(m: int) -> Function:
    centres, beta = _SHEKEL_C[:, :m], _SHEKEL_BETA[:m]
    return lambda x: -float(np.sum(1 / (np.sum((x[:, None] - centres) ** 2, axis=0) + beta)))


def _problem(name: str, function: Function, bounds: list[tuple[float, float]], minimum: float, minimizers: Any) -> Problem:
    return Problem(name, function, tuple(bounds), minimum, np.array(minimizers, dtype=float).reshape(-1, len(bounds)))


_BRANIN = [(-np.pi, 12.275), (np.pi, 2.275), (3 * np.pi, 2.475)]  # the first lies above 10
_SHUBERT = sorted(
    {pair for a, b in product((-7.083506, -0.800321, 5.482864), (-7.708314, -1.425128, 4.858057)) for pair in ((a, b), (b, a))}
)
_SIXHUMP = [(0.08984201, -0.71265640), (-0.08984201, 0.71265640)]

_FIXED: dict[str, Callable[[str], Problem]] = {
    "SinCos": lambda name: _problem(name, sincos, [(0, 10)], -9.508350440633095, [[4.795408686623036]]),
    "Cosines": lambda name: _problem(name, cosines, [(0, 1)] * 2, -1.6, [[0.3125, 0.3125]]),
    "Branin": lambda name: _problem(name, branin, [(-5, 10), (-5, 10)], 0.39788735772973816, _BRANIN[1:]),
    "Branin-standard": lambda name: _problem(name, branin, [(-5, 10), (0, 15)], 0.39788735772973816, _BRANIN),
    "Sixhumpcamel": lambda name: _problem(name, sixhumpcamel, [(-2, 2), (-1, 1)], -1.0316284534898774, _SIXHUMP),
    "McCormick": lambda name: _problem(
        name, mccormick, [(-1.5, 4), (-3, 4)], -1.9132229549810362, [[-0.54719755, -1.54719755]]
    ),
    "Dropwave": lambda name: _problem(name, dropwave, [(-1, 1)] * 2, -1.0, [[0, 0]]),
    "Beale": lambda name: _problem(name, beale, [(-1, 1)] * 2, 4.368527115970508, [[1.0, -0.1881624]]),
    "Powers": lambda name: _problem(name, powers, [(-1, 1)] * 2, 0.0, [[0, 0]]),
    "eggholder": lambda name: _problem(name, eggholder, [(-512, 512)] * 2, -959.640662720851, [[512, 404.23180506]]),
    "dropwave": lambda name: _problem(name, dropwave, [(-5.12, 5.12)] * 2, -1.0, [[0, 0]]),
    "shubert": lambda name: _problem(name, shubert, [(-10, 10)] * 2, -186.73090883102384, _SHUBERT),
    "bukin": lambda name: _problem(name, bukin, [(-15, -5), (-3, 3)], 0.0, [[-10, 1]]),
    "shekel-5": lambda name: _problem(name, shekel(5), [(0, 10)] * 4, -10.153199679058231, [[4.00003715, 4.00013328] * 2]),
    "shekel-7": lambda name: _problem(name, shekel(7), [(0, 10)] * 4, -10.402915336777745, [[4.00057282, 3.99960621] * 2]),
}

_FAMILIES: dict[str, Callable[[str, int], Problem]] = {
    "Alpine2": lambda name, q: _problem(name, alpine2, [(0, 10)] * q, -(2.808131180007005**q), [[7.917052684666207] * q]),
    "Ackley": lambda name, q: _problem(name, ackley, [(-5, 5)] * q, 0.0, [[0] * q]),
    "ackley": lambda name, q: _problem(name, ackley, [(-32.768, 32.768)] * q, 0.0, [[0] * q]),
    "rastrigin": lambda name, q: _problem(name, rastrigin, [(-5.12, 5.12)] * q, 0.0, [[0] * q]),
}

PAPER = [
    *("SinCos", "Cosines", "Branin", "Sixhumpcamel", "McCormick", "Dropwave", "Beale", "Powers"),
    *("Alpine2-2", "Alpine2-5", "Alpine2-10", "Ackley-2", "Ackley-5", "Ackley-10"),
]
NINE = ["eggholder", "dropwave", "shubert", "rastrigin-4", "ackley-2", "ackley-5", "bukin", "shekel-5", "shekel-7"]


def names() -> list[str]:
    """Every fixed name, and the families: dimension q, lengthscale l; of BBOB function f and instance k."""
    return [
        *_FIXED,
        *(f"{family}-q" for family in _FAMILIES),
        "GP-SE-q-l",
        "GP-M52-q-l",
        "BBOB-f-dq-ik",
        "Branin-in-q",
        *TUNING,
        *LABORATORY,
    ]


def _own(name: str, seed: int) -> Problem:
    """A ``Problem`` of the user's, or what a function of theirs makes of the seed."""
    found = own(name, "The problem")
    problem = found if isinstance(found, Problem) or not callable(found) else found(seed)
    if not isinstance(problem, Problem):
        raise ValueError(f"The problem {name!r} must be a glasses_lab.problems.Problem or make one of a seed, got {problem!r}.")
    return replace(problem, name=name)


def get(name: str, *, seed: int = 0) -> Problem:
    """The problem of that name. ``Ackley-5`` is Ackley's function in 5 dimensions.

    ``GP-SE-2-0.1`` is a draw from a Gaussian process in 2 dimensions with lengthscale 0.1, ``Branin-in-20`` Branin's function
    of a random turn of 20 parameters; ``seed`` says which draw or turn, and matters to nothing else. ``Ackley-5-shifted`` has
    its box moved so that the optimum is not at the centre. ``BBOB-7-d5-i2`` is function 7 of COCO's suite in 5 dimensions,
    instance 2. ``tune-svm-digits-error`` is a real model to be tuned, ``lab-alkox`` a table of experiments made smooth.
    ``mine:valley`` is ``valley`` of your own module ``mine``.
    """
    if is_own(name):
        return _own(name, seed)
    if name.endswith("-shifted"):
        base = get(name.removesuffix("-shifted"), seed=seed)
        if not base.optimum_at_centre:
            raise ValueError(f"{base.name} has no optimum at the centre of its box: use it as it is, or shifted(...) yourself.")
        return replace(shifted(base), name=name)
    inside = re.fullmatch(r"(.+)-in-([1-9]\d{0,3})", name)
    if inside:
        return replace(embedded(get(inside[1], seed=seed), int(inside[2]), seed=seed), name=name)
    if name in _FIXED:
        return _FIXED[name](name)
    family = re.fullmatch(r"(.+)-([1-9]\d{0,2})", name)
    if family and family[1] in _FAMILIES:
        return _FAMILIES[family[1]](name, int(family[2]))
    for found in (draw_by_name(name, seed), bbob_by_name(name), tuning_by_name(name), laboratory_by_name(name)):
        if found is not None:
            return found
    raise ValueError(unknown("problem", name, names()))
