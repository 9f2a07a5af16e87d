"""The books of a study: places, claims, lost and late results, one step at a time."""

import pytest
from optuna.trial import TrialState

from glasses import ExhaustedError
from glasses.optuna.sampler import LATE, LOST, REASON
from glasses.study.file import read_study
from glasses.study.keeper import ASKED, Keeper
from glasses.study.objective import Evaluation


@pytest.fixture
def open_keeper(make_study):
    opened = []

    def make(budget=4, **settings):
        opened.append(Keeper(read_study(make_study(budget, n_initial=budget, **settings))))
        return opened[-1]

    yield make
    for keeper in opened:
        keeper.close()


def begin(keeper):
    trial = keeper.claim()
    return trial, keeper.point(trial)


def states(keeper):
    return [trial.state.name for trial in keeper.trials()]


def test_the_budget_leaves_so_many_places_and_may_change(open_keeper):
    keeper = open_keeper(2)
    for value in (1.0, 2.0):
        trial, params = begin(keeper)
        keeper.finish(trial, Evaluation(value), params)
    assert keeper.claim() is None
    assert keeper.left() == 0
    more = open_keeper(3)
    trial, params = begin(more)
    assert keeper.claim() is None  # who has the old file keeps to it
    assert more.claim() is None
    more.finish(trial, Evaluation(3.0), params)
    assert open_keeper(2).left() == 0


