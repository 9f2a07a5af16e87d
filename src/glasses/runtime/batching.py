"""Many candidates through one function: in turn on a CPU, side by side on an accelerator.

On a CPU a candidate's arrays stay in the cache and nothing is gained by batching; on a GPU a loop over candidates would leave
the card idle. Memory is bounded by ``TOGETHER`` candidates at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

TOGETHER = 512


def on_accelerator() -> bool:
    """Whether programs are compiled for something else than the CPU."""
    return jax.default_backend() != "cpu"


def side_by_side(f: Callable[[Any], Any], xs: Any, together: int | None = None) -> Any:
    """f of each row of xs, stacked. ``together``: how many at once on a CPU (None: one after the other)."""
    return jax.lax.map(f, xs, batch_size=TOGETHER if on_accelerator() else together)
