"""Expected minima of Gaussian vectors: closed forms, expectation propagation, quasi-Monte Carlo. Independent of
optimisation."""

from glasses.gaussian.ep import EP
from glasses.gaussian.expected_min import expected_min
from glasses.gaussian.qmc import QMC

__all__ = ["EP", "QMC", "expected_min"]
