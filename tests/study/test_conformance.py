"""Optuna's own published suites for samplers."""

import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from glasses.optuna import GlassesSampler


class TestGlassesSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: GlassesSampler(budget=10, seed=3, n_initial=2)
