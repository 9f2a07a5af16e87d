"""The one device that programs run on, also where there are several."""

from __future__ import annotations

from typing import Any

import jax

from glasses.runtime.settings import default_device


def device() -> Any:
    """The user's ``jax_default_device`` if there is one, else the first device of JAX's default platform."""
    chosen = default_device()
    if isinstance(chosen, str):
        return jax.local_devices(backend=chosen)[0]
    return jax.local_devices()[0] if chosen is None else chosen


def on_accelerator() -> bool:
    """Whether programs run on something else than the CPU."""
    return device().platform != "cpu"
