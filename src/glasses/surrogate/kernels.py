"""Kernels: prior covariances that own their hyperparameters and compose.

    r^2         = sum_i ((a_i - b_i) / l_i)^2                            numbers
                + sum_j [a_j != b_j] / l_j^2                             choices, which have no order        [eq:hamming]
    Matern52    k = v (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)          [eq:matern52]
    SE          k = v exp(-r^2 / 2)                                      [eq:se]
    Constant    k = v                                                    the paper's bias kernel
    k1 + k2, k1 * k2                                                     sums and products of kernels         [eq:compose]
    Subset      k(a, b) = k1(a_S, b_S)                                   a kernel of some inputs only
    Additive    k = v / d sum_i rho(|a_i - b_i| / l_i)                   each input by itself                 [eq:additive]
    Partly additive   k = v [(1 - w) rho(r) + w / d sum_i rho(|a_i - b_i| / l_i)], w learned: both with one lengthscale per
                input                                                                                          [eq:partly]
    Warped      k(a, b) = k1(w(a), w(b)),  w_i(x) = 1 - (1 - x^p_i)^q_i  a learned warping of each number     [eq:warp]

A kernel is a frozen dataclass. It says what it learns (``hyperparameters``) and computes with those values by name
(``covariance``, ``diagonal``, ``variance``); ``fit``, ``posterior`` and everything after them use nothing else of it. To add
one, write such a class and pass ``tests/surrogate/test_kernels.py``, which holds what every kernel must do.

Stationary correlations are written in r^2 so that the gradient at r = 0 is finite: the derivative of the Matern by r^2 is
-(5/6) (1 + sqrt(5) r) exp(-sqrt(5) r), smooth everywhere. [eq:hamming] is the distance between unit vectors, one per value
(up to a factor in l), so every kernel above stays positive definite with it.

Priors (inputs in the unit cube, outputs standardised): log l ~ N(sqrt(2) - 3 + 1/2 log d, 3), after Hvarfner et al. (2024),
growing with sqrt(d); log v ~ N(0, 1); warpings log p, log q ~ N(0, 1/16), the identity unless the data say otherwise (Snoek et
al. 2014).

The lengthscale of a choice has a prior of its own, log l ~ N(log 2, 1/2) for any d [eq:alike]. Two numbers differ by a part of
their range, two values of a choice always by 1, so the prior of numbers would take the values for nearly unrelated (a Matern
correlation of .07 at its mode for d = 4), and what is seen with one value would say little of the others. Here the correlation
of two values is .83 at the mode, .52 and .95 one standard deviation away.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from glasses.surrogate.hyperparameters import Hyperparameter, Normal, Theta

SQRT5 = 5.0**0.5
_ALIKE = Normal(math.log(2.0), 0.5**0.5)  # [eq:alike]: the lengthscale of a choice
_SAME = 1e-5  # values of a choice lie at least 1e-4 apart in the unit cube


class Kernel(ABC):
    """A prior covariance. One of your own is a frozen dataclass with these four methods.

    Inputs are rows of the unit cube. The methods run inside compiled programs: ``jax.numpy`` only, and derivatives by inputs
    and hyperparameters must be finite everywhere, also between two equal points and on the border.
    """

    @abstractmethod
    def hyperparameters(self, d: int) -> Any:
        """What is learned over d inputs: a dict of ``Hyperparameter`` by name, or a tuple of those of the parts."""

    @abstractmethod
    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        """k(A, B), (n, m). ``theta``: the hyperparameters; ``choice`` (d,) marks inputs without an order, None: none."""

    @abstractmethod
    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        """k(a, a) for each row a of A, (n,)."""

    @abstractmethod
    def variance(self, theta: Theta) -> jax.Array:
        """The variance of what varies over the cube, (): what the nugget and other small numbers are relative to."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Product:
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class Stationary(Kernel):
    """A variance times a correlation that depends on the scaled distance alone, one lengthscale per input (ARD)."""

    @abstractmethod
    def correlation(self, r2: jax.Array) -> jax.Array:
        """As a function of the squared scaled distance; 1 at distance 0."""

    def hyperparameters(self, d: int) -> dict[str, Hyperparameter]:
        lengths = Normal(2**0.5 - 3.0 + 0.5 * math.log(d), 3**0.5)
        start = 0.3 * math.sqrt(d)
        return {
            "lengthscale": Hyperparameter(0.005, 50.0, lengths, start=start, size=d, spread=1.0, choice_prior=_ALIKE),
            "variance": Hyperparameter(1e-3, 1e3, Normal(0.0, 1.0)),
        }

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return theta["variance"] * self.correlation(squared_distance(A, B, theta["lengthscale"], choice))

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return jnp.broadcast_to(theta["variance"], A.shape[:1])

    def variance(self, theta: Theta) -> jax.Array:
        return theta["variance"]


