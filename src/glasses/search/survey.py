"""The survey that opens a decision: where the future may go, as the scene that losses are valued on.

Places: an even cover of the cube (a Sobol set, shifted), points around the best observation at scales from a third of the
cube down to 1e-4 (on a lattice: neighbouring values, exchanged choices), and the local maxima of EI, polished by gradients from
the best well-separated places; all of them on the lattice where there is one. The pending points come last.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.scene import Scene, build_scene, if_it_succeeds
from glasses.numerics.bfgs import minimize_batch
from glasses.numerics.sobol import scrambled
from glasses.runtime.program import program
from glasses.space.lattice import Lattice
from glasses.space.snapping import moved, snap
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior, best_value, condition, marginals, mean
from glasses.surrogate.success import Success, log_success

_SEPARATION = 0.05  # starts of a polish are at least this far apart (largest coordinate)


def cover(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """``size`` points spread over the cube: a scrambled Sobol set."""
    return scrambled(d, int(np.ceil(np.log2(size))), rng)[:size]


def neighbourhood(d: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Offsets around a point, at scales from a third of the cube down to 1e-4."""
    scale = np.geomspace(0.3, 1e-4, size)[:, None]
    return scale * rng.standard_normal((size, d)) / np.sqrt(d)


def separated_best(score: jax.Array, points: jax.Array, count: int) -> jax.Array:
    """Indices of the ``count`` best scores, each at least ``_SEPARATION`` from the ones before while there are such."""

    def pick(k: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        score, chosen = state
        i = jnp.argmax(score)
        near = jnp.max(jnp.abs(points - points[i]), axis=1) < _SEPARATION
        lowered = jnp.where(near, score - 1e6, score)  # not excluded: a small box may have nothing else
        return lowered.at[i].set(-jnp.inf), chosen.at[k].set(i)

    return jax.lax.fori_loop(0, count, pick, (score, jnp.zeros(count, int)))[1]


@program
def survey(
    post: Posterior,
    spread: jax.Array,
    offsets: jax.Array,
    jumps: jax.Array | None,
    pending: jax.Array,
    pending_count: jax.Array,
    lattice: Lattice | None,
    success: Success | None,
    *,
    kernel: Kernel,
    starts: int,
) -> Scene:
    """The scene of a decision. The posterior must have room in its padding for the pending points."""
    real = jnp.arange(post.X.shape[0]) < post.observed
    eta = best_value(kernel, post)
    best = post.X[jnp.argmin(jnp.where(real, mean(kernel, post, post.X), jnp.inf))]
    local = moved(lattice, best, offsets, jumps)
    places = jnp.concatenate([snap(lattice, spread), local])

    def believe(k: int, post: Posterior) -> Posterior:
        extended = condition(kernel, post, pending[k], mean(kernel, post, pending[k][None])[0])
        return jax.tree.map(lambda new, old: jnp.where(k < pending_count, new, old), extended, post)

    believed = jax.lax.fori_loop(0, pending.shape[0], believe, post) if pending.shape[0] else post

    waiting = jnp.where(jnp.arange(pending.shape[0]) < pending_count, mean(kernel, post, pending), jnp.inf)
    level = jnp.min(jnp.append(waiting, eta))  # the pending points believed at their means

    def log_ei(X: jax.Array) -> jax.Array:
        mu, sd = marginals(kernel, believed, X)
        value = log_expected_improvement(mu, sd, level)
        return value if success is None else if_it_succeeds(value, log_success(kernel, success, X))

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pull = jax.vjp(lambda X: -log_ei(X), X)  # each value depends on its own row alone
        return value, pull(jnp.ones_like(value))[0]

    first = places[separated_best(log_ei(places), places, starts)]
    d = places.shape[1]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=30, first_step=0.02, tolerance=1e-6)
    everywhere = jnp.concatenate([places, snap(lattice, found.x)])
    return build_scene(kernel, post, everywhere, pending, pending_count, lattice, success)
