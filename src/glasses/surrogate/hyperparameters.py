"""Hyperparameters: what a kernel or a noise model learns, with its bounds, its prior and where a fit starts.

A fit works on one vector of *free* numbers: the logarithm of a hyperparameter that is positive (``log=True``), the
hyperparameter itself otherwise. Kernels see their own values by name (``Theta``), never the vector.

    penalty = -log p(theta), up to a constant:   Normal on the free numbers   1/2 sum ((free - mean) / sd)^2
                                                 Exponential on the values    sum value / mean

A vector with one number per input may have another prior for the inputs that are choices (``choice_prior``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
        return 0.5 * jnp.sum(self.squares(free))

    def squares(self, free: jax.Array) -> jax.Array:
        """The squared distance of each number from the mean, in standard deviations."""
        z = (free - self.mean) / self.sd
        return z * z


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
    choice_prior : Normal, optional
        The prior, and with it the start, of the entries of inputs that are choices, in place of a normal ``prior``.
    inputs : tuple of int, optional
        Which input each entry belongs to; None: entry i to input i.
    """

    low: float
    high: float
    prior: Normal | Exponential | None = None
    start: float = 1.0
    size: int | None = None
    spread: float = 0.0
    log: bool = True
    choice_prior: Normal | None = None
    inputs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        least = 0.0 if self.log else -math.inf
        if not least < self.low < self.high < math.inf:
            raise ValueError(
                f"A hyperparameter needs bounds low < high, above 0 unless log=False, got {self.low!r} and {self.high!r}."
            )
        if not self.low <= self.start <= self.high:
            raise ValueError(f"A hyperparameter must start within {self.low!r} and {self.high!r}, got start={self.start!r}.")
        if self.choice_prior is not None and not (isinstance(self.prior, Normal) and self.size is not None):
            raise ValueError(
                f"A choice_prior needs a vector with a normal prior, got size={self.size!r}, prior={self.prior!r}."
            )

    @property
    def length(self) -> int:
        return 1 if self.size is None else self.size

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the free number."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def first(self, with_prior: bool, of_choice: bool = False) -> float:
        """The free number a fit starts at."""
        prior = self.choice_prior if of_choice and self.choice_prior is not None else self.prior
        mode = prior.mode if with_prior and prior is not None else None
        return mode if mode is not None else math.log(self.start) if self.log else self.start

    def of_inputs(self, inputs: tuple[int, ...]) -> Hyperparameter:
        """The same for a kernel that sees only these inputs."""
        if self.choice_prior is None:
            return self
        return replace(self, inputs=inputs if self.inputs is None else tuple(inputs[i] for i in self.inputs))

    def marks(self, choice: Any) -> Any:
        """Which entries belong to choices, from the marks of all inputs (d,)."""
        return choice if self.inputs is None else choice[np.asarray(self.inputs)]

    def penalty(self, free: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        """-log p of its free numbers, up to a constant; ``choice`` (d,) marks the inputs that are choices."""
        assert self.prior is not None
        if choice is None or self.choice_prior is None or not isinstance(self.prior, Normal):
            return self.prior.penalty(free)
        return 0.5 * jnp.sum(jnp.where(self.marks(choice), self.choice_prior.squares(free), self.prior.squares(free)))


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

    def penalty(self, free: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        """The sum over all priors; ``choice`` (d,) marks the inputs that are choices, None: there are none."""
        parts = zip(self.leaves, self._parts(free), strict=True)
        found = [each.penalty(part, choice) for each, part in parts if each.prior is not None]
        return sum(found[1:], start=found[0]) if found else jnp.zeros(())

    def starts(self, shifts: Sequence[float], with_prior: bool, choice: np.ndarray | None = None) -> np.ndarray:
        """One row per start."""
        marked = [False] * self.size if choice is None else self._marked(np.asarray(choice))
        each = list(zip(self._each(), marked, strict=True))
        rows = [[one.first(with_prior, of_choice) + one.spread * shift for one, of_choice in each] for shift in shifts]
        return np.array(rows).reshape(len(rows), self.size)

    def bounds(self) -> np.ndarray:
        """(size, 2)."""
        return np.array([each.bounds for each in self._each()]).reshape(self.size, 2)

    def _each(self) -> list[Hyperparameter]:
        return [each for each in self.leaves for _ in range(each.length)]

    def _marked(self, choice: np.ndarray) -> list[bool]:
        """Which of the numbers have the prior of a choice."""
        plain = ([False] * each.length if each.choice_prior is None else each.marks(choice).tolist() for each in self.leaves)
        return [mark for part in plain for mark in part]

    def _parts(self, free: jax.Array) -> list[jax.Array]:
        parts, begin = [], 0
        for each in self.leaves:
            parts.append(free[begin] if each.size is None else free[begin : begin + each.size])
            begin += each.length
        return parts
