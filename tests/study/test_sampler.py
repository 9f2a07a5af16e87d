"""GlassesSampler in studies of every kind; the conformance suites are in test_conformance."""

import itertools
import pickle
from datetime import datetime, timedelta
from types import SimpleNamespace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from glasses import ExpectedLoss, NoGain, Optimizer, Price, Target
from glasses.optuna.distributions import distribution_of, parameter_of
from glasses.optuna.sampler import GlassesSampler, StopWhen
from glasses.optuna.trials import LOST
from glasses.search import MultiStart
from glasses.space.parameters import Choice, Float, Int

SPACE = {"x": FloatDistribution(0.0, 1.0), "k": IntDistribution(0, 9)}
BOX = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def objective(trial):
    x, k = trial.suggest_float("x", 0, 1), trial.suggest_int("k", 0, 9)
    return (x - 0.3) ** 2 + 0.1 * k


def sampler(**settings):
    return GlassesSampler(
        **{"budget": 12, "seed": 1, "n_initial": 4, "loss": ExpectedLoss(), "search_space": SPACE, **settings}
    )


def test_suggestions_are_those_of_the_engine():
    """The same seed, data and budget: the same points as ``Optimizer``, from the first to the last."""
    study = optuna.create_study(sampler=sampler(search_space=BOX))
    study.optimize(lambda t: (t.suggest_float("x", 0, 1) - 0.3) ** 2 + t.suggest_float("y", 0, 1), n_trials=8)
    optimizer = Optimizer({"x": (0, 1), "y": (0, 1)}, budget=12, n_initial=4, loss=ExpectedLoss(), seed=1)
    for trial in study.trials:
        x = optimizer.ask()
        assert x == trial.params
        optimizer.tell(x, trial.value)
    assert study.sampler.optimizer(study, BOX).plan().next == optimizer.plan().next


def test_maximising_is_minimising_the_negated():
    down = optuna.create_study(sampler=sampler())
    down.optimize(objective, n_trials=8)
    up = optuna.create_study(direction="maximize", sampler=sampler())
    up.optimize(lambda trial: -objective(trial), n_trials=8)
    assert [trial.params for trial in up.trials] == [trial.params for trial in down.trials]


def test_a_best_possible_value_is_in_the_sense_of_the_study():
    """A floor or a ceiling: the same forecast, and no other suggestion."""
    with pytest.raises(ValueError, match="best_possible must be a finite number in the units of y, got 'none'"):
        sampler(best_possible="none")
    found = []
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study = optuna.create_study(direction=direction, sampler=sampler(best_possible=sign * -0.001))
        study.optimize(lambda trial, sign=sign: sign * objective(trial), n_trials=6)
        found.append(study)
        assert study.sampler.optimizer(study, SPACE).best_possible == -0.001
    down, up = (study.sampler.optimizer(study, SPACE).forecast() for study in found)
    assert down.low.tolist() == up.low.tolist()
    assert min(down.clairvoyant, down.low.min()) >= -0.001
    free = optuna.create_study(sampler=sampler())
    free.optimize(objective, n_trials=6)
    assert [trial.params for trial in free.trials] == [trial.params for trial in found[0].trials]
    found[1].sampler._best_possible = -1.0  # a ceiling below what was found
    with pytest.warns(UserWarning, match=f"best_possible = -1 is to be .* but {found[1].best_value:.6g} was told"):
        found[1].sampler.optimizer(found[1], SPACE).forecast()


def test_the_budget_is_what_a_trial_is_planned_for():
    """All of it counts: finished, failed, pruned and running trials. Beyond it, a trial is planned as the last one."""
    study = optuna.create_study(sampler=sampler(budget=10))
    for state in (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING):
        value = 1.0 if state == TrialState.COMPLETE else None
        params = {"x": 0.1 * (1 + len(study.trials)), "k": 1}
        study.add_trial(create_trial(state=state, value=value, params=params, distributions=SPACE))
    assert study.sampler.optimizer(study).remaining == 6
    study.sampler.budget = 2
    assert study.sampler.optimizer(study).remaining == 0
    trial = study.ask(SPACE)
    assert trial.params.keys() == SPACE.keys()


