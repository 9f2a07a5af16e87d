"""Optuna's own published suites for samplers."""

import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from glasses import ExpectedLoss
from glasses.gaussian import QMC
from glasses.optuna.sampler import GlassesSampler
from glasses.search import MultiStart

SMALL = MultiStart(candidates=64, screened=8, polished=2)


class TestTwoStage(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    """The default planner."""

    @pytest.fixture
    def sampler(self):
        return lambda: GlassesSampler(budget=10, seed=3, n_initial=2, search=SMALL)


class TestExpectedLoss(RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """The suite with most decisions and most pending trials, by the cheapest planner."""

    @pytest.fixture
    def sampler(self):
        return lambda: GlassesSampler(budget=10, seed=3, n_initial=2, search=SMALL, loss=ExpectedLoss(QMC(16)))
