"""What trials mean to the sampler: pruned ones above all. A point is not suggested twice, whatever became of it."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from glasses import ExpectedLoss, Target
from glasses.optuna import GlassesSampler, StopWhen
from glasses.optuna.trials import MAX_PENDING

SPACE = {"x": FloatDistribution(0.0, 1.0), "k": IntDistribution(0, 9)}


def sampler(**settings):
    return GlassesSampler(
        **{"budget": 16, "seed": 1, "n_initial": 4, "loss": ExpectedLoss(), "search_space": SPACE, **settings}
    )


def points(study):
    return {tuple(trial.params.values()) for trial in study.trials}


def pruned(values, x=0.9, k=9, **more):
    return create_trial(
        state=TrialState.PRUNED, intermediate_values=values, params={"x": x, "k": k}, distributions=SPACE, **more
    )


def training(sign, report=True):
    """An objective that gets better step by step and asks whether to go on."""

    def objective(trial):
        x, k = trial.suggest_float("x", 0, 1), trial.suggest_int("k", 0, 9)
        value = (x - 0.3) ** 2 + 0.1 * k
        for step in range(1, 4):
            if report:
                trial.report(sign * value * (1 + 1 / step), step)
            if trial.should_prune() or (not report and trial.number > 3):
                raise optuna.TrialPruned
        return sign * value

    return objective


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("known", [True, False], ids=["space", "no space"])
@pytest.mark.parametrize("budget", [16, 30])
def test_no_point_twice_with_a_pruner(direction, known, budget):
    settings = {"budget": budget, "search_space": SPACE if known else None}
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3)
    study = optuna.create_study(direction=direction, sampler=sampler(**settings), pruner=pruner)
    sign = 1.0 if direction == "minimize" else -1.0
    study.optimize(training(sign), n_trials=budget)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert len(points(study)) == budget
    assert sign * study.best_value < 1e-3  # and the pruned ones did not stand in the way


def test_no_point_twice_where_pruned_trials_report_nothing():
    study = optuna.create_study(sampler=sampler())
    study.optimize(training(1.0, report=False), n_trials=16)
    assert sum(trial.state == TrialState.PRUNED for trial in study.trials) == 12
    assert len(points(study)) == 16


def test_no_point_twice_with_brackets():
    """Hyperband shows the sampler one bracket of the study at a time; the others count as well."""
    study = optuna.create_study(sampler=sampler(), pruner=optuna.pruners.HyperbandPruner(1, 3, 2))
    study.optimize(training(1.0), n_trials=16)
    assert len(points(study)) == 16


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimize", "maximize"])
def test_a_pruned_trial_is_an_evaluation_with_its_last_intermediate_value(sign):
    study = optuna.create_study(direction="minimize" if sign > 0 else "maximize", sampler=sampler())
    study.add_trial(create_trial(value=sign * 1.0, params={"x": 0.5, "k": 3}, distributions=SPACE))
    study.add_trial(pruned({5: sign * 3.0, 1: sign * 7.0}))
    optimizer = study.sampler.optimizer(study)
    assert optimizer.values == [1.0, 3.0]
    assert optimizer.pending == []
    assert optimizer.remaining == 14


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimize", "maximize"])
def test_a_pruned_trial_is_never_the_incumbent(sign):
    """An early value may look better than any final one: the best value is that of a completed trial, and so is a target."""
    study = optuna.create_study(direction="minimize" if sign > 0 else "maximize", sampler=sampler())
    study.add_trial(pruned({1: sign * 0.1}, x=0.1))
    assert study.sampler.reason_to_stop(study, Target(sign * 0.5)) is None
    study.add_trial(create_trial(value=sign * 1.0, params={"x": 0.5, "k": 3}, distributions=SPACE))
    study.add_trial(create_trial(value=sign * 2.0, params={"x": 0.6, "k": 3}, distributions=SPACE))
    study.add_trial(pruned({1: sign * 0.1}, x=0.8))
    optimizer = study.sampler.optimizer(study)
    assert optimizer.values == [1.0, 1.0, 2.0, 1.0]
    assert optimizer.record().fun == 1.0
    assert study.sampler.reason_to_stop(study, Target(sign * 0.5)) is None
    StopWhen(Target(sign * 0.5))(study, study.trials[-1])  # nothing to stop


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e200])
def test_a_pruned_trial_whose_last_value_is_no_number_has_failed(value):
    study = optuna.create_study(sampler=sampler())
    study.add_trial(create_trial(value=1.0, params={"x": 0.5, "k": 3}, distributions=SPACE))
    study.add_trial(pruned({1: 2.0, 2: value}))
    optimizer = study.sampler.optimizer(study)
    assert optimizer.values == [1.0]
    assert [each.x for each in optimizer.record().failures] == [{"x": 0.9, "k": 9}]
    assert optimizer.remaining == 14


def test_a_pruned_trial_without_values_is_taken_and_costs_budget():
    study = optuna.create_study(sampler=sampler())
    study.add_trial(create_trial(value=1.0, params={"x": 0.5, "k": 3}, distributions=SPACE))
    study.add_trial(pruned({}))
    study.add_trial(create_trial(state=TrialState.PRUNED))  # before it had its parameters
    optimizer = study.sampler.optimizer(study)
    assert optimizer.values == [1.0]
    assert optimizer.pending == [{"x": 0.9, "k": 9}]
    assert optimizer.record().failures == []
    assert optimizer.remaining == 13


def with_constraints(value, constraints, x=0.5, k=3):
    attrs = {f"constraints:{name}": g for name, g in constraints.items()}
    return create_trial(value=value, params={"x": x, "k": k}, distributions=SPACE, system_attrs=attrs)


def test_constraints_that_not_every_trial_has():
    """One that is missing counts as met and is not fitted there; an infinite one makes a failure, or says nothing."""
    study = optuna.create_study(sampler=sampler())
    study.add_trial(with_constraints(1.0, {"a": 0.5, "b": -1.0}))
    study.add_trial(with_constraints(2.0, {"a": -0.5}, k=4))
    study.add_trial(with_constraints(0.5, {}, k=5))
    study.add_trial(with_constraints(0.1, {"a": float("inf")}, k=6))
    study.add_trial(with_constraints(0.7, {"a": 0.1, "b": float("-inf")}, k=7))
    optimizer = study.sampler.optimizer(study)
    assert optimizer._ledger.constraints == ("a", "b")
    np.testing.assert_array_equal(optimizer._ledger.G, [[0.5, -1], [-0.5, np.nan], [np.nan, np.nan], [0.1, np.nan]])
    assert [each.x["k"] for each in optimizer.record().failures] == [6]
    assert optimizer.record().x == {"x": 0.5, "k": 5}
    assert optimizer.ask()["k"] in range(10)
    alone = optuna.create_study(sampler=sampler())
    alone.add_trial(with_constraints(1.0, {"a": float("-inf")}))
    assert alone.sampler.optimizer(alone)._ledger.constraints == ()  # nothing to model


def test_a_pruned_trial_that_violates_a_constraint_is_data():
    study = optuna.create_study(sampler=sampler())

    def objective(trial):
        trial.suggest_float("x", 0, 1), trial.suggest_int("k", 0, 9)
        trial.report(1.0, 1)
        trial.set_constraint("limit", 1.0)
        raise optuna.TrialPruned

    study.optimize(objective, n_trials=1)
    told = study.sampler.optimizer(study).record()
    assert told.failures == []
    assert told.func_vals.tolist() == [1.0]
    assert told.feasible.tolist() == [False]
    assert told.x is None


def test_running_trials_are_pending_before_pruned_ones_where_there_are_too_many():
    study = optuna.create_study(sampler=sampler(budget=500))
    for k in range(MAX_PENDING):
        study.add_trial(pruned({}, x=k / 200, k=1))
    for k in range(3):
        study.enqueue_trial({"x": 0.9 + k / 100, "k": 2})
    pending = study.sampler.optimizer(study).pending
    assert len(pending) == MAX_PENDING
    assert [each["x"] for each in pending[-3:]] == [0.9, 0.91, 0.92]
    assert pending[0]["x"] == 3 / 200  # the oldest are left out
