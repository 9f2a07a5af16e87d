"""A study in its database: counted trials, claims, lost and late results, one step at a time."""

import sqlite3
from types import SimpleNamespace

import pytest
from optuna.trial import TrialState, create_trial

from glasses import ExhaustedError
from glasses.optuna.trials import LATE, LOST, REASON
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import ASKED, StoredStudy


@pytest.fixture
def open_study(make_study):
    opened = []

    def make(budget=4, **settings):
        opened.append(StoredStudy(read_study(make_study(budget, n_initial=budget, **settings))))
        return opened[-1]

    yield make
    for stored in opened:
        stored.close()


@pytest.fixture
def clock(monkeypatch):
    """The monotonic clock of whoever watches for signs of life."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("glasses.optuna.liveness.monotonic", lambda: clock.now)
    return clock


def begin(stored):
    trial = stored.claim()
    return trial, stored.point(trial)


def states(stored):
    return [trial.state.name for trial in stored.trials()]


def test_the_budget_leaves_so_many_evaluations_and_may_change(open_study):
    stored = open_study(2)
    for value in (1.0, 2.0):
        trial, params = begin(stored)
        stored.finish(trial, Evaluation(value), params)
    assert stored.claim() is None
    assert stored.left() == 0
    more = open_study(3)
    trial, params = begin(more)
    assert stored.claim() is None  # who has the old file keeps to it
    assert more.claim() is None
    more.finish(trial, Evaluation(3.0), params)
    assert open_study(2).left() == 0


def test_failures_cost_budget_or_not(open_study):
    stored = open_study(2, count_failures=False)
    for value in (None, 1.0, None, 2.0):
        trial, params = begin(stored)
        stored.finish(trial, Evaluation(value, "spilled" if value is None else None, {"mass": 3}), params)
    assert stored.claim() is None
    assert states(stored) == ["FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    assert stored.trials()[0].user_attrs == {"mass": 3}
    assert stored.trials()[0].system_attrs[REASON] == "spilled"


def test_free_failures_have_an_end(open_study):
    stored = open_study(2, count_failures=False)
    for _ in range(4):
        trial, params = begin(stored)
        stored.finish(trial, Evaluation(None, "never works"), params)
    assert stored.claim() is None


def test_an_evaluation_given_back_is_done_again(open_study):
    stored = open_study(1)
    trial, params = begin(stored)
    stored.give_back(trial)
    again, same = begin(stored)
    assert same == params
    assert again.number != trial.number
    stored.finish(again, Evaluation(1.0), same)
    assert states(stored) == ["FAIL", "COMPLETE"]
    assert stored.claim() is None


def test_nobody_is_given_the_point_of_a_lost_evaluation_before_it_is_queued_again(open_study, monkeypatch):
    """Between the two steps of ``give_back`` another worker decides: the initial design has that point next."""
    stored, other = open_study(4), open_study(4)
    trial, params = begin(stored)
    between = []
    add = stored.storage.add
    monkeypatch.setattr(stored.storage, "add", lambda template: between.append(begin(other)[1]) or add(template))
    stored.give_back(trial)
    assert len(between) == 1
    assert between[0] != params
    assert begin(stored)[1] == params


def test_no_trial_is_overlooked_when_another_thread_creates_one_during_a_read(open_study, monkeypatch):
    """Optuna puts what this process creates into its cache, also while trials of others before it are not read yet."""
    mine, other = open_study(4), open_study(4)
    cached = mine.study._storage
    read = cached._read_trials_from_remote_storage

    def interrupted(study_id):
        read(study_id)
        monkeypatch.setattr(cached, "_read_trials_from_remote_storage", read)
        for each in (other, mine):
            each.storage.add(create_trial(state=TrialState.WAITING))

    monkeypatch.setattr(cached, "_read_trials_from_remote_storage", interrupted)
    assert [trial.number for trial in mine.trials()] == [0, 1]


def test_a_late_result_ends_the_repetition_that_waits(open_study):
    """A worker taken for dead comes back with its result before anybody has begun the repetition."""
    stored = open_study(2)
    trial, params = begin(stored)
    stored.give_back(trial)
    stored.finish(trial, Evaluation(1.0, None, {"mass": 2}), params)
    assert states(stored) == ["FAIL", "COMPLETE"]
    assert stored.trials()[1].user_attrs == {"mass": 2}
    assert stored.trials()[1].system_attrs[LATE] == trial.number
    assert stored.trials()[1].params == params
    assert stored.left() == 1
    other, elsewhere = begin(stored)
    assert elsewhere != params
    stored.finish(other, Evaluation(2.0), elsewhere)
    assert stored.claim() is None


def test_a_late_result_is_added_if_the_repetition_has_begun(open_study):
    stored = open_study(1)
    trial, params = begin(stored)
    stored.give_back(trial)
    again, _ = begin(stored)
    stored.finish(trial, Evaluation(1.0), params)
    stored.finish(again, Evaluation(1.0), params)
    assert states(stored) == ["FAIL", "COMPLETE", "COMPLETE"]
    assert stored.claim() is None


def test_a_late_result_clears_the_failure_it_was_taken_for(open_study):
    stored = open_study(1, retries=0)
    trial, params = begin(stored)
    stored.finish(trial, Evaluation(None, "its worker died"), params)
    stored.finish(trial, Evaluation(1.0), params)
    assert [trial.state.name for trial in stored.counted()] == ["COMPLETE"]
    assert stored.optimizer().record().failures == []


def test_a_finite_space_is_exhausted_within_the_turn(open_study, make_study):
    """Two workers with one configuration left: one gets it, the other is told that there is none."""
    path = make_study(9, noise=0.0)
    path.write_text(path.read_text().replace("x = [0.0, 1.0]\n", "").replace("high = 9", "high = 2"))
    with StoredStudy(read_study(path)) as one, StoredStudy(read_study(path)) as two:
        for stored in (one, two):
            trial, params = begin(stored)
            stored.finish(trial, Evaluation(float(params["k"])), params)
        first, second = one.claim(), two.claim()
        assert one.point(first) is not None
        with pytest.raises(ExhaustedError):
            two.point(second)
        assert two.trials()[second.number].state == TrialState.FAIL
        assert len(two.counted()) == 3


def test_a_kill_while_parameters_are_stored_does_not_lock_the_study(open_study, clock):
    stored = open_study(2, retries=0, heartbeat=1)
    trial = stored.claim()
    stored.point(trial)
    with sqlite3.connect(stored.file.path.with_suffix(".db")) as database:
        database.execute("delete from trial_params where param_name = 'k'")
    assert stored.requeue_lost() == []
    clock.now += 3.1
    assert stored.requeue_lost() == [trial.number]
    assert LOST in stored.trials()[trial.number].system_attrs
    assert open_study(2).left() == 2


def test_nothing_that_is_said_besides_stands_in_the_way_of_a_value(open_study, capsys):
    stored = open_study(1)
    trial, params = begin(stored)
    stored.finish(trial, Evaluation(1.0, None, {"\ud800": 1, "fine": 2}), params)
    assert stored.trials()[0].value == 1.0
    assert stored.trials()[0].user_attrs == {"fine": 2}
    assert "could not be stored" in capsys.readouterr().err


def test_a_result_that_arrived_although_the_connection_broke_is_not_stored_twice(open_study):
    stored = open_study(2)
    trial, params = begin(stored)
    stored.finish(trial, Evaluation(1.0), params)
    stored.finish(trial, Evaluation(1.0), params)
    assert states(stored) == ["COMPLETE"]


def test_lost_trials_are_found_by_their_silence_and_those_evaluated_by_hand_left_alone(open_study, clock):
    stored = open_study(4, heartbeat=1, retries=1)
    asked = stored.claim(by_hand=True)
    stored.point(asked)
    dead, params = begin(stored)
    undecided = stored.claim()
    assert stored.requeue_lost() == []
    clock.now += 3.1
    assert stored.requeue_lost() == [undecided.number]  # it had nothing to lose
    clock.now += 3.0
    assert stored.requeue_lost() == [dead.number]
    assert stored.requeue_lost() == []
    trials = stored.trials()
    assert trials[asked.number].state == TrialState.RUNNING
    assert ASKED in trials[asked.number].system_attrs
    assert LOST in trials[dead.number].system_attrs
    assert [trial.params for trial in trials if trial.state == TrialState.WAITING] == [params]
    again, same = begin(stored)
    assert same == params
    assert stored.requeue_lost() == []
    clock.now += 60.0
    assert stored.requeue_lost() == [again.number]
    last = stored.trials()[again.number]
    assert last.state == TrialState.FAIL
    assert last.system_attrs[REASON] == "its worker died 2 times"
    assert LOST not in last.system_attrs  # that configuration kills its workers: it has failed


@pytest.mark.parametrize("year", [2000, 2100], ids=["back", "forward"])
def test_no_stored_time_decides_who_is_alive(open_study, clock, year):
    """Every time in the database is a lie, as after a clock that was set: the living stay, the dead are found."""
    mine, other = open_study(4, heartbeat=1), open_study(4, heartbeat=1)
    living, _ = begin(other)
    undecided = other.claim()
    dead, params = begin(other)

    def lie():
        with sqlite3.connect(mine.file.path.with_suffix(".db")) as database:
            database.execute(f"update trials set datetime_start = '{year}-01-01 00:00:00.000000'")
            database.execute("delete from trial_heartbeats")
            for trial_id in range(1, 4):
                row = (trial_id, f"{year}-01-01 00:00:00.000000")
                database.execute("insert into trial_heartbeats (trial_id, heartbeat) values (?, ?)", row)

    lost = []
    for _ in range(8):
        other.beat(living)
        other.beat(undecided)
        lie()
        lost += mine.requeue_lost()
        clock.now += 1.0
    assert lost == [dead.number]
    assert [trial.params for trial in mine.trials() if trial.state == TrialState.WAITING] == [params]
    assert mine.trials()[living.number].state == TrialState.RUNNING
    assert mine.trials()[undecided.number].state == TrialState.RUNNING


def test_an_ask_that_was_killed_holds_no_evaluation_for_ever(open_study):
    """Nobody but short commands looks at this study: the next one waits until it knows."""
    stored = open_study(1, heartbeat=1)
    killed = stored.claim(by_hand=True)
    assert stored.left() == 0
    later = open_study(1, heartbeat=1)
    later.free(1)
    assert later.left() == 1
    assert LOST in later.trials()[killed.number].system_attrs


def test_extras_with_names_of_ours_are_only_extras(open_study):
    extras = {"late_result_of": 0, "reason": "none", LATE: 0, LOST: True, REASON: "x", "retry_history": [0]}
    stored = open_study(3, count_failures=True)
    for value in (None, 1.0, 2.0):
        trial, params = begin(stored)
        stored.finish(trial, Evaluation(value, None if value else "spilled", extras), params)
    assert len(stored.counted()) == 3
    assert len(stored.optimizer().record().failures) == 1
    assert stored.trials()[1].user_attrs == extras


def test_trials_beyond_the_budget_are_not_claimed(open_study):
    """Two workers may both add a trial; only the first ``budget`` of them are run."""
    stored = open_study(1)
    for _ in range(3):
        stored.study.enqueue_trial({"x": 0.5, "k": 1})
    trial, params = begin(stored)
    assert params == {"x": 0.5, "k": 1}
    assert stored.claim() is None
    stored.finish(trial, Evaluation(0.0), params)
    assert states(stored) == ["COMPLETE", "WAITING", "WAITING"]
