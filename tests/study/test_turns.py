"""Workers that decide at the same time take turns: by tickets in the storage, and by the clock of whoever waits."""

import subprocess
import sys
import threading
import time

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from glasses import ExpectedLoss
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.trials import POINT
from glasses.optuna.turns import TURN

SPACE = {"x": FloatDistribution(0.0, 1.0), "k": IntDistribution(0, 9)}


def sampler():
    return GlassesSampler(budget=12, seed=1, n_initial=4, loss=ExpectedLoss(), search_space=SPACE)


def test_two_processes_decide_in_turn(tmp_path):
    """The bakery over a storage: each of two processes sees the other's points."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(study_name="s", storage=url)
    code = f"""
import optuna
from optuna.distributions import IntDistribution
from glasses.optuna.sampler import GlassesSampler
space = {{"a": IntDistribution(0, 4), "b": IntDistribution(0, 4)}}
sampler = GlassesSampler(budget=24, seed=1, n_initial=24, search_space=space)
study = optuna.load_study(study_name="s", storage={url!r}, sampler=sampler)
for _ in range(12):
    trial = study.ask(space)
    study.tell(trial, sum(trial.params.values()))
"""
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait(timeout=120) for each in running] == [0, 0]
    points = [tuple(trial.params.values()) for trial in optuna.load_study(study_name="s", storage=url).trials]
    assert len(points) == len(set(points)) == 24


def test_a_ticket_waits_for_earlier_ones_only():
    study = optuna.create_study(sampler=sampler())
    early, mine, late = (study.ask() for _ in range(3))
    order = []
    study._storage.set_trial_system_attr(early._trial_id, TURN, [1, time.time()])

    def decide():
        study.sampler.sample_relative(study, study.trials[mine.number], SPACE)
        order.append("mine")

    thread = threading.Thread(target=decide)
    thread.start()
    while study.trials[mine.number].system_attrs.get(TURN, [0])[0] == 0:
        time.sleep(0.01)
    assert study.trials[mine.number].system_attrs[TURN][0] == 2
    study._storage.set_trial_system_attr(late._trial_id, TURN, [3, time.time()])
    order.append("early")
    study._storage.set_trial_system_attr(early._trial_id, POINT, {})
    thread.join(timeout=20)
    assert order == ["early", "mine"]


@pytest.mark.parametrize("written", [0.0, time.time() - 1e6, time.time() + 1e6], ids=["counted", "past", "future"])
def test_a_turn_that_never_ends_is_passed_over_and_closed(monkeypatch, written):
    """By the clock of the one who waits, whatever stands in the ticket; the next one does not wait again."""
    monkeypatch.setattr("glasses.optuna.turns._LONGEST_TURN", 2.0)
    study = optuna.create_study(sampler=sampler())
    dead = study.ask()
    study._storage.set_trial_system_attr(dead._trial_id, TURN, [1, written])
    begun = time.monotonic()
    assert study.ask(SPACE).params.keys() == SPACE.keys()
    assert time.monotonic() - begun >= 2.0  # it was waited for, as long as a turn may take
    assert study.trials[dead.number].system_attrs[POINT] == {}
    study.sampler = sampler()
    begun = time.monotonic()
    study.ask(SPACE)
    assert time.monotonic() - begun < 2.0


def test_who_shows_a_sign_of_life_is_waited_for(monkeypatch):
    """A turn longer than the longest is no reason to be passed over while the ticket changes."""
    monkeypatch.setattr("glasses.optuna.turns._LONGEST_TURN", 1.0)
    study = optuna.create_study(sampler=sampler())
    early, mine = study.ask(), study.ask()
    ended = []

    def decide():
        study.sampler.sample_relative(study, study.trials[mine.number], SPACE)
        ended.append(time.monotonic())

    thread = threading.Thread(target=decide)
    for refreshed in range(8):
        study._storage.set_trial_system_attr(early._trial_id, TURN, [1, refreshed])
        if refreshed == 0:
            thread.start()
        time.sleep(0.25)
    released = time.monotonic()
    study._storage.set_trial_system_attr(early._trial_id, POINT, {})
    thread.join(timeout=20)
    assert ended[0] > released
