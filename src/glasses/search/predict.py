"""Predictions outside compiled programs: mean and standard deviation at any number of points, through one program."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from glasses.runtime.padding import pad_rows
from glasses.runtime.program import quickly_compiled
from glasses.space.space import in_cube
from glasses.surrogate.constraints import ConstrainedFeasibility
from glasses.surrogate.feasibility import Feasibility
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE, Posterior, marginals

_ROWS = 288  # points in one call: the candidates of a decision


def predict(kernel: Kernel, post: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of the latent function at the rows of X."""
    parts = [X[first : first + _ROWS] for first in range(0, len(X), _ROWS)]
    found = [_marginals(post, pad_rows(part, _ROWS), kernel=kernel) for part in parts]
    mean, sd = (np.concatenate([np.asarray(each[k]) for each in found])[: len(X)] for k in (0, 1))  # only the last is padded
    return mean, sd


def mean_at_data(kernel: Kernel, post: Posterior) -> np.ndarray:
    """The posterior mean at the observed inputs: the values themselves where they are exact."""
    n = int(post.n)
    exact = float(post.noise) < NEGLIGIBLE_NOISE
    return np.asarray(post.y)[:n] if exact else predict(kernel, post, np.asarray(post.X)[:n])[0]


def feasible_at(feasibility: Feasibility, X: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """log P(feasible) at the rows of X, and which of them are known to be infeasible."""
    own = {"kernel": kernel} if isinstance(feasibility, ConstrainedFeasibility) else {}  # failures have a kernel of their own
    parts = [X[first : first + _ROWS] for first in range(0, len(X), _ROWS)]
    found = [_feasibility(feasibility, pad_rows(part, _ROWS), **own) for part in parts]
    log_p, infeasible = (np.concatenate([np.asarray(each[k]) for each in found])[: len(X)] for k in (0, 1))
    return log_p, infeasible


def mean_where_allowed(kernel: Kernel, post: Posterior) -> np.ndarray:
    """``mean_at_data``, and infinity at data outside the cube unless there are no others, and at infeasible data."""
    found, inside = mean_at_data(kernel, post), in_cube(np.asarray(post.X)[: int(post.n)])
    if post.allowed is not None:
        return np.where(inside & np.asarray(post.allowed.feasible)[: len(found)], found, np.inf)
    return np.where(inside, found, np.inf) if np.any(inside) else found


@quickly_compiled
def _marginals(post: Posterior, X: jax.Array, *, kernel: Kernel) -> tuple[jax.Array, jax.Array]:
    return marginals(kernel, post, X)


@quickly_compiled
def _feasibility(feasibility: Any, X: jax.Array, *, kernel: Kernel | None = None) -> tuple[jax.Array, jax.Array]:
    return feasibility.log_probability(X, kernel), feasibility.is_infeasible(X)
