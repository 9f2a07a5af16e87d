"""Shared set-up: float64 for the pure functions, project-local caches of what is compiled, and a generator."""

import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("GLASSES_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "programs"))
os.environ.setdefault("GLASSES_COMPILE_AHEAD", "off")  # tests of it turn it on

# Many tests wait for the compiler rather than for what it makes. What users run is compared in test_recorded.py.
os.environ.setdefault("GLASSES_OPTIMIZATION_LEVEL", "1")
os.environ.setdefault("GLASSES_CACHE_MB", "2000")  # the suite compiles more than a user does
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.02")
if version("jax").startswith("0.10."):  # small programs compile in half the time; JAX 0.11 ends at a flag it has not
    os.environ["XLA_FLAGS"] = " ".join(
        sorted(
            {
                *os.environ.get("XLA_FLAGS", "").split(),
                "--xla_cpu_use_fusion_emitters=false",
                "--xla_cpu_parallel_codegen_split_count=1",
            }
        )
    )

import jax
import numpy as np
import pytest
from alembic import util as alembic
from hypothesis import HealthCheck, settings

from glasses.runtime import program

# Each new database reads Optuna's twenty migrations, three times: four fifths of the time to make one.
_load, _load_once = alembic.load_python_file, cache(alembic.load_python_file)
alembic.load_python_file = lambda folder, name: (_load_once if Path(folder).name == "versions" else _load)(folder, name)

program.KEPT = 150  # a process of tests meets more programs than a user's; Linux allows it some 180
settings.register_profile(
    "glasses", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("glasses")


_WAITING = ("test_reliability.py", "test_browser.py", "test_serve.py")


def pytest_collection_modifyitems(items):
    """What waits for other processes more than it computes is begun first: at the end nothing would run beside it."""
    items.sort(key=lambda item: item.path.name not in _WAITING)


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(7)
