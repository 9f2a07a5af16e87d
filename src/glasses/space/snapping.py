"""Steps, integers and choices inside compiled programs.

``snap`` moves a point of the unit cube to the one that will really be run (the formulas are those of ``parameters``), so that
nothing is valued in between. Continuous coordinates are left alone, and a space that has no others has no lattice at all.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from glasses.space.lattice import Lattice


def snap(lattice: Lattice | None, X: jax.Array) -> jax.Array:
    """The rows of X moved to the lattice."""
    if lattice is None:
        return X
    count = jnp.maximum(lattice.cells, 1.0)
    cells = (jnp.clip(jnp.floor(X * count), 0.0, count - 1.0) + 0.5) / count
    width = jnp.where(lattice.log_width > 0, lattice.log_width, 1.0)
    lowest = jnp.round(jnp.exp(lattice.log_low) + 0.5)
    highest = jnp.round(jnp.exp(lattice.log_low + lattice.log_width) - 0.5)
    whole = jnp.clip(jnp.round(jnp.exp(lattice.log_low + X * width)), lowest, highest)
    logs = (jnp.log(jnp.maximum(whole, 1.0)) - lattice.log_low) / width
    return jnp.where(lattice.cells > 0, cells, jnp.where(lattice.log_width > 0, logs, X))


def moved(lattice: Lattice | None, x: jax.Array, offsets: jax.Array, jumps: jax.Array | None) -> jax.Array:
    """Points around x: shifted by ``offsets``, on a lattice by at least one value, choices exchanged as ``jumps`` say.

    ``jumps`` (n, d) in [0, 1): a coordinate of the lattice moves where its jump is below 1/2.
    """
    if lattice is None or jumps is None:
        return jnp.clip(x + offsets, 0.0, 1.0)
    cell = 1.0 / jnp.maximum(lattice.cells, 1.0)
    here = x * (lattice.log_width > 0)  # log integers: the width of a cell around x, 1/v of the logarithm
    cell = jnp.where(lattice.log_width > 0, jnp.exp(-lattice.log_low - here * lattice.log_width) / _positive(lattice), cell)
    step = jnp.sign(offsets) * jnp.maximum(jnp.abs(offsets), jnp.minimum(cell, 0.5))
    moving = jumps < 0.5
    on_lattice = (lattice.cells > 0) | (lattice.log_width > 0)
    shifted = jnp.clip(x + jnp.where(on_lattice, jnp.where(moving, step, 0.0), offsets), 0.0, 1.0)
    exchanged = jnp.where(moving, (x + jumps * 2.0) % 1.0, x)
    return snap(lattice, jnp.where(lattice.is_choice, exchanged, shifted))


def same_point(points: jax.Array, others: jax.Array, active: jax.Array, resolution: Any) -> jax.Array:
    """Which rows of ``points`` are the same experiment as an active row of ``others`` (``lattice`` says what that means)."""
    apart = jnp.abs(points[:, None, :] - others[None, :, :])
    return jnp.any(jnp.all(apart < resolution, axis=-1) & active[None, :], axis=1)


def _positive(lattice: Lattice) -> jax.Array:
    return jnp.where(lattice.log_width > 0, lattice.log_width, 1.0)