def test_failures_cost_a_place_or_not(open_keeper):
    keeper = open_keeper(2, count_failures=False)
    for value in (None, 1.0, None, 2.0):
        trial, params = begin(keeper)
        keeper.finish(trial, Evaluation(value, "spilled" if value is None else None, {"mass": 3}), params)
    assert keeper.claim() is None
    assert states(keeper) == ["FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    assert keeper.trials()[0].user_attrs == {"mass": 3, REASON: "spilled"}


def test_free_failures_have_an_end(open_keeper):
    keeper = open_keeper(2, count_failures=False)
    for _ in range(4):
        trial, params = begin(keeper)
        keeper.finish(trial, Evaluation(None, "never works"), params)
    assert keeper.claim() is None


def test_an_evaluation_given_back_is_done_again(open_keeper):
    keeper = open_keeper(1)
    trial, params = begin(keeper)
    keeper.give_back(trial)
    again, same = begin(keeper)
    assert same == params
    assert again.number != trial.number
    keeper.finish(again, Evaluation(1.0), same)
    assert states(keeper) == ["FAIL", "COMPLETE"]
    assert keeper.claim() is None


def test_a_late_result_ends_the_repetition_that_waits(open_keeper):
    """A worker taken for dead comes back with its result before anybody has begun the repetition."""
    keeper = open_keeper(2)
    trial, params = begin(keeper)
    keeper.give_back(trial)
    keeper.finish(trial, Evaluation(1.0, None, {"mass": 2}), params)
    assert states(keeper) == ["FAIL", "COMPLETE"]
    assert keeper.trials()[1].user_attrs == {LATE: trial.number, "mass": 2}
    assert keeper.trials()[1].params == params
    assert keeper.left() == 1
    other, elsewhere = begin(keeper)
    assert elsewhere != params
    keeper.finish(other, Evaluation(2.0), elsewhere)
    assert keeper.claim() is None


def test_a_late_result_is_added_if_the_repetition_has_begun(open_keeper):
    keeper = open_keeper(1)
    trial, params = begin(keeper)
    keeper.give_back(trial)
    again, _ = begin(keeper)
    keeper.finish(trial, Evaluation(1.0), params)
    keeper.finish(again, Evaluation(1.0), params)
    assert states(keeper) == ["FAIL", "COMPLETE", "COMPLETE"]
    assert keeper.claim() is None


def test_a_late_result_clears_the_failure_it_was_taken_for(open_keeper):
    keeper = open_keeper(1, retries=0)
    trial, params = begin(keeper)
    keeper.finish(trial, Evaluation(None, "its worker died"), params)
    keeper.finish(trial, Evaluation(1.0), params)
    assert [place.state.name for place in keeper.places()] == ["COMPLETE"]
    assert keeper.optimizer().record().failures == []


def test_a_finite_space_is_exhausted_within_the_turn(open_keeper, make_study):
    """Two workers with one configuration left: one gets it, the other is told that there is none."""
    path = make_study(9, noise=0.0)
    path.write_text(path.read_text().replace("x = [0.0, 1.0]\n", "").replace("high = 9", "high = 2"))
    with Keeper(read_study(path)) as one, Keeper(read_study(path)) as two:
        for keeper in (one, two):
            trial, params = begin(keeper)
            keeper.finish(trial, Evaluation(float(params["k"])), params)
        first, second = one.claim(), two.claim()
        assert one.point(first) is not None
        with pytest.raises(ExhaustedError):
            two.point(second)
        assert two.trials()[second.number].state == TrialState.FAIL
        assert len(two.places()) == 3


def test_a_kill_while_parameters_are_stored_does_not_lock_the_study(open_keeper):
    keeper = open_keeper(2, retries=0, heartbeat=1)
    trial = keeper.claim()
    keeper.storage.set_trial_param(trial._trial_id, "x", 0.5, keeper.distributions["x"])
    silence(keeper, trial)
    assert keeper.reap() == [trial.number]
    assert LOST in keeper.trials()[trial.number].system_attrs
    assert open_keeper(2).left() == 2


def test_nothing_that_is_said_besides_stands_in_the_way_of_a_value(open_keeper, capsys):
    keeper = open_keeper(1)
    trial, params = begin(keeper)
    keeper.finish(trial, Evaluation(1.0, None, {"\ud800": 1, "fine": 2}), params)
    assert keeper.trials()[0].value == 1.0
    assert keeper.trials()[0].user_attrs == {"fine": 2}
    assert "could not be stored" in capsys.readouterr().err


def test_a_result_that_arrived_although_the_connection_broke_is_not_stored_twice(open_keeper):
    keeper = open_keeper(2)
    trial, params = begin(keeper)
    keeper.finish(trial, Evaluation(1.0), params)
    keeper.finish(trial, Evaluation(1.0), params)
    assert states(keeper) == ["COMPLETE"]


def test_the_dead_are_found_by_their_silence_and_the_bench_is_left_alone(open_keeper):
    keeper = open_keeper(4, heartbeat=1, retries=1)
    asked = keeper.claim(by_hand=True)
    keeper.point(asked)
    dead, params = begin(keeper)
    undecided = keeper.claim()
    silence(keeper, asked, dead, undecided)
    assert keeper.reap() == [undecided.number]  # it had nothing to lose
    keeper._silent = {key: since - 60.0 for key, since in keeper._silent.items()}  # a minute of listening later
    assert keeper.reap() == [dead.number]
    assert keeper.reap() == []
    trials = keeper.trials()
    assert trials[asked.number].state == TrialState.RUNNING
    assert ASKED in trials[asked.number].system_attrs
    assert LOST in trials[dead.number].system_attrs
    assert [trial.params for trial in trials if trial.state == TrialState.WAITING] == [params]
    again, same = begin(keeper)
    assert same == params
    silence(keeper, again)
    assert keeper.reap() == []
    keeper._silent = {key: since - 60.0 for key, since in keeper._silent.items()}
    assert keeper.reap() == [again.number]
    last = keeper.trials()[again.number]
    assert last.state == TrialState.FAIL
    assert last.user_attrs[REASON] == "its worker died 2 times"
    assert LOST not in last.system_attrs  # that configuration kills its workers: it has failed


def silence(keeper, *trials):
    """As if they had been heard of for the last time an hour ago."""
    from optuna.storages._rdb import models

    with keeper.storage._backend.scoped_session() as session:
        for trial in trials:
            beat = models.TrialHeartbeatModel.where_trial_id(trial._trial_id, session)
            beat.heartbeat = beat.heartbeat.replace(year=2020)
        session.commit()


def test_places_beyond_the_budget_are_not_claimed(open_keeper):
    """Two workers may both add a place; only the first ``budget`` of them count."""
    keeper = open_keeper(1)
    for _ in range(3):
        keeper.study.enqueue_trial({"x": 0.5, "k": 1})
    trial, params = begin(keeper)
    assert params == {"x": 0.5, "k": 1}
    assert keeper.claim() is None
    keeper.finish(trial, Evaluation(0.0), params)
    assert states(keeper) == ["COMPLETE", "WAITING", "WAITING"]
