"""Gaussian-process surrogates: kernels, output transforms, fitting, and posteriors that can be conditioned again."""

from glasses.surrogate.fit import MAP, Known, MaximumLikelihood
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.hyperparameters import Exponential, Hyperparameter, Normal
from glasses.surrogate.kernels import Additive, Constant, Kernel, Matern52, PartlyAdditive, SquaredExponential, Subset, Warped
from glasses.surrogate.outputs import Compress, Outputs, OutputTransform, Standardize

__all__ = [
    "MAP",
    "Additive",
    "Compress",
    "Constant",
    "Exponential",
    "GaussianProcess",
    "Hyperparameter",
    "Kernel",
    "Known",
    "Matern52",
    "MaximumLikelihood",
    "Normal",
    "OutputTransform",
    "Outputs",
    "PartlyAdditive",
    "SquaredExponential",
    "Standardize",
    "Subset",
    "Warped",
]
