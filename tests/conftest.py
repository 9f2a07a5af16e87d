"""Shared set-up: float64 for the pure functions, a project-local cache of compiled programs, and small problems."""

import os
from pathlib import Path

os.environ.setdefault("GLASSES_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "programs"))
os.environ.setdefault("GLASSES_COMPILE_AHEAD", "off")  # tests of it turn it on

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "glasses", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("glasses")


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(7)
