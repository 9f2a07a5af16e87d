"""Numerical methods that are independent of Gaussian processes: batched BFGS, Sobol points."""
