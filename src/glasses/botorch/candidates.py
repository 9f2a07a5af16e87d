"""The candidate set of the engine made of a BoTorch posterior, and points of the box as that set sees them.

The engine values a point by what the candidates see of it (``lookahead.candidates``): its mean, its variance and its covariance
with them. Here these come from one call of the model's posterior over the points and the candidates jointly, as functions of
the points that torch can differentiate. Outputs are divided by one number, so that the function has variance 1 over the box
and the engine's tolerances mean what they mean in a run of its own; inputs are measured in parts of the sides of the box.

Pending points are evaluations whose values are not known yet. With L L^T the covariance of their observations,

    rows = L^-1 cov(P, U),   later cov(U, U) = cov(U, U) - rows^T rows,   c(x) = L^-1 cov(P, x)            [eq:later]
    later var(x) = var(x) - |c(x)|^2,   later cov(x, U) = cov(x, U) - c(x)^T rows

Shapes: U = C + P candidates and pending points (padded), S hyperparameter samples, b points. Cost: the model's posterior over
b + U points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import torch
from torch import Tensor

from glasses.botorch.joint import JointPosterior
from glasses.lookahead.candidates import CandidateSet, Pending, QueryPoint
from glasses.runtime.padding import pending_size
from glasses.space.lattice import SAME_POINT
from glasses.surrogate.posterior import NUGGET

_ROUNDING = {torch.float32: 1e-6}  # of the posterior's variances; other precisions are at least as good as the nugget
_FLATTEST = 1e-3  # least slope of the mean, in standard deviations per side of the box
_NOISE_AT = 16  # candidates where the noise of an observation is asked for


class Box(NamedTuple):
    """The ranges of the inputs."""

    low: Tensor
    high: Tensor

    def unit(self, X: Tensor) -> np.ndarray:
        return ((X - self.low) / (self.high - self.low)).detach().double().cpu().numpy()

    def point(self, unit: np.ndarray) -> Tensor:
        scaled = torch.as_tensor(unit, dtype=self.low.dtype, device=self.low.device)
        return torch.minimum(torch.maximum(self.low + scaled * (self.high - self.low), self.low), self.high)


class Seen(NamedTuple):
    """Points as the candidates see them, the part that moves with the points: torch, b points and S samples first."""

    mu: Tensor  # (b, S)
    var: Tensor  # (b, S)
    cov: Tensor  # (b, S, U)
    later_var: Tensor  # (b, S)
    later_cov: Tensor  # (b, S, U)
    loadings: Tensor  # (b, S, P)


class ModelCandidates:
    """The candidate set over ``points`` (C, d) and ``pending`` (p, d), given the best value so far (S,) or ()."""

    def __init__(self, joint: JointPosterior, box: Box, points: Tensor, pending: Tensor, best: Tensor) -> None:
        self.joint, self.box, self.C, self.p = joint, box, len(points), len(pending)
        P = pending_size(self.p)
        self.X = torch.cat([points, pending, points[:1].expand(P - self.p, -1)]).detach()
        moving = self.X.clone().requires_grad_(True)
        with torch.enable_grad():
            mean, cov = joint(moving)
            slopes = [torch.autograd.grad(each.sum(), moving, retain_graph=True)[0] for each in mean]
        mean, cov = mean.detach(), cov.detach()
        law_of_total = mean[:, : self.C].var(dim=1, correction=0) + cov.diagonal(dim1=1, dim2=2)[:, : self.C].mean(dim=1)
        self.scale = max(float(law_of_total.mean().sqrt()), 1e-300)
        self.nugget = _ROUNDING.get(self.X.dtype, NUGGET)
        mean, cov = mean / self.scale, 0.5 * (cov + cov.transpose(1, 2)) / self.scale**2
        self.noise = joint.noise(self.X[: min(self.C, _NOISE_AT)]) / self.scale**2
        self.eta = (joint.sign * best / self.scale).double().expand(len(mean))
        self._condition(cov, P)
        self.U = box.unit(self.X)
        steepest = [float((slope * (box.high - box.low)).norm(dim=1).max()) / self.scale for slope in slopes]
        every = [self._candidate_set(s, mean, cov, max(steepest[s], _FLATTEST)) for s in range(len(mean))]
        samples = None if len(every) == 1 else jax.tree.map(lambda *each: np.stack(each), *every)
        self.arrays = every[0]._replace(samples=samples)

    def see(self, X: Tensor) -> Seen:
        """What the candidates see of the rows of X."""
        b = len(X)
        mean, cov = self.joint(torch.cat([X, self.X]))
        mu = mean[:, :b].T / self.scale
        var = (cov.diagonal(dim1=1, dim2=2)[:, :b].T / self.scale**2).clamp_min(self.nugget)
        cross = cov[:, :b, b:].transpose(0, 1) / self.scale**2
        own = cross[..., self.C : self.C + self.p].transpose(0, 1).transpose(1, 2)  # (S, p, b)
        c = torch.linalg.solve_triangular(self.factor, own, upper=False).transpose(1, 2).transpose(0, 1)  # (b, S, p)
        c = torch.nn.functional.pad(c, (0, self.rows.shape[1] - self.p))
        later_var = (var - (c * c).sum(dim=-1)).clamp_min(self.nugget)
        later_cov = cross - torch.einsum("bsp,spu->bsu", c, self.rows)
        return Seen(mu, var, cross, later_var, later_cov, c)

    def query_points(self, X: Tensor, seen: Seen) -> QueryPoint:
        """The same for the engine, with what does not move: stacked over the points, in NumPy."""
        apart = np.linalg.norm(self.box.unit(X)[:, None] - self.U[None], axis=-1)
        same = apart < SAME_POINT
        moving = Seen(*(a.detach().cpu().numpy() for a in seen))

        def query(part: Seen, samples: QueryPoint | None, lead: tuple[int, ...]) -> QueryPoint:
            each = (slice(None), *(None for _ in lead))
            fixed: dict[str, Any] = {
                "log_feasibility": None,
                "same": np.broadcast_to(same[each], (len(X), *lead, same.shape[1])),
                "apart": np.broadcast_to(apart[each], (len(X), *lead, same.shape[1])),
                "excluded": np.zeros((len(X), *lead), bool),
                "samples": samples,
            }
            return QueryPoint(**part._asdict(), **fixed)

        S = moving.mu.shape[1]
        samples = None if S == 1 else query(moving, None, (S,))
        return query(Seen(*(a[:, 0] for a in moving)), samples, ())

    def _condition(self, cov: Tensor, P: int) -> None:
        """[eq:later] at the candidates themselves."""
        own = cov[:, self.C : self.C + self.p]
        inner = own[:, :, self.C : self.C + self.p]
        noise = (self.noise + self.nugget)[:, None, None] * torch.eye(self.p, dtype=cov.dtype, device=cov.device)
        self.factor = torch.linalg.cholesky(inner + noise)
        rows = torch.linalg.solve_triangular(self.factor, own, upper=False)
        self.rows = torch.nn.functional.pad(rows, (0, 0, 0, P - self.p))
        later = cov - rows.transpose(1, 2) @ rows
        diagonal = later.diagonal(dim1=1, dim2=2)
        self.later = later + torch.diag_embed(diagonal.clamp_min(self.nugget) - diagonal)

    def _candidate_set(self, s: int, mean: Tensor, cov: Tensor, steepest: float) -> CandidateSet:
        def array(a: Tensor) -> Any:
            return a.detach().cpu().numpy()

        U, mu = len(self.U), array(mean[s])
        active = np.arange(U) < self.C + self.p
        apart = np.linalg.norm(self.U[:, None] - self.U[None], axis=-1)
        eta, data = array(self.eta[s]), self.joint.data()
        done = np.zeros(U, bool)
        if data is not None:
            done = np.any(np.all(np.abs(self.U[:, None] - self.box.unit(data)[None]) < SAME_POINT, axis=-1), axis=1)
        fields: dict[str, Any] = {
            "mu": mu,
            "var": np.maximum(array(cov[s].diagonal()), self.nugget),
            "cov": array(cov[s]),
            "active": active,
            "eta": eta,
            "lipschitz": np.asarray(steepest),
            "lowest": np.minimum(np.min(mu[active]), eta),
            "noise": array(self.noise[s]),
            "nugget": np.asarray(self.nugget),
            "variance": np.asarray(1.0),
            "apart": apart,
            "done": done,
            "begun": np.any(apart[:, self.C : self.C + self.p] < SAME_POINT, axis=1),
            "infeasible": np.zeros(U, bool),
            "copies": None,
            "pending": Pending(array(self.rows[s]), array(self.later[s])),
        }
        return CandidateSet(**fields)

    @property
    def alone(self) -> Any:
        """What programs take."""
        return self.arrays.alone()
