"""Scrambled Sobol points, the very ones of ``scipy.stats.qmc.Sobol``, without its import.

Loading ``scipy.stats`` takes half a second, as long as two decisions, and a person who asks for the next experiment from a
shell waits for it every time. The direction numbers (Joe and Kuo 2008) are read from SciPy's own file; the recurrence, the
scrambling (a random lower-triangular matrix and a shift, Matousek 1998) and the order of the random draws are SciPy's, and a
test compares every bit. If that file is missing, SciPy makes the points.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

_BITS = 30


def scrambled(d: int, exponent: int, rng: np.random.Generator) -> np.ndarray:
    """2^exponent points in d dimensions."""
    directions = _directions(d)
    if directions is None:
        from scipy.stats import qmc

        return qmc.Sobol(d, scramble=True, rng=rng).random_base2(exponent)
    rng = rng.spawn(1)[0]
    powers = 2 ** np.arange(_BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(d, _BITS), dtype=np.uint32) @ powers
    lower = np.tril(rng.integers(2, size=(d, _BITS, _BITS), dtype=np.uint32)) | np.eye(_BITS, dtype=np.uint32)
    rows = lower @ powers[::-1]  # (d, bits): each row of a matrix as one number, first column highest
    bit = np.bitwise_count(rows[:, None, :] & directions[:, :, None]) & 1  # (d, bits, bits)
    mixed = (bit.astype(np.uint32) * powers[::-1]).sum(axis=2, dtype=np.uint32)
    points = np.empty((2**exponent, d), dtype=np.uint32)
    points[0] = shift
    for k in range(exponent):  # Gray code: the second half repeats the first in reverse, with one more direction
        size = 2**k
        points[size : 2 * size] = points[:size][::-1] ^ mixed[:, k]
    return points * 2.0**-_BITS


@cache
def _directions(d: int) -> np.ndarray | None:
    """Direction numbers (d, bits), or None if SciPy keeps them elsewhere."""
    spec = find_spec("scipy")
    try:
        assert spec is not None
        assert spec.origin is not None
        with np.load(Path(spec.origin).parent / "stats" / "_sobol_direction_numbers.npz") as kept:
            polynomials, initial = kept["poly"], kept["vinit"]
    except (AssertionError, OSError, KeyError, ValueError):
        return None
    found = np.ones((d, _BITS), dtype=np.uint64)
    for i in range(1, d):
        polynomial = int(polynomials[i])
        degree = polynomial.bit_length() - 1
        v = [int(each) for each in initial[i, :degree]]
        for j in range(degree, _BITS):
            new = v[j - degree]
            for k in range(degree):
                if (polynomial >> (degree - 1 - k)) & 1:
                    new ^= v[j - k - 1] << (k + 1)
            v.append(new)
        found[i] = v
    return (found << np.arange(_BITS - 1, -1, -1, dtype=np.uint64)).astype(np.uint32)
