"""Doubt about the model: several draws of its hyperparameters instead of the most probable ones.

    p(theta | data) ~ exp(-J(theta)),  J of ``fit`` [eq:map]
    q(theta) = N(theta_MAP, H^-1),  H the Hessian of J there (Laplace)                                     [eq:laplace]

Each member is the end of a chain of independent proposals from q, accepted with probability
min(1, p(new) q(old) / (p(old) q(new))) [eq:chain]: exact in the limit, in practice a Laplace approximation with its worst
draws refused. Chains start at the mode; no direction of q is wider than ``_WIDEST``. Random numbers are fixed: the same data
give the same members. Cost: draws x moves x N^3.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from glasses.runtime.program import program
from glasses.surrogate.fit import Prior, hyper_from, limits, objective
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Hyper, Posterior, posterior

_WIDEST = 1.5
_MOVES = 6


@program
def ensemble(post: Posterior, fixed: jax.Array, *, kernel: Kernel, prior: Prior, bias: bool, draws: int) -> Posterior:
    """``draws`` posteriors of the same data, stacked along a first axis."""
    d = post.X.shape[1]
    centre = theta_of(post.hyper)
    low, high = limits(d)
    moving = jnp.concatenate([jnp.ones(d + 1, bool), jnp.stack([fixed < 0, jnp.asarray(not bias), jnp.asarray(bias)])])

    def deviance(theta: jax.Array) -> jax.Array:
        return objective(theta, post.X, post.y, post.observed, fixed, post.hyper.choice, kernel=kernel, prior=prior, bias=bias)

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

        theta = jax.lax.fori_loop(0, _MOVES, move, (centre, deviance(centre), jnp.zeros(())))[0]
        return posterior(kernel, hyper_from(theta, d, fixed, bias, post.hyper.choice), post.X, post.y, post.observed)

    return jax.lax.map(chain, jax.random.split(jax.random.key(0), draws))


def theta_of(hyper: Hyper) -> jax.Array:
    """Hyperparameters as the vector that ``fit`` optimises."""
    scales = jnp.stack([jnp.log(hyper.signal), 0.5 * jnp.log(jnp.maximum(hyper.noise, 1e-300))])
    return jnp.concatenate(
        [jnp.log(hyper.lengthscale), scales, jnp.stack([hyper.mean, jnp.log(jnp.maximum(hyper.bias, 1e-300))])]
    )
