"""Gaussian integrals: one variable, and the expected minimum of several. No word of optimisation here."""
