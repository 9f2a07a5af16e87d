"""``GlassesAcquisition``: what ``optimize_acqf`` maximises to plan for all the evaluations that remain."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from glasses.botorch.candidates import Box, ModelCandidates
from glasses.botorch.joint import JointPosterior
from glasses.botorch.points import candidate_points, cover_points, inside
from glasses.botorch.value import steps_after, values
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses
from glasses.lookahead.myopic import ExpectedLoss
from glasses.search.decision import horizon
from glasses.search.propose import separated

_CHUNK = 256  # points in one call of the model's posterior


class GlassesAcquisition(AcquisitionFunction):  # type: ignore[misc]
    """log of the gain that all remaining evaluations are expected to bring if the next one is at x; larger is better.

    With one evaluation remaining it is log EI. With more, the steps after x are predicted over a fixed set of candidates in the
    box and the gain is the expected improvement of the best of them all, x included, under the model's joint posterior. The
    value is differentiable, deterministic and made for q = 1; ``optimize_acqf(..., q=3, sequential=True)`` gives a batch.
    ``starts`` gives points to begin the search at.

    Parameters
    ----------
    model : botorch.models.model.Model
        Any model with a Gaussian posterior, fully Bayesian ones included.
    remaining : int
        Evaluations left, the next one included and pending ones not.
    bounds : Tensor (2, d)
        The box, as for ``optimize_acqf``.
    best_f : float or Tensor, optional
        Best value so far. Default: the best posterior mean at the model's data in the box.
    loss : Loss, optional
        How the future is valued: ``glasses.Glasses()`` (default), ``glasses.Glasses(LocalPenalization())``,
        ``glasses.TwoStage(steps=None)`` or another one of ``glasses.lookahead`` that is an expected gain.
    posterior_transform : PosteriorTransform, optional
        As in BoTorch's analytic acquisition functions: needed with several outputs.
    maximize : bool
        Whether values are to be maximised, BoTorch's convention.
    X_pending : Tensor (p, d), optional
        Evaluations under way: what they bring is part of the future.
    candidates : int or Tensor (n, d)
        How many points the predicted steps are chosen from (the best one's surroundings and maxima of EI are added), or the
        points themselves.
    seed : int
        Of the candidates: same seed and same model, same values.
    """

    _log = True

    def __init__(
        self,
        model: Any,
        remaining: int,
        bounds: Tensor,
        *,
        best_f: float | Tensor | None = None,
        loss: Loss | None = None,
        posterior_transform: Any = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
        candidates: int | Tensor = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(model=model)
        if isinstance(remaining, bool) or not isinstance(remaining, int) or remaining < 1:
            raise ValueError(f"remaining must be a whole number of evaluations, at least 1, got {remaining!r}.")
        self.loss = Glasses() if loss is None else loss
        if isinstance(loss, type) or not getattr(self.loss, "is_gain", False) or self.loss.race is not None:
            raise ValueError(f"loss must be an expected gain such as Glasses() or TwoStage(steps=None), got {self.loss!r}.")
        self.posterior_transform, self.maximize, self.seed = posterior_transform, maximize, seed
        self._joint = JointPosterior(model, posterior_transform, maximize)
        self._box = _box(bounds, self._joint.data())
        self._best = self._best_value(best_f)
        self._wanted = candidates if isinstance(candidates, int) else _points(candidates, "candidates", self._box)
        if isinstance(candidates, int) and candidates < 16:
            raise ValueError(f"candidates must be at least 16 points, got {candidates}: 256 is the default.")
        self._to_come = remaining + (0 if X_pending is None else len(X_pending))
        self.set_X_pending(X_pending)
        self._candidates()

    @property
    def remaining(self) -> int:
        """Evaluations left once what is pending is taken away, at least 1."""
        return max(1, self._to_come - (0 if self.X_pending is None else len(self.X_pending)))

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802  # BoTorch's name
        """Evaluations under way. What is added to those given at the start is taken from the remaining ones."""
        super().set_X_pending(None if X_pending is None else _points(X_pending, "X_pending", self._box))
        self._known: tuple[ModelCandidates, int, Loss] | None = None

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """(b,) values at X (b, 1, d)."""
        candidates, n, loss = self._candidates()
        flat = X.reshape(-1, X.shape[-1]).to(candidates.X)
        found = torch.cat([values(candidates, part, n, loss) for part in flat.split(_CHUNK)])
        return found.to(X.dtype).reshape(X.shape[:-2])

    def starts(self, count: int) -> Tensor:
        """(count, 1, d) the best candidates, well apart: where ``optimize_acqf`` should begin (``start_generator``).

        The value has many local maxima. These starts hold the predicted plan, the surroundings of the best point and the
        maxima of EI, which random ones miss.
        """
        candidates, n, loss = self._candidates()
        points = candidates.X[: candidates.C]
        if not 1 <= count <= len(points):
            raise ValueError(f"count must be from 1 to {len(points)}, the number of candidates, got {count}.")
        with torch.no_grad():
            value = values(candidates, points, n, loss).cpu().numpy()
        return points[torch.as_tensor(separated(value, self._box.unit(points), count))][:, None]

    def predict_steps(self, x: Tensor) -> Tensor:
        """(at most remaining - 1, d) where the evaluations after x (d,) are predicted to go."""
        candidates, n, loss = self._candidates()
        with torch.no_grad():
            return steps_after(candidates, x.reshape(1, -1).to(candidates.X), n, loss)

    def _candidates(self) -> tuple[ModelCandidates, int, Loss]:
        """The candidate set for what is pending now, the evaluations that are planned, and the loss that values them."""
        if self._known is None:
            pending = self._box.low[None][:0] if self.X_pending is None else self.X_pending
            if not isinstance(self._wanted, int):
                points = self._wanted
            elif self.remaining == 1:
                points = cover_points(self._box, self.seed)
            else:
                points = candidate_points(self._joint, self._box, self._wanted, pending, self._best, self.seed)
            found = ModelCandidates(self._joint, self._box, points, pending, self._best)
            n = min(horizon(self.loss, self.remaining), len(points))
            self._known = found, n, (ExpectedLoss() if n == 1 else self.loss)
        return self._known

    def _best_value(self, given: float | Tensor | None) -> Tensor:
        if given is not None:
            best = torch.as_tensor(given, dtype=self._box.low.dtype, device=self._box.low.device)
            if best.numel() != 1 or not bool(torch.isfinite(best)):
                raise ValueError(f"best_f must be one finite number, got {given!r}.")
            return best.reshape(())
        data = inside(self._joint.data(), self._box)
        if data is None:
            raise ValueError("The model shows no data inside the bounds: give the best value so far as best_f.")
        with torch.no_grad():
            return self._joint.sign * self._joint(data)[0].amin(dim=1)


@acqf_input_constructor(GlassesAcquisition)
def _inputs(
    model: Any,
    bounds: Any,
    remaining: int,
    posterior_transform: Any = None,
    X_pending: Tensor | None = None,
    best_f: float | Tensor | None = None,
    loss: Loss | None = None,
    candidates: int | Tensor = 256,
    seed: int = 0,
    constraints_tuple: Any = None,
) -> dict[str, Any]:
    """The arguments of ``GlassesAcquisition`` out of what Ax knows, which asks BoTorch's registry of such functions."""
    if constraints_tuple is not None:
        raise ValueError("A look-ahead takes one objective and no outcome constraints: leave the constraints out.")
    found = {"model": model, "remaining": remaining, "bounds": torch.as_tensor(bounds, dtype=torch.double).T}
    found |= {"posterior_transform": posterior_transform, "X_pending": X_pending, "best_f": best_f, "loss": loss}
    return found | {"candidates": candidates, "seed": seed}


def _box(bounds: Tensor, data: Tensor | None) -> Box:
    """In the precision of the model's data."""
    shape = tuple(getattr(bounds, "shape", ()))
    if len(shape) != 2 or shape[0] != 2 or not torch.isfinite(bounds).all() or not (bounds[0] < bounds[1]).all():
        raise ValueError(f"bounds must be a tensor of shape (2, d), finite and low below high, got {bounds!r}.")
    bounds = bounds.detach().double() if data is None else bounds.detach().to(data)
    return Box(bounds[0], bounds[1])


def _points(given: Tensor, name: str, box: Box) -> Tensor:
    if tuple(getattr(given, "shape", ())[1:]) != tuple(box.low.shape) or not torch.isfinite(given).all():
        raise ValueError(f"{name} must be a tensor of shape (n, {len(box.low)}) of finite numbers, got {given!r}.")
    return given.detach().to(box.low)
