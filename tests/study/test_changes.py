"""What a person changes afterwards: nothing is overwritten, everybody sees the same, the budget is right."""

import dataclasses
import json
import multiprocessing
import threading

import optuna
import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from glasses.optuna.changes import Change, applied, new_change, read_changes, standing
from glasses.optuna.marks import ASKED, CANCELLED, LOST, OUTSIDE, REASON, WITHDRAWN
from glasses.optuna.storage import StudyStorage
from glasses.optuna.trials import state_of
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy


@pytest.fixture
def open_study(make_study):
    opened = []

    def make(budget=6, **settings):
        opened.append(StoredStudy(read_study(make_study(budget, n_initial=budget, **settings))))
        return opened[-1]

    yield make
    for stored in opened:
        stored.close()


def begin(stored, **more):
    trial = stored.claim(**more)
    return trial, stored.point(trial)


def told(stored, *values):
    for value in values:
        trial, params = begin(stored)
        stored.finish(trial, Evaluation(value, "spilled" if value is None else None), params)


def raw(stored):
    return [(each.state, each.value, each.params, dict(each.system_attrs)) for each in stored.storage.raw_trials()]


def test_a_corrected_value_is_what_everybody_sees_and_the_stored_one_stays(open_study):
    stored, other = open_study(), open_study()
    told(stored, 34.0, 1.0)
    before = raw(stored)
    change = stored.correct(0, outcome=Evaluation(3.4), reason="a point was missing")
    assert (change.what, change.trial, change.value, change.reason) == ("correct", 0, 3.4, "a point was missing")
    assert change.who
    for each in (stored, other):
        assert [trial.value for trial in each.trials()] == [3.4, 1.0]
        assert each.optimizer().values == [3.4, 1.0]
        assert each.left() == 4
    assert raw(stored) == before
    stored.correct(0, outcome=Evaluation(3.5))
    assert other.trials()[0].value == 3.5


def test_a_corrected_point_of_a_result(open_study):
    stored = open_study()
    told(stored, 1.0)
    point = stored.trials()[0].params
    change = stored.correct(0, params={"x": 0.25, "k": point["k"]})
    assert change.params == {"x": 0.25}
    assert stored.trials()[0].params == {"x": 0.25, "k": point["k"]}
    assert stored.optimizer().record().x == {"x": 0.25, "k": point["k"]}


def test_another_point_for_an_open_trial_is_pending_and_stays_when_its_result_comes(open_study):
    stored = open_study()
    trial, params = begin(stored, by_hand=True)
    stored.correct(0, params={"x": 0.25})
    moved = {**params, "x": 0.25}
    assert stored.optimizer().pending == [moved]
    stored.finish(trial, Evaluation(1.0), moved)
    assert stored.trials()[0].params == moved
    assert stored.optimizer().record().x == moved
    assert stored.storage.raw_trials()[0].params == params


def test_failed_becomes_a_value_and_a_value_failed(open_study):
    stored = open_study(2, count_failures=False)
    told(stored, None, 1.0)
    assert stored.left() == 1
    stored.correct(0, outcome=Evaluation(2.0))
    assert [state_of(each) for each in stored.trials()] == ["complete", "complete"]
    assert REASON not in stored.trials()[0].system_attrs
    assert stored.left() == 0
    stored.correct(1, outcome=Evaluation(None), reason="leaked")
    assert [state_of(each) for each in stored.trials()] == ["complete", "failed"]
    assert stored.trials()[1].system_attrs[REASON] == "leaked"
    assert stored.left() == 1
    assert [each.x for each in stored.optimizer().record().failures] == [stored.trials()[1].params]


def test_a_withdrawn_result_has_no_effect_and_no_cost(open_study):
    stored = open_study(2)
    told(stored, 1.0, None)
    points = [each.params for each in stored.trials()]
    assert stored.claim() is None
    stored.withdraw(0, "wrong bottle")
    stored.withdraw(1)
    assert [state_of(each) for each in stored.trials()] == ["withdrawn", "withdrawn"]
    assert stored.counted() == []
    assert stored.left() == 2
    record = stored.optimizer().record()
    assert (record.nfev, record.failures) == (0, [])
    assert [begin(stored)[1], begin(stored)[1]] == points  # as if they had never been done
    assert stored.claim() is None


def test_a_cancelled_trial_costs_nothing_and_its_point_is_free(open_study):
    stored = open_study(2)
    _, first = begin(stored, by_hand=True)
    begin(stored, by_hand=True)
    assert stored.left() == 0
    stored.cancel(0, "no time")
    assert state_of(stored.trials()[0]) == "cancelled"
    assert stored.left() == 1
    assert begin(stored)[1] == first
    assert stored.claim() is None


