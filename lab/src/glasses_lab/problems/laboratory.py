"""Tables of real experiments as smooth functions that can be evaluated anywhere: ``lab-alkox`` and four others.

The tables are those of Olympus (Häse et al. 2021; MIT licence), ``lab/data/laboratory`` in the repository, not in the package.
Equal rows are averaged, inputs are scaled to the unit cube, and the function is the posterior mean of a Gaussian process:

    f(x) = s (m + k(x)' (K + q I)^-1 (y - m)),   K_ij = k(x_i, x_j),   m = mean(y)                 [eq:smoother]
    k(x, x') = (1 + r + r^2 / 3) exp(-r),   r = sqrt(5 sum_j ((x_j - x'_j) / l_j)^2)

with s = -1 where the experimenters maximise and 1 where they minimise. The lengthscales l and the noise ratio q are fixed
below. They are those of largest likelihood (``fitted`` finds them again). The grid of alkox has three or four levels a side:
its lengthscales are at least .3, for with shorter ones the function would fall back to the mean between levels. Blends are
given by their parts w of a whole:

    w_1 = 1 - u_1^(1/3),  w_2 = (1 - w_1)(1 - u_2^(1/2)),  w_3 = (1 - w_1 - w_2)(1 - u_3),  w_4 = the rest  [eq:blend]

so that uniform u in the cube are uniform blends. Minima are those that ``best_known`` found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from glasses.configuration.unknown import unknown
from glasses_lab.problems.best_known import best_known
from glasses_lab.problems.problem import Problem

FOLDER = Path(__file__).parents[3] / "data" / "laboratory"
LONGEST, LEAST, MOST = 20.0, 1e-4, 1.0  # of lengthscales, and what the noise ratio may be


@dataclass(frozen=True)
class Table:
    """The ranges of the inputs, the direction, and the smoother's lengthscales and noise ratio."""

    bounds: tuple[tuple[float, float], ...]
    maximised: bool
    lengthscales: tuple[float, ...]
    noise: float
    blend: bool = False
    shortest: float = 0.05  # lengthscale


TABLES = {
    "lab-alkox": Table(((0.05, 1.0), (0.5, 10.0), (2.0, 8.0), (6.0, 8.0)), True, (0.3, 0.456, 0.3, 1.26), 0.029, shortest=0.3),
    "lab-colors_bob": Table(((0.0, 1.0),) * 5, False, (6.01, 4.49, 2.54, 2.7, 1.15), 0.00835),
    "lab-fullerenes": Table(((3.0, 31.0), (1.5, 6.0), (100.0, 150.0)), True, (1.24, 1.95, 1.32), 0.000174),
    "lab-hplc": Table(
        ((0.0, 0.08), (0.0, 0.06), (0.1, 0.9), (0.5, 2.5), (80.0, 150.0), (0.5, 10.0)),
        True,
        (0.359, 0.666, 0.136, 0.414, 0.752, 20.0),
        0.0585,
    ),
    "lab-photo_pce10": Table(((0.0, 1.0),) * 3, False, (20.0, 2.03, 0.131, 0.169), 0.0333, blend=True),
}
LABORATORY = list(TABLES)


def laboratory_by_name(name: str) -> Problem | None:
    """None if the name does not begin with ``lab-``."""
    if not name.startswith("lab-"):
        return None
    if name not in TABLES:
        raise ValueError(unknown("laboratory problem", name, LABORATORY))
    table, known = TABLES[name], best_known(name)
    minimizers = np.array([] if known.point is None else known.point, dtype=float).reshape(-1, len(table.bounds))
    return Problem(name, _smoother(name), table.bounds, known.minimum, minimizers)


@lru_cache
def _smoother(name: str) -> Callable[[np.ndarray], float]:
    """[eq:smoother]."""
    table = TABLES[name]
    low, high = np.array(table.bounds).T
    X, y = rows(name)
    scales, sign = np.array(table.lengthscales), -1.0 if table.maximised else 1.0
    weights = cho_solve(cho_factor(matern(X, X, scales) + table.noise * np.eye(len(y))), y - y.mean())

    def function(x: np.ndarray) -> float:
        unit = np.clip((x - low) / (high - low), 0.0, 1.0)
        place = blend(unit) if table.blend else unit
        return sign * float(y.mean() + (matern(place[None], X, scales) @ weights)[0])

    return function


def matern(A: np.ndarray, B: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """k of [eq:smoother] for all pairs of rows."""
    r = np.sqrt(5 * np.sum(((A[:, None] - B) / scales) ** 2, axis=2))
    return (1 + r + r**2 / 3) * np.exp(-r)


def blend(u: np.ndarray) -> np.ndarray:
    """[eq:blend]."""
    first = 1 - u[0] ** (1 / 3)
    second = (1 - first) * (1 - np.sqrt(u[1]))
    third = (1 - first - second) * (1 - u[2])
    return np.array([first, second, third, 1 - first - second - third])


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Different inputs (n, columns), scaled, and the mean of what was measured at each."""
    path = FOLDER / f"{name.removeprefix('lab-')}.csv"
    if not path.is_file():
        raise ValueError(
            f"The table {path} is not there: it is part of the repository (lab/data) and not of the package, so install the "
            "lab from a checkout."
        )
    table, values = TABLES[name], np.loadtxt(path, delimiter=",")
    X, which, counts = np.unique(values[:, :-1], axis=0, return_inverse=True, return_counts=True)
    low, high = (0.0, 1.0) if table.blend else np.array(table.bounds).T
    return (X - low) / (high - low), np.bincount(which.ravel(), weights=values[:, -1]) / counts


def unlikelihood(name: str, scales: np.ndarray, noise: float) -> float:
    """-log of the likelihood of the table, the variance at its best, without constants."""
    X, y = rows(name)
    factor = cho_factor(matern(X, X, scales) + noise * np.eye(len(y)), lower=True)
    rest = y - y.mean()
    variance = float(rest @ cho_solve(factor, rest)) / len(y)
    return 0.5 * len(y) * float(np.log(variance)) + float(np.sum(np.log(np.diag(factor[0]))))


def fitted(name: str) -> tuple[np.ndarray, float]:
    """Lengthscales and noise ratio of largest likelihood, the best of two starts."""
    columns = rows(name)[0].shape[1]
    box = [(np.log(TABLES[name].shortest), np.log(LONGEST))] * columns + [(np.log(LEAST), np.log(MOST))]
    starts = [np.log([scale] * columns + [0.01]) for scale in (0.3, 2.0)]
    found = [
        minimize(lambda t: unlikelihood(name, np.exp(t[:-1]), float(np.exp(t[-1]))), start, bounds=box, method="L-BFGS-B")
        for start in starts
    ]
    best = np.exp(min(found, key=lambda result: result.fun).x)
    return best[:-1], float(best[-1])
