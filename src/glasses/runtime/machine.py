"""What results depend on to the last bit besides the code and the data: versions of the numerics and the processor."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@cache
def machine() -> tuple[str, ...]:
    """The versions of the numerical libraries, the system and the features of the processor. Loads none of them."""
    flags = ""
    if _CPUINFO.exists():
        lines = _CPUINFO.read_text().splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    versions = [f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy", "scipy")]
    return (*versions, platform.system(), platform.machine(), flags)
