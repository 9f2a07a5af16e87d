"""Workers that are killed, databases that go away: nothing is lost, nothing is done twice, the budget is met exactly.

With GLASSES_FIGURES=file the figures of docs/studies.md are appended to that file.
"""

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from children import default_signals, start_child
from optuna.trial import TrialState

from glasses.optuna.trials import LOST
from glasses.study.file import read_study
from glasses.study.storage import NothingYetError
from glasses.study.stored import StoredStudy

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(  # JAX may be imported before a fork, but not used
    [
        *("glasses.study.worker", "glasses.study.stored", "glasses.study.file", "sqlalchemy.dialects.sqlite"),
        *("glasses.optuna.sampler", "glasses.loop.optimizer", "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"),
    ]
)


def worker(path, out=None):
    """What `glasses worker` does, in a process that has its imports already."""
    default_signals()
    if out is not None:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
    from glasses.study.worker import prepared, work

    file = read_study(path)
    sys.exit(work(StoredStudy(file), prepared(file), again="glasses run"))


def start(path, out=None):
    process = FORKS.Process(target=worker, args=(path, out))
    process.start()
    return process


def diary(path):
    file = path.with_name("diary")
    whole = file.read_text().rpartition("\n")[0] if file.exists() else ""  # the last line may be half written
    return [json.loads(line) for line in whole.splitlines()]


def audit(path, kills):
    """The database against the diary; what was found."""
    with StoredStudy(read_study(path), writing=False) as stored:
        trials, counted = stored.trials(), stored.counted()
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    lost = [trial for trial in trials if LOST in trial.system_attrs]
    assert len(complete) == stored.file.budget
    assert not [trial for trial in trials if trial.state == TrialState.RUNNING]
    assert all(trial.state == TrialState.FAIL for trial in lost)
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.FAIL, TrialState.WAITING}
    spare = [trial for trial in trials if trial.state == TrialState.WAITING]
    assert len(counted) - len(spare) == stored.file.budget  # what is still waiting lies beyond the budget

    stored = {json.dumps(trial.params, sort_keys=True): trial.value for trial in complete}
    assert len(stored) == len(complete), "a configuration was evaluated twice"
    begun = [json.dumps(line["params"], sort_keys=True) for line in diary(path) if line["word"] == "begin"]
    ended = {json.dumps(line["params"], sort_keys=True): line["value"] for line in diary(path) if line["word"] == "end"}
    assert stored.items() <= ended.items()
    again = {json.dumps(trial.params, sort_keys=True) for trial in lost if trial.params}
    assert {point for point in begun if begun.count(point) > 1} <= again, "repeated, but not because its worker died"
    # What was begun was finished in the end, by whomever, or is queued beyond the budget: between losing an evaluation and
    # queueing it again another worker may have taken what was left.
    queued = {json.dumps(trial.params, sort_keys=True) for trial in spare}
    assert set(begun) - queued <= set(stored) <= set(begun)
    assert len(lost) <= kills
    unstored = sum(line["word"] == "end" for line in diary(path)) - len(complete)
    found = {
        "stored": len(complete),
        "killed": kills,
        "lost": len(lost),
        "done again": len(begun) - len(stored),
        "unstored": unstored,
    }
    if os.environ.get("GLASSES_FIGURES"):
        with open(os.environ["GLASSES_FIGURES"], "a") as file:
            file.write(json.dumps({"test": os.environ["PYTEST_CURRENT_TEST"], **found}) + "\n")
    return found


def test_eight_workers_of_which_three_are_killed(make_study, storage):
    """200 evaluations; three workers get SIGKILL at random moments. On SQLite the model decides the last ones."""
    initial = 200 if storage else 195
    path = make_study(200, seconds=(0.0, 0.2), heartbeat=3, planner="el", n_initial=initial, noise=0.0, **storage)
    workers = [start(path) for _ in range(8)]
    rng = random.Random(5)
    for victim in rng.sample(workers, 3):
        goal = len(diary(path)) + rng.randint(20, 100)
        while len(diary(path)) < goal:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.2))
        os.kill(victim.pid, signal.SIGKILL)
    for each in workers:
        each.join(timeout=240)
    assert sorted(each.exitcode for each in workers) == [-signal.SIGKILL] * 3 + [0] * 5
    audit(path, kills=3)


def test_fifty_kills_of_one_run(make_study):
    """Started and killed fifty times, at any moment from the first to the last; then run to its end."""
    path = make_study(120, seconds=(0.0, 0.03), heartbeat=1, planner="el", n_initial=100, noise=0.0, retries=50)
    rng = random.Random(11)
    finished = 0
    for _ in range(50):
        process = start(path)
        before = len(diary(path))
        patience = time.monotonic() + 20.0
        if rng.random() < 0.7:  # somewhere in the loop; otherwise while it starts
            while len(diary(path)) == before and process.is_alive() and time.monotonic() < patience:
                time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if path.with_suffix(".db").exists():
            stored = finished_in(path)
            assert stored >= finished
            finished = stored
    process = start(path)
    process.join(timeout=200)
    assert process.exitcode == 0
    audit(path, kills=50)


def finished_in(path):
    try:
        return sum(trial.state == TrialState.COMPLETE for trial in trials_of(path))
    except NothingYetError:  # killed before it had made its tables or its study
        return 0


def trials_of(path):
    with StoredStudy(read_study(path), writing=False) as stored:
        return stored.trials()