def test_running_trials_are_pending_until_they_are_stale():
    study = optuna.create_study(sampler=sampler())
    study.add_trial(create_trial(value=1.0, params={"x": 0.5, "k": 3}, distributions=SPACE))
    trial = study.ask(SPACE)
    assert study.sampler.optimizer(study).pending == [trial.params]
    old = create_trial(state=TrialState.RUNNING, params={"x": 0.9, "k": 9}, distributions=SPACE)
    old.datetime_start = datetime.now() - timedelta(hours=2)
    study.add_trial(old)
    assert study.sampler.optimizer(study).pending == [trial.params]
    patient = sampler(stale_after=24 * 3600.0)
    assert patient.optimizer(study).pending == [trial.params, {"x": 0.9, "k": 9}]


@pytest.mark.parametrize("jump", [-1e6, 1e6], ids=["back", "forward"])
def test_a_clock_that_is_set_makes_no_running_trial_stale(monkeypatch, jump):
    """A start is compared with the calendar once; from then on the process's own clock counts."""
    clock = SimpleNamespace(wall=datetime(2026, 1, 1), own=0.0)
    monkeypatch.setattr("glasses.optuna.sampler.datetime", SimpleNamespace(now=lambda: clock.wall))
    monkeypatch.setattr("glasses.optuna.liveness.monotonic", lambda: clock.own)
    study = optuna.create_study(sampler=sampler(stale_after=100.0))
    running = create_trial(state=TrialState.RUNNING, params={"x": 0.9, "k": 9}, distributions=SPACE)
    running.datetime_start = clock.wall - timedelta(seconds=40)
    future = create_trial(state=TrialState.RUNNING, params={"x": 0.2, "k": 2}, distributions=SPACE)
    future.datetime_start = clock.wall + timedelta(days=9999)
    study.add_trials([running, future])

    def pending():
        return [each["x"] for each in study.sampler.optimizer(study).pending]

    assert pending() == [0.9, 0.2]
    clock.wall += timedelta(seconds=jump)
    clock.own += 50.0
    assert pending() == [0.9, 0.2]
    clock.own += 20.0
    assert pending() == [0.2]
    clock.own += 40.0
    assert pending() == []


def test_queued_trials_are_pending_too():
    study = optuna.create_study(sampler=sampler())
    study.enqueue_trial({"x": 0.25, "k": 2})
    study.enqueue_trial({"x": 0.75})  # half known: nothing to be said of it
    study.enqueue_trial({"x": 0.75, "k": 77})  # no point of this space
    assert study.sampler.optimizer(study).pending == [{"x": 0.25, "k": 2}]


def test_failed_trials_steer_the_search_and_lost_ones_do_not():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=2)
    study.optimize(lambda trial: float("nan") + objective(trial), n_trials=1)
    lost = create_trial(state=TrialState.FAIL, params={"x": 0.9, "k": 9}, distributions=SPACE, system_attrs={LOST: True})
    study.add_trial(lost)
    told = study.sampler.optimizer(study).record()
    assert len(told.failures) == 1
    assert told.failures[0].x == study.trials[2].params
    retried = create_trial(state=TrialState.FAIL, params={"x": 0.8, "k": 9}, distributions=SPACE)
    study.add_trial(retried)
    study.add_trial(create_trial(state=TrialState.WAITING, system_attrs={"retry_history": [4]}))
    assert len(study.sampler.optimizer(study).record().failures) == 1


def constrained(trial):
    value = objective(trial)
    trial.set_constraint("limit", trial.params["k"] - 4)
    return value


