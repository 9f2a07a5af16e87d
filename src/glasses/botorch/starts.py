"""Where ``optimize_acqf`` begins: ``ic_generator=start_generator``, which it takes beside ``raw_samples`` only."""

from __future__ import annotations

from typing import Any

from botorch.optim.initializers import gen_batch_initial_conditions
from torch import Tensor


def start_generator(
    acq_function: Any,
    bounds: Tensor,
    q: int,
    num_restarts: int,
    raw_samples: int | None = None,
    fixed_features: dict[int, float] | None = None,
    **given: Any,
) -> Tensor:
    """The ``starts`` of a ``GlassesAcquisition``, (num_restarts, 1, d), for the argument ``ic_generator`` of ``optimize_acqf``.

    With constraints on the inputs, and for other acquisition functions, BoTorch's own starts from ``raw_samples`` points.
    """
    constrained = any(value is not None for name, value in given.items() if name.endswith("constraints"))
    if q != 1 or constrained or not hasattr(acq_function, "starts"):
        settings = {"raw_samples": raw_samples or 512, "fixed_features": fixed_features}
        return gen_batch_initial_conditions(acq_function, bounds, q, num_restarts, **settings, **given)
    found = acq_function.starts(num_restarts).to(bounds).clamp(bounds[0], bounds[1])
    for index, value in (fixed_features or {}).items():
        found[..., index] = value
    return found
