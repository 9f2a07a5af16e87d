"""Pruners of every kind beside the sampler, and what a pruned trial is taken to have come to."""

import math
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna import pruners
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from scipy.stats import theilslopes

from glasses import ExpectedLoss
from glasses.optuna import GlassesSampler
from glasses.optuna.pruned import Continuation, line_through

SPACE = {"x": FloatDistribution(0.0, 1.0), "k": IntDistribution(0, 9)}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    PRUNERS = {
        "nop": pruners.NopPruner(),
        "median": pruners.MedianPruner(n_startup_trials=2),
        "percentile": pruners.PercentilePruner(25.0, n_startup_trials=2),
        "halving": pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
        "hyperband": pruners.HyperbandPruner(min_resource=1, max_resource=4, reduction_factor=2),
        "patient": pruners.PatientPruner(None, patience=1),
        "threshold": pruners.ThresholdPruner(upper=1.2),
        "wilcoxon": pruners.WilcoxonPruner(p_threshold=0.3, n_startup_steps=2),
    }
numbers = st.floats(-1e3, 1e3).map(lambda v: round(v, 3))
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)


def training(trial, report=True):
    """Four steps towards (x - 0.3)^2 + k / 10; those of a poor trial go up, so that a patient pruner loses patience."""
    x, k = trial.suggest_float("x", 0, 1), trial.suggest_int("k", 0, 9)
    value = (x - 0.3) ** 2 + 0.1 * k
    for step in range(1, 5):
        if report:
            trial.report(value * (1 + 1 / step) if value < 0.3 else value + 0.1 * step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def study_of(pruner, report=True):
    sampler = GlassesSampler(budget=8, seed=1, n_initial=4, loss=ExpectedLoss(), noise=0.0, search_space=SPACE)
    study = optuna.create_study(sampler=sampler, pruner=pruner, study_name="s")  # Hyperband draws brackets from the name
    study.optimize(lambda trial: training(trial, report), n_trials=8)
    return study


@pytest.mark.parametrize("name", PRUNERS)
def test_every_pruner(name):
    """Pruned trials are evidence and never the best one; each costs an evaluation, and no point is tried twice."""
    study = study_of(PRUNERS[name])
    pruned = [trial for trial in study.trials if trial.state == TrialState.PRUNED]
    assert bool(pruned) == (name != "nop")
    optimizer = study.sampler.optimizer(study)
    assert optimizer.remaining == 0
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 8
    assert len(optimizer.values) == 8
    assert optimizer.record().failures == optimizer.pending == []
    for trial, value in zip(study.trials, optimizer.values, strict=True):
        assert value >= study.best_value
        if trial.state == TrialState.COMPLETE:
            assert value == trial.value


@pytest.mark.parametrize("name", PRUNERS)
def test_every_pruner_without_intermediate_values(name):
    """Nothing is pruned, and the suggestions are those without a pruner."""
    study = study_of(PRUNERS[name], report=False)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}
    assert [trial.params for trial in study.trials] == [trial.params for trial in _without_pruner()]


_KEPT = []


def _without_pruner():
    if not _KEPT:
        _KEPT.extend(study_of(None, report=False).trials)
    return _KEPT


def completed(reported, value):
    return create_trial(value=value, intermediate_values=reported, params={}, distributions={})


def pruned(reported):
    return create_trial(state=TrialState.PRUNED, intermediate_values=reported, params={}, distributions={})


@given(pairs, st.randoms(use_true_random=False))
def test_the_line_is_that_of_theil_and_sen(given_pairs, random):
    """[eq:pruned], against SciPy; the order does not matter."""
    rows = np.array(given_pairs)
    offset, slope = line_through(rows)
    early, final = rows.T
    if len(rows) >= 3 and np.ptp(early) > 0:
        assert slope == pytest.approx(np.clip(theilslopes(final, early).slope, 0.0, 1.0), rel=1e-9, abs=1e-12)
    else:
        assert slope == 1.0
    assert offset == pytest.approx(np.median(final - slope * early))
    random.shuffle(given_pairs)
    assert line_through(np.array(given_pairs)) == pytest.approx((offset, slope))


