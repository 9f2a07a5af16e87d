"""The factorisations that compiled programs call: LAPACK, as SciPy brings it along.

JAX binds them when it lowers one; an executable loaded from disk was lowered by another process, so they are bound here. JAX
takes them from two extension modules of ``scipy.linalg``. Where that package is not loaded, they are loaded without it: the
rest of it, and what it imports, is a twentieth of a second that no program needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy
import jax.scipy.linalg

_PACKAGE = "scipy.linalg"
_BOUND = ("cython_blas", "cython_lapack")


@cache
def bind_lapack(where: Any) -> None:
    """Bind them for this device, once: at once, or where that is not possible by lowering some."""
    try:
        from jaxlib import lapack

        with _extensions():
            lapack._lapack.initialize()  # type: ignore[attr-defined]
    except (ImportError, AttributeError):  # a name without a promise
        matrix = jax.ShapeDtypeStruct((2, 2), float, sharding=jax.sharding.SingleDeviceSharding(where))
        jax.jit(lambda a: jax.scipy.linalg.solve_triangular(jax.numpy.linalg.cholesky(a), a, lower=True)).lower(matrix)
        jax.jit(jax.numpy.linalg.eigh).lower(matrix)


@contextmanager
def _extensions() -> Iterator[None]:
    """Inside, the two extension modules can be imported without their package; afterwards they are imported as usual."""
    if _PACKAGE in sys.modules:
        yield
        return
    with suppress(ImportError, AttributeError):  # another layout of SciPy: JAX imports all of it
        for name in _BOUND:
            _load(f"{_PACKAGE}.{name}")
    try:
        yield
    finally:
        if _PACKAGE not in sys.modules:
            for name in _BOUND:
                sys.modules.pop(f"{_PACKAGE}.{name}", None)


def _load(name: str) -> None:
    import scipy

    spec = PathFinder.find_spec(name, [str(Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        raise ImportError(name=name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
