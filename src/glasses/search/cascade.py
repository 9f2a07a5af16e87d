"""The default search: value many places cheaply, few dearly, then polish the best with gradients.

1. survey   the places of the scene (``survey``)
2. screen   the places of highest EI, and the predicted plan, under one common future with a coarse expectation
3. value    the best of the screen, of EI and of the plan, each under its own predicted future
4. polish   the best few by gradients with their futures held fixed, then value them again under their new future

A myopic loss is valued at every place and polished. Steps, integers and choices are moved to what can be run before they are
valued. The winner is never a point already observed or pending unless the noise makes a repetition worth something. One
compiled program per stage, loss, data size and horizon size; deterministic given the survey.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.bfgs import minimize_batch
from glasses.compilation import program
from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lattice import snap
from glasses.lookahead.loss import Loss, worth
from glasses.lookahead.losses import Glasses
from glasses.lookahead.oracles import KrigingBeliever
from glasses.lookahead.scene import Scene, Star, believed_eta, if_it_succeeds, is_close, look, star_at
from glasses.padding import MAX_HORIZON, horizon_size, pad_rows, pending_size
from glasses.search.decision import Decision, Situation, Valued, conclude
from glasses.search.survey import cover, neighbourhood, separated_best, survey
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE


@dataclass(frozen=True)
class Cascade:
    """Survey ``places``, value ``valued`` of them, polish ``polished``."""

    places: int = 256
    valued: int = 48
    polished: int = 4

    def __post_init__(self) -> None:
        for name, least in (("places", 16), ("valued", 1), ("polished", 1)):
            number = getattr(self, name)
            if not (isinstance(number, int) and number >= least):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}.")
        if not self.polished <= self.valued <= self.places:
            raise ValueError(
                f"A cascade narrows: polished <= valued <= places, got {self.polished}, {self.valued}, {self.places}."
            )

    def decide(self, loss: Loss, kernel: Kernel, situation: Situation, rng: np.random.Generator) -> Decision:
        scene = open_scene(kernel, situation, self.places, rng)
        n = min(planned(loss, situation.left), self.places)
        size, left_now = horizon_size(n), np.asarray(n)
        if not loss.looks_ahead:
            return conclude(scene, _best_myopic(scene, left_now, kernel=kernel, loss=loss, polished=2 * self.polished))
        chosen = _screen(scene, left_now, size=size, count=self.valued)
        scene = _with_rest(scene, chosen, n, kernel, loss)
        valued = _value(scene, chosen, np.asarray(self.valued), left_now, kernel=kernel, loss=loss, size=size)
        polished = _polish(scene, valued, left_now, kernel=kernel, loss=loss, count=self.polished)
        again = _value(scene, polished, np.asarray(self.polished), left_now, kernel=kernel, loss=loss, size=size)
        return conclude(scene, again, valued)


def planned(loss: Loss, left: int) -> int:
    """The horizon of a loss when ``left`` evaluations are left, the current one included."""
    return min(left, MAX_HORIZON if loss.steps is None else min(loss.steps, MAX_HORIZON))


def open_scene(kernel: Kernel, situation: Situation, places: int, rng: np.random.Generator) -> Scene:
    """Survey the cube for one decision; of a small finite space, all of it."""
    post, pending, _, lattice, success, every = situation
    d = post.X.shape[1]
    room = pending_size(len(pending))
    filled = pad_rows(pending.reshape(-1, d), room)
    near = neighbourhood(d, max(16, places // 8), rng)
    spread = cover(d, places, rng) if every is None else np.resize(every, (places, d))
    jumps = None if lattice is None else rng.random(near.shape)
    count = np.asarray(len(pending))
    return survey(post, spread, near, jumps, filled, count, lattice, success, kernel=kernel, starts=8)


def prepare_for_failure(scene: Scene, n: int, kernel: Kernel, loss: Loss) -> Scene:
    """The scene that knows what the n - 1 later evaluations would bring if this one failed; the same if nothing has failed."""
    if scene.rest is None or n < 2 or not loss.looks_ahead:
        return scene
    return _with_rest(scene, _screen(scene, np.asarray(n), size=horizon_size(n), count=Cascade.valued), n, kernel, loss)


def _with_rest(scene: Scene, chosen: jax.Array, n: int, kernel: Kernel, loss: Loss) -> Scene:
    if scene.rest is None or n < 2:
        return scene
    count = np.asarray(min(chosen.shape[0], 8))
    after = _value(scene, chosen, count, np.asarray(n - 1), kernel=kernel, loss=loss, size=horizon_size(n))
    return scene._replace(rest=jnp.max(after.merit))


@program
def _best_myopic(scene: Scene, left: jax.Array, *, kernel: Kernel, loss: Loss, polished: int) -> Valued:
    """Value every place, polish the best well-separated ones."""
    candidates = scene.points[: scene.points.shape[0] - scene.pending]

    together = None if scene.pending else 64  # an expectation over pending points factorises: one matrix at a time

    def merit_at(star: Star) -> jax.Array:
        return worth(loss, scene, star, (), left)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.map(jax.value_and_grad(lambda x: -merit_at(look(kernel, scene, x))), X, batch_size=together)

    everywhere = jnp.arange(candidates.shape[0])
    merit = jax.lax.map(lambda i: merit_at(star_at(scene, i)), everywhere, batch_size=together)
    merit = jnp.where(forbidden(scene, candidates) | jnp.isnan(merit), -jnp.inf, merit)
    d = candidates.shape[1]
    first = candidates[separated_best(merit, candidates, polished)]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=30, first_step=0.01)
    best, value = found.x, -found.f
    if scene.lattice is not None:
        best = snap(scene.lattice, found.x)
        value = jax.lax.map(lambda x: merit_at(look(kernel, scene, x)), best, batch_size=together)
    after = jnp.where(forbidden(scene, best) | jnp.isnan(value), -jnp.inf, value)
    all_merit, all_x = jnp.concatenate([after, merit]), jnp.concatenate([best, candidates])
    winner = jnp.argmax(all_merit)
    star = look(kernel, scene, all_x[winner])
    return Valued(star.x[None], all_merit[winner][None], star.mu[None], jnp.sqrt(star.var)[None], jnp.zeros((1, 0), int))


@program
def _screen(scene: Scene, left: jax.Array, *, size: int, count: int) -> jax.Array:
    """The places worth valuing: a third by EI, the common plan itself, the rest by their merit under the common plan."""
    candidates = scene.points[: scene.points.shape[0] - scene.pending]
    taken = forbidden(scene, candidates)
    eta = believed_eta(scene, scene.mu, scene.eta)
    log_ei = log_expected_improvement(scene.mu, jnp.sqrt(jnp.diagonal(scene.believed)), eta)[: candidates.shape[0]]
    if scene.safe is not None:
        log_ei = if_it_succeeds(log_ei, scene.safe[: candidates.shape[0]])
    log_ei = jnp.where(taken, -jnp.inf, log_ei)
    coarse = Glasses(KrigingBeliever(), QMC(16))
    plan = coarse.futures(scene, star_at(scene, jnp.argmax(log_ei)), left, size)
    third = max(1, count // 3)
    on_plan = jnp.zeros(candidates.shape[0]).at[plan].add(jnp.arange(size - 1) + 2 <= jnp.minimum(left, 1 + third)) > 0
    hopeful = jax.lax.top_k(jnp.where(on_plan & ~taken, jnp.inf, log_ei), min(4 * count, candidates.shape[0]))[1]
    merit = jax.lax.map(lambda i: worth(coarse, scene, star_at(scene, i), plan, left), hopeful)
    best_by_ei = log_ei[hopeful] >= jax.lax.top_k(log_ei, third)[0][-1]
    bonus = jnp.where(best_by_ei, 2e3, 0.0) + jnp.where(on_plan[hopeful], 1e3, 0.0)
    best = jax.lax.top_k(jnp.where(taken[hopeful], -jnp.inf, jnp.maximum(merit, -900.0) + bonus), count)[1]
    return candidates[hopeful[best]]


@program
def _value(scene: Scene, X: jax.Array, count: jax.Array, left: jax.Array, *, kernel: Kernel, loss: Loss, size: int) -> Valued:
    """Merit of the first ``count`` rows of X, each under its own future; -inf for the rest and for repetitions."""

    def value(x: jax.Array) -> Valued:
        star = look(kernel, scene, x)
        futures = loss.futures(scene, star, left, size)
        return Valued(x, worth(loss, scene, star, futures, left), star.mu, jnp.sqrt(star.var), futures)

    shapes = jax.eval_shape(value, X[0])
    M = X.shape[0]
    blank = jax.tree.map(lambda a: jnp.zeros((M, *a.shape), a.dtype), shapes)

    def fill(i: jax.Array, kept: Valued) -> Valued:
        return jax.tree.map(lambda all_, one: all_.at[i].set(one), kept, value(X[i]))

    valued = jax.lax.fori_loop(0, count, fill, blank)
    worthless = (jnp.arange(M) >= count) | forbidden(scene, X) | jnp.isnan(valued.merit)
    return valued._replace(x=X, merit=jnp.where(worthless, -jnp.inf, valued.merit))


@program
def _polish(scene: Scene, valued: Valued, left: jax.Array, *, kernel: Kernel, loss: Loss, count: int) -> jax.Array:
    """The best ``count`` points moved uphill with their futures held fixed; as many rows as were valued, for ``_value``."""
    top = jax.lax.top_k(valued.merit, count)[1]
    frozen = jax.tree.map(lambda a: a[top], valued.futures)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        def one(args: tuple[jax.Array, Any]) -> tuple[jax.Array, jax.Array]:
            x, future = args
            return value_and_slope(lambda x: -worth(loss, scene, look(kernel, scene, x), future, left), x)

        return jax.lax.map(one, (X, frozen))

    d, size = valued.x.shape[1], valued.futures.shape[-1] + 1
    passes = 8 if size <= 32 else 4  # far ahead the loss is flat: more passes were measured to find nothing
    found = minimize_batch(descend, valued.x[top], jnp.zeros(d), jnp.ones(d), passes=passes, first_step=0.01)
    return valued.x.at[:count].set(snap(scene.lattice, found.x))


def value_and_slope(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(x) and its gradient. In few dimensions forward mode runs as fast as reverse mode and compiles in half the time."""
    if x.size > 3:
        return jax.value_and_grad(f)(x)
    return jax.vmap(lambda t: jax.jvp(f, (x,), (t,)), out_axes=(None, 0))(jnp.eye(x.size))


def forbidden(scene: Scene, X: jax.Array) -> jax.Array:
    """Which rows of X repeat an experiment that failed, or while evaluations are exact one that is done or pending."""
    done = jnp.arange(scene.post.X.shape[0]) < scene.post.observed
    again = is_close(X, scene.post.X, done)
    if scene.pending:
        again = again | is_close(X, scene.points[-scene.pending :], scene.real[-scene.pending :])
    again = again & (scene.noise < NEGLIGIBLE_NOISE)
    if scene.success is not None:
        again = again | is_close(X, scene.success.X, scene.success.failed)
    return again
