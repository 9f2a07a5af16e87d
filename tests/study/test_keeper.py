"""The books of a study: places, claims, lost and late results, one step at a time."""

import pytest
from optuna.trial import TrialState

from glasses.optuna import LOST
from glasses.study.file import read_study
from glasses.study.keeper import ASKED, LATE, REASON, Keeper
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


def test_a_late_result_is_kept_and_its_repetition_withdrawn(open_keeper):
    """A worker taken for dead comes back with its result before anybody has begun the repetition."""
    keeper = open_keeper(2)
    trial, params = begin(keeper)
    keeper.give_back(trial)
    keeper.finish(trial, Evaluation(1.0), params)
    assert states(keeper) == ["FAIL", "FAIL", "COMPLETE"]
    assert keeper.trials()[2].user_attrs == {LATE: trial.number}
    assert keeper.trials()[2].params == params
    assert keeper.left() == 1
    other, elsewhere = begin(keeper)
    assert elsewhere != params
    keeper.finish(other, Evaluation(2.0), elsewhere)
    assert keeper.claim() is None


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
    assert keeper.reap() == [dead.number, undecided.number]
    assert keeper.reap() == []
    trials = keeper.trials()
    assert trials[asked.number].state == TrialState.RUNNING
    assert ASKED in trials[asked.number].system_attrs
    assert LOST in trials[dead.number].system_attrs
    assert [trial.params for trial in trials if trial.state == TrialState.WAITING] == [params]
    again, same = begin(keeper)
    assert same == params
    silence(keeper, again)
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
