"""Hyperparameter samples: several sets drawn from their posterior, instead of the most probable one.

    p(theta | data) ~ exp(-J(theta)),  J of ``fit`` [eq:map]
    q(theta) = N(theta_MAP, H^-1),  H the Hessian of J there (Laplace)                                     [eq:laplace]

Each sample is the end of a chain of independent proposals from q, accepted with probability
min(1, p(new) q(old) / (p(old) q(new))) [eq:chain]: exact in the limit, in practice a Laplace approximation without its worst
draws. Chains start at the mode; no direction of q is wider than ``_WIDEST``. Random numbers are fixed: the same data give the
same samples. Cost: samples x moves x N^3.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.runtime.program import program
from glasses.surrogate.fit import FreeModel
from glasses.surrogate.posterior import Posterior, posterior

_WIDEST = 1.5
_MOVES = 6


@program
def sampled(post: Posterior, fixed_noise: jax.Array, *, model: FreeModel, count: int) -> Posterior:
    """``count`` posteriors of the same data, stacked along a first axis."""
    d, choice = post.X.shape[1], post.hyper.choice
    centre = model.free(post.hyper, d)
    low, high = model.bounds(d)
    moving = model.learned(d, fixed_noise)

    def deviance(free: jax.Array) -> jax.Array:
        return model.objective(free, post.X, post.y, post.n, fixed_noise, choice)

    both = moving[:, None] & moving[None, :]
    step = 1e-3 * jnp.eye(centre.size)  # by differences of the gradient: kernels have no second derivative at distance zero
    slope = jax.grad(deviance)
    H = jax.lax.map(lambda h: (slope(centre + h) - slope(centre - h)) / 2e-3, step)
    H = jnp.where(both, H, jnp.eye(centre.size))  # [eq:laplace]
    values, vectors = jnp.linalg.eigh(0.5 * (H + H.T))
    inside = jnp.sum(jnp.where(moving[:, None], vectors**2, 0.0), axis=0)  # 0 for directions that are held
    spread = vectors / jnp.sqrt(jnp.maximum(values, _WIDEST**-2))

    def chain(key: jax.Array) -> Posterior:
        def move(k: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            _, value, depth = state
            normal, uniform = jax.random.split(jax.random.fold_in(key, k))
            z = jax.random.normal(normal, centre.shape)
            new = jnp.where(moving, centre + spread @ z, centre)
            new_value = jnp.where(jnp.all(~moving | ((new >= low) & (new <= high))), deviance(new), jnp.inf)
            new_depth = 0.5 * jnp.sum(inside * z * z)
            accept = jnp.log(jax.random.uniform(uniform)) < (value - new_value) - (depth - new_depth)  # [eq:chain]
            return tuple(jnp.where(accept, a, b) for a, b in zip((new, new_value, new_depth), state, strict=True))

        free = jax.lax.fori_loop(0, _MOVES, move, (centre, deviance(centre), jnp.zeros(())))[0]
        return posterior(model.kernel, model.hyper(free, d, fixed_noise, choice), post.X, post.y, post.n)

    return jax.lax.map(chain, jax.random.split(jax.random.key(0), count))