def test_a_database_that_goes_away_for_ten_seconds(make_study, postgres):
    path = make_study(30, seconds=(0.1, 0.2), heartbeat=10, planner="el", n_initial=30, storage=postgres.database("outage"))
    out = path.with_name("out")
    process = start(path, out)
    while sum(line["word"] == "end" for line in diary(path)) < 8:
        time.sleep(0.05)
    postgres.stop()
    time.sleep(10.0)
    during = len(diary(path))
    postgres.start()
    process.join(timeout=120)
    assert process.exitcode == 0
    assert during < 30  # it was really away
    said = out.read_text()
    assert said.count("the database is out of reach") == 1
    assert "the database is back after 1" in said
    assert audit(path, kills=0)["lost"] == 0


def test_an_outage_longer_than_three_heartbeats_kills_nobody(make_study):
    """After it everybody seems to have been silent for too long; nobody is taken for dead, nothing is done twice."""
    path = make_study(24, seconds=(0.3, 0.5), heartbeat=1, n_initial=24)
    workers = [start(path) for _ in range(3)]
    while sum(line["word"] == "end" for line in diary(path)) < 5:
        time.sleep(0.02)
    lock = sqlite3.connect(path.with_suffix(".db"), timeout=30.0, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    time.sleep(9.0)
    lock.execute("ROLLBACK")
    lock.close()
    for each in workers:
        each.join(timeout=60)
    assert [each.exitcode for each in workers] == [0, 0, 0]
    assert audit(path, kills=0)["lost"] == 0


def test_a_worker_that_waits_for_the_database_can_be_stopped(make_study):
    path = make_study(6, seconds=(0.5, 0.6), heartbeat=10, n_initial=6)
    out = path.with_name("out")
    process = start(path, out)
    while not diary(path):
        time.sleep(0.02)
    lock = sqlite3.connect(path.with_suffix(".db"), timeout=30.0, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    while "out of reach" not in out.read_text():
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    process.join(timeout=30)
    lock.execute("ROLLBACK")
    lock.close()
    assert process.exitcode in (2, 130)
    said = out.read_text()
    assert "once the database is back: glasses tell" in said
    assert "Stopped while the database was out of reach" in said


def test_a_locked_file_is_waited_for(make_study):
    path = make_study(12, seconds=(0.4, 0.5), heartbeat=10, n_initial=12)
    out = path.with_name("out")
    process = start(path, out)
    while sum(line["word"] == "end" for line in diary(path)) < 3:
        time.sleep(0.02)
    lock = sqlite3.connect(path.with_suffix(".db"), timeout=30.0, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    time.sleep(8.0)
    lock.execute("ROLLBACK")
    lock.close()
    process.join(timeout=60)
    assert process.exitcode == 0
    assert "the database is out of reach (database is locked); waiting for it" in out.read_text()
    audit(path, kills=0)


def test_patience_has_an_end(make_study, postgres):
    """A database that does not come back: the result in hand is printed as the command that stores it."""
    seconds = (3.0, 3.1)  # stopping the server takes a while
    path = make_study(5, seconds=seconds, n_initial=5, storage=postgres.database("gone"))
    command = [sys.executable, "-m", "glasses", "run", str(path), "--patience", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not diary(path):
        time.sleep(0.02)
    postgres.stop()
    try:
        _, said = process.communicate(timeout=60)
    finally:
        postgres.start()
    assert process.returncode == 2
    assert "Traceback" not in said
    assert "once the database is back: glasses tell" in said
    assert "stayed out of reach for 1 s" in said


def test_ctrl_c_finishes_the_evaluation_and_says_how_to_go_on(make_study):
    path = make_study(6, seconds=(0.6, 0.7), n_initial=6)
    command = [sys.executable, "-m", "glasses", "run", str(path)]
    process = start_child(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not diary(path):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Finishing the evaluation under way" in said
    assert f"5 of 6 left. Go on with: glasses run {path}" in out
    assert [line["word"] for line in diary(path)] == ["begin", "end"]
    assert finished_in(path) == 1
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    audit(path, kills=0)


def test_a_worker_under_nohup_outlives_its_terminal(make_study):
    path = make_study(2, seconds=(0.8, 0.9), n_initial=2)
    command = ["nohup", sys.executable, "-m", "glasses", "run", str(path)]
    process = start_child(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    while not diary(path):
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=30) == 0
    audit(path, kills=0)


@pytest.mark.parametrize("how", ["twice", "term"])
def test_an_abandoned_evaluation_is_queued_again(make_study, how):
    path = make_study(3, seconds=(1.5, 1.6), n_initial=3)
    command = [sys.executable, "-m", "glasses", "run", str(path)]
    process = start_child(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not diary(path):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM if how == "term" else signal.SIGINT)
    if how == "twice":
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == (143 if how == "term" else 130)
    assert "queued again" in out
    assert finished_in(path) == 0
    trials = trials_of(path)
    assert [trial.state for trial in trials] == [TrialState.FAIL, TrialState.WAITING]
    assert trials[0].params == trials[1].params


def test_a_claim_is_one_workers_alone(make_study, storage):
    """Threads with several connections compete for 40 trials."""
    path = make_study(40, **storage)
    studies = [StoredStudy(read_study(path)) for _ in range(4)]
    taken, errors = [], []

    def grab(stored):
        try:
            while (trial := stored.claim()) is not None:
                taken.append(trial.number)
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=grab, args=(stored,)) for stored in studies for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert len(taken) == len(set(taken)) == 40
    numbers = [trial.number for trial in studies[0].trials()]
    for stored in studies:
        stored.close()
    assert numbers == sorted(set(numbers))
