"""Gaussian-process surrogates: kernels, output transforms, fitting, and posteriors that can be conditioned again."""

from glasses.surrogate.fit import MAP, Known, MaximumLikelihood
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.kernels import Matern52, SquaredExponential

__all__ = ["MAP", "GaussianProcess", "Known", "Matern52", "MaximumLikelihood", "SquaredExponential"]