def test_a_cancelled_trial_that_waits_is_not_claimed(open_study):
    stored = open_study(2)
    told(stored, None)
    assert stored.retry() == [1]
    stored.cancel(1)
    assert [each.number for each in stored.counted()] == [0]  # its failure counts again
    assert stored.left() == 1
    assert begin(stored)[0].number == 2
    assert stored.claim() is None


@pytest.mark.parametrize("outcome", [Evaluation(1.0), Evaluation(None, "spilled")], ids=["value", "failed"])
def test_the_result_of_a_cancelled_trial_counts_after_all(open_study, outcome):
    stored = open_study(2)
    trial, params = begin(stored)
    stored.cancel(0)
    assert stored.left() == 2
    stored.finish(trial, outcome, params)
    assert state_of(stored.trials()[0]) == ("failed" if outcome.value is None else "complete")
    assert stored.left() == 1
    assert stored.undo().undoes  # nothing changes by it
    assert stored.left() == 1


def test_a_cancelled_trial_whose_worker_gives_up_is_not_queued_again(open_study):
    stored = open_study(2)
    trial, _ = begin(stored)
    stored.cancel(0)
    stored.give_back(trial)
    assert [state_of(each) for each in stored.trials()] == ["cancelled"]
    assert stored.left() == 2


def test_nobody_looks_for_the_worker_of_a_cancelled_trial(open_study, monkeypatch):
    stored = open_study(2, heartbeat=1)
    begin(stored)
    stored.cancel(0)
    now = [1000.0]
    monkeypatch.setattr("glasses.optuna.liveness.monotonic", lambda: now[0])
    stored.requeue_lost()
    now[0] += 100.0
    assert stored.requeue_lost() == []


def test_undo_goes_back_one_change_at_a_time_and_can_be_undone(open_study):
    stored = open_study()
    told(stored, 34.0, 2.0)
    stored.correct(0, outcome=Evaluation(3.4))
    stored.withdraw(1)
    first = stored.undo()
    assert [state_of(each) for each in stored.trials()] == ["complete", "complete"]
    assert stored.trials()[0].value == 3.4
    stored.undo()
    assert stored.trials()[0].value == 34.0
    with pytest.raises(ValueError, match="There is no change to undo"):
        stored.undo()
    stored.undo(first.key)
    assert state_of(stored.trials()[1]) == "withdrawn"
    with pytest.raises(ValueError, match="is undone already"):
        stored.undo(first.key)
    with pytest.raises(ValueError, match=r"There is no change 'nonsense'"):
        stored.undo("nonsense")
    assert [each.what for each in stored.changes()] == ["correct", "withdraw", "undo", "undo", "undo"]


def test_failed_trials_are_tried_again_at_the_same_points(open_study):
    stored = open_study(3)
    told(stored, None, 1.0, None)
    failed = [stored.trials()[0].params, stored.trials()[2].params]
    assert stored.left() == 0
    assert stored.retry() == [3, 4]
    assert stored.left() == 2
    assert stored.optimizer().record().failures == []
    assert sorted(stored.optimizer().pending, key=str) == sorted(failed, key=str)
    with pytest.raises(ValueError, match="No trial has failed"):
        stored.retry()
    with pytest.raises(ValueError, match="Trial 0 is tried again already"):
        stored.retry([0])
    told(stored, 2.0, None)
    assert [each.params for each in stored.trials()[3:]] == failed
    assert stored.claim() is None
    assert stored.retry([4]) == [5]
    told(stored, 3.0)
    assert [each.number for each in stored.counted()] == [1, 3, 5]


def test_two_who_try_the_same_trial_again_queue_it_once(open_study, monkeypatch):
    stored, other = open_study(3), open_study(3)
    told(stored, None)
    add = stored.storage.add
    monkeypatch.setattr(stored.storage, "add", lambda template: other.retry([0]) and add(template))
    assert stored.retry([0]) == [1]
    assert [state_of(each) for each in stored.trials()] == ["failed", "waiting", "cancelled"]
    assert stored.left() == 3
    assert [each.number for each in stored.counted()] == [1]


def test_a_retry_is_done_at_the_corrected_point(open_study):
    stored = open_study(3)
    told(stored, None)
    stored.correct(0, params={"x": 0.75})
    stored.retry()
    assert begin(stored)[1]["x"] == 0.75


