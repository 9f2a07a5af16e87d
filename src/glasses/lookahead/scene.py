"""The scene of one decision: a finite set of places, the posterior over all of them, and what is still pending.

Everything a decision compares is computed once here; oracles and losses only gather from it.

| name | symbol | shape | |
|---|---|---|---|
| points | U | (U, d) | places where the future may go; the last P are the pending evaluations |
| mu, cov | mu(U), k'(U, U) | (U,), (U, U) | posterior of the latent f |
| believed | | (U, U) | the same covariance once the pending points are evaluated (kriging believer: the mean stays) |
| real | | (U,) | False on the padding of the pending points |
| W | (K + noise I)^-1 k(X, U) | (N, U) | gives k'(x, U) = k(x, U) - k(x, X) W for any new x |
| eta, noise | | () | best value so far, noise variance |
| lipschitz, lowest | L, M | () | steepest slope of mu over U (floored) and the smallest mean there, for local penalisation |
| safe | log P(success) | (U,) | None while nothing has failed |
| rest | | () | log of the gain expected from the evaluations that are left after a failure; None while nothing has failed |
| spared | | () | with costs: the same if the failure cost nothing (``rest``: if it cost as much as the dearest place) |
| lattice, success | | | the values that can be run, and the model of failures; None where there are none |
| doubt | | | the same places under each of several draws of the hyperparameters, stacked; None: the fit is believed |
| price, purse | c(U), B | (U,), () | what each place costs and what may still be spent; None: budgets count evaluations |

A ``Star`` is a putative next point x* seen from the scene: its mean, its variance and its covariance with U. It is a
differentiable function of x*, and so is every loss built on it as long as the predicted steps are held fixed; they are
places of U, hence piecewise constant in x*, and that derivative is the true one almost everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from glasses.space.lattice import Lattice
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NUGGET, Posterior, best_value, covariance, joint, mean
from glasses.surrogate.success import Success, log_success

CLOSE = 1e-6  # two points of the unit cube nearer than this in every coordinate are the same experiment


class Scene(NamedTuple):
    """See the table above."""

    post: Posterior
    points: jax.Array
    mu: jax.Array
    cov: jax.Array
    believed: jax.Array
    real: jax.Array
    pending_rows: jax.Array  # (P, U): Cholesky rows of the pending points, for ``look``
    W: jax.Array
    eta: jax.Array
    lipschitz: jax.Array
    lowest: jax.Array
    safe: jax.Array | None
    rest: jax.Array | None
    lattice: Lattice | None
    success: Success | None
    price: jax.Array | None = None
    purse: jax.Array | None = None
    doubt: Scene | None = None
    spared: jax.Array | None = None

    @property
    def noise(self) -> jax.Array:
        return self.post.hyper.noise

    @property
    def pending(self) -> int:
        """How many places are kept for pending points (padding included)."""
        return int(self.pending_rows.shape[0])


class Star(NamedTuple):
    """A putative next point as the scene sees it."""

    x: jax.Array  # (d,)
    mu: jax.Array  # ()
    var: jax.Array  # ()
    cov: jax.Array  # (U,)
    believed_var: jax.Array  # () after the pending points
    believed_cov: jax.Array  # (U,)
    loads: jax.Array  # (P,) how x* moves with the standardised outcome of each pending point
    safe: jax.Array | None  # () log P(success)
    price: jax.Array | None = None  # () what an evaluation there costs


def build_scene(
    kernel: Kernel,
    post: Posterior,
    places: jax.Array,
    pending: jax.Array,
    pending_count: jax.Array,
    lattice: Lattice | None = None,
    success: Success | None = None,
) -> Scene:
    """The scene over ``places`` (C, d) and the first ``pending_count`` rows of ``pending`` (P, d)."""
    points = jnp.concatenate([places, pending])
    P, U = pending.shape[0], points.shape[0]
    real = jnp.concatenate([jnp.ones(U - P, bool), jnp.arange(P) < pending_count])
    mu, cov = joint(kernel, post, points)
    cross = jnp.where(
        (jnp.arange(post.X.shape[0]) < post.observed)[:, None], covariance(kernel, post.hyper, post.X, points), 0.0
    )
    W = solve_triangular(post.L.T, solve_triangular(post.L, cross, lower=True), lower=False)

    def believe(k: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, rows = state
        i = U - P + k
        row = rest[i] / jnp.sqrt(rest[i, i] + post.hyper.noise)
        row = jnp.where(k < pending_count, row, 0.0)
        return rest - row[:, None] * row[None, :], rows.at[k].set(row)

    believed, rows = cov, jnp.zeros((P, U))
    if P:
        believed, rows = jax.lax.fori_loop(0, P, believe, (cov, rows))
        nugget = NUGGET * post.hyper.signal
        diagonal = jnp.maximum(jnp.diagonal(believed), nugget)
        believed = jnp.where(jnp.eye(U, dtype=bool), diagonal[:, None], believed)
    eta = best_value(kernel, post)
    slope = jax.vmap(jax.grad(lambda x: mean(kernel, post, x[None])[0]))(points)
    steepest = jnp.max(jnp.where(real, jnp.sqrt(jnp.sum(slope * slope, axis=1)), 0.0))
    lipschitz = jnp.maximum(steepest, 1e-3 * jnp.sqrt(post.hyper.signal))  # a flat mean would push every step out of the box
    lowest = jnp.minimum(jnp.min(jnp.where(real, mu, jnp.inf)), eta)
    safe = None if success is None else log_success(kernel, success, points)
    rest = None if success is None else jnp.asarray(-jnp.inf)
    return Scene(post, points, mu, cov, believed, real, rows, W, eta, lipschitz, lowest, safe, rest, lattice, success)


def look(kernel: Kernel, scene: Scene, x: jax.Array) -> Star:
    """The star at x: O(N^2 + N U)."""
    post, nugget = scene.post, NUGGET * scene.post.hyper.signal
    k = jnp.where(jnp.arange(post.X.shape[0]) < post.observed, covariance(kernel, post.hyper, post.X, x[None])[:, 0], 0.0)
    v = solve_triangular(post.L, k, lower=True)
    var = jnp.maximum(post.hyper.signal + post.hyper.bias - v @ v, 0.0) + nugget
    cov = covariance(kernel, post.hyper, x[None], scene.points)[0] - k @ scene.W
    believed_var, believed_cov, c = var, cov, jnp.zeros(0)
    P = scene.pending
    if P:
        rows = scene.pending_rows
        own = rows[:, -P:]  # rows at the pending points: upper triangular up to the noise
        real = scene.real[-P:]

        def substitute(j: int, c: jax.Array) -> jax.Array:
            i = scene.points.shape[0] - P + j
            pivot = jnp.sqrt(
                jnp.maximum(scene.cov[i, i] - jnp.sum(jnp.where(jnp.arange(P) < j, own[:, j] ** 2, 0.0)), nugget)
                + post.hyper.noise
            )
            rest = cov[i] - jnp.sum(jnp.where(jnp.arange(P) < j, own[:, j] * c, 0.0))
            return c.at[j].set(jnp.where(real[j], rest / pivot, 0.0))

        c = jax.lax.fori_loop(0, P, substitute, jnp.zeros(P))
        believed_var = jnp.maximum(var - c @ c, nugget)
        believed_cov = cov - c @ rows
    safe = None if scene.success is None else log_success(kernel, scene.success, x[None])[0]
    return Star(x, mean(kernel, post, x[None])[0], var, cov, believed_var, believed_cov, c, safe)


def believed_eta(scene: Scene, mu: jax.Array, eta: jax.Array) -> jax.Array:
    """eta once the pending points have come out at their means."""
    P = scene.pending
    return jnp.minimum(eta, jnp.min(jnp.where(scene.real[-P:], mu[-P:], jnp.inf))) if P else eta


def star_at(scene: Scene, i: jax.Array) -> Star:
    """The star at place i of the scene, gathered."""
    safe = None if scene.safe is None else scene.safe[i]
    price = None if scene.price is None else scene.price[i]
    own, after, loads = scene.cov[i], scene.believed[i], scene.pending_rows[:, i]
    return Star(scene.points[i], scene.mu[i], own[i], own, after[i], after, loads, safe, price)


def if_it_succeeds(merit: jax.Array, safe: jax.Array | None) -> jax.Array:
    """A logarithmic merit times the probability that the evaluation succeeds."""
    return merit if safe is None else merit + safe


def is_close(points: jax.Array, others: jax.Array, real: jax.Array) -> jax.Array:
    """Which rows of ``points`` are the same experiment as a real row of ``others``."""
    far = jnp.max(jnp.abs(points[:, None, :] - others[None, :, :]), axis=-1)
    return jnp.any((far < CLOSE) & real[None, :], axis=1)


def future_law(scene: Scene, star: Star, steps: jax.Array, left: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean, covariance and validity of f at (x*, predicted steps, pending points), in this order.

    ``steps`` (H - 1,) are places of the scene; entry k is step k + 2 and counts when it is ``happening``.
    """
    U, P = scene.points.shape[0], scene.pending
    places = jnp.concatenate([steps, jnp.arange(U - P, U)])
    valid = jnp.concatenate([jnp.ones(1, bool), happening(steps, left), scene.real[U - P :]])
    mu = jnp.concatenate([star.mu[None], scene.mu[places]])
    cross = star.cov[places]
    S = jnp.block([[star.var[None, None], cross[None, :]], [cross[:, None], scene.cov[places][:, places]]])
    return mu, S, valid


def happening(steps: jax.Array, left: jax.Array) -> jax.Array:
    """Which predicted steps (..., H - 1) will happen: within what is left, and paid for (a step that is not is -1)."""
    return (jnp.arange(steps.shape[-1]) + 2 <= left) & (steps >= 0)
