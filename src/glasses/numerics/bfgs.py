"""Many local minimisations in a box at once: projected BFGS, one evaluation of the whole batch per iteration.

Minimise f over lower <= x <= upper from B starts. The direction is -H g on the free coordinates (those at a bound with the
gradient pushing outwards are held), the step is projected onto the box and halved until it satisfies Armijo's condition,
and H is the usual BFGS update of the inverse Hessian. Line search and iteration share one loop: each pass evaluates every
start once, at a new iterate or at a shorter step, so nothing waits for the slowest line search.

| name | shape | |
|---|---|---|
| x, g | (B, p) | iterates and gradients |
| f | (B,) | values; a value that is not finite is a rejected step |
| H | (B, p, p) | inverse Hessians |

Deterministic. Cost: ``passes`` evaluations of the batch plus B p^2 each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

_ARMIJO = 1e-4
_SHORTEST = 1e-9


class Minima(NamedTuple):
    """Where each start ended. ``converged`` is False for a start that ran out of passes."""

    x: jax.Array
    f: jax.Array
    converged: jax.Array
    passes: jax.Array


class _State(NamedTuple):
    x: jax.Array
    f: jax.Array
    g: jax.Array
    H: jax.Array
    p: jax.Array
    t: jax.Array
    fresh: jax.Array  # no curvature seen yet
    done: jax.Array
    passes: jax.Array


def minimize_batch(
    value_and_grad: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    starts: jax.Array,
    lower: jax.Array,
    upper: jax.Array,
    *,
    passes: int,
    first_step: float = 0.1,
    tolerance: float = 1e-6,
) -> Minima:
    """Minimise from every row of ``starts``. ``first_step`` is the length of the very first step, per start."""
    B, dim = starts.shape
    eye = jnp.eye(dim)

    def evaluate(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        f, g = value_and_grad(x)
        good = jnp.isfinite(f) & jnp.all(jnp.isfinite(g), axis=1)
        return jnp.where(good, f, jnp.inf), jnp.where(good[:, None], g, 0.0)

    def free(x: jax.Array, g: jax.Array) -> jax.Array:
        return ~(((x <= lower) & (g > 0)) | ((x >= upper) & (g < 0)))

    def direction(x: jax.Array, g: jax.Array, H: jax.Array) -> jax.Array:
        mask = free(x, g)
        return jnp.where(mask, -jnp.einsum("bij,bj->bi", H, jnp.where(mask, g, 0.0)), 0.0)

    def scaled(g: jax.Array) -> jax.Array:
        size = jnp.sqrt(jnp.sum(g * g, axis=1))
        return (first_step / jnp.where(size > 0, size, 1.0))[:, None, None] * eye

    # The first pass evaluates the starts themselves: any finite value is accepted, so f is evaluated in one place only.
    zero, no = jnp.zeros((B, dim)), jnp.zeros(B, bool)
    state = _State(
        x=jnp.clip(starts, lower, upper),
        f=jnp.full(B, jnp.inf),
        g=zero,
        H=jnp.zeros((B, dim, dim)),
        p=zero,
        t=jnp.ones(B),
        fresh=~no,
        done=no,
        passes=jnp.asarray(0),
    )

    def step(s: _State) -> _State:
        trial = jnp.clip(s.x + s.t[:, None] * s.p, lower, upper)
        f, g = evaluate(trial)
        moved = trial - s.x
        first = s.passes == 0
        accepted = jnp.where(first, jnp.isfinite(f), f <= s.f + _ARMIJO * jnp.sum(s.g * moved, axis=1)) & ~s.done
        change = g - s.g
        sy = jnp.sum(moved * change, axis=1)
        yy = jnp.sum(change * change, axis=1)
        curved = accepted & ~first & (sy > 1e-12 * jnp.sqrt(yy * jnp.sum(moved * moved, axis=1)))
        safe_sy, safe_yy = jnp.where(curved, sy, 1.0), jnp.where(curved, yy, 1.0)
        base = jnp.where((curved & s.fresh)[:, None, None], (safe_sy / safe_yy)[:, None, None] * eye, s.H)
        Hy = jnp.einsum("bij,bj->bi", base, change)
        yHy = jnp.sum(change * Hy, axis=1)
        outer = moved[:, :, None] * moved[:, None, :]
        mixed = Hy[:, :, None] * moved[:, None, :]
        updated = base + ((1.0 + yHy / safe_sy) / safe_sy)[:, None, None] * outer
        updated = updated - (mixed + jnp.swapaxes(mixed, 1, 2)) / safe_sy[:, None, None]
        H = jnp.where(curved[:, None, None], updated, s.H)
        x_new = jnp.where(accepted[:, None], trial, s.x)
        g_new = jnp.where(accepted[:, None], g, s.g)
        f_new = jnp.where(accepted, f, s.f)
        p_new = direction(x_new, g_new, H)
        uphill = jnp.sum(p_new * g_new, axis=1) >= 0  # at the start, else only by rounding
        H = jnp.where(uphill[:, None, None], scaled(g_new), H)
        p_new = jnp.where(uphill[:, None], direction(x_new, g_new, H), p_new)
        p = jnp.where(accepted[:, None], p_new, s.p)
        t = jnp.where(accepted, 1.0, jnp.where(jnp.isfinite(f), 0.4, 0.1) * s.t)
        flat = jnp.max(jnp.abs(g_new) * free(x_new, g_new), axis=1) < 1e-12
        small = accepted & (s.f - f <= tolerance * (1.0 + jnp.abs(f))) & ~s.fresh
        done = s.done | flat | (small & ~first) | (t < _SHORTEST) | (first & ~accepted)
        return _State(x_new, f_new, g_new, H, p, t, s.fresh & ~curved, done, s.passes + 1)

    def going(s: _State) -> jax.Array:
        return (s.passes < passes) & ~jnp.all(s.done)

    last = jax.lax.while_loop(going, step, state)
    return Minima(last.x, last.f, last.done, last.passes)
