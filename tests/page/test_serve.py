"""The server as a process: its address, its token, its end, and what is left when it is killed in the middle."""

import http.client
import json
import math
import multiprocessing
import os
import random
import re
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from children import default_signals
from opened import STUDY, stored_trials
from optuna.trial import TrialState, create_trial
from server import TOKEN, Server
from shell import glasses

from glasses.optuna.marks import ASKED
from glasses.page.security import write_secret
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *(
            "glasses.page.serve",
            "glasses.page.actions",
            "glasses.page.model",
            "glasses.study.stored",
            "sqlalchemy.dialects.sqlite",
        ),
        *("glasses.optuna.sampler", "glasses.loop.optimizer", "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"),
    ]
)


def serving(path, port):
    """What `glasses serve` does, in a process that has its imports already."""
    default_signals()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from glasses.page.serve import serve

    sys.exit(serve(Path(path), host="127.0.0.1", port=port, token=TOKEN, browser=False))


class Client:
    """Posts to a server that may be gone at any moment."""

    def __init__(self, root, cookie):
        self.root, self.cookie = root, cookie

    def post(self, name, **body):
        """The answer and its status, or None if the server went away before."""
        headers = {
            "cookie": self.cookie,
            "content-type": "application/json",
            "x-glasses-write": write_secret(TOKEN),
            "origin": self.root,
        }
        request = urllib.request.Request(f"{self.root}/api/{name}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except (OSError, ValueError, http.client.HTTPException):
            return None


def cookie_of():
    from glasses.page.security import Guard

    return f"{Guard(None, token=TOKEN, host='127.0.0.1', port=0).cookie}={TOKEN}"


class Mortal:
    """A server that is killed at random moments, and started again by whoever misses it."""

    def __init__(self, path, rng):
        self.path, self.rng, self.kills = path, rng, 0
        self.port = free_port()
        self.client = Client(f"http://127.0.0.1:{self.port}", cookie_of())
        self.process, self.deadline, self.over = None, math.inf, threading.Event()
        self.spared = 0  # answers until it is killed
        self.start()
        self.killer = threading.Thread(target=self._kill)
        self.killer.start()

    def start(self):
        self.process = FORKS.Process(target=serving, args=(str(self.path), self.port))
        self.process.start()
        while self.process.is_alive() and self.client.post("undo", key="none") is None:
            time.sleep(0.01)
        self.spared = self.rng.randint(0, 4)

    def _kill(self):
        while not self.over.wait(0.002):
            if time.monotonic() >= self.deadline and self.kills < 50:
                self.deadline = math.inf
                os.kill(self.process.pid, signal.SIGKILL)
                self.kills += 1

    def insist(self, name, **body):
        """Send it until it is answered."""
        for _ in range(100):
            if self.spared <= 0 and self.deadline == math.inf:  # somewhere in this request or in the next ones
                self.deadline = time.monotonic() + self.rng.uniform(0.0, 0.1)
            found = self.client.post(name, **body)
            if found is not None:
                assert found[0] == 200, found
                self.spared -= 1
                return found[1]
            self.process.join()
            self.deadline = math.inf
            self.start()
        raise AssertionError("no answer")

    def end(self):
        self.over.set()
        self.killer.join()
        self.process.kill()
        self.process.join()


def opened_elsewhere(path, count):
    """Trials that a person has asked for in another shell."""
    with StoredStudy(read_study(path)) as stored:
        templates = [
            create_trial(
                state=TrialState.RUNNING,
                params={"temperature": 20.0 + k, "catalyst": "none"},
                distributions=stored.distributions,
                system_attrs={ASKED: True},
            )
            for k in range(count)
        ]
        return [stored.storage.add(each).number for each in templates]


@pytest.mark.slow
def test_fifty_kills_in_a_series_of_requests(tmp_path):
    """Nothing that was answered is lost; nothing is stored twice, although whatever was not answered is sent again."""
    path = tmp_path / "bench.toml"
    path.write_text(STUDY.format(budget=2000, more="heartbeat = 1"))
    told, corrected, k = {}, {}, 0
    open_trials = opened_elsewhere(path, 30)
    server = Mortal(path, random.Random(3))
    try:
        while server.kills < 50:
            k += 1
            open_trials = open_trials or opened_elsewhere(path, 30)
            number = open_trials.pop() if k % 10 else server.insist("ask", n=1, request=f"click {k}")["trials"][0]
            told[number] = float(k)
            server.insist("tell", trial=number, value=str(told[number]))
            if k % 3 == 0:
                corrected[number] = k + 0.5
                server.insist("correct", trial=number, value=str(corrected[number]), reason="again")
    finally:
        server.end()
    with StoredStudy(read_study(path), writing=False) as stored:
        trials, raw, changes = stored.trials(), stored.storage.raw_trials(), stored.changes()
    assert {trial.number: trial.value for trial in raw if trial.value is not None} == told
    assert {trial.number: trial.value for trial in trials if trial.value is not None} == told | corrected
    assert len(changes) == len(corrected)
    if os.environ.get("GLASSES_FIGURES"):
        with open(os.environ["GLASSES_FIGURES"], "a") as file:
            found = {"told": len(told), "corrected": len(corrected), "killed": server.kills, "asked": len(trials)}
            file.write(json.dumps({"test": os.environ["PYTEST_CURRENT_TEST"], **found}) + "\n")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_the_address_is_kept_and_ctrl_c_ends_at_once(bench):
    path = bench()
    first = Server(path)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", first.address)
    start = time.monotonic()
    assert first.end(signal.SIGINT) == 130
    assert time.monotonic() - start < 5
    second = Server(path)
    assert second.address == first.address
    third = Server(path)  # beside the second one: the same token, another port
    assert third.root != second.root
    assert third.address.split("=")[1] == second.address.split("=")[1]
    fourth = Server(path, "--port", "0", "--token", TOKEN)
    assert fourth.address.endswith(TOKEN)
    for each in (second, third, fourth):
        each.end()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--port", "70000"], "--port must be a number from 0 to 65535, got 70000"),
        (["--token", "short"], "--token must be at least 16 letters, digits"),
        (["--host", "no such host"], "--host 'no such host' is no address of this machine"),
        (["--host", "192.0.2.1"], "Cannot listen on 192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_said(bench, capsys, more, words):
    assert words in glasses(capsys, "serve", bench(), "--no-open", *more, status=2)


def test_the_report_of_a_study_without_results_and_with_some(bench, capsys, tmp_path):
    path = bench(budget=3)
    assert "There is no database" in glasses(capsys, "report", path, status=2)
    with StoredStudy(read_study(path)) as stored:
        stored.add({"temperature": 30.0, "catalyst": "none"}, Evaluation(None, "leaked"))
    assert glasses(capsys, "report", path) == f"Wrote {path.with_suffix('.html')}.\n"
    text = path.with_suffix(".html").read_text()
    assert "leaked" in text
    assert "none yet" in text
    assert not re.search(r"(src|href)=", text.split("<script")[0])  # nothing to fetch
    assert len(stored_trials(path)) == 1
