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

The loop is part of a compiled program (``minimize_batch``), or runs outside with a compiled function to evaluate
(``minimize_outside``): slower by a call per pass, and there is no program of its own to compile.

Deterministic. Cost: ``passes`` evaluations of the batch plus B p^2 each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_ARMIJO = 1e-4
_SHORTEST = 1e-9


class Minima(NamedTuple):
    """Where each start ended. ``converged`` is False for a start that ran out of passes."""

    x: Any
    f: Any
    converged: Any
    passes: Any


class _State(NamedTuple):
    x: Any
    f: Any
    g: Any
    H: Any
    p: Any
    t: Any
    fresh: Any  # no curvature seen yet
    done: Any
    passes: Any


def minimize_batch(
    value_and_grad: Callable[..., tuple[jax.Array, jax.Array]],
    starts: jax.Array,
    lower: jax.Array,
    upper: jax.Array,
    *,
    passes: int,
    first_step: float = 0.1,
    tolerance: float = 1e-6,
    narrowing: tuple[tuple[int, int], ...] = (),
) -> Minima:
    """Minimise from every row of ``starts``. ``first_step`` is the length of the very first step, per start.

    ``narrowing``: pairs (pass, count), after that pass only the ``count`` lowest go on; the function is then called with the
    trial points and with which of them no longer matter.
    """
    method = _Method(jnp, lower, upper, first_step, tolerance)

    def going(s: _State) -> jax.Array:
        return (s.passes < passes) & ~jnp.all(s.done)

    def step(s: _State) -> _State:
        trial = method.trial(s)
        if not narrowing:
            return method.after(s, trial, *value_and_grad(trial))
        s = method.after(s, trial, *value_and_grad(trial, s.done))
        better = (s.f[None, :] < s.f[:, None]) | ((s.f[None, :] == s.f[:, None]) & order)
        most = jnp.asarray(len(starts))
        for at, count in narrowing:
            most = jnp.where(s.passes >= at, count, most)
        return s._replace(done=s.done | (jnp.sum(better, axis=1) >= most))

    order = jnp.tril(jnp.ones((len(starts), len(starts)), bool), -1)
    last = jax.lax.while_loop(going, step, method.begin(starts))
    return Minima(last.x, last.f, last.done, last.passes)


def minimize_outside(
    value_and_grad: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    starts: np.ndarray,
    *,
    passes: int,
    first_step: float = 0.1,
    tolerance: float = 1e-6,
) -> Minima:
    """The same over the unit cube, outside compiled programs."""
    d = starts.shape[1]
    method = _Method(np, np.zeros(d), np.ones(d), first_step, tolerance)
    with np.errstate(all="ignore"):  # a rejected step may hold anything
        state = method.begin(starts)
        while state.passes < passes and not np.all(state.done):
            trial = method.trial(state)
            state = method.after(state, trial, *value_and_grad(trial))
    return Minima(state.x, state.f, state.done, state.passes)


class _Method(NamedTuple):
    """The iteration, in the array library ``xp``."""

    xp: Any
    lower: Any
    upper: Any
    first_step: float
    tolerance: float

    def begin(self, starts: Any) -> _State:
        """The first pass evaluates the starts themselves: any finite value is accepted, so f is evaluated in one place."""
        xp, (B, dim) = self.xp, starts.shape
        zero, no = xp.zeros((B, dim)), xp.zeros(B, bool)
        x = xp.clip(starts, self.lower, self.upper)
        H = xp.zeros((B, dim, dim))
        return _State(x, xp.full(B, xp.inf), zero, H, zero, xp.ones(B), ~no, no, xp.asarray(0))

    def trial(self, s: _State) -> Any:
        return self.xp.clip(s.x + s.t[:, None] * s.p, self.lower, self.upper)

    def after(self, s: _State, trial: Any, f: Any, g: Any) -> _State:
        """The state once the trial points have been evaluated."""
        xp, eye = self.xp, self.xp.eye(trial.shape[1])
        good = xp.isfinite(f) & xp.all(xp.isfinite(g), axis=1)
        f, g = xp.where(good, f, xp.inf), xp.where(good[:, None], g, 0.0)
        moved = trial - s.x
        first = s.passes == 0
        accepted = xp.where(first, xp.isfinite(f), f <= s.f + _ARMIJO * xp.sum(s.g * moved, axis=1)) & ~s.done
        change = g - s.g
        sy = xp.sum(moved * change, axis=1)
        yy = xp.sum(change * change, axis=1)
        curved = accepted & ~first & (sy > 1e-12 * xp.sqrt(yy * xp.sum(moved * moved, axis=1)))
        safe_sy, safe_yy = xp.where(curved, sy, 1.0), xp.where(curved, yy, 1.0)
        base = xp.where((curved & s.fresh)[:, None, None], (safe_sy / safe_yy)[:, None, None] * eye, s.H)
        Hy = xp.einsum("bij,bj->bi", base, change)
        yHy = xp.sum(change * Hy, axis=1)
        outer = moved[:, :, None] * moved[:, None, :]
        mixed = Hy[:, :, None] * moved[:, None, :] + moved[:, :, None] * Hy[:, None, :]
        updated = base + (((1.0 + yHy / safe_sy)[:, None, None] * outer) - mixed) / safe_sy[:, None, None]
        H = xp.where(curved[:, None, None], updated, s.H)
        x_new = xp.where(accepted[:, None], trial, s.x)
        g_new = xp.where(accepted[:, None], g, s.g)
        f_new = xp.where(accepted, f, s.f)
        free = ~(((x_new <= self.lower) & (g_new > 0)) | ((x_new >= self.upper) & (g_new < 0)))
        slope = xp.where(free, g_new, 0.0)
        p_new = xp.where(free, -xp.einsum("bij,bj->bi", H, slope), 0.0)
        uphill = xp.sum(p_new * g_new, axis=1) >= 0  # at the start, else only by rounding
        size = xp.sqrt(xp.sum(g_new * g_new, axis=1))
        scale = self.first_step / xp.where(size > 0, size, 1.0)
        H = xp.where(uphill[:, None, None], scale[:, None, None] * eye, H)
        p_new = xp.where(uphill[:, None], -scale[:, None] * slope, p_new)
        p = xp.where(accepted[:, None], p_new, s.p)
        t = xp.where(accepted, 1.0, xp.where(xp.isfinite(f), 0.4, 0.1) * s.t)
        flat = xp.max(xp.abs(slope), axis=1) < 1e-12
        small = accepted & (s.f - f <= self.tolerance * (1.0 + xp.abs(f))) & ~s.fresh
        done = s.done | flat | (small & ~first) | (t < _SHORTEST) | (first & ~accepted)
        return _State(x_new, f_new, g_new, H, p, t, s.fresh & ~curved, done, s.passes + 1)