def test_constraints_are_modelled_with_their_values():
    """An infeasible trial is data with a value and never the best one, neither here nor in Optuna."""
    study = optuna.create_study(sampler=sampler())
    study.optimize(constrained, n_trials=10)
    violated = [trial.params["k"] > 4 for trial in study.trials]
    optimizer = study.sampler.optimizer(study)
    told = optimizer.record()
    assert told.failures == []
    assert told.func_vals.tolist() == [trial.value for trial in study.trials]
    assert told.feasible.tolist() == [not each for each in violated]
    assert told.constraints[:, 0].tolist() == [trial.params["k"] - 4 for trial in study.trials]
    assert optimizer._ledger.constraints == ("limit",)
    assert any(violated[:4])  # the initial design has some
    assert told.x == study.best_trial.params
    assert study.best_trial.params["k"] <= 4
    low, high = optimizer.feasibility([{"x": 0.5, "k": 1}, {"x": 0.5, "k": 8}])
    assert low > 0.9
    assert high < 0.1


def test_constraints_keep_their_sense_where_a_study_maximizes():
    study = optuna.create_study(sampler=sampler(), direction="maximize")
    study.optimize(lambda trial: -constrained(trial), n_trials=5)
    again = optuna.create_study(sampler=sampler())
    again.optimize(constrained, n_trials=5)
    assert [trial.params for trial in study.trials] == [trial.params for trial in again.trials]


def test_threads_take_turns():
    """``n_jobs=4``: no configuration twice, and nobody waits for a turn that is over."""
    study = optuna.create_study(sampler=sampler(budget=24, n_initial=12))
    study.optimize(objective, n_trials=24, n_jobs=4)
    assert len({(trial.params["x"], trial.params["k"]) for trial in study.trials}) == 24


def storages(tmp_path, request):
    yield JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    for url in (f"sqlite:///{tmp_path / 'study.db'}", request.getfixturevalue("postgres").database("sampler")):
        storage = RDBStorage(url)
        yield storage
        storage.engine.dispose()


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_every_storage_of_optunas(tmp_path, request):
    found = []
    for storage in storages(tmp_path, request):
        study = optuna.create_study(study_name="s", storage=storage, sampler=sampler())
        study.optimize(objective, n_trials=7)
        again = optuna.load_study(study_name="s", storage=storage, sampler=sampler())
        again.optimize(objective, n_trials=1)
        found.append([trial.params for trial in again.trials])
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 8


def test_pickles_and_stays_itself():
    used = sampler()
    optuna.create_study(sampler=used).optimize(objective, n_trials=2)
    study = optuna.create_study(sampler=pickle.loads(pickle.dumps(used)))
    assert study.sampler._ages._seen == {}  # the clock of another process means nothing here
    study.optimize(objective, n_trials=6)
    other = optuna.create_study(sampler=sampler())
    other.sampler.reseed_rng()
    other.optimize(objective, n_trials=6)
    assert [trial.params for trial in study.trials] == [trial.params for trial in other.trials]


def test_an_exhausted_space_repeats_its_best():
    study = optuna.create_study(sampler=sampler(search_space=None, n_initial=2, noise=0.0))
    study.optimize(lambda trial: trial.suggest_categorical("c", ["u", "v", "w"]) != "v", n_trials=5)
    assert {trial.params["c"] for trial in study.trials[:3]} == {"u", "v", "w"}
    assert [trial.params["c"] for trial in study.trials[3:]] == ["v", "v"]


def test_a_space_where_everything_fails_goes_on():
    study = optuna.create_study(sampler=sampler(search_space=None, n_initial=2, noise=0.0))
    study.optimize(lambda trial: float("nan") * len(trial.suggest_categorical("c", ["u", "v"])), n_trials=4, catch=())
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 4


def test_more_pending_trials_than_can_be_planned_for():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=4)
    for k in range(140):
        study.enqueue_trial({"x": k / 140, "k": k % 10})
    assert len(study.sampler.optimizer(study).pending) == 128


LINE = {"x": FloatDistribution(0.0, 1.0)}


def line_sampler(**settings):
    return sampler(**{"search_space": LINE, "budget": 10, "n_initial": 3, "noise": 0.0, **settings})


