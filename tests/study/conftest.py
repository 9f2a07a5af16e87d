"""Studies for the tests: a file, an objective that keeps its own diary, a database of either kind."""

import itertools
import sys
import textwrap
from pathlib import Path

import pytest
from postgres import start_server

OBJECTIVE = """
import json, os, random, time
from pathlib import Path

DIARY = Path(__file__).with_name("diary")


def note(word, **more):
    with DIARY.open("a") as file:
        file.write(json.dumps({{"word": word, "pid": os.getpid(), **more}}) + "\\n")


def measure(**params):
    note("begin", params=params)
    time.sleep(random.Random(repr(params)).uniform({low}, {high}))
    value = (params["x"] - 0.3) ** 2 + 0.1 * params["k"]
    note("end", params=params, value=value)
    return value
"""

STUDY = """
name = "{name}"
budget = {budget}
{more}
[objective]
python = "diary_objective:measure"

[parameters]
x = [0.0, 1.0]
k = {{ type = "int", low = 0, high = 9 }}
"""


def pytest_collection_modifyitems(items):
    """Everything in this folder is a ``study`` test, but for one whole study that ``make quick`` runs too."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.name != "test_from_new_to_a_picture":
            item.add_marker("study")


@pytest.fixture(scope="session")
def postgres():
    server = start_server()
    yield server
    server.close()


@pytest.fixture
def make_study(tmp_path):
    """Writes a study whose objective notes in a diary what it begins and ends."""

    def make(budget=10, name="study", seconds=(0.0, 0.0), **settings):
        more = "\n".join(
            f"{key} = {value!r}".replace("True", "true").replace("False", "false") for key, value in settings.items()
        )
        (tmp_path / "diary_objective.py").write_text(OBJECTIVE.format(low=seconds[0], high=seconds[1]))
        sys.modules.pop("diary_objective", None)  # of another test, which ran its study in this process
        path = tmp_path / f"{name}.toml"
        path.write_text(textwrap.dedent(STUDY.format(name=name, budget=budget, more=more)))
        return path

    return make


_NUMBERS = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request):
    """Settings of a study for each kind of database."""
    if request.param == "sqlite":
        return {}
    return {"storage": request.getfixturevalue("postgres").database(f"study{next(_NUMBERS)}")}
