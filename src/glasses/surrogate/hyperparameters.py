"""Hyperparameters: what a kernel or a noise model learns, with its bounds, its prior and where a fit starts.

A fit works on one vector of *free* numbers: the logarithm of a hyperparameter that is positive (``log=True``), the
hyperparameter itself otherwise. Kernels see their own values by name (``Theta``), never the vector.

    penalty = -log p(theta), up to a constant:   Normal on the free numbers   1/2 sum ((free - mean) / sd)^2
                                                 Exponential on the values    sum value / mean
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Theta = Any  # the hyperparameters of a kernel: a dict of arrays by name; of a composed kernel, a tuple of those of its parts


@dataclass(frozen=True)
class Normal:
    """A normal prior on the free number: of a positive hyperparameter, a log-normal one."""

    mean: float
    sd: float

    @property
    def mode(self) -> float:
        return self.mean

    def penalty(self, free: jax.Array) -> jax.Array:
        z = (free - self.mean) / self.sd
        return 0.5 * jnp.sum(z * z)


@dataclass(frozen=True)
class Exponential:
    """An exponential prior on a positive hyperparameter: most probable at zero, so that anything else needs evidence."""

    mean: float

    @property
    def mode(self) -> None:
        return None

    def penalty(self, free: jax.Array) -> jax.Array:
        return jnp.sum(jnp.exp(free)) / self.mean


@dataclass(frozen=True)
class Hyperparameter:
    """One number, or a vector of ``size`` numbers, that a fit learns.

    Parameters
    ----------
    low, high : float
        Bounds of its value.
    prior : Normal or Exponential, optional
        None: no preference within the bounds.
    start : float
        Where a fit starts, in the units of the value. A maximum a posteriori fit starts at the prior's mode where it has one.
    size : int, optional
        Length of a vector; None for a single number.
    spread : float
        How far the further starts of a fit move it: by ``spread`` times -2 to 2, of its free number. 0: not at all.
    log : bool
        Whether it is positive and fitted as its logarithm.
    """

    low: float
    high: float
    prior: Normal | Exponential | None = None
    start: float = 1.0
    size: int | None = None
    spread: float = 0.0
    log: bool = True

    def __post_init__(self) -> None:
        least = 0.0 if self.log else -math.inf
        if not least < self.low < self.high < math.inf:
            raise ValueError(
                f"A hyperparameter needs bounds low < high, above 0 unless log=False, got {self.low!r} and {self.high!r}."
            )
        if not self.low <= self.start <= self.high:
            raise ValueError(f"A hyperparameter must start within {self.low!r} and {self.high!r}, got start={self.start!r}.")

    @property
    def length(self) -> int:
        return 1 if self.size is None else self.size

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the free number."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def first(self, with_prior: bool) -> float:
        """The free number a fit starts at."""
        mode = self.prior.mode if with_prior and self.prior is not None else None
        return mode if mode is not None else math.log(self.start) if self.log else self.start


@dataclass(frozen=True)
class Layout:
    """Where each hyperparameter of a tree of them lies in the vector of a fit."""

    leaves: tuple[Hyperparameter, ...]
    tree: Any

    @classmethod
    def of(cls, hyperparameters: Any) -> Layout:
        leaves, tree = jax.tree.flatten(hyperparameters, is_leaf=lambda each: isinstance(each, Hyperparameter))
        for each in leaves:
            if not isinstance(each, Hyperparameter):
                raise ValueError(f"What a kernel learns must be Hyperparameter(low, high, ...), got {each!r}.")
        return cls(tuple(leaves), tree)

    @property
    def size(self) -> int:
        return sum(each.length for each in self.leaves)

    def theta(self, free: jax.Array) -> Theta:
        """The hyperparameters by name, from the first ``size`` numbers of a fit's vector."""
        parts = zip(self.leaves, self._parts(free), strict=True)
        return self.tree.unflatten([jnp.exp(part) if each.log else part for each, part in parts])

    def free(self, theta: Theta) -> jax.Array:
        """The vector that gives these hyperparameters."""
        parts = zip(self.leaves, self.tree.flatten_up_to(theta), strict=True)
        return jnp.concatenate([jnp.atleast_1d(jnp.log(value) if each.log else value) for each, value in parts])

    def penalty(self, free: jax.Array) -> jax.Array:
        """The sum over all priors."""
        parts = zip(self.leaves, self._parts(free), strict=True)
        found = [each.prior.penalty(part) for each, part in parts if each.prior is not None]
        return sum(found[1:], start=found[0]) if found else jnp.zeros(())

    def starts(self, shifts: Sequence[float], with_prior: bool) -> np.ndarray:
        """One row per start."""
        rows = [[each.first(with_prior) + each.spread * shift for each in self._each()] for shift in shifts]
        return np.array(rows).reshape(len(rows), self.size)

    def bounds(self) -> np.ndarray:
        """(size, 2)."""
        return np.array([each.bounds for each in self._each()]).reshape(self.size, 2)

    def _each(self) -> list[Hyperparameter]:
        return [each for each in self.leaves for _ in range(each.length)]

    def _parts(self, free: jax.Array) -> list[jax.Array]:
        parts, begin = [], 0
        for each in self.leaves:
            parts.append(free[begin] if each.size is None else free[begin : begin + each.size])
            begin += each.length
        return parts
