"""What a search returns: the next point, its merit and the steps predicted to follow it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax
import numpy as np

from glasses.acquisition.myopic import Loss
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.posterior import Posterior


class Decision(NamedTuple):
    """One decision, in the units of the unit cube and of standardised outputs."""

    x: jax.Array  # (d,)
    merit: jax.Array  # larger is better; log(eta - Lambda) for an expected minimum
    eta: jax.Array
    steps: jax.Array  # (n - 1, d): where the following evaluations are predicted to go
    mean: jax.Array  # (n,) posterior mean at x and the steps
    sd: jax.Array  # (n,)


class Search(Protocol):
    """Minimises a loss over the unit cube."""

    def decide(
        self, loss: Loss, kernel: Kernel, post: Posterior, pending: np.ndarray, left: int, rng: np.random.Generator
    ) -> Decision: ...
