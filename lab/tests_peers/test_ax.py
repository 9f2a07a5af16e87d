"""``GlassesNode`` in runs of an Ax client."""

import re

import numpy as np
import pytest
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.generation_strategy.generation_strategy import GenerationStrategy

import glasses.ax
from glasses import Glasses, TwoStage
from glasses.ax import GlassesNode, generation_strategy
from glasses.botorch import GlassesAcquisition
from glasses_lab.problems import get

pytestmark = pytest.mark.filterwarnings("ignore")
BRANIN = get("Branin")
QUICKLY = {"num_restarts": 2, "raw_samples": 16, "options": {"maxiter": 20}}  # float parameters begin at the best candidates


def client(strategy, objective="-branin", extra=()):
    found = Client(random_seed=0)
    ranges = [
        RangeParameterConfig(name=name, parameter_type="float", bounds=sides)
        for name, sides in zip(("x1", "x2"), ((-5.0, 10.0), (0.0, 15.0)), strict=True)
    ]
    found.configure_experiment(parameters=[*ranges, *extra])
    found.configure_optimization(objective=objective)
    found.set_generation_strategy(strategy)
    return found


def branin(x):
    return float(BRANIN(np.array([x["x1"], x["x2"]])))


def play(client, trials, told=branin, sign=1.0):
    for _ in range(trials):
        for number, x in client.get_next_trials(max_trials=1).items():
            client.complete_trial(number, raw_data={"branin": (sign * told(x), 0.0)})


@pytest.fixture
def planned(monkeypatch):
    """What the acquisition function of each decision was made with: the evaluations left and the pending ones."""
    seen = []

    class Watched(GlassesAcquisition):
        def __init__(self, model, remaining, bounds, **settings):
            super().__init__(model, remaining, bounds, **settings)
            seen.append((remaining, 0 if self.X_pending is None else len(self.X_pending), self.loss))

    from glasses.botorch import acquisition

    glasses.botorch.acquisition.acqf_input_constructor(Watched)(acquisition._inputs)
    monkeypatch.setattr(glasses.ax, "GlassesAcquisition", Watched)
    return seen


def test_a_run_on_branin(planned):
    """Sobol points, then trials planned for what is left, the last one included; a good point is found."""
    run = client(generation_strategy(18, n_initial=5, seed=0, optimizer=QUICKLY, candidates=64))
    play(run, 18)
    assert [remaining for remaining, _, _ in planned] == list(range(13, 0, -1))
    assert {pending for _, pending, _ in planned} == {0}
    names = [trial.generator_runs[0]._generation_node_name for trial in run._experiment.trials.values()]
    assert names == ["Sobol"] * 5 + ["GLASSES"] * 13
    values = [branin(arm.parameters) for arm in run._experiment.arms_by_name.values()]
    assert min(values[5:]) < 1.0 < min(values[:5])  # the minimum is .398


def test_maximising_is_minimising_the_negative(planned):
    def points(objective, sign):
        run = client(generation_strategy(8, n_initial=5, seed=1, optimizer=QUICKLY, candidates=16), objective)
        play(run, 8, sign=sign)
        return [list(arm.parameters.values()) for arm in run._experiment.arms_by_name.values()]

    np.testing.assert_allclose(points("-branin", 1.0), points("branin", -1.0), rtol=1e-5)
    assert len(planned) == 6


def test_pending_abandoned_and_failed_trials(planned):
    run = client(generation_strategy(12, n_initial=4, seed=0, optimizer=QUICKLY, candidates=16, loss=TwoStage(nodes=3)))
    play(run, 4)
    batch = run.get_next_trials(max_trials=2)  # 8 are left: a joint decision for two, or one after the other
    first, second = batch
    run.mark_trial_failed(first)
    run.mark_trial_abandoned(second)
    run.get_next_trials(max_trials=1)  # the failed one counts, the abandoned one does not
    run.get_next_trials(max_trials=1)
    assert [(remaining, pending) for remaining, pending, _ in planned[-2:]] == [(7, 1), (6, 2)]  # for Ax it stays pending
    assert planned[0][0] == 8
    assert all(loss == TwoStage(nodes=3) for _, _, loss in planned)
    statuses = [trial.status for trial in run._experiment.trials.values()]
    assert statuses[-2:] == [TrialStatus.RUNNING] * 2


def test_a_node_of_a_strategy_of_ones_own(planned):
    """Data attached by hand come first; more trials than the budget are each planned as the last one; choices are allowed."""
    node = GlassesNode(3, optimizer=QUICKLY, candidates=16, name="planned", loss=Glasses(steps=2))
    kinds = ChoiceParameterConfig(name="kind", parameter_type="str", values=["a", "b"], is_ordered=False)
    run = client(GenerationStrategy(name="own", nodes=[node]), extra=[kinds])
    with pytest.raises(DataRequiredError):
        run.get_next_trials(max_trials=1)
    for x1, x2, kind in ((0.0, 5.0, "a"), (9.0, 3.0, "b")):
        x = {"x1": x1, "x2": x2, "kind": kind}
        run.complete_trial(run.attach_trial(parameters=x), raw_data={"branin": (branin(x), 0.0)})
    play(run, 2)
    assert [remaining for remaining, _, _ in planned] == [1, 1]
    assert {trial.arm.parameters["kind"] for trial in run._experiment.trials.values()} <= {"a", "b"}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: GlassesNode(0), "budget must be a whole number of trials, at least 1, got 0."),
        (lambda: generation_strategy(10, n_initial=2.5), "n_initial must be a whole number of trials, at least 1, got 2.5."),
        (lambda: generation_strategy(4), "n_initial must be at most the budget of 4, got 5."),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make()


def test_outcome_constraints_are_refused():
    run = client(generation_strategy(5, n_initial=1, optimizer=QUICKLY))
    run.configure_optimization(objective="-branin", outcome_constraints=["weight <= 1"])
    for number, x in run.get_next_trials(max_trials=1).items():
        run.complete_trial(number, raw_data={"branin": branin(x), "weight": 0.5})
    with pytest.raises(ValueError, match="A look-ahead takes one objective and no outcome constraints"):
        run.get_next_trials(max_trials=1)
