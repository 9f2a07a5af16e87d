"""Steps, integers and choices: moving points to what can be run, and telling which are the same experiment.

``snap`` moves a point of the unit cube to the one that will really be run (the formulas are those of ``parameters``), so that
nothing is valued in between. Continuous coordinates are left alone, and a space that has no others has no lattice at all.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.space.lattice import Lattice, on_lattice


def snap(lattice: Lattice | None, X: np.ndarray) -> np.ndarray:
    """The rows of X moved to what can be run."""
    return X if lattice is None else lattice.folded(on_lattice(lattice, X))


def moved(lattice: Lattice | None, x: np.ndarray, offsets: np.ndarray, jumps: np.ndarray | None) -> np.ndarray:
    """Points around x: shifted by ``offsets``, on a lattice by at least one value, choices exchanged as ``jumps`` say.

    ``jumps`` (n, d) in [0, 1): a coordinate of the lattice moves where its jump is below 1/2.
    """
    if lattice is None or jumps is None:
        return np.clip(x + offsets, 0.0, 1.0)
    cell = 1.0 / np.maximum(lattice.cells, 1.0)
    here = x * (lattice.log_width > 0)  # log integers: the width of a cell around x, 1/v of the logarithm
    cell = np.where(lattice.log_width > 0, np.exp(-lattice.log_low - here * lattice.log_width) / _positive(lattice), cell)
    step = np.sign(offsets) * np.maximum(np.abs(offsets), np.minimum(cell, 0.5))
    moving = jumps < 0.5
    on_lattice = (lattice.cells > 0) | (lattice.log_width > 0)
    shifted = np.clip(x + np.where(on_lattice, np.where(moving, step, 0.0), offsets), 0.0, 1.0)
    exchanged = np.where(moving, (x + jumps * 2.0) % 1.0, x)
    return snap(lattice, np.where(lattice.is_choice, exchanged, shifted))


def same_point(points: jax.Array, others: jax.Array, active: jax.Array, resolution: Any) -> jax.Array:
    """Which rows of ``points`` are the same experiment as an active row of ``others`` (``lattice`` says what that means).

    Inside compiled programs; outside, ``repeats``.
    """
    apart = jnp.abs(points[:, None, :] - others[None, :, :])
    return jnp.any(jnp.all(apart < resolution, axis=-1) & active[None, :], axis=1)


def repeats(points: np.ndarray, others: np.ndarray, resolution: Any) -> np.ndarray:
    """Which rows of ``points`` are the same experiment as a row of ``others``, one coordinate after the other."""
    same = np.ones((len(points), len(others)), bool)
    for i, fine in enumerate(np.broadcast_to(resolution, points.shape[1:])):
        same &= np.abs(points[:, None, i] - others[None, :, i]) < fine
    return np.any(same, axis=1)


def _positive(lattice: Lattice) -> np.ndarray:
    return np.where(lattice.log_width > 0, lattice.log_width, 1.0)
