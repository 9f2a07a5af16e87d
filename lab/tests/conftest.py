"""The set-up of the engine's tests: float64, a project-local cache of compiled programs, the profile of hypothesis."""

from tests.conftest import float64, rng

__all__ = ["float64", "rng"]
