"""The joint posterior of a BoTorch model over points, as the engine needs it: to be minimised, float64, one row per sample.

A model with one set of hyperparameters has one sample, a fully Bayesian one as many as it kept. Everything else a model may
have (transforms of inputs and outcomes, fixed or learned noise, several outputs joined by a ``posterior_transform``) is in the
posterior that it returns, as long as that is Gaussian.

Shapes: X (n, d), mean (S, n), covariance (S, n, n).
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor


class JointPosterior:
    """``model.posterior`` with the sign turned where the model's values are to be maximised."""

    def __init__(self, model: Any, posterior_transform: Any, maximize: bool) -> None:
        self.model, self.posterior_transform = model, posterior_transform
        self.sign = -1.0 if maximize else 1.0
        if posterior_transform is None and model.num_outputs != 1:
            raise ValueError(
                f"A look-ahead needs one output, the model has {model.num_outputs}: give a posterior_transform that makes one "
                "of them, such as ScalarizedPosteriorTransform(weights)."
            )

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and covariance of the latent function at the rows of X, differentiable."""
        law = self._law(X)
        mean, cov = law.mean.double(), law.covariance_matrix.double()
        samples = max(1, mean.numel() // len(X))
        return self.sign * mean.reshape(samples, -1), cov.reshape(samples, len(X), len(X))

    def noise(self, X: Tensor) -> Tensor:
        """(S,) the variance that an observation adds to the latent function, on average over the rows of X."""
        with torch.no_grad():
            noisy = self._law(X, observation_noise=True).variance.double() - self._law(X).variance.double()
        return noisy.reshape(-1, len(X)).mean(dim=1).clamp_min(0.0)

    def data(self) -> Tensor | None:
        """The inputs that the model (the first one of a list) has seen, in the units of its user; None if it does not say."""
        model = self.model.models[0] if hasattr(self.model, "models") else self.model
        found = getattr(model, "_original_train_inputs", None)
        if found is None:
            found = (getattr(model, "train_inputs", None) or (None,))[0]
        while found is not None and found.dim() > 2:
            found = found[0]
        return found

    def _law(self, X: Tensor, observation_noise: bool = False) -> Any:
        posterior = self.model.posterior(X, observation_noise=observation_noise, posterior_transform=self.posterior_transform)
        law = getattr(posterior, "distribution", None)
        if not isinstance(law, MultivariateNormal) or isinstance(law, MultitaskMultivariateNormal):
            raise ValueError(
                f"A look-ahead needs a Gaussian posterior of one output, got {type(posterior).__name__}: an outcome transform "
                "that is not affine, such as Log, has to be left out, and Standardize kept."
            )
        if law.event_shape[-1] != len(X) or len(law.batch_shape) > 1:
            raise ValueError(
                f"A look-ahead needs one value for each of {len(X)} points, the posterior has the shape "
                f"{tuple(law.batch_shape + law.event_shape)}: give a posterior_transform that averages what was perturbed."
            )
        return law