def test_evaluations_outside_the_budget_are_evidence_without_cost(open_study):
    stored = open_study(2, count_failures=True)
    stored.add({"x": 0.5, "k": 1}, Evaluation(1.0), {OUTSIDE: True})
    stored.add({"x": 0.6, "k": 1}, Evaluation(None, "old"), {OUTSIDE: True})
    assert stored.counted() == []
    assert stored.left() == 2
    optimizer = stored.optimizer()
    assert (optimizer.values, len(optimizer.record().failures), optimizer.remaining) == ([1.0], 1, 2)
    told(stored, 1.0, 2.0)
    assert stored.claim() is None
    assert stored.optimizer().remaining == 0


def test_a_measured_result_beyond_the_budget_is_kept(open_study):
    stored = open_study(2)
    told(stored, 1.0, 2.0)
    stored.add({"x": 0.5, "k": 1}, Evaluation(0.5))
    assert len(stored.counted()) == 3
    assert stored.left() == 0
    assert sorted(stored.optimizer().values) == [0.5, 1.0, 2.0]


def test_nothing_is_begun_that_the_results_told_by_hand_have_paid_for(open_study):
    """19 done, one queued again, and somebody tells one that nobody asked for: the budget is spent."""
    stored = open_study(2)
    told(stored, None)
    stored.retry()
    told_by_hand = [stored.add({"x": 0.1 * i, "k": 1}, Evaluation(1.0)) for i in range(2)]
    assert len(told_by_hand) == 2
    assert stored.left() == 0
    assert stored.claim() is None


def test_misuse_is_refused_in_a_sentence(open_study):
    stored = open_study(5)
    told(stored, 1.0, None)
    trial, _ = begin(stored)
    stored.add({"x": 0.5, "k": 1}, Evaluation(2.0))
    stored.withdraw(3)
    before = stored.changes()
    for action, words in (
        (lambda: stored.correct(9, outcome=Evaluation(1.0)), r"There is no trial 9: the study has trials 0 to 3"),
        (lambda: stored.correct(True, outcome=Evaluation(1.0)), r"There is no trial True"),
        (lambda: stored.correct(0), r"Nothing to correct: trial 0 is 1 at that point already"),
        (lambda: stored.correct(0, outcome=Evaluation(1.0)), r"Nothing to correct: trial 0 is 1 at"),
        (lambda: stored.correct(1, outcome=Evaluation(None)), r"Nothing to correct: trial 1 is failed"),
        (lambda: stored.correct(0, outcome=Evaluation(float("nan"))), r"nan is beyond 1e100 in size"),
        (lambda: stored.correct(0, params={"y": 1.0}), r"There is no parameter 'y'"),
        (lambda: stored.correct(0, params={"x": 7.0}), r"the point\['x'\] = 7 lies outside \[0, 1\]"),
        (lambda: stored.correct(0, params={"k": 0.5}), r"the point\['k'\] must be a whole number"),
        (lambda: stored.correct(2, outcome=Evaluation(1.0)), r"Trial 2 has no result to correct yet"),
        (lambda: stored.correct(2, params={"x": 0.1}), r"Trial 2 is evaluated by a worker, at its own point"),
        (lambda: stored.correct(3, outcome=Evaluation(1.0)), r"Trial 3 is withdrawn: undo that first"),
        (lambda: stored.withdraw(2), r"Trial 2 is running and has no result to withdraw: cancel it instead"),
        (lambda: stored.withdraw(3), r"Trial 3 is withdrawn: undo that first"),
        (lambda: stored.cancel(0), r"Trial 0 is complete and cannot be cancelled: withdraw its result instead"),
        (lambda: stored.retry([0]), r"Trial 0 is complete: only failed trials are tried again"),
        (lambda: stored.withdraw(0, "x" * 2001), r"A reason is a text of at most 2000 characters, got 2001"),
        (lambda: stored.history(9), r"There is no trial 9"),
    ):
        with pytest.raises(ValueError, match=words):
            action()
    assert stored.changes() == before
    stored.give_back(trial)
    with pytest.raises(ValueError, match="Trial 2 was lost and has no result to correct"):
        stored.correct(2, outcome=Evaluation(1.0))
    with pytest.raises(ValueError, match="Trial 2 is lost and has no result to withdraw"):
        stored.withdraw(2)
    with pytest.raises(ValueError, match="Trial 4 is not begun and has no point of its own yet"):
        stored.correct(4, params={"x": 0.1})


