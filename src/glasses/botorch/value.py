"""Acquisition values of the engine as a function that torch can differentiate.

The value of a point is a function of what the candidates see of it (``candidates.Seen``). JAX computes it together with its
derivative by those numbers, with the predicted steps held fixed; torch carries that on to the point through the model's
posterior. Predicted steps are candidates, so the value is piecewise smooth in the point and the derivative the true one almost
everywhere.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor

from glasses.botorch.candidates import ModelCandidates, Seen
from glasses.lookahead.candidates import CandidateSet, QueryPoint
from glasses.lookahead.loss import Loss, steps_for, value_for
from glasses.runtime.padding import horizon_size
from glasses.runtime.program import program
from glasses.search.value import SCREENED, values_of

TOGETHER = SCREENED  # points of one call: fewer are padded, and not computed


def values(candidates: ModelCandidates, X: Tensor, remaining: int, loss: Loss) -> Tensor:
    """(b,) acquisition values at the rows of X, differentiable, in the units of the model."""
    seen = candidates.see(X)
    found: Tensor = _Value.apply(candidates, X, remaining, loss, *seen)
    return found + float(np.log(candidates.scale))


def steps_after(candidates: ModelCandidates, x: Tensor, remaining: int, loss: Loss) -> Tensor:
    """(at most remaining - 1, d) where the evaluations after x (1, d) are predicted to go; of several outcomes the middle one,
    of several samples too."""
    queries = _padded(candidates.query_points(x, candidates.see(x)))
    steps = values_of(candidates.alone, queries, 1, remaining, loss, size=horizon_size(remaining))[1][0]
    while steps.ndim > 1:
        steps = steps[len(steps) // 2]
    return candidates.X[torch.as_tensor(steps[steps >= 0])]


class _Value(torch.autograd.Function):  # type: ignore[misc]
    """Values of points as functions of what the candidates see of them."""

    @staticmethod
    def forward(ctx: Any, candidates: ModelCandidates, X: Tensor, remaining: int, loss: Loss, *seen: Tensor) -> Tensor:
        queries = candidates.query_points(X.detach(), Seen(*seen))
        size, moving = horizon_size(remaining), any(ctx.needs_input_grad)
        found, slopes = [], []
        for first in range(0, len(X), TOGETHER):
            some = jax.tree.map(lambda a, first=first: a[first : first + TOGETHER], queries)
            count, alone = len(some.mu), candidates.alone
            if not moving:
                found.append(values_of(alone, _padded(some), count, remaining, loss, size=size)[0])
                continue
            value, slope = _value_and_slope(
                alone, _padded(some), np.asarray(count), np.asarray(remaining), loss=loss, size=size
            )
            found.append(np.asarray(value)[:count])
            slopes.append(jax.tree.map(lambda a, count=count: np.asarray(a)[:count], slope))
        if moving:
            ctx.save_for_backward(*(torch.as_tensor(part, device=X.device) for part in _by_sample(slopes)))
        return torch.as_tensor(np.concatenate(found), device=X.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> Any:
        return (None, None, None, None, *(outer.reshape(-1, *[1] * (part.dim() - 1)) * part for part in ctx.saved_tensors))


@program
def _value_and_slope(
    candidates: CandidateSet, queries: QueryPoint, count: jax.Array, remaining: jax.Array, *, loss: Loss, size: int
) -> tuple[jax.Array, QueryPoint]:
    """The value of the first ``count`` query points, each with its own predicted steps, and the derivative by what moves."""

    def one(i: jax.Array) -> tuple[jax.Array, QueryPoint]:
        query = jax.tree.map(lambda a: a[i], queries)
        steps = steps_for(loss, candidates, query, remaining, size)

        def value(part: QueryPoint) -> jax.Array:
            return value_for(loss, candidates, query.moved_to(part), steps, remaining)

        return jax.value_and_grad(value)(query.moving())

    M = queries.mu.shape[0]
    shapes = jax.eval_shape(one, jnp.asarray(0))
    blank = jax.tree.map(lambda a: jnp.zeros((M, *a.shape), a.dtype), shapes)

    def fill(i: jax.Array, kept: Any) -> Any:
        return jax.tree.map(lambda all_, new: all_.at[i].set(new), kept, one(i))

    return jax.lax.fori_loop(0, count, fill, blank)


def _padded(queries: QueryPoint) -> QueryPoint:
    """Filled up to ``TOGETHER`` rows with the first one."""

    def fill(a: np.ndarray) -> np.ndarray:
        return np.concatenate([a, np.broadcast_to(a[:1], (TOGETHER - len(a), *a.shape[1:]))])

    return jax.tree.map(fill, queries)


def _by_sample(slopes: list[QueryPoint]) -> list[np.ndarray]:
    """The derivatives in the shapes of ``Seen``."""
    sampled = slopes[0].samples is not None
    parts: list[Any] = [each.samples if sampled else each for each in slopes]
    found = [np.concatenate([getattr(part, name) for part in parts]) for name in Seen._fields]
    return found if sampled else [a[:, None] for a in found]
