"""The default search: value many places cheaply, few dearly, then polish the best with gradients.

1. survey   the places of the scene (``survey``)
2. screen   the places of highest EI, and the predicted plan, under one common future with a coarse expectation
3. value    the best of the screen, of EI and of the plan, each under its own predicted future
4. polish   the best few by gradients with their futures held fixed, then value them again under their new future

A myopic loss is valued at every place and polished. A rollout is raced instead of valued and polished: many candidates with
few futures, few candidates with many (``race``). Steps, integers and choices are moved to what can be run before they are
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

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.loss import Loss, dearest, foreseen, worth
from glasses.lookahead.losses import Glasses
from glasses.lookahead.oracles import KrigingBeliever
from glasses.lookahead.rollout import Rollout
from glasses.lookahead.scene import Scene, Star, believed_eta, build_scene, happening, if_it_succeeds, look, star_at
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.batching import on_accelerator, side_by_side
from glasses.runtime.padding import MAX_HORIZON, horizon_size, pad_rows, pending_size
from glasses.runtime.program import program
from glasses.search.admissible import affordable, forbidden, priced
from glasses.search.decision import Decision, Price, Situation, Valued, conclude
from glasses.search.race import race
from glasses.search.survey import cover, neighbourhood, separated_best, survey
from glasses.space.snapping import snap
from glasses.surrogate.calibration import trusted_horizon
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior


@dataclass(frozen=True)
class Cascade:
    """Survey ``places``, value ``valued`` of them, polish ``polished``.

    ``guarded``: plan less far where leave-one-out errors say that the model is too sure of itself (``calibration``).
    """

    places: int = 256
    valued: int = 48
    polished: int = 4
    guarded: bool = False

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
        n = trusted_horizon(situation.fitted or situation.post, n) if self.guarded else n
        size, left_now = horizon_size(n), np.asarray(n)
        prices = prices_of(situation.price)
        if not loss.looks_ahead:
            found = _best_myopic(scene, left_now, kernel=kernel, loss=loss, polished=2 * self.polished)
            return conclude(scene, affordable(found, prices(found.x), situation.purse))
        chosen = _screen(scene, left_now, size=size, count=self.valued)
        scene = _with_rest(scene, chosen, prices, n, kernel, loss)
        if isinstance(loss, Rollout):
            return conclude(scene, race(scene, chosen, prices(chosen), left_now, kernel=kernel, loss=loss, size=size))
        static = {"kernel": kernel, "loss": loss}
        price = prices(chosen)
        valued = _value(scene, chosen, price, np.asarray(self.valued), left_now, size=size, **static)
        polished = _polish(scene, valued, price, left_now, count=self.polished, **static)
        again = _value(scene, polished, prices(polished), np.asarray(self.polished), left_now, size=size, **static)
        return conclude(scene, again, valued)


def planned(loss: Loss, left: int) -> int:
    """The horizon of a loss when ``left`` evaluations are left, the current one included."""
    return min(left, MAX_HORIZON if loss.steps is None else min(loss.steps, MAX_HORIZON))


def prices_of(price: Price | None) -> Callable[[Any], np.ndarray | None]:
    """The price of each row of an array, None where there are no costs."""
    return lambda X: None if price is None else price(np.asarray(X))


def open_scene(kernel: Kernel, situation: Situation, places: int, rng: np.random.Generator) -> Scene:
    """Survey the cube for one decision; of a small finite space, all of it."""
    post, pending, _, lattice, success, every, price, purse, doubt, _ = situation
    d = post.X.shape[1]
    room = pending_size(len(pending))
    filled = pad_rows(pending.reshape(-1, d), room)
    near = neighbourhood(d, max(16, places // 8), rng)
    spread = cover(d, places, rng) if every is None else np.resize(every, (places, d))
    jumps = None if lattice is None else rng.random(near.shape)
    count = np.asarray(len(pending))
    scene = survey(post, spread, near, jumps, filled, count, lattice, success, kernel=kernel, starts=8)
    if price is not None:
        scene = scene._replace(price=np.asarray(price(np.asarray(scene.points))), purse=np.asarray(purse))
    return scene if doubt is None else scene._replace(doubt=_under_doubt(scene, doubt, kernel=kernel))


@program
def _under_doubt(scene: Scene, members: Posterior, *, kernel: Kernel) -> Scene:
    """The scene once more for each member of the ensemble."""
    U, P = scene.points.shape[0], scene.pending
    count = jnp.sum(scene.real[U - P :])

    def one(post: Posterior) -> Scene:
        again = build_scene(kernel, post, scene.points[: U - P], scene.points[U - P :], count, scene.lattice, scene.success)
        return again._replace(price=scene.price, purse=scene.purse, safe=scene.safe, rest=None)

    return jax.lax.map(one, members)


def prepare_for_failure(scene: Scene, price: Price | None, n: int, kernel: Kernel, loss: Loss) -> Scene:
    """The scene that knows what the n - 1 later evaluations would bring if this one failed; the same if nothing has failed."""
    if scene.rest is None or n < 2 or not loss.looks_ahead:
        return scene
    chosen = _screen(scene, np.asarray(n), size=horizon_size(n), count=Cascade.valued)
    return _with_rest(scene, chosen, prices_of(price), n, kernel, loss)


def _with_rest(
    scene: Scene,
    chosen: jax.Array,
    prices: Callable[[Any], np.ndarray | None],
    n: int,
    kernel: Kernel,
    loss: Loss,
) -> Scene:
    if scene.rest is None or n < 2:
        return scene
    few = chosen[:8]
    left, size = np.asarray(n - 1), horizon_size(n)

    def best(scene: Scene) -> Any:
        if isinstance(loss, Rollout):
            after = race(scene, few, prices(few), left, kernel=kernel, loss=loss, size=size)
        else:
            after = _value(scene, chosen, prices(chosen), np.asarray(len(few)), left, kernel=kernel, loss=loss, size=size)
        return np.max(np.asarray(after.merit))

    if scene.purse is None:
        return scene._replace(rest=best(scene))
    return scene._replace(rest=best(_poorer(scene)), spared=best(scene))


@program
def _poorer(scene: Scene) -> Scene:
    """The scene when the dearest place has been paid for."""
    assert scene.purse is not None
    purse, doubt = scene.purse - dearest(scene), scene.doubt
    if doubt is not None:
        doubt = doubt._replace(purse=jnp.broadcast_to(purse, doubt.eta.shape))
    return scene._replace(purse=purse, doubt=doubt)


@program
def _best_myopic(scene: Scene, left: jax.Array, *, kernel: Kernel, loss: Loss, polished: int) -> Valued:
    """Value every place, polish the best well-separated ones: the polished first, then all places."""
    candidates = scene.points[: scene.points.shape[0] - scene.pending]

    together = None if scene.pending else 64  # an expectation over pending points factorises: one matrix at a time

    def at(x: jax.Array) -> jax.Array:
        return worth(loss, scene, lambda each: look(kernel, each, x), (), left)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        return side_by_side(jax.value_and_grad(lambda x: -at(x)), X, together)

    everywhere = jnp.arange(candidates.shape[0])
    merit = side_by_side(lambda i: worth(loss, scene, lambda each: star_at(each, i), (), left), everywhere, together)
    merit = jnp.where(forbidden(scene, candidates) | jnp.isnan(merit), -jnp.inf, merit)
    d = candidates.shape[1]
    first = candidates[separated_best(merit, candidates, polished)]
    found = minimize_batch(descend, first, jnp.zeros(d), jnp.ones(d), passes=30, first_step=0.01)
    best, value = found.x, -found.f
    if scene.lattice is not None:
        best = snap(scene.lattice, found.x)
        value = side_by_side(at, best, together)
    after = jnp.where(forbidden(scene, best) | jnp.isnan(value), -jnp.inf, value)
    polished_mu, polished_var = jax.lax.map(lambda x: look(kernel, scene, x)[1:3], best)
    M = candidates.shape[0]
    return Valued(
        jnp.concatenate([best, candidates]),
        jnp.concatenate([after, merit]),
        jnp.concatenate([polished_mu, scene.mu[:M]]),
        jnp.sqrt(jnp.concatenate([polished_var, jnp.diagonal(scene.cov)[:M]])),
        jnp.zeros((M + best.shape[0], 0), int),
    )


@program
def _screen(scene: Scene, left: jax.Array, *, size: int, count: int) -> jax.Array:
    """The places worth valuing: a third by EI, the common plan itself, the rest by their merit under the common plan."""
    candidates = scene.points[: scene.points.shape[0] - scene.pending]
    taken = forbidden(scene, candidates, None if scene.price is None else scene.price[: candidates.shape[0]])
    eta = believed_eta(scene, scene.mu, scene.eta)
    log_ei = log_expected_improvement(scene.mu, jnp.sqrt(jnp.diagonal(scene.believed)), eta)[: candidates.shape[0]]
    if scene.safe is not None:
        log_ei = if_it_succeeds(log_ei, scene.safe[: candidates.shape[0]])
    if scene.price is not None:
        log_ei = log_ei - jnp.log(scene.price[: candidates.shape[0]])
    log_ei = jnp.where(taken, -jnp.inf, log_ei)
    coarse = Glasses(KrigingBeliever(), QMC(16))
    plan = coarse.futures(scene, star_at(scene, jnp.argmax(log_ei)), left, size)
    third = max(1, count // 3)
    on_plan = jnp.zeros(candidates.shape[0]).at[plan].add(happening(plan, jnp.minimum(left, 1 + third))) > 0
    hopeful = jax.lax.top_k(jnp.where(on_plan & ~taken, jnp.inf, log_ei), min(4 * count, candidates.shape[0]))[1]
    believed = scene._replace(doubt=None)
    merit = side_by_side(lambda i: worth(coarse, believed, lambda each: star_at(each, i), plan, left), hopeful)
    best_by_ei = log_ei[hopeful] >= jax.lax.top_k(log_ei, third)[0][-1]
    bonus = jnp.where(best_by_ei, 2e3, 0.0) + jnp.where(on_plan[hopeful], 1e3, 0.0)
    best = jax.lax.top_k(jnp.where(taken[hopeful], -jnp.inf, jnp.maximum(merit, -900.0) + bonus), count)[1]
    return candidates[hopeful[best]]


@program
def _value(
    scene: Scene,
    X: jax.Array,
    price: jax.Array | None,
    count: jax.Array,
    left: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    size: int,
) -> Valued:
    """Merit of the first ``count`` rows of X, each under its own future; -inf for the rest and for repetitions."""

    def value(i: jax.Array) -> Valued:
        def seen(each: Scene) -> Star:
            return priced(look(kernel, each, X[i]), price, i)

        star, futures = seen(scene), foreseen(loss, scene, seen, left, size)
        return Valued(X[i], worth(loss, scene, seen, futures, left), star.mu, jnp.sqrt(star.var), futures)

    M = X.shape[0]
    shapes = jax.eval_shape(value, jnp.asarray(0))
    blank = jax.tree.map(lambda a: jnp.zeros((M, *a.shape), a.dtype), shapes)

    def fill(i: jax.Array, kept: Valued) -> Valued:
        return jax.tree.map(lambda all_, one: all_.at[i].set(one), kept, value(i))

    valued = side_by_side(value, jnp.arange(M)) if on_accelerator() else jax.lax.fori_loop(0, count, fill, blank)
    worthless = (jnp.arange(M) >= count) | forbidden(scene, X, price) | jnp.isnan(valued.merit)
    return valued._replace(x=X, merit=jnp.where(worthless, -jnp.inf, valued.merit))


@program
def _polish(
    scene: Scene, valued: Valued, price: jax.Array | None, left: jax.Array, *, kernel: Kernel, loss: Loss, count: int
) -> jax.Array:
    """The best ``count`` points moved uphill with their futures held fixed; as many rows as were valued, for ``_value``."""
    top = jax.lax.top_k(valued.merit, count)[1]
    frozen = jax.tree.map(lambda a: a[top], valued.futures)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        def one(args: tuple[jax.Array, Any, jax.Array]) -> tuple[jax.Array, jax.Array]:
            x, future, i = args
            return value_and_slope(
                lambda x: -worth(loss, scene, lambda each: priced(look(kernel, each, x), price, i), future, left), x
            )

        return side_by_side(one, (X, frozen, top))

    d, size = valued.x.shape[1], valued.futures.shape[-1] + 1
    passes = 8 if size <= 32 else 4  # far ahead the loss is flat: more passes were measured to find nothing
    found = minimize_batch(descend, valued.x[top], jnp.zeros(d), jnp.ones(d), passes=passes, first_step=0.01)
    return valued.x.at[:count].set(snap(scene.lattice, found.x))


def value_and_slope(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(x) and its gradient. In few dimensions forward mode runs as fast as reverse mode and compiles in half the time."""
    if x.size > 3:
        return jax.value_and_grad(f)(x)
    return jax.vmap(lambda t: jax.jvp(f, (x,), (t,)), out_axes=(None, 0))(jnp.eye(x.size))
