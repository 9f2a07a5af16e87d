"""``GaussianProcess``: what is assumed of the objective before any data, and how it is fitted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from glasses.runtime.frozen import check_frozen
from glasses.surrogate.fit import LARGEST_FIT, MAP, FreeModel, Known, MaximumLikelihood, conditioned, fitted
from glasses.surrogate.kernels import Kernel, Matern52, PartlyAdditive
from glasses.surrogate.outputs import Compress, Outputs, OutputTransform, Standardize
from glasses.surrogate.posterior import Hyper, Posterior
from glasses.surrogate.sampling import sampled


@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian-process model of the objective.

    Parameters
    ----------
    kernel : Kernel, optional
        The prior covariance; kernels compose with ``+`` and ``*``. Default: ``PartlyAdditive(Matern52())``; with known
        hyperparameters ``Matern52()``, whose lengthscale and variance they are.
    fit : MAP, MaximumLikelihood or Known
        How the hyperparameters are found.
    noise : float, optional
        Standard deviation of an observation in the units of y: None learns it, 0 declares evaluations exact. With outputs that
        are not transformed by one factor throughout it is that of the best values.
    constant_mean : bool
        Whether a constant mean is learned; False: the mean is 0 after the outputs are transformed, as in the paper.
    outputs : OutputTransform, optional
        How values are transformed before the fit. Default: ``Compress()``; with known hyperparameters, which hold in the units
        of y, ``Standardize()``.
    hyperparameter_samples : int
        How many sets of hyperparameters a decision averages over (``sampling``), for up to 256 observations; 0 uses the fit.

    Examples
    --------
    >>> from glasses import GaussianProcess
    >>> from glasses.surrogate import Matern52, Warped
    >>> model = GaussianProcess(kernel=Warped(Matern52()), noise=0.1)
    >>> model.fit
    MAP(starts=4)
    """

    kernel: Kernel = None  # type: ignore[assignment]  # never None once made: see __post_init__
    fit: MAP | MaximumLikelihood | Known = field(default_factory=MAP)
    noise: float | None = None
    constant_mean: bool = True
    outputs: OutputTransform = None  # type: ignore[assignment]
    hyperparameter_samples: int = 0

    def __post_init__(self) -> None:
        known = isinstance(self.fit, Known)
        usual = {"kernel": Matern52() if known else PartlyAdditive(), "outputs": Standardize() if known else Compress()}
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name, kind in (("kernel", Kernel), ("fit", MAP | MaximumLikelihood | Known), ("outputs", OutputTransform)):
            given = getattr(self, name)
            if not isinstance(given, kind):
                hint = f": write {given.__name__}()" if isinstance(given, type) else ""
                raise ValueError(f"{name} must be an object such as {usual.get(name, MAP())!r}, got {given!r}{hint}.")
            check_frozen(name, given)
        samples = self.hyperparameter_samples
        if not (isinstance(samples, int) and not isinstance(samples, bool) and samples >= 0):
            raise ValueError(
                f"hyperparameter_samples must be a whole number of at least 0 sets of hyperparameters, got {samples!r}."
            )
        number = isinstance(self.noise, int | float | np.integer | np.floating) and not isinstance(self.noise, bool)
        if self.noise is not None and not (number and 0 <= self.noise < np.inf):
            raise ValueError(f"noise must be a standard deviation of at least 0, or None to learn it, got {self.noise!r}.")
        if isinstance(self.fit, Known):
            if self.noise is None:
                raise ValueError("With known hyperparameters nothing is learned, the noise included: give noise=0 or its sd.")
            if isinstance(self.outputs, Compress):
                raise ValueError("Known hyperparameters hold in the units of y, which Compress bends: leave outputs out.")
            if not self.constant_mean:
                raise ValueError("With known hyperparameters the mean is known too: leave constant_mean out.")
            if samples:
                raise ValueError("Known hyperparameters leave nothing to sample: leave hyperparameter_samples out.")

    def posterior(self, X: np.ndarray, z: np.ndarray, outputs: Outputs, choice: np.ndarray | None = None) -> Posterior:
        """Fit to inputs in the unit cube and transformed outputs and condition on them.

        ``outputs`` is the transform that gave z; ``choice`` (d,) marks inputs without an order.
        """
        X, z = np.asarray(X, dtype=float), np.asarray(z, dtype=float)
        if isinstance(self.fit, Known):
            theta = self.fit.theta(self.kernel, X.shape[1], outputs.scale)
            mean = np.asarray(outputs.forward(self.fit.mean))
            hyper = Hyper(theta, np.asarray(self._noise_variance(outputs)), mean, choice)
            post = conditioned(self.kernel, hyper, X, z)
        else:
            post = fitted(self._free(choice), X, z, self._noise_variance(outputs), choice, self.fit.starts)
        if not np.all(np.isfinite(np.asarray(post.alpha))):
            raise ValueError(f"The covariance of {self.kernel!r} is not finite or not positive definite: mend its formulas.")
        return post

    def samples(self, post: Posterior, outputs: Outputs) -> Posterior | None:
        """Posteriors with sampled hyperparameters, stacked; None where the fit is used."""
        if self.hyperparameter_samples == 0 or isinstance(self.fit, Known) or int(post.n) > LARGEST_FIT:
            return None
        noise = np.asarray(self._noise_variance(outputs))
        return sampled(post, noise, model=self._free(post.hyper.choice), count=self.hyperparameter_samples)

    def _free(self, choice: np.ndarray | None) -> FreeModel:
        assert not isinstance(self.fit, Known)
        choices = choice is not None and bool(np.any(choice))
        return FreeModel(self.kernel, self.constant_mean, self.fit.with_prior, choices)

    def _noise_variance(self, outputs: Outputs) -> float:
        """In the units of transformed outputs; -1 if it is learned."""
        return -1.0 if self.noise is None else (self.noise / outputs.scale) ** 2
