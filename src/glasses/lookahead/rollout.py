"""Rollout: simulate the rest of the run, outcome by outcome and decision by decision, under the model.

From x*, draw its outcome, go where EI is highest given it, draw that outcome, ... until nothing is left. The value of x* is

    G_n(x*) = E[ sum_{k=1..n} EI(x_k | D_{k-1}) ],  x_1 = x*,  x_k = argmax over the places of EI(x | D_{k-1})    [eq:rollout]

D_k the data after k simulated outcomes. The improvement of step k minus its EI has mean zero given D_{k-1}: taking the EI
instead of the improvement is the control variate with coefficient one at every step [eq:control], and the last outcome needs
no drawing at all. n = 1 is the closed form; with n = 2 only y* is drawn. Outcomes are normal numbers from one scrambled Sobol
set, dimension k for step k, common to all candidates (common random numbers): future number s is the same world for every x*.
Pending evaluations come first, each with its outcome.

An argmax over noisy values prefers the lucky ones. ``race`` says how many futures each round has: the search values many
candidates with the first few futures and goes on with the best of them (``search.cascade``); prefixes of a Sobol set whose
length is a power of two are balanced.

Conditioning on a step is one row over the places (``oracles``): future and step cost H U. Memory: ``_TOGETHER`` futures at a
time, H U numbers each, whatever the number of futures, candidates or the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy import special

from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.losses import check_steps
from glasses.lookahead.oracles import KrigingBeliever, choose, free_places, nowhere, purse_after, unseen
from glasses.lookahead.scene import Scene, Star, if_it_succeeds
from glasses.numerics.sobol import scrambled
from glasses.runtime.padding import MAX_HORIZON, MAX_PENDING

_TOGETHER = 16
_MOST = 4096
_SUCCESS = MAX_HORIZON + MAX_PENDING  # where the numbers that decide about success begin


@dataclass(frozen=True)
class Rollout:
    """[eq:rollout] over ``race[-1]`` futures. ``race=(256,)`` values every candidate with all of them."""

    race: tuple[int, ...] = (64, 128, 256)
    steps: int | None = None
    is_gain: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_steps(self.steps)
        rounds = self.race if isinstance(self.race, tuple) else ()
        whole = all(isinstance(n, int) and n >= _TOGETHER and n & (n - 1) == 0 and n <= _MOST for n in rounds)
        if not rounds or not whole or list(rounds) != sorted(set(rounds)):
            raise ValueError(
                f"race must be increasing powers of two from {_TOGETHER} to {_MOST}, such as (64, 128, 256), got {self.race!r}."
            )

    def futures(self, scene: Scene, star: Star, left: jax.Array, size: int) -> jax.Array:
        """The kriging believer's steps: the plan that goes with the decision. The merit simulates its own futures."""
        return KrigingBeliever().steps(scene, unseen(scene, star), left, size)

    def merit(self, scene: Scene, star: Star, futures: jax.Array, left: jax.Array) -> jax.Array:
        """log of [eq:rollout] with all futures."""
        size = futures.shape[-1] + 1
        return jnp.log(self.total(scene, star, left, size, 0, self.race[-1]) / self.race[-1])

    def total(self, scene: Scene, star: Star, left: jax.Array, size: int, first: Any, last: Any) -> jax.Array:
        """The sum of the gains of futures first..last - 1, both multiples of 16."""

        def add(block: jax.Array, sum_: jax.Array) -> jax.Array:
            return sum_ + jnp.sum(self.simulate(scene, star, left, size, block).gain)

        return jax.lax.fori_loop(first // _TOGETHER, last // _TOGETHER, add, jnp.zeros(()))

    def simulate(
        self, scene: Scene, star: Star, left: jax.Array, size: int, block: jax.Array, *, whole_story: bool = False
    ) -> Simulated:
        """Futures 16 block .. 16 block + 15."""
        t = jax.lax.dynamic_slice_in_dim(jnp.asarray(normals(self.race[-1])), block * _TOGETHER, _TOGETHER)
        return jax.vmap(lambda t: simulate(scene, star, left, size, t, whole_story=whole_story))(t)


class Simulated(NamedTuple):
    """One simulated rest of a run."""

    gain: jax.Array  # () sum of EI
    gains: jax.Array  # (size,) EI of each step, 0 for those that do not happen
    best: jax.Array  # (size,) the best value after each step
    steps: jax.Array  # (size - 1,) places of steps 2..; -1 where nothing can be paid for


def simulate(scene: Scene, star: Star, left: jax.Array, size: int, t: jax.Array, *, whole_story: bool = False) -> Simulated:
    """The rest of the run if the standardised outcomes are t: of x* and the steps, of the pending points, of success.

    With noise, what counts is the posterior mean at a point after its outcome, as in ``losses``; of the last step, f itself. A
    later step fails with its probability, and then brings and teaches nothing. ``whole_story`` is for forecasts: also x* may
    fail (for a decision ``loss.at_risk`` sees to that), and the posterior mean counts at the last step too.
    """
    U, P, noise = scene.points.shape[0], scene.pending, scene.noise
    nugget = 1e-10 * scene.post.hyper.signal
    n = jnp.minimum(left, size)
    mu, eta, at_star, waiting = scene.mu, scene.eta, star.mu, jnp.zeros(())
    for p in range(P):  # the rows of the pending points are known: only means move
        i, row = U - P + p, scene.pending_rows[p]
        ei = jnp.exp(log_expected_improvement(mu[i], jnp.where(scene.real[i], row[i], 1.0), eta))
        waiting = waiting + jnp.where(scene.real[i], ei, 0.0)
        mu, at_star = mu + row * t[MAX_HORIZON + p], at_star + star.loads[p] * t[MAX_HORIZON + p]
        eta = jnp.where(scene.real[i], jnp.minimum(eta, mu[i]), eta)

    total = jnp.sqrt(star.believed_var + noise)
    reach = star.believed_var / total
    known = (n > 1) | whole_story
    first = jnp.exp(log_expected_improvement(at_star, jnp.where(known, reach, jnp.sqrt(star.believed_var)), eta))
    row = star.believed_cov / total
    if whole_story and star.safe is not None:
        first, went = first * jnp.exp(star.safe), succeeds(star.safe, t[_SUCCESS])
        row, outcome = jnp.where(went, row, 0.0), jnp.where(went, at_star + reach * t[0], jnp.inf)
    else:
        outcome = at_star + reach * t[0]
    mu, eta = mu + row * t[0], jnp.minimum(eta, outcome)
    rest = jnp.maximum(jnp.diagonal(scene.believed) - row * row, nugget)
    rows = jnp.zeros((size, U)).at[0].set(row)

    def step(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        rows, rest, mu, eta, free, purse, gains, best, places = state
        appeal = if_it_succeeds(log_expected_improvement(mu, jnp.sqrt(rest), eta), scene.safe)
        i, place, free, purse = choose(scene, appeal, free, purse)
        row = (scene.believed[i] - rows[:, i] @ rows) / jnp.sqrt(rest[i] + noise)
        sd = jnp.where((k + 1 < n) | whole_story, row[i], jnp.sqrt(rest[i]))
        happens = place >= 0
        gain = log_expected_improvement(mu[i], sd, eta)
        if scene.safe is not None:
            gain, went = gain + scene.safe[i], succeeds(scene.safe[i], t[_SUCCESS + k])
            row = jnp.where(went, row, 0.0)
        else:
            went = jnp.asarray(True)
        gain = jnp.exp(gain)
        mu = mu + row * t[k]
        eta = jnp.where(happens & went, jnp.minimum(eta, mu[i]), eta)
        rest = jnp.maximum(rest - row * row, nugget)
        gains = gains.at[k].set(jnp.where(happens, gain, 0.0))
        return rows.at[k].set(row), rest, mu, eta, free, purse, gains, best.at[k].set(eta), places.at[k - 1].set(place)

    zeros = jnp.zeros(size)
    begun = (rows, rest, mu, eta, free_places(scene, star), purse_after(scene, star))
    kept = (zeros.at[0].set(first + waiting), zeros.at[0].set(eta), nowhere(size))
    *_, gains, best, places = jax.lax.fori_loop(1, n, step, (*begun, *kept))
    return Simulated(jnp.sum(gains), gains, best, places)


def succeeds(safe: jax.Array, t: jax.Array) -> jax.Array:
    """Whether an evaluation with this log probability of success succeeds where its normal number is t."""
    return t < ndtri(jnp.exp(safe))


@lru_cache(maxsize=4)
def normals(count: int) -> np.ndarray:
    """(count, outcomes + pending + successes) standard normals; a shorter set is the beginning of a longer one."""
    points = scrambled(_SUCCESS + MAX_HORIZON, count.bit_length() - 1, np.random.default_rng(20151002))
    return special.ndtri(np.clip(points, 2.0**-40, 1.0 - 2.0**-40))
