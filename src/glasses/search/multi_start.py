"""The default search: value many candidates coarsely, few accurately, then polish the best with gradients.

1. propose  the candidate set (``propose``)
2. screen   the candidates of highest EI, and the predicted plan, under one common plan with a coarse value (``screen``)
3. value    the best of the screen, each with its own predicted steps (``value``)
4. polish   the best few by gradients with their steps held fixed, then value them again with their new steps

A myopic loss is valued at every candidate and polished (``myopic``). A loss that is valued by simulation is raced instead of
valued and polished (``race``). Steps, integers and choices are moved to what can be run before they are valued. The winner is
never a point already observed or pending unless the noise makes a repetition worth something.

Where the model is trusted in part only (``loop.trust``), the myopic decision is found too, as carefully as if it were all
that is wanted, and valued with the rest: a plan is followed where it promises more than that point.

One compiled program per stage, loss, data size and horizon size; deterministic given the candidate set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import CandidateSet, query_point
from glasses.lookahead.loss import Loss, value_for
from glasses.lookahead.myopic import ExpectedLoss
from glasses.numerics.bfgs import minimize_batch
from glasses.runtime.batching import batched_map
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program
from glasses.search.decision import Decision, Problem, Valued, decide, horizon, trusting
from glasses.search.myopic import best_myopic
from glasses.search.propose import candidates_for
from glasses.search.screen import screen
from glasses.search.value import SCREENED, value_points, with_gain_after_failure
from glasses.space.snapping import snap
from glasses.surrogate.kernels import Kernel


@dataclass(frozen=True)
class MultiStart:
    """Propose ``candidates``, value the ``screened`` best of them, polish the ``polished`` best of those."""

    candidates: int = 256
    screened: int = SCREENED
    polished: int = 4

    def __post_init__(self) -> None:
        for name, least in (("candidates", 16), ("screened", 1), ("polished", 1)):
            number = getattr(self, name)
            if not (isinstance(number, int) and number >= least):
                raise ValueError(f"{name} must be a whole number of at least {least}, got {number!r}.")
        if not self.polished <= self.screened <= self.candidates:
            raise ValueError(
                f"The search narrows: polished <= screened <= candidates, got {self.polished}, {self.screened}, "
                f"{self.candidates}."
            )

    def decide(self, loss: Loss, kernel: Kernel, problem: Problem, rng: np.random.Generator) -> Decision:
        candidates = candidates_for(kernel, problem, self.candidates, rng)
        n = min(horizon(loss, problem.remaining, problem.trust), self.candidates)
        if not loss.looks_ahead:
            return decide(candidates, best_myopic(candidates, problem, n, kernel, loss, polished=2 * self.polished))
        plain, size = candidates, horizon_size(n)
        candidates = trusting(loss, plain, problem.trust)
        screened = screen(candidates, np.asarray(n), size=size, count=self.screened)
        if candidates.trust is not None and loss.race is None:
            now = decide(plain, best_myopic(plain, problem, 1, kernel, ExpectedLoss(), polished=2 * self.polished))
            screened = np.concatenate([now.x[None], np.asarray(screened)[:-1]])
        candidates = with_gain_after_failure(candidates, problem, n, kernel, loss, screened)
        valued = value_points(candidates, screened, problem, n, kernel, loss, count=self.screened, size=size)
        if loss.race is not None:
            return decide(candidates, valued)
        cost = problem.cost_at(screened)
        moved = _polish(candidates, valued, cost, np.asarray(n), kernel=kernel, loss=loss, count=self.polished)
        again = value_points(candidates, moved, problem, n, kernel, loss, count=self.polished, size=size)
        return decide(candidates, again, valued)


@program
def _polish(
    candidates: CandidateSet,
    valued: Valued,
    cost: jax.Array | None,
    remaining: jax.Array,
    *,
    kernel: Kernel,
    loss: Loss,
    count: int,
) -> jax.Array:
    """The best ``count`` points moved uphill with their steps held fixed; as many rows as were valued."""
    top = jax.lax.top_k(valued.value, count)[1]
    fixed = jax.tree.map(lambda a: a[top], valued.steps)

    def descend(X: jax.Array) -> tuple[jax.Array, jax.Array]:
        def one(args: tuple[jax.Array, Any, jax.Array]) -> tuple[jax.Array, jax.Array]:
            x, steps, i = args

            def loss_at(x: jax.Array) -> jax.Array:
                return -value_for(
                    loss, candidates, lambda each: query_point(kernel, each, x).costing(cost, i), steps, remaining
                )

            return value_and_slope(loss_at, x)

        return batched_map(one, (X, fixed, top))

    d, size = valued.x.shape[1], valued.steps.shape[-1] + 1
    passes = 8 if size <= 32 else 4  # far ahead the loss is flat: more passes were measured to find nothing
    found = minimize_batch(descend, valued.x[top], jnp.zeros(d), jnp.ones(d), passes=passes, first_step=0.01)
    return valued.x.at[:count].set(snap(candidates.lattice, found.x))


def value_and_slope(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(x) and its gradient. In few dimensions forward mode runs as fast as reverse mode and compiles in half the time."""
    if x.size > 3:
        return jax.value_and_grad(f)(x)
    return jax.vmap(lambda t: jax.jvp(f, (x,), (t,)), out_axes=(None, 0))(jnp.eye(x.size))
