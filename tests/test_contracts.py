"""The contracts of ``glasses.testing`` find parts that are broken, one way each."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optuna
import pytest

from glasses.lookahead.myopic import ExpectedLoss, Myopic
from glasses.lookahead.oracles import no_steps
from glasses.loop.stopping import Criterion, Target
from glasses.optuna.storage import StudyStorage
from glasses.search import MultiStart
from glasses.search.decision import Decision
from glasses.surrogate import Matern52, OutputTransform
from glasses.surrogate.outputs import Affine
from glasses.testing import (
    KernelContract,
    LossContract,
    OracleContract,
    OutputTransformContract,
    SearchContract,
    StoppingCriterionContract,
    StorageContract,
)
from glasses.testing.storages import opened


@dataclass(frozen=True)
class Lopsided(Matern52):
    def covariance(self, theta, A, B, choice=None):
        return super().covariance(theta, A, B, choice) * (1.0 + 0.1 * A[:, :1])


@dataclass(frozen=True)
class ByNeighbours(Matern52):
    """The covariance of two points depends on how many stand beside them: padding would change it."""

    def covariance(self, theta, A, B, choice=None):
        return super().covariance(theta, A, B, choice) * (1.0 + 0.01 * len(B))


@dataclass(frozen=True)
class Kinked(Matern52):
    def correlation(self, r2):
        return jnp.exp(-jnp.sqrt(r2))  # an infinite slope at distance 0


@dataclass(frozen=True)
class OneWay(Affine):
    def inverse(self, z):
        return super().inverse(z) + 1e-3


@dataclass(frozen=True)
class Bent(Affine):
    """Curved below the best value as well."""

    def forward(self, y):
        return np.arcsinh(super().forward(y))

    def inverse(self, z):
        return super().inverse(np.sinh(z))


@dataclass(frozen=True)
class Fitted(OutputTransform):
    kind: type
    absolute: bool = False

    def fit(self, y):
        return self.kind(0.0 if self.absolute else float(np.mean(y)), 1.0 if self.absolute else float(np.std(y) or 1.0))


@dataclass(frozen=True)
class Flat(Myopic):
    is_gain = False

    def acquisition_value(self, candidates, query, steps, remaining):
        return candidates.eta


@dataclass(frozen=True)
class Repeating:
    """An oracle that predicts the first candidate again and again."""

    def predict(self, candidates, belief, remaining, size, draw=0):
        return jnp.zeros_like(no_steps(size))


@dataclass(frozen=True)
class Wandering:
    candidates: int = 16

    def decide(self, loss, kernel, problem, rng):
        one = np.ones(1)
        return Decision(np.random.default_rng().random(2), 0.0, 0.0, np.zeros((0, 2)), one, one)


@dataclass(frozen=True)
class Grabbing(Criterion):
    """Asks for the next point when it is only asked for its opinion."""

    def reason(self, optimizer):
        if optimizer.remaining:
            optimizer.ask()


@dataclass(frozen=True)
class Terse(Criterion):
    def reason(self, optimizer):
        return "enough"


KERNEL, OUTPUTS = KernelContract(), OutputTransformContract()
BROKEN = [
    (KERNEL.test_a_covariance_is_symmetric_and_positive_definite_with_the_right_diagonal, (Lopsided(), False)),
    (KERNEL.test_a_covariance_is_of_its_two_points_alone, (ByNeighbours(),)),
    (KERNEL.test_derivatives_are_finite_everywhere_and_right, (Kinked(),)),
    (OUTPUTS.test_there_and_back, (Fitted(OneWay),)),
    (OUTPUTS.test_a_gain_below_the_best_value_is_the_same_gain_in_both_units, (Fitted(Bent),)),
    (OUTPUTS.test_a_change_of_units_changes_nothing, (Fitted(Affine, absolute=True),)),
    (OUTPUTS.test_moments_are_those_of_the_transformed_normal, (Fitted(Bent),)),
    (LossContract().test_a_value_is_a_finite_number_and_the_same_again, (Flat(), 1)),
    (OracleContract().test_steps_are_distinct_candidates_other_than_the_query_point, (Repeating(),)),
    (SearchContract().test_a_decision_is_a_point_of_the_cube_with_the_steps_after_it, (Wandering(), ExpectedLoss())),
    (StoppingCriterionContract().test_at_any_moment_it_gives_a_sentence_or_none_and_changes_nothing, (Grabbing(), "initial")),
    (StoppingCriterionContract().test_at_any_moment_it_gives_a_sentence_or_none_and_changes_nothing, (Terse(), "initial")),
]


@pytest.mark.parametrize(("test", "broken"), BROKEN, ids=lambda each: getattr(each, "__name__", None) or repr(each[0]))
def test_a_broken_part_fails(test, broken):
    with pytest.raises(AssertionError):
        test(*broken)


@pytest.mark.parametrize(
    ("test", "part"),
    [
        (SearchContract().test_it_is_immutable, MultiStart),
        (StoppingCriterionContract().test_it_is_immutable_and_survives_a_pickle, Target),
    ],
)
def test_a_part_that_may_change_is_refused(test, part):
    class Loose(part):
        __hash__ = None

    with pytest.raises((ValueError, TypeError)):
        test(Loose() if part is MultiStart else Loose(0.0))


class Generous(optuna.storages.InMemoryStorage):
    """Lets everybody have the trial, and the last result win."""

    def set_trial_state_values(self, trial_id, state, values=None):
        trial = self._get_trial(trial_id)
        if trial.state.is_finished() or state.name == "RUNNING":
            trial.state = state
            trial.values = values
            return True
        return super().set_trial_state_values(trial_id, state, values)


class Forgetful(optuna.storages.InMemoryStorage):
    """Keeps one attribute of a study: the last."""

    def set_study_system_attr(self, study_id, key, value):
        self._studies[study_id].system_attrs = {key: value}


@pytest.mark.study
@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("test_a_trial_is_claimed_once", Generous),
        ("test_a_result_is_stored_once", Generous),
        ("test_changes_of_many_people_are_all_kept_in_one_order", Forgetful),
    ],
)
def test_a_broken_storage_fails(name, storage):
    storage = storage()
    two = StudyStorage(opened(storage)), StudyStorage(opened(storage))
    with pytest.raises(AssertionError):
        getattr(StorageContract(), name)(two)
