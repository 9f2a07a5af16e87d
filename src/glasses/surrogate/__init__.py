"""Gaussian-process surrogates: kernels, priors, fitting, and posteriors that can be conditioned again."""
