"""Optuna's own published suites for samplers."""

import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from glasses import ExpectedLoss
from glasses.optuna.sampler import GlassesSampler
from glasses.search import MultiStart

SMALL = MultiStart(candidates=64, screened=8, polished=2)


@pytest.fixture(autouse=True)
def programs_as_users_run_them(monkeypatch):
    """Hundreds of decisions by the same programs: what an optimised one saves is more than compiling it takes."""
    monkeypatch.delenv("GLASSES_OPTIMIZATION_LEVEL", raising=False)


class TestTwoStage(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    """The default planner."""

    @pytest.fixture
    def sampler(self):
        return lambda: GlassesSampler(budget=10, seed=3, n_initial=2, search=SMALL)


class TestExpectedLoss(RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The suite with most decisions and most pending trials, by the cheapest planner."""

    @pytest.fixture
    def sampler(self):
        return lambda: GlassesSampler(budget=10, seed=3, n_initial=2, search=SMALL, loss=ExpectedLoss())
