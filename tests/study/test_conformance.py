"""Optuna's own published suites: those for samplers that have one objective, and the one for storages.

Not inherited: ``MultiObjectiveSamplerTestCase``, because several objectives are refused, which ``SingleOnlySamplerTestCase``
checks; and the suites for importance evaluators, of which this package has none. There is no suite for pruners.
"""

import shutil

import pytest
from optuna.distributions import CategoricalDistribution
from optuna.testing import pytest_samplers
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from optuna.testing.pytest_storages import StorageTestCase
from sqlalchemy import event

from glasses import ExpectedLoss
from glasses.gaussian import QMC
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.storage import Database
from glasses.search import MultiStart

SMALL = MultiStart(candidates=32, screened=4, polished=1)


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


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A database with Optuna's tables."""
    path = tmp_path_factory.mktemp("empty") / "study.db"
    Database(f"sqlite:///{path}", {}, current=False, writing=True).engine.dispose()
    return path


class TestDatabase(StorageTestCase):
    """The storage of study files."""

    @pytest.fixture
    def storage(self, empty, tmp_path):
        shutil.copy(empty, tmp_path / "study.db")
        storage = Database(f"sqlite:///{tmp_path / 'study.db'}", {}, current=True, writing=True)
        event.listen(storage.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        yield storage
        storage.engine.dispose()

    def test_set_trial_param(self, storage, monkeypatch):
        """All of it but for one refusal, which is made here: the choices of a parameter may change from trial to trial."""
        plain, reordered = storage.set_trial_param, CategoricalDistribution(("Meguro", "Shibuya", "Ebisu"))
        refused = []

        def set_trial_param(trial_id, name, value, distribution):
            if distribution == reordered:
                refused.append(name)
                raise ValueError
            plain(trial_id, name, value, distribution)

        monkeypatch.setattr(storage, "set_trial_param", set_trial_param)
        super().test_set_trial_param(storage)
        assert refused == ["y"]


def test_every_suite_for_samplers_is_inherited_or_named_above():
    """A suite that a later Optuna adds is seen here."""
    ours = {base for each in (TestTwoStage, TestExpectedLoss) for base in each.__mro__}
    published = {
        each for name, each in vars(pytest_samplers).items() if isinstance(each, type) and name.endswith("SamplerTestCase")
    }
    assert {each.__name__ for each in published - ours} == {"MultiObjectiveSamplerTestCase"}
    for suite in (BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase, StorageTestCase):
        taken = next(each for each in (TestTwoStage, TestExpectedLoss, TestDatabase) if issubclass(each, suite))
        for name in vars(suite):
            assert not name.startswith("test_") or hasattr(taken, name), name
