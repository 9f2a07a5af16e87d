"""Points spread evenly over the unit cube, one after the other, without random numbers."""

from __future__ import annotations

import numpy as np


def kronecker(d: int, size: int) -> np.ndarray:
    """(size, d): multiples of an irrational step per coordinate, modulo 1 (Roberts 2018)."""
    base = 2.0
    for _ in range(60):
        base = (1.0 + base) ** (1.0 / (d + 1))  # the root of base^(d + 1) = base + 1
    step = base ** -np.arange(1.0, d + 1.0)
    return (0.5 + np.arange(size)[:, None] * step) % 1.0
