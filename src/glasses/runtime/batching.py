"""Many points through one function: in turn on a CPU, in batches on an accelerator.

On a CPU the arrays of one point stay in the processor's cache and nothing is gained by batching; on a GPU a loop over points
would leave the card idle. Memory is bounded by ``BATCH`` points at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from glasses.runtime.device import on_accelerator

BATCH = 512


def batched_map(f: Callable[[Any], Any], xs: Any, batch: int | None = None) -> Any:
    """f of each row of xs, stacked. ``batch``: how many at once on a CPU (None: one after the other)."""
    return jax.lax.map(f, xs, batch_size=BATCH if on_accelerator() else batch)
