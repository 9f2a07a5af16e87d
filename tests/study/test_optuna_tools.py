"""What Optuna shows of a study, and what others read of it: importances, pictures, dashboards.

The pictures are those of ``optuna.visualization.matplotlib``: plotly is not among the pinned packages, and both draw the same
numbers. optuna-dashboard is not either: what its server reads is checked, which is the storage through plain Optuna and
attributes that are JSON.
"""

import json

import matplotlib as mpl
import optuna
import pytest
from matplotlib import pyplot as plt
from optuna.importance import FanovaImportanceEvaluator, MeanDecreaseImpurityImportanceEvaluator, PedAnovaImportanceEvaluator
from optuna.visualization import matplotlib as pictures

from glasses import ExpectedLoss
from glasses.optuna import GlassesSampler

SEVERAL = {"plot_hypervolume_history", "plot_pareto_front"}  # of studies with several objectives, which are refused
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def objective(trial):
    """A branch with a setting of its own, intermediate values, some trials pruned, one that fails."""
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    value = (rate - 0.1) ** 2
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        value += 0.3 * (trial.suggest_float("x", 0, 1) - 0.4) ** 2
    for step in range(3):
        trial.report(value + 0.5**step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    trial.set_user_attr("seen", trial.number)
    return float("nan") if trial.number == 1 else value


@pytest.fixture(scope="module")
def study():
    """A study with trials of every state."""
    sampler = GlassesSampler(budget=12, seed=2, n_initial=5, loss=ExpectedLoss(), noise=0.0)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.MedianPruner(n_startup_trials=2), study_name="shown")
    study.optimize(objective, n_trials=12)
    study.enqueue_trial({"rate": 0.5})
    study.ask()
    assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED", "FAIL", "RUNNING"}
    return study


@pytest.mark.parametrize(
    "evaluator",
    [FanovaImportanceEvaluator(seed=0), MeanDecreaseImpurityImportanceEvaluator(seed=0), PedAnovaImportanceEvaluator()],
    ids=["fanova", "impurity", "ped-anova"],
)
@pytest.mark.filterwarnings("ignore:Some regimes for parameter")  # few trials have x
def test_importances(study, evaluator):
    shared = optuna.importance.get_param_importances(study, evaluator=evaluator)
    assert {"rate", "kind"} <= shared.keys() <= {"rate", "kind", "x"}  # most evaluators leave out what some trials lack
    assert sum(shared.values()) == pytest.approx(1.0)
    of_a = optuna.importance.get_param_importances(study, evaluator=evaluator, params=["rate", "x"])
    assert of_a.keys() == {"rate", "x"}


def drawn(name):
    """The function of a picture and what it needs besides the study."""
    more = {
        "plot_contour": {"params": ["rate", "kind"]},
        "plot_rank": {"params": ["rate", "x"]},
        "plot_param_importances": {"evaluator": MeanDecreaseImpurityImportanceEvaluator(seed=0)},
        "plot_terminator_improvement": {
            "improvement_evaluator": optuna.terminator.BestValueStagnationEvaluator(),
            "error_evaluator": optuna.terminator.StaticErrorEvaluator(0.0),
        },
    }
    return getattr(pictures, name), more.get(name, {})


@pytest.mark.parametrize("name", sorted({each for each in pictures.__all__ if each.startswith("plot_")} - SEVERAL))
@pytest.mark.filterwarnings("ignore")  # of matplotlib, about axes with a single number
def test_every_picture_of_one_objective(study, name):
    function, more = drawn(name)
    with mpl.rc_context({"backend": "agg"}):
        found = function(study, **more)
        axes = found if hasattr(found, "figure") else found.flat[0]
        axes.figure.canvas.draw()
        assert axes.has_data() or any(each.has_data() for each in axes.figure.axes)
        plt.close(axes.figure)


def test_the_pictures_of_several_objectives_say_so(study):
    for name in SEVERAL:
        with pytest.raises(ValueError, match=r"multi-objective|objectives|reference_point"):
            getattr(pictures, name)(study, **({"reference_point": [1.0]} if "hypervolume" in name else {}))


def test_plain_optuna_reads_the_study_and_goes_on(study, tmp_path):
    """As a dashboard does, and as somebody who changes the sampler: nothing of this package is needed, nor in the way."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    optuna.copy_study(from_study_name="shown", from_storage=study._storage, to_storage=storage)
    [summary] = optuna.get_all_study_summaries(storage)
    assert (summary.study_name, summary.n_trials) == ("shown", 13)
    tpe = optuna.samplers.TPESampler(seed=0, n_startup_trials=2)
    read = optuna.load_study(storage=storage, study_name="shown", sampler=tpe)
    assert [trial.params for trial in read.trials] == [trial.params for trial in study.trials]
    assert [trial.intermediate_values for trial in read.trials] == [trial.intermediate_values for trial in study.trials]
    assert read.best_params == study.best_params
    read.optimize(objective, n_trials=1)
    again = GlassesSampler(budget=15, seed=2, loss=ExpectedLoss(), noise=0.0)
    ours = optuna.load_study(storage=storage, study_name="shown", sampler=again)
    assert again.optimizer(ours).remaining == 15 - 13  # TPE's trial counts; the running one has no parameters yet
    storage.engine.dispose()


def test_all_attributes_are_json(study):
    """What a dashboard sends to the browser. Ours begin with ``glasses:``, Optuna's and the user's are as they were."""
    texts = [study.user_attrs, study._storage.get_study_system_attrs(study._study_id)]
    for trial in study.trials:
        texts += [trial.user_attrs, trial.system_attrs]
        own = [key for key in trial.system_attrs if key.startswith("glasses:")]
        assert own or trial.number == 0 or trial.number >= 12
        assert not [key for key in trial.user_attrs if key.startswith("glasses:")]
    for each in texts:
        assert json.loads(json.dumps(each, allow_nan=False)) == each


def test_the_union_and_the_intersection_of_parameters(study):
    """A dashboard groups trials by them."""
    common = optuna.search_space.intersection_search_space(study.get_trials(deepcopy=False))
    assert common.keys() == {"kind", "rate"}
    every = {name for trial in study.trials for name in trial.distributions}
    assert every == {"kind", "rate", "x"}
