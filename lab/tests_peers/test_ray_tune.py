"""``GlassesSampler`` inside Ray Tune's ``OptunaSearch``: Ray runs the trials in processes of its own, two at a time."""

import math
from statistics import median

import optuna
import pytest
import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

import glasses
from glasses.optuna import GlassesSampler
from glasses.optuna.marks import POINT

BUDGET = 12


@pytest.fixture
def cluster(monkeypatch):
    """A local Ray with room for two trials."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20)
    yield
    ray.shutdown()


@pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")  # JAX, if already at work; Ray only forks to exec
def test_a_whole_mixed_search(cluster, tmp_path):
    def objective(config):  # in here, Ray sends it to its processes by value
        bowl = (config["momentum"] - 0.3) ** 2 + (math.log10(config["rate"]) + 3) ** 2 + (config["layers"] - 3) ** 2 / 4
        return {"loss": bowl + {"relu": 0.0, "tanh": 0.5, "gelu": 0.2}[config["activation"]]}

    storage = optuna.storages.InMemoryStorage()
    sampler = GlassesSampler(budget=BUDGET, seed=1, loss=glasses.ExpectedLoss())
    search = OptunaSearch(sampler=sampler, metric="loss", mode="min", storage=storage, study_name="ray")
    space = {
        "momentum": tune.uniform(0.0, 1.0),
        "rate": tune.loguniform(1e-5, 1e-1),
        "layers": tune.randint(1, 7),  # Ray's upper end is exclusive
        "activation": tune.choice(["relu", "tanh", "gelu"]),
    }
    results = tune.Tuner(
        objective,
        param_space=space,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=BUDGET, max_concurrent_trials=2),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    ).fit()

    assert len(results) == BUDGET
    assert not results.errors
    configs = [each.config for each in results]
    for config in configs:
        assert config.keys() == space.keys()
        assert isinstance(config["momentum"], float)
        assert 0.0 <= config["momentum"] <= 1.0
        assert isinstance(config["rate"], float)
        assert 1e-5 <= config["rate"] <= 1e-1
        assert isinstance(config["layers"], int)
        assert 1 <= config["layers"] <= 6
        assert config["activation"] in ("relu", "tanh", "gelu")
    assert len({tuple(config[name] for name in space) for config in configs}) == BUDGET
    losses = [each.metrics["loss"] for each in results]
    assert min(losses) < median(losses)

    trials = optuna.load_study(study_name="ray", storage=storage).get_trials()
    assert all(trial.state == optuna.trial.TrialState.COMPLETE for trial in trials)
    assert sorted(trial.value for trial in trials) == sorted(losses)
    assert all(POINT in trial.system_attrs for trial in trials[2:])  # planned, once there is something to learn from