@given(pairs, numbers, st.sampled_from([-1.0, 1.0, 4.0]), st.integers(-64, 64))
def test_other_units_and_the_other_direction_change_nothing(given_pairs, v, scale, shift):
    def value(scale, shift):
        trials = [completed({3: scale * a + shift}, scale * b + shift) for a, b in given_pairs]
        return Continuation(trials).value(pruned({3: scale * v + shift}))

    assert value(scale, shift) == pytest.approx(scale * value(1.0, 0.0) + shift, rel=1e-6, abs=1e-6)


@given(st.lists(numbers, min_size=3, max_size=8, unique=True), numbers, st.floats(0.0, 1.0), numbers)
def test_trials_that_all_go_on_in_the_same_way_are_foretold(early, v, slope, offset):
    trials = [completed({1: 9.0, 5: each}, offset + slope * each) for each in early]
    assert Continuation(trials).value(pruned({1: 7.0, 5: v})) == pytest.approx(offset + slope * v, abs=1e-6)


def test_what_there_is_to_compare_with():
    trials = [completed({1: 5.0, 2: 4.0}, 1.0), completed({1: 7.0}, 2.0), completed({}, 3.0)]
    values = Continuation(trials).value
    assert values(pruned({1: 6.0, 2: 4.5})) == 4.5 + (1.0 - 4.0)  # one trial reported at step 2: the difference
    assert values(pruned({1: 6.0, 3: 3.0})) == 6.0 + np.median([1.0 - 5.0, 2.0 - 7.0])  # none at 3: from step 1
    assert values(pruned({4: 3.0})) == 3.0  # nobody: as it is
    assert values(pruned({})) is None
    assert math.isnan(values(pruned({1: 6.0, 2: math.nan})))
    assert values(pruned({1: 6.0, 2: math.inf})) == math.inf
    assert Continuation([]).value(pruned({1: 6.0})) == 6.0


def test_the_sampler_takes_it_for_the_value():
    """In both directions; never better than the best completed trial."""
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        study = optuna.create_study(direction=direction, sampler=GlassesSampler(budget=9, seed=1, search_space=SPACE))
        for x, early, final in ((0.1, 5.0, 1.0), (0.4, 6.0, 2.0), (0.7, 9.0, 5.0)):
            reported = {1: sign * early}
            study.add_trial(
                create_trial(value=sign * final, params={"x": x, "k": 1}, distributions=SPACE, intermediate_values=reported)
            )
        for x, early in ((0.8, 8.0), (0.9, 2.0)):
            study.add_trial(
                create_trial(
                    state=TrialState.PRUNED,
                    params={"x": x, "k": 1},
                    distributions=SPACE,
                    intermediate_values={1: sign * early},
                )
            )
        assert study.sampler.optimizer(study).values == pytest.approx([1.0, 2.0, 5.0, 4.0, 1.0])


def test_a_pruner_saves_training():
    """The same epochs, simulated: with successive halving the best final loss is lower on the whole."""
    epochs, together = 27, 5 * 27

    def best(seed, pruner, budget):
        spent = 0
        good = np.random.default_rng(seed).uniform(-2.7, -1.3)

        def objective(trial):
            nonlocal spent
            off = np.log10(trial.suggest_float("rate", 1e-4, 1.0, log=True)) - good
            floor = 0.1 + 0.1 * off**2 + (trial.suggest_float("dropout", 0, 0.9) - 0.4) ** 2
            speed = 0.35 * 10 ** (0.5 * min(0.0, off))
            for epoch in range(1, epochs + 1):
                spent += 1
                trial.report(floor + (2.3 - floor) * math.exp(-speed * epoch), epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return floor + (2.3 - floor) * math.exp(-speed * epochs)

        sampler = GlassesSampler(budget=budget, seed=seed, loss=ExpectedLoss(), noise=0.0)
        study = optuna.create_study(sampler=sampler, pruner=pruner)
        while spent < together:
            study.optimize(objective, n_trials=1)
        return study.best_value

    halving = pruners.SuccessiveHalvingPruner(min_resource=3, reduction_factor=3)
    saved = [math.log10(best(seed, pruners.NopPruner(), 5) / best(seed, halving, 12)) for seed in range(24)]
    assert np.mean(saved) > 0.05  # decades; .17 with a standard error of .04
