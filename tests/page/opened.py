"""The page as tests open it, and what its study holds."""

import json

from starlette.testclient import TestClient

from glasses.page.app import make_app
from glasses.page.security import WRITES, write_secret
from glasses.page.served import Served
from glasses.study.file import read_study
from glasses.study.stored import StoredStudy

TOKEN = "a-token-of-the-tests-1234"
STUDY = """
name = "bench"
direction = "minimize"
budget = {budget}
n_initial = {budget}
planner = "el"
seed = 1
{more}
[parameters]
temperature = [20.0, 90.0]
catalyst = {{ choices = ["none", "copper"] }}
"""


class Page(TestClient):
    """The page as its own scripts use it."""

    def __init__(self, path):
        self.served = Served(path)
        app = make_app(self.served, token=TOKEN, host="127.0.0.1", port=8000)
        super().__init__(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        self.write = {WRITES: write_secret(TOKEN), "origin": "http://127.0.0.1:8000"}

    def act(self, name, status=200, **body):
        """Post an action; its answer, or the sentence of its refusal."""
        answer = self.post(f"/api/{name}", json=body, headers=self.write)
        assert answer.status_code == status, answer.text
        return sentence(answer) if status >= 400 else answer.json()

    def state(self):
        return self.get("/api/state").json()


def sentence(answer):
    """The one sentence of a refusal."""
    found = answer.json()
    words = found["error"]
    assert words.endswith(".")
    assert "Traceback" not in words
    assert "\n" not in words
    return words


def stored_trials(path):
    """The trials as they are in the database, read by somebody else."""
    with StoredStudy(read_study(path), writing=False) as stored:
        return stored.trials()


def dump(path):
    """All that the study holds, to see that nothing was stored."""
    with StoredStudy(read_study(path), writing=False) as stored:
        return json.dumps([stored.history(), [str(trial) for trial in stored.storage.raw_trials()]], default=str)
