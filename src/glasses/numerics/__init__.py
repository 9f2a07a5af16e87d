"""Numerical methods that know nothing of Gaussian processes: batched BFGS, Sobol points."""