def test_the_history_says_who_when_what_before_and_what_after(open_study):
    stored = open_study()
    told(stored, 34.0)
    point = stored.trials()[0].params
    key = stored.correct(0, outcome=Evaluation(3.4), params={"x": 0.25}, reason="typing").key
    stored.undo()
    first, corrected, undone = stored.history(0)
    assert (first["what"], first["before"], first["who"]) == ("told", None, None)
    assert first["after"] == {"state": "complete", "value": 34.0, "params": point}
    assert corrected["before"] == first["after"] == undone["after"]
    assert corrected["after"] == {"state": "complete", "value": 3.4, "params": {**point, "x": 0.25}} == undone["before"]
    assert (corrected["reason"], corrected["stands"], corrected["key"], undone["undoes"]) == ("typing", False, key, key)
    assert corrected["who"] == undone["who"] != ""
    assert first["when"] <= corrected["when"] <= undone["when"]
    begin(stored, by_hand=True)
    stored.correct(1, params={"x": 0.5})
    stored.cancel(1)
    entries = stored.history(1)
    assert [(each["what"], each["before"]["state"], each["after"]["state"]) for each in entries] == [
        ("correct", "running", "running"),
        ("cancel", "running", "cancelled"),
    ]
    stored.finish(stored.trials()[1], Evaluation(1.0), {})
    assert [each["what"] for each in stored.history(1)] == ["correct", "cancel", "told"]
    assert stored.history(1)[1]["after"]["state"] == "cancelled"
    assert stored.history(1)[2]["after"]["state"] == "complete"
    assert [each["trial"] for each in stored.history()] == [0, 0, 0, 1, 1, 1]
    json.dumps(stored.history())


def test_the_reason_to_stop_is_asked_again_after_a_change(open_study):
    from glasses import Target

    stored = open_study()
    stored.file = dataclasses.replace(stored.file, stop=Target(0.5))
    told(stored, 0.34)
    assert stored.reason_to_stop() is not None
    stored.correct(0, outcome=Evaluation(3.4))
    assert stored.reason_to_stop() is None
    stored.undo()
    stored.withdraw(0)
    assert stored.reason_to_stop() is None


def test_reading_the_trials_costs_one_query_more(open_study):
    stored = open_study()
    told(stored, 1.0)
    statements = []
    engine = stored.storage._storage._backend.engine
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))

    def cost(read):
        statements.clear()
        read()
        return len([each for each in statements if not each.startswith("BEGIN")])

    stored.correct(0, outcome=Evaluation(2.0))
    assert cost(stored.trials) == cost(stored.storage.raw_trials) + 1
    assert cost(stored.changes) == 1


def _correct(path, values):
    with StoredStudy(read_study(path)) as stored:
        for value in values:
            stored.correct(0, outcome=Evaluation(value))


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_changes_at_the_same_moment_are_all_kept_and_all_see_the_same(make_study, storage, kind):
    path = make_study(6, n_initial=6, **storage)
    lists = [[100.0 * i + j for j in range(8)] for i in range(1, 5)]
    with StoredStudy(read_study(path)) as stored, StoredStudy(read_study(path)) as other:
        told(stored, 1.0)
        if kind == "threads":
            crowd = [threading.Thread(target=_correct, args=(path, values)) for values in lists]
        else:
            crowd = [multiprocessing.get_context("spawn").Process(target=_correct, args=(path, values)) for values in lists[:2]]
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        changes = stored.changes()
        assert sorted(each.value for each in changes) == sorted(v for values in lists[: len(crowd)] for v in values)
        assert other.changes() == changes
        assert stored.trials()[0].value == other.trials()[0].value == changes[-1].value
        assert stored.storage.raw_trials()[0].value == 1.0
        assert len(stored.history(0)) == 1 + len(changes)


def test_two_changes_with_one_number_are_in_one_order_for_all(open_study, monkeypatch):
    """Both saw no change before them; whichever key sorts last prevails, for everybody."""
    stored, other = open_study(), open_study()
    told(stored, 1.0)
    nothing = stored.changes()
    for each, value in ((stored, 2.0), (other, 3.0)):
        with monkeypatch.context() as patch:
            patch.setattr(each.storage, "changes", lambda: nothing)
            each._change("correct", 0, value=value)
    changes = stored.changes()
    assert [each.key.split(":")[2] for each in changes] == ["000001", "000001"]
    assert stored.trials()[0].value == other.trials()[0].value == changes[-1].value


