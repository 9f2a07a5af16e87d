"""Under which conditions methods are compared: the noise of the evaluations, and the model and search of our own methods.

paper   noise of sd 0.1; squared exponential plus bias by maximum likelihood, EP, local penalisation, DIRECT
exact   no noise; our default model for every method of ours, told that evaluations are exact; multi-start search
fair    the same with one stationary kernel (Matern-5/2) and standardised outputs: the model of the paper's comparisons
known   no noise; draws from a GP, and every method of ours is given the kernel it was drawn with
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from glasses import PAPER
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses
from glasses.search.multi_start import MultiStart
from glasses.surrogate.fit import Known
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.kernels import Kernel, Matern52, SquaredExponential
from glasses.surrogate.outputs import Standardize
from glasses_lab.problems import Problem


@dataclass(frozen=True)
class Protocol:
    """``model(problem)`` and ``search`` serve all our methods; ``open_loop`` is what GLASSES and EL-k mean."""

    name: str
    noise_sd: float
    model: Callable[[Problem], GaussianProcess]
    search: Any
    open_loop: Glasses

    def looking_ahead(self, steps: int | None) -> Loss:
        """GLASSES over all evaluations left, or EL-k."""
        return replace(self.open_loop, steps=steps)


def _known(problem: Problem) -> GaussianProcess:
    family, *what = problem.name.split("-")
    if family != "GP":
        raise ValueError(f"Protocol 'known' needs draws from a GP such as GP-SE-2-0.1, got {problem.name}: use 'fair'.")
    kernel: Kernel = SquaredExponential() if what[0] == "SE" else Matern52()
    return GaussianProcess(kernel=kernel, fit=Known(lengthscale=float(what[2])), noise=0.0)


_STATIONARY = GaussianProcess(kernel=Matern52(), outputs=Standardize(), noise=0.0)

PROTOCOLS = {
    "paper": Protocol("paper", 0.1, lambda _: PAPER.model, PAPER.search, cast(Glasses, PAPER.loss)),
    "exact": Protocol("exact", 0.0, lambda _: GaussianProcess(noise=0.0), MultiStart(), Glasses()),
    "fair": Protocol("fair", 0.0, lambda _: _STATIONARY, MultiStart(), Glasses()),
    "known": Protocol("known", 0.0, _known, MultiStart(), Glasses()),
}
