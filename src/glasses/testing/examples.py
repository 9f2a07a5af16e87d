"""Small objects that the tests of parts need: a function with several minima, and a candidate set with a second opinion."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses import tiny
from glasses.lookahead.candidates import CandidateSet, build_candidates, query_point
from glasses.surrogate import Constant, Kernel, SquaredExponential
from glasses.surrogate.posterior import Hyper, posterior

_posterior = jax.jit(posterior, static_argnums=0)
_build_candidates = jax.jit(build_candidates, static_argnums=0)
query_of = jax.jit(query_point, static_argnums=0)


def hills(x: Any) -> float:
    """A smooth two-dimensional function with several minima on the unit square."""
    a, b = x
    return float(np.sin(5 * a) + np.cos(4 * b) + (a - 0.3) ** 2 + 0.5 * np.sin(9 * a * b))


def make_candidates(
    points: Any, *, pending: Any = None, noise: float = 1e-6, bias: float = 0.0, seed: int = 0, n: int = 10, room: int = 0
) -> tuple[Kernel, CandidateSet, tiny.Model]:
    """A candidate set over given points of the unit square: squared-exponential GP (plus bias), fixed hyperparameters, and the
    same as a tiny model. ``room``: rows of padding behind the pending points."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.array([hills(x) for x in X])
    y = (y - y.mean()) / y.std()
    kernel = SquaredExponential() + Constant()
    theta = {"lengthscale": jnp.full(2, 0.3), "variance": jnp.asarray(1.0)}, {"variance": jnp.asarray(bias)}
    post = _posterior(kernel, Hyper(theta, jnp.asarray(noise), jnp.zeros(())), jnp.asarray(X), jnp.asarray(y), jnp.asarray(n))
    begun = np.zeros((0, 2)) if pending is None else np.asarray(pending)
    filled = np.zeros((len(begun) + room, 2))
    filled[: len(begun)] = begun
    candidates = _build_candidates(kernel, post, jnp.asarray(points), jnp.asarray(filled), jnp.asarray(len(begun)))
    return kernel, candidates, tiny.Model(X, y, 0.3, 1.0, noise, bias)
