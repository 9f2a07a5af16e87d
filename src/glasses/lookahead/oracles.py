"""Oracles F_n(x*): where the evaluations after x* will go.

All predict the steps one by one over the places of a scene, x* first, every place at most once (of a finite space whose
evaluations are exact every configuration, and none that is done):

    x_k = argmax over the places of  log EI(x) + sum_{j<k} log phi(x; x_j)        local penalisation        [eq:lp]
    x_k = argmax over the places of  log EI(x | x*, x_2..x_{k-1}, y_j = mu_j)     kriging believer          [eq:kb]
    x_k = argmin over the places of  f_k,  f_k ~ the posterior after x*           Thompson paths            [eq:ts]
    (x_2..x_n) ~ a determinantal point process, or its mode                      see ``determinantal``

The first two are functions of the scene. The last two draw, and future number ``draw`` is the same for every x* of every
decision (common random numbers): what differs between two candidates is the candidates. With costs, a step must be paid for:
the score is per unit of cost (log EI - log c) among the places that the purse still affords, and -1 once there are none.

Penalisers of x_j with mean mu_j, sd s_j, Lipschitz constant L = max |grad mu| and M <= min mu, r_j = (mu_j - M) / L:

    soft  phi = Phi((L |x - x_j| - mu_j + M) / s_j)                               Gonzalez et al. (2016)    [eq:soft]
    hard  phi = ((|x - x_j| / (r_j + s_j / L))^p + 1)^(1/p),  p = -5              Alvi et al. (2019)        [eq:hard]

The paper prints the argmin of the penalised loss at x*, which would attract the points; [eq:lp] is what is meant. Its exact
transformation, soft-plus of -Lambda_1 on standardised outputs, is ``softplus=True``; EI itself is shift invariant.
The believer conditions on its own predictions: the mean stays, the variance falls by a rank-1 update, eta follows the mean.

L and M come from the scene and the world, hence are re-estimated for every fit.
Cost per star and step: one row over the places (believer: k rows). Next: ``losses``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.scene import CLOSE, Scene, Star, believed_eta, if_it_succeeds, is_close
from glasses.surrogate.kernels import squared_distance
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE

_JITTER = 1e-8


class World(NamedTuple):
    """What an oracle believes when it starts to predict: after x*, and perhaps after its outcome."""

    star: Star
    mu: jax.Array  # (U,) mean over the places
    eta: jax.Array
    informed: jax.Array  # whether the outcome of x* is already in ``mu`` and ``eta``


def unseen(scene: Scene, star: Star) -> World:
    """The world in which x* is decided and its outcome is not known."""
    return World(star, scene.mu, scene.eta, jnp.asarray(False))


class Oracle(Protocol):
    """Predicts steps as places of the scene, (size - 1,): entry k is step k + 2; -1 beyond what is left or can be paid for.

    ``draw`` numbers the futures of an oracle that samples them; one that does not ignores it.
    """

    def steps(self, scene: Scene, world: World, left: jax.Array, size: int, draw: jax.Array | int = 0) -> jax.Array: ...


class Step(NamedTuple):
    """One predicted step, and what is left after it."""

    row: jax.Array  # a place to go on with; meaningless where ``place`` is -1
    place: jax.Array
    free: jax.Array
    purse: jax.Array


def nowhere(size: int) -> jax.Array:
    """Steps that are not predicted."""
    return jnp.full(size - 1, -1)


def purse_after(scene: Scene, star: Star) -> jax.Array:
    """What may be spent once x* is paid for; nothing is counted where there are no costs."""
    return jnp.zeros(()) if scene.purse is None or star.price is None else scene.purse - star.price


def choose(scene: Scene, score: jax.Array, free: jax.Array, purse: jax.Array) -> Step:
    """The place of highest score per unit of cost, among the free ones that can be paid for."""
    if scene.price is None:
        i = jnp.argmax(jnp.where(free, score, -jnp.inf))
        return Step(i, jnp.where(free[i], i, -1), without(scene, free, i), purse)
    paid = free & (scene.price <= purse)
    i = jnp.argmax(jnp.where(paid, score - jnp.log(scene.price), -jnp.inf))
    some = jnp.any(paid)
    return Step(i, jnp.where(some, i, -1), without(scene, free, i), jnp.where(some, purse - scene.price[i], purse))


def without(scene: Scene, free: jax.Array, i: jax.Array) -> jax.Array:
    """The free places without place i; where evaluations are exact also without its copies, which fill up a small space."""
    free = free.at[i].set(False)
    if scene.lattice is None:
        return free
    return free & ~(is_close(scene.points, scene.points[i][None], jnp.ones(1, bool)) & (scene.noise < NEGLIGIBLE_NOISE))


def free_places(scene: Scene, star: Star) -> jax.Array:
    """Where a step may go: not x* itself, not a pending point, and of a finite space nothing exact that is done."""
    U, P = scene.points.shape[0], scene.pending
    free = (jnp.arange(U) < U - P) & ~is_close(scene.points, star.x[None], jnp.ones(1, bool))
    free = free if scene.lattice is None else free & ~exactly_done(scene)
    return free & ~is_close(scene.points, scene.points[U - P :], scene.real[U - P :]) if P else free


def exactly_done(scene: Scene) -> jax.Array:
    """Which places were evaluated and would bring the same again."""
    done = is_close(scene.points, scene.post.X, jnp.arange(scene.post.X.shape[0]) < scene.post.observed)
    return done & (scene.noise < NEGLIGIBLE_NOISE)


def is_copy(scene: Scene) -> jax.Array:
    """Which places repeat an earlier one, where evaluations are exact."""
    apart = jnp.max(jnp.abs(scene.points[:, None, :] - scene.points[None, :, :]), axis=-1)
    return jnp.any(jnp.tril(apart < CLOSE, -1), axis=1) & (scene.noise < NEGLIGIBLE_NOISE)


@dataclass(frozen=True)
class KrigingBeliever:
    """[eq:kb]: each step maximises EI given the steps before it, whose outcomes are believed to be their means."""

    def steps(self, scene: Scene, world: World, left: jax.Array, size: int, draw: jax.Array | int = 0) -> jax.Array:
        star, noise = world.star, scene.noise
        U = scene.points.shape[0]
        first = star.believed_cov / jnp.sqrt(star.believed_var + noise)
        variance = jnp.diagonal(scene.believed)
        rows = jnp.zeros((size, U)).at[0].set(first)
        nugget = 1e-10 * scene.post.hyper.signal
        eta = believed_eta(scene, world.mu, jnp.where(world.informed, world.eta, jnp.minimum(world.eta, star.mu)))

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            rows, rest, free, purse, eta, places = state
            score = if_it_succeeds(log_expected_improvement(world.mu, jnp.sqrt(rest), eta), scene.safe)
            i, place, free, purse = choose(scene, score, free, purse)
            row = (scene.believed[i] - rows[:, i] @ rows) / jnp.sqrt(rest[i] + noise)
            rest = jnp.maximum(rest - row * row, nugget)
            return rows.at[k].set(row), rest, free, purse, jnp.minimum(eta, world.mu[i]), places.at[k - 1].set(place)

        rest = jnp.maximum(variance - first * first, nugget)
        start = (rows, rest, free_places(scene, star), purse_after(scene, star), eta, nowhere(size))
        return jax.lax.fori_loop(1, jnp.minimum(left, size), step, start)[-1]


@dataclass(frozen=True)
class LocalPenalization:
    """[eq:lp]: the paper's oracle. ``hard`` takes [eq:hard]; ``softplus`` the paper's transformation of the loss."""

    softplus: bool = False
    hard: bool = False

    def steps(self, scene: Scene, world: World, left: jax.Array, size: int, draw: jax.Array | int = 0) -> jax.Array:
        sd = jnp.sqrt(jnp.diagonal(scene.cov))

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            score, free, purse, places = state
            i, place, free, purse = choose(scene, score, free, purse)
            score = score + self.penalty(scene, world, scene.points[i], world.mu[i], sd[i])
            return score, free, purse, places.at[k - 1].set(place)

        purse = purse_after(scene, world.star)
        start = (self.appeal(scene, world), free_places(scene, world.star), purse, nowhere(size))
        return jax.lax.fori_loop(1, jnp.minimum(left, size), step, start)[-1]

    def appeal(self, scene: Scene, world: World) -> jax.Array:
        """What the first step maximises over the places: log EI (or the soft-plus) penalised by x* and the pending points."""
        U = scene.points.shape[0]
        sd = jnp.sqrt(jnp.diagonal(scene.cov))
        score = log_expected_improvement(world.mu, sd, world.eta)
        if self.softplus:  # g(-Lambda_1), Lambda_1 = eta - EI
            score = jnp.log(jax.nn.softplus(jnp.exp(score) - world.eta))
        score = if_it_succeeds(score, scene.safe)
        score = score + self.penalty(scene, world, world.star.x, world.star.mu, jnp.sqrt(world.star.var))
        for k in range(scene.pending):
            i = U - scene.pending + k
            score = score + jnp.where(scene.real[i], self.penalty(scene, world, scene.points[i], scene.mu[i], sd[i]), 0.0)
        return score

    def penalty(self, scene: Scene, world: World, x: jax.Array, mu: jax.Array, s: jax.Array) -> jax.Array:
        """log phi(.; x) over the places, for a step to x with mean mu and sd s."""
        means = jnp.concatenate([jnp.where(scene.real, world.mu, jnp.inf), jnp.stack([scene.lowest, world.eta, world.star.mu])])
        lowest = jnp.min(means)  # M <= every mean, also once an outcome has moved them
        apart = squared_distance(scene.points, x[None], jnp.ones(x.size), scene.post.hyper.choice)[:, 0]
        return self.log_penalty(jnp.sqrt(apart), mu, s, scene.lipschitz, lowest)

    def log_penalty(
        self, distance: jax.Array, mu: jax.Array, s: jax.Array, lipschitz: jax.Array, lowest: jax.Array
    ) -> jax.Array:
        """log phi at a distance from a point with mean mu and sd s: [eq:soft] or [eq:hard]."""
        if self.hard:
            radius = (jnp.maximum(mu - lowest, 0.0) + s) / lipschitz
            return -0.2 * jnp.log1p((radius / jnp.maximum(distance, 1e-12)) ** 5)
        return log_ndtr((lipschitz * distance - mu + lowest) / s)


@dataclass(frozen=True)
class ThompsonPaths:
    """[eq:ts]: step k goes to the minimum of its own joint posterior sample, given x* (believed at its mean if unseen).

    ``seed`` chooses the normal numbers, the same for all candidates and decisions.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def steps(self, scene: Scene, world: World, left: jax.Array, size: int, draw: jax.Array | int = 0) -> jax.Array:
        U = scene.points.shape[0]
        key = jax.random.fold_in(jax.random.key(self.seed), draw)
        factor = jnp.linalg.cholesky(covariance_after(scene, world.star))

        def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            free, purse, places = state
            path = world.mu + factor @ jax.random.normal(jax.random.fold_in(key, k), (U,))
            depth = jnp.log(jnp.max(path) - path + 1e-300)  # a score that a cost or a risk can be added to
            _, place, free, purse = choose(scene, if_it_succeeds(depth, scene.safe), free, purse)
            return free, purse, places.at[k - 1].set(place)

        free = free_places(scene, world.star) & ~exactly_done(scene)
        start = (free, purse_after(scene, world.star), nowhere(size))
        return jax.lax.fori_loop(1, jnp.minimum(left, size), step, start)[-1]


def covariance_after(scene: Scene, star: Star) -> jax.Array:
    """Covariance over the places once x* (and what is pending) is evaluated, positive definite up to rounding."""
    row = star.believed_cov / jnp.sqrt(star.believed_var + scene.noise)
    return scene.believed - row[:, None] * row[None, :] + _JITTER * scene.post.hyper.signal * jnp.eye(row.size)


def check_seed(seed: int) -> None:
    if not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**32):
        raise ValueError(f"seed must be a whole number from 0 to 2**32 - 1, got {seed!r}.")