def test_a_change_stays_with_a_storage_of_any_kind(tmp_path):
    journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal")))
    for kept in (None, journal):
        study = optuna.create_study(storage=kept)
        study.add_trial(create_trial(value=34.0, params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}))
        storage = StudyStorage(study)
        storage.change(new_change([], "correct", 0, value=3.4))
        assert storage.trials()[0].value == 3.4
        assert storage.trials(TrialState.COMPLETE)[0].value == 3.4
        assert storage.raw_trials()[0].value == 34.0
        storage.change(new_change(storage.changes(), "withdraw", 0))
        assert storage.trials(TrialState.COMPLETE) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("glasses:change:000001:ab", "text"),
        ("glasses:change:000001:ab", {"what": "explode", "trial": 0}),
        ("glasses:change:000001:ab", {"what": "correct", "trial": "0"}),
        ("glasses:change:000001:ab", {"what": "correct", "trial": 0, "params": [1]}),
        ("glasses:change:later", {"what": "withdraw", "trial": 0}),
    ],
)
def test_a_change_of_another_version_is_refused(key, value):
    with pytest.raises(ValueError, match="holds a change that this version cannot read"):
        read_changes({key: value, "another": 1})


# pure: any list of changes on any trials

SPACE = {"x": FloatDistribution(0.0, 1.0)}


def trial_of(kind, number):
    more = {
        "complete": {"value": 1.0},
        "failed": {"state": TrialState.FAIL, "system_attrs": {REASON: "spilled"}},
        "lost": {"state": TrialState.FAIL, "system_attrs": {LOST: True}},
        "pruned": {"state": TrialState.PRUNED, "intermediate_values": {1: 5.0}},
        "running": {"state": TrialState.RUNNING, "system_attrs": {ASKED: True}},
        "waiting": {"state": TrialState.WAITING},
    }[kind]
    trial = create_trial(params={"x": 0.5}, distributions=SPACE, **more)
    trial.number = number
    return trial


KINDS = st.sampled_from(["complete", "failed", "lost", "pruned", "running", "waiting"])
DRAWN = st.tuples(
    st.sampled_from(["correct", "withdraw", "cancel", "undo"]),
    st.integers(0, 4),
    st.one_of(st.none(), st.floats(-5, 5)),
    st.booleans(),
    st.one_of(st.none(), st.fixed_dictionaries({"x": st.floats(0, 1)})),
    st.integers(0, 7),
)


def changes_of(drawn):
    keys = [f"glasses:change:{i:06d}:00" for i in range(1, len(drawn) + 1)]
    found = []
    for i, (what, trial, value, failed, params, which) in enumerate(drawn):
        undoes = keys[which % i] if what == "undo" and i else None
        found.append(Change(keys[i], what, trial, value, failed, params, undoes=undoes))
    return found


@given(st.lists(KINDS, max_size=4), st.lists(DRAWN, max_size=8))
def test_any_changes_are_applied_in_one_way_and_leave_the_stored_trials_as_they_are(kinds, drawn):
    trials = [trial_of(kind, i) for i, kind in enumerate(kinds)]
    before = [repr(each) for each in trials]
    changes = changes_of(drawn)
    found = applied(trials, changes)
    assert [repr(each) for each in trials] == before
    attributes = {each.key: each.as_attribute() for each in reversed(changes)}
    assert read_changes(json.loads(json.dumps(attributes))) == changes
    for each, stored in zip(found, trials, strict=True):
        own = [change for change in standing(changes) if change.trial == stored.number and change.what != "undo"]
        if not own:
            assert each is stored
        if state_of(each) == "withdrawn":
            assert WITHDRAWN in each.system_attrs
            assert state_of(stored) in ("complete", "failed", "pruned")
        if state_of(each) == "cancelled":
            assert CANCELLED in each.system_attrs
            assert state_of(stored) in ("lost", "running", "waiting")
        assert (each.value is None) == (state_of(each) != "complete")
        assert state_of(each) != "lost" or state_of(stored) == "lost"


@given(st.lists(KINDS, min_size=1, max_size=4), st.lists(DRAWN, max_size=8), DRAWN)
def test_a_change_and_its_undo_are_as_if_it_had_not_been(kinds, drawn, another):
    trials = [trial_of(kind, i) for i, kind in enumerate(kinds)]
    changes = changes_of(drawn)
    last = changes_of([*drawn, another])[-1]
    undo = new_change([*changes, last], "undo", last.trial, undoes=last.key)
    again = new_change([*changes, last, undo], "undo", last.trial, undoes=undo.key)
    assert list(map(repr, applied(trials, [*changes, last, undo]))) == list(map(repr, applied(trials, changes)))
    assert list(map(repr, applied(trials, [*changes, last, undo, again]))) == list(map(repr, applied(trials, [*changes, last])))


def test_a_pruned_trial_with_a_corrected_value_is_complete():
    found = applied([trial_of("pruned", 0)], changes_of([("correct", 0, 2.0, False, None, 0)]))[0]
    assert (found.state, found.value) == (TrialState.COMPLETE, 2.0)
