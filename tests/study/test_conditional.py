"""Parameters that not every trial has, and ranges that change: planned with the rest of the trial."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from glasses import ExpectedLoss
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.trials import POINT

KIND = CategoricalDistribution(["a", "b"])
UNIT = FloatDistribution(0.0, 1.0)


def sampler(**settings):
    return GlassesSampler(**{"budget": 14, "seed": 1, "n_initial": 4, "loss": ExpectedLoss(), "noise": 0.0, **settings})


def branches(trial):
    """Two kinds with a setting of their own each; the best of the second is the best of all, 0 at y = .8."""
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        return 0.2 + (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    return 4 * (trial.suggest_float("y", 0, 1) - 0.8) ** 2


def study_of(objective=branches, n_trials=8, direction="minimize", **settings):
    study = optuna.create_study(sampler=sampler(**settings), direction=direction)
    study.optimize(objective, n_trials=n_trials)
    return study


@pytest.fixture(scope="module")
def begun():
    """The trials of a study of both branches."""
    return study_of().trials


def again(trials, **settings):
    study = optuna.create_study(sampler=sampler(**settings))
    study.add_trials(trials)
    return study


def params(study):
    return [trial.params for trial in study.trials]


def test_a_branch_and_its_parameters_are_planned_together(begun, caplog):
    """Much better than with settings drawn at random, and nothing is said of independent sampling."""
    ours, theirs = [], []
    for seed in (1, 2, 3):
        study = study_of(n_trials=14, seed=seed)
        ours.append(study.best_value)
        blind = optuna.create_study(sampler=sampler(seed=seed, warn_independent_sampling=False))
        blind.sampler.conditional = False
        blind.optimize(branches, n_trials=14)
        theirs.append(blind.best_value)
        assert all(trial.params.keys() == {"kind", "x" if trial.params["kind"] == "a" else "y"} for trial in study.trials)
    assert max(ours) < 1e-4
    assert min(theirs) > 10 * max(ours)


def test_what_is_planned_is_what_the_objective_asks_for(begun):
    study = again(begun)
    planned = study.sampler.optimizer(study).plan().next
    trial = study.ask()
    assert trial.relative_params == planned
    branches(trial)
    assert trial.params == planned
    assert study.trials[-1].system_attrs[POINT].keys() == planned.keys()


def test_maximising_is_minimising_the_negated(begun):
    up = study_of(lambda trial: -branches(trial), direction="maximize")
    assert params(up) == [trial.params for trial in begun]


def test_a_search_space_that_names_all_of_them():
    """The first trials follow a design over all, and which trial has what is learned all the same."""
    study = study_of(n_trials=10, search_space={"kind": KIND, "x": UNIT, "y": UNIT})
    assert study.best_value < 0.01
    assert study.sampler.optimizer(study).space.names_of({"kind": "b"}) == ["kind", "y"]
    assert study.sampler.optimizer(study).remaining == 4


def test_every_trial_counts(begun):
    """Those whose parameters are not known, and failed ones without all of theirs, cost budget and say nothing."""
    study = again(begun)
    assert study.sampler.optimizer(study).remaining == 6
    study.add_trial(create_trial(state=TrialState.FAIL, params={"kind": "a"}, distributions={"kind": KIND}))
    study.add_trial(
        create_trial(state=TrialState.FAIL, params={"kind": "b", "y": 0.1}, distributions={"kind": KIND, "y": UNIT})
    )
    study.add_trial(
        create_trial(state=TrialState.PRUNED, params={"kind": "a", "x": 0.9}, distributions={"kind": KIND, "x": UNIT})
    )
    optimizer = study.sampler.optimizer(study)
    assert optimizer.remaining == 3
    assert [each.x for each in optimizer.record().failures] == [{"kind": "b", "y": 0.1}]
    assert optimizer.pending == [{"kind": "a", "x": 0.9}]
    assert len(optimizer.values) == 8
    study.sampler.budget = 2
    assert study.sampler.optimizer(study).remaining == 0
    branches(study.ask())  # beyond the budget a trial is planned as the last one


def test_running_and_queued_trials_are_pending(begun):
    study = again(begun)
    trial = study.ask()
    decided = dict(trial.relative_params)
    assert study.sampler.optimizer(study).pending == [decided]  # before a single parameter is set
    branches(trial)
    assert study.sampler.optimizer(study).pending == [decided]
    study.enqueue_trial({"kind": "a", "x": 0.25})
    study.enqueue_trial({"kind": "a"})  # half known: nothing to be said of it
    study.enqueue_trial({"kind": "a", "x": 2.5})  # no point of this space
    assert study.sampler.optimizer(study).pending == [decided, {"kind": "a", "x": 0.25}]
    assert branches(study.ask()) == pytest.approx(0.2025)
    assert study.sampler.optimizer(study).pending == [decided, {"kind": "a", "x": 0.25}]


def test_a_branch_that_was_not_planned_is_decided_when_it_is_asked_for(begun):
    """A branch that a person queued, without its settings: they are planned, the branch held."""
    study = again(begun)
    study.enqueue_trial({"kind": "b"})
    trial = study.ask()
    assert trial.relative_params.keys() == {"kind", "y"}  # what is queued is known when the trial is planned
    planned = trial.relative_params["y"]
    assert branches(trial) < 0.01
    assert trial.params == {"kind": "b", "y": planned}
    surprised = study.ask()
    wanted = {"a": "x", "b": "y"}[surprised.relative_params["kind"]]
    other = {"x": "y", "y": "x"}[wanted]
    value = surprised.suggest_float(other, 0, 1)  # the objective asks for a setting of the other branch
    assert value == study.sampler.sample_independent(study, study.trials[surprised.number], other, UNIT)
    assert 0.0 <= value <= 1.0
    assert surprised.suggest_float("new", 2, 3) >= 2  # nobody has seen this one: drawn


def test_the_model_decides_what_was_not_planned(begun):
    """With the branch given, its setting is near the best one; drawn at random three would not be."""
    found = []
    for seed in (1, 2, 3):
        study = again(begun, seed=seed)
        running = create_trial(state=TrialState.RUNNING, params={"kind": "b"}, distributions={"kind": KIND})
        study.add_trial(running)
        found.append(study.sampler.sample_independent(study, study.trials[-1], "y", UNIT))
    assert max(abs(y - 0.8) for y in found) < 0.05


def test_ranges_that_change_are_planned(caplog):
    """The range of x depends on n; its best value is 4.2, which needs n >= 5."""

    def dynamic(trial):
        n = trial.suggest_int("n", 1, 8)
        return (trial.suggest_float("x", 0, n) - 4.2) ** 2 + 0.1 * (n - 6) ** 2

    study = study_of(dynamic, n_trials=14)
    assert all(0 <= trial.params["x"] <= trial.params["n"] for trial in study.trials)
    assert study.best_value < 0.01
    blind = optuna.create_study(sampler=sampler(warn_independent_sampling=False))
    blind.sampler.conditional = False
    blind.optimize(dynamic, n_trials=14)
    assert study.best_value < 0.2 * blind.best_value


def test_conditions_within_conditions():
    """Layers with a width each: the numbers of those that are there are learned."""

    def layers(trial):
        n = trial.suggest_int("n", 1, 3)
        return sum((trial.suggest_int(f"width {i}", 1, 64, log=True) - 8 * (i + 1)) ** 2 for i in range(n)) - 20 * n

    study = study_of(layers, n_trials=9, budget=12)
    for trial in study.trials:
        assert trial.params.keys() == {"n", *(f"width {i}" for i in range(trial.params["n"]))}
    known = {trial.params["n"] for trial in study.trials}
    assert known == {1, 2, 3}
    for n in known:
        optimizer = study.sampler.optimizer(study)
        assert optimizer.space.names_of({"n": n}) == ["n", *(f"width {i}" for i in range(n))]


def test_same_study_same_suggestions_in_any_storage(begun, tmp_path):
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    study = optuna.create_study(storage=storage, study_name="s", sampler=sampler())
    study.optimize(branches, n_trials=6)
    loaded = optuna.load_study(storage=storage, study_name="s", sampler=sampler())
    loaded.optimize(branches, n_trials=2)
    assert params(loaded) == [trial.params for trial in begun]
    storage.engine.dispose()


def test_threads_decide_different_trials():
    study = optuna.create_study(sampler=sampler(budget=12, n_initial=6))
    study.optimize(branches, n_trials=12, n_jobs=3)
    assert len({tuple(trial.params.items()) for trial in study.trials}) == 12


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_branch_that_is_held():
    """PartialFixedSampler: the rest is planned without what it holds."""
    study = study_of(n_trials=4)
    study.sampler = optuna.samplers.PartialFixedSampler({"kind": "b"}, study.sampler)
    study.optimize(branches, n_trials=4)
    assert [trial.params["kind"] for trial in study.trials[4:]] == ["b"] * 4
    assert study.best_value < 0.1


def test_brackets_see_the_parameters_of_all_trials():
    """Hyperband shows the sampler one bracket of the study alone; what is planned is learned from all of them."""
    study = optuna.create_study(sampler=sampler(), pruner=optuna.pruners.HyperbandPruner(1, 9, 3), study_name="s")
    study.optimize(branches, n_trials=8)
    space = study.sampler.optimizer(study).space
    assert [space.names_of({"kind": kind}) for kind in ("a", "b")] == [["kind", "x"], ["kind", "y"]]


@pytest.mark.parametrize(
    "ranges",
    [
        lambda k: FloatDistribution(0.0, 1.0 + k, step=0.25),
        lambda k: FloatDistribution(0.1, 1.0, log=bool(k % 2)),
        lambda k: IntDistribution(0, 8 + 2 * k, step=2),
    ],
    ids=["steps", "scale", "even numbers"],
)
def test_what_cannot_be_planned_is_sampled_and_said(ranges, caplog):
    study = optuna.create_study(sampler=sampler())
    for k in range(3):
        distributions = {"x": UNIT, "z": ranges(k)}
        point = {"x": 0.2 * k, "z": ranges(k).to_external_repr(ranges(k).high)}
        study.add_trial(create_trial(value=1.0 * k, params=point, distributions=distributions))
    assert study.sampler.infer_relative_search_space(study, study.trials[0]).keys() == {"x"}
    optuna.logging.enable_propagation()
    try:
        with caplog.at_level("WARNING", logger="glasses.optuna"):
            value = study.sampler.sample_independent(study, study.trials[-1], "z", ranges(0))
    finally:
        optuna.logging.disable_propagation()
    assert ranges(0)._contains(ranges(0).to_internal_repr(value))
    said = [each.message.split(":")[0] for each in caplog.records if each.levelname == "WARNING"]
    assert said == ["z is sampled independently"]


@pytest.mark.parametrize(
    "cost",
    [lambda kind, **setting: 1.0 + 2 * setting.get("y", 0.0), {"kind": {"a": 1.0, "b": 1.0}, "y": 2.0}],
    ids=["function", "table"],
)
def test_a_cost_is_that_of_the_parameters_that_a_trial_has(cost):
    study = optuna.create_study(sampler=sampler(budget=20.0, cost=cost))
    study.optimize(branches, n_trials=7)
    spent = sum(1.0 + 2 * trial.params.get("y", 0.0) for trial in study.trials)
    optimizer = study.sampler.optimizer(study)
    assert optimizer.space.names_of({"kind": "b"}) == ["kind", "y"]
    assert optimizer._ledger.spent == pytest.approx(spent)
    assert optimizer._ledger.cost.cheapest == 1.0
    while optimizer.remaining:
        optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer._ledger.spent <= 20.0 * (1 + 1e-9)