@dataclass(frozen=True)
class Matern52(Stationary):
    """Twice differentiable functions: the default."""

    def correlation(self, r2: jax.Array) -> jax.Array:
        return _matern52(r2)


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """Infinitely differentiable functions: the paper's kernel."""

    def correlation(self, r2: jax.Array) -> jax.Array:
        return jnp.exp(-0.5 * r2)


@dataclass(frozen=True)
class Constant(Kernel):
    """An unknown constant with a normal prior: the paper's bias kernel, in place of a constant mean."""

    def hyperparameters(self, d: int) -> dict[str, Hyperparameter]:
        return {"variance": Hyperparameter(1e-4, 1e3)}

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return jnp.broadcast_to(theta["variance"], (A.shape[0], B.shape[0]))

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return jnp.broadcast_to(theta["variance"], A.shape[:1])

    def variance(self, theta: Theta) -> jax.Array:
        return jnp.zeros_like(theta["variance"])


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels of the same inputs, joined."""

    first: Kernel
    second: Kernel

    @abstractmethod
    def join(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """The covariance of both, from that of each."""

    def hyperparameters(self, d: int) -> tuple[Any, Any]:
        return self.first.hyperparameters(d), self.second.hyperparameters(d)

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.join(self.first.covariance(theta[0], A, B, choice), self.second.covariance(theta[1], A, B, choice))

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.join(self.first.diagonal(theta[0], A, choice), self.second.diagonal(theta[1], A, choice))

    def variance(self, theta: Theta) -> jax.Array:
        return self.join(self.first.variance(theta[0]), self.second.variance(theta[1]))


@dataclass(frozen=True)
class Sum(_Pair):
    """Functions that are a sum of two: written k1 + k2."""

    def join(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return a + b


@dataclass(frozen=True)
class Product(_Pair):
    """Functions that vary as two kernels together: written k1 * k2."""

    def join(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return a * b


@dataclass(frozen=True)
class Subset(Kernel):
    """A kernel of some of the inputs only: ``Matern52() + Subset(Matern52(), (0, 2))``. ``inputs`` are positions."""

    kernel: Kernel
    inputs: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_kernel("Subset", self.kernel)
        whole = isinstance(self.inputs, tuple) and all(type(i) is int and i >= 0 for i in self.inputs)
        if not whole or not self.inputs or len(set(self.inputs)) < len(self.inputs):
            raise ValueError(f"inputs must be a tuple of different positions such as (0, 2), got {self.inputs!r}.")

    def hyperparameters(self, d: int) -> Any:
        if max(self.inputs) >= d:
            raise ValueError(f"inputs must be positions below {d}, the number of parameters, got {self.inputs!r}.")
        inner = self.kernel.hyperparameters(len(self.inputs))
        return jax.tree.map(
            lambda each: each.of_inputs(self.inputs), inner, is_leaf=lambda each: isinstance(each, Hyperparameter)
        )

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        columns = jnp.asarray(self.inputs)
        return self.kernel.covariance(theta, A[:, columns], B[:, columns], None if choice is None else choice[columns])

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        columns = jnp.asarray(self.inputs)
        return self.kernel.diagonal(theta, A[:, columns], None if choice is None else choice[columns])

    def variance(self, theta: Theta) -> jax.Array:
        return self.kernel.variance(theta)


@dataclass(frozen=True)
class Additive(Kernel):
    """Functions that are a sum of one function of each input [eq:additive]; ``kernel`` says of which kind."""

    kernel: Stationary = Matern52()

    def __post_init__(self) -> None:
        _check_kernel("Additive", self.kernel, "stationary kernel")

    def hyperparameters(self, d: int) -> dict[str, Hyperparameter]:
        return self.kernel.hyperparameters(d)

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        alone = _sums(self.kernel, A, B, theta["lengthscale"], choice)[1]
        return theta["variance"] / A.shape[1] * alone

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.kernel.diagonal(theta, A, choice)

    def variance(self, theta: Theta) -> jax.Array:
        return self.kernel.variance(theta)


@dataclass(frozen=True)
class PartlyAdditive(Kernel):
    """Functions of all inputs together plus one function of each input, in learned shares [eq:partly]."""

    kernel: Stationary = Matern52()

    def __post_init__(self) -> None:
        _check_kernel("PartlyAdditive", self.kernel, "stationary kernel")

    def hyperparameters(self, d: int) -> dict[str, Hyperparameter]:
        share = {"share": Hyperparameter(0.0, 1.0, start=0.5, log=False)} if d > 1 else {}  # with one input both are the same
        return self.kernel.hyperparameters(d) | share

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        if A.shape[1] == 1:
            return self.kernel.covariance(theta, A, B, choice)
        together, alone = _sums(self.kernel, A, B, theta["lengthscale"], choice)
        share = theta["share"]
        return theta["variance"] * ((1.0 - share) * self.kernel.correlation(together) + share / A.shape[1] * alone)

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.kernel.diagonal(theta, A, choice)

    def variance(self, theta: Theta) -> jax.Array:
        return self.kernel.variance(theta)


@dataclass(frozen=True)
class Warped(Kernel):
    """A kernel of inputs that are each bent by a learned Kumaraswamy distribution function [eq:warp]; choices are not."""

    kernel: Kernel

    def __post_init__(self) -> None:
        _check_kernel("Warped", self.kernel)

    def hyperparameters(self, d: int) -> tuple[Any, Any]:
        bend = Hyperparameter(0.2, 5.0, Normal(0.0, 0.25), size=d)
        return {"power": bend, "root": bend}, self.kernel.hyperparameters(d)

    def covariance(self, theta: Theta, A: jax.Array, B: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.kernel.covariance(theta[1], _warp(theta[0], A, choice), _warp(theta[0], B, choice), choice)

    def diagonal(self, theta: Theta, A: jax.Array, choice: jax.Array | None = None) -> jax.Array:
        return self.kernel.diagonal(theta[1], _warp(theta[0], A, choice), choice)

    def variance(self, theta: Theta) -> jax.Array:
        return self.kernel.variance(theta[1])


def _check_kernel(name: str, given: Any, what: str = "kernel") -> None:
    if not isinstance(given, Stationary if what == "stationary kernel" else Kernel):
        raise ValueError(f"{name} needs a {what} such as Matern52(), got {given!r}.")


def _warp(theta: Theta, A: jax.Array, choice: jax.Array | None) -> jax.Array:
    x = jnp.clip(A, 1e-9, 1.0 - 1e-9)  # where the slope of a power is finite
    bent = 1.0 - (1.0 - x ** theta["power"]) ** theta["root"] + (A - jnp.clip(A, 0.0, 1.0))  # outside: straight on
    return bent if choice is None else jnp.where(choice, A, bent)


@jax.custom_jvp
def _matern52(r2: jax.Array) -> jax.Array:
    s = SQRT5 * jnp.sqrt(r2)
    return (1.0 + s + (5.0 / 3.0) * r2) * jnp.exp(-s)


@_matern52.defjvp
def _matern52_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (r2,), (t,) = primals, tangents
    s = SQRT5 * jnp.sqrt(r2)
    decay = jnp.exp(-s)
    return (1.0 + s + (5.0 / 3.0) * r2) * decay, (-5.0 / 6.0) * (1.0 + s) * decay * t


def squared_distance(A: jax.Array, B: jax.Array, lengthscale: jax.Array, choice: jax.Array | None = None) -> jax.Array:
    """r^2 between the rows of A (n, d) and B (m, d): summed differences, so that r^2 = 0 exactly for equal rows.

    ``choice`` (d,) marks the columns of [eq:hamming]; None if there are none.
    """
    return _sums(None, A, B, lengthscale, choice)[0]


def _sums(
    kernel: Stationary | None, A: jax.Array, B: jax.Array, lengthscale: jax.Array, choice: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """sum_i r_i^2 and sum_i rho(r_i^2) between the rows of A and B, (n, m) each, r_i the scaled distance in input i."""
    if A.shape[0] <= B.shape[0]:
        return _sums_by_row(kernel, A, B, lengthscale, choice)
    together, alone = _sums_by_row(kernel, B, A, lengthscale, choice)
    return together.T, alone.T


@partial(jax.custom_vjp, nondiff_argnums=(0,))
@partial(jax.jit, static_argnums=(0,), inline=True)  # outside programs its loop would be compiled at every call
def _sums_by_row(
    kernel: Stationary | None, A: jax.Array, B: jax.Array, lengthscale: jax.Array, choice: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """``_sums``, one row of A after the other, all inputs at once; the derivative is a loop of its own.

    A sum over the inputs that is written out makes a program grow with their number, and its derivative even more.
    """

    def row(a: jax.Array) -> tuple[jax.Array, jax.Array]:
        r2 = (_difference(a, B, choice) / lengthscale[:, None]) ** 2
        return jnp.sum(r2, axis=0), jnp.zeros(B.shape[0]) if kernel is None else jnp.sum(kernel.correlation(r2), axis=0)

    return _each_row(row, A)


def _sums_forward(kernel: Stationary | None, A: Any, B: Any, lengthscale: Any, choice: Any) -> tuple[Any, Any]:
    still = not (A.perturbed or B.perturbed)
    A, B, lengthscale = A.value, B.value, lengthscale.value
    choice = None if choice is None else choice.value
    return _sums_by_row(kernel, A, B, lengthscale, choice), (A, B, lengthscale, choice, () if still else None)


def _sums_backward(kernel: Stationary | None, kept: Any, slopes: tuple[Any, Any]) -> tuple[Any, ...]:
    A, B, lengthscale, choice, still = kept
    n, m, d = A.shape[0], B.shape[0], A.shape[1]
    by_sum, by_each = (jnp.zeros((n, m)) if isinstance(each, SymbolicZero) else each for each in slopes)
    use_each, scale = kernel is not None and not isinstance(slopes[1], SymbolicZero), lengthscale[:, None]

    def row(given: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        """The derivative by the lengthscales, up to their powers, and the pull between this row and those of B, (d, m)."""
        a, by_sum, by_each = given
        apart = _difference(a, B, choice)
        r2 = (apart / scale) ** 2
        slope = jnp.broadcast_to(by_sum, r2.shape)
        if use_each and kernel is not None:
            slope = slope + by_each * jax.jvp(kernel.correlation, (r2,), (jnp.ones_like(r2),))[1]
        return jnp.sum(slope * r2, axis=1), slope * apart

    if still == ():
        by_length = jnp.sum(_each_row(lambda given: row(given)[0], (A, by_sum, by_each)), axis=0)
        by_A, by_B = jnp.zeros(A.shape), jnp.zeros(B.shape)
    else:

        def pull(total: jax.Array, given: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            by_length, move = row(given)
            move = move if choice is None else jnp.where(choice[:, None], 0.0, move)
            return total + move, (by_length, jnp.sum(move, axis=1))

        total, (each, by_A) = jax.lax.scan(pull, jnp.zeros((d, m)), (A, by_sum, by_each))
        by_length = jnp.sum(each, axis=0)
        by_A, by_B = 2.0 / lengthscale**2 * by_A, (-2.0 / scale**2 * total).T
    no = None if choice is None else np.zeros(choice.shape, jax.dtypes.float0)
    return by_A, by_B, -2.0 / lengthscale * by_length, no


_sums_by_row.defvjp(_sums_forward, _sums_backward, symbolic_zeros=True)


def _each_row(f: Callable[[Any], Any], rows: Any) -> Any:
    """f of each row, stacked; without a loop where there is one."""
    alone = jax.tree.leaves(rows)[0].shape[0] == 1
    return jax.tree.map(lambda a: a[None], f(jax.tree.map(lambda a: a[0], rows))) if alone else jax.lax.map(f, rows)


def _difference(a: jax.Array, B: jax.Array, choice: jax.Array | None) -> jax.Array:
    """What a (d,) and the rows of B differ by in each input, (d, m); 1 or 0 for a choice."""
    apart = a[:, None] - B.T
    return apart if choice is None else jnp.where(choice[:, None], (jnp.abs(apart) > _SAME).astype(apart.dtype), apart)