@pytest.mark.parametrize("sign", [1, -1], ids=["minimize", "maximize"])
@pytest.mark.parametrize(
    ("criterion", "least", "most", "words"),
    [
        (lambda sign: Price(1e6), 3, 3, "No further evaluations are expected to be worth 1e+06 each"),
        (lambda sign: Price(1e-12), 10, 10, None),
        (lambda sign: Target(sign * -1.0) | NoGain(1e-9), 4, 9, "has reached the target"),
        (lambda sign: Target(sign * -9.0) & Price(1e6), 10, 10, None),
    ],
    ids=["dear", "cheap", "reached", "never"],
)
def test_a_callback_stops_a_study(criterion, least, most, words, sign, caplog):
    """The same run in both directions, ended by the criterion in the units and the sense of the study."""
    study = optuna.create_study(direction="minimize" if sign > 0 else "maximize", sampler=line_sampler())
    optuna.logging.enable_propagation()
    try:
        with caplog.at_level("INFO", logger="glasses.optuna"):
            study.optimize(
                lambda trial: sign * ((trial.suggest_float("x", 0, 1) - 0.7) ** 2 * 10 - 1.01),
                n_trials=10,
                callbacks=[StopWhen(criterion(sign))],
            )
    finally:
        optuna.logging.disable_propagation()
    assert least <= len(study.trials) <= most
    said = [each.message for each in caplog.records if "are saved" in each.message]
    assert len(said) == (0 if words is None else 1)
    if words is not None:
        assert words in said[0]
        assert said[0].endswith(f" {10 - len(study.trials)} of 10 trials are saved.")
    if words == "has reached the target":
        assert sign * study.best_value <= -1.0
        assert all(sign * trial.value > -1.0 for trial in study.trials[:-1])
        assert f"The best value, {study.best_value:.6g}, has reached the target, {-sign}." in said[0]


def test_a_callback_beside_failures_and_threads():
    study = optuna.create_study(sampler=line_sampler(search_space=None))

    def objective(trial):
        if trial.number == 0:
            raise ValueError  # before any parameter is known
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=10, n_jobs=2, catch=ValueError, callbacks=[StopWhen(Target(1.0))])
    assert 2 <= len(study.trials) <= 4


def test_a_callback_where_it_does_not_belong():
    with pytest.raises(ValueError, match=r"StopWhen needs a criterion such as Target.*got 0\.5"):
        StopWhen(0.5)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(ValueError, match="needs a study with a GlassesSampler, got RandomSampler"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2, callbacks=[StopWhen(Target(0.5))])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"budget": 0}, "budget must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"stale_after": 0}, "stale_after must be a number of seconds above 0"),
        ({"loss": "ei"}, "loss must be an object"),
        ({"noise": -1}, "noise must be a standard deviation"),
        ({"n_initial": 0}, "n_initial must be a whole number"),
    ],
)
def test_refusals(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        sampler(**settings)


def test_nothing_to_look_at_yet():
    study = optuna.create_study(sampler=sampler(search_space=None))
    with pytest.raises(ValueError, match="no parameter that all trials share"):
        study.sampler.optimizer(study)


@pytest.mark.parametrize(
    "parameter",
    [
        Float(0, 1),
        Float(1e-3, 1, log=True),
        Float(0, 0.75, step=0.25),
        Int(1, 9),
        Int(1, 9, step=4),
        Int(1, 9, log=True),
        Choice([1, "a", None]),
    ],
    ids=str,
)
def test_parameters_and_distributions_are_the_same_things(parameter):
    assert parameter_of(distribution_of(parameter)) == parameter


def test_ranges_that_cannot_be_planned_are_still_sampled():
    narrow = FloatDistribution(1e9, 1e9 + 1)
    wide = IntDistribution(0, 2**60)
    many = CategoricalDistribution(list(range(10_001)))
    assert [parameter_of(each) for each in (narrow, wide, many)] == [None, None, None]
    study = optuna.create_study(sampler=sampler(search_space=None, search=MultiStart(candidates=16, screened=4, polished=1)))
    for _, distributions in itertools.product(range(2), ({"n": narrow, "w": wide, "m": many, "x": FloatDistribution(0, 1)},)):
        trial = study.ask(distributions)
        assert all(distributions[name]._contains(distributions[name].to_internal_repr(v)) for name, v in trial.params.items())
        study.tell(trial, 1.0)
