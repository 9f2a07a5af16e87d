"""Programs compiled ahead: nothing of it reaches the user's program."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import glasses
from glasses import Optimizer
from glasses.loop import rehearsal
from glasses.runtime.ahead import AHEAD, Ahead, StoppedError
from glasses.runtime.sources import own_imports, parsed_imports


@pytest.fixture
def ahead(monkeypatch):
    monkeypatch.setenv("GLASSES_COMPILE_AHEAD", "on")
    return Ahead()


def test_what_is_begun_is_done_once_and_waited_for(ahead):
    done, go = [], threading.Event()
    for _ in range(3):
        ahead.begin("key", lambda: go.wait(10) and done.append(threading.current_thread().name))
    ahead.wait(["key"], 0.01)
    assert done == []
    go.set()
    ahead.wait(["key"], 10)
    assert done == ["glasses-compile-ahead"]
    ahead.wait(["never begun"], 10)


def test_a_rehearsal_that_fails_is_forgotten_and_the_next_one_made(ahead, capfd):
    done = []
    ahead.begin("bad", lambda: 1 / 0)
    ahead.begin("good", lambda: done.append(1))
    ahead.wait(["good"], 10)
    assert done == [1]
    assert capfd.readouterr() == ("", "")


def test_at_the_end_the_current_program_is_finished_and_no_other_begun(ahead):
    began, go, reached = threading.Event(), threading.Event(), []

    def rehearse():
        began.set()
        go.wait(10)
        reached.append("finished")
        ahead.check()
        reached.append("another")

    ahead.begin("key", rehearse)
    began.wait(10)
    ahead.begin("later", lambda: reached.append("later"))
    threading.Timer(0.1, go.set).start()
    ahead.stop()
    assert reached == ["finished"]
    ahead.check()  # only the thread itself leaves
    ahead.begin("after the end", lambda: reached.append("after"))
    assert reached == ["finished"]
    assert issubclass(StoppedError, Exception)


def test_it_can_be_turned_off(ahead, monkeypatch):
    for word in ("off", "0", "no"):
        monkeypatch.setenv("GLASSES_COMPILE_AHEAD", word)
        assert not ahead.is_on()
        ahead.begin(word, lambda: pytest.fail("rehearsed"))


@pytest.mark.parametrize(
    ("budget", "told", "asked", "expected"),
    [
        (40, 4, 1, {("plan",)}),
        (8, 4, 1, set()),  # ends before there is a plan
        (40, 23, 1, set()),
        (40, 24, 1, {("data", 32, 5)}),
        (40, 22, 3, {("data", 32, 5)}),  # with those under way 24
        (32, 24, 1, set()),  # ends before they outgrow their size
        (40, 4, 4, {("plan",), ("pending", 9)}),  # the fifth to the seventh wait, before there is no room
    ],
)
def test_a_run_rehearses_the_plan_the_next_size_and_more_under_way(monkeypatch, budget, told, asked, expected):
    begun = set()
    monkeypatch.setenv("GLASSES_COMPILE_AHEAD", "on")
    monkeypatch.setattr(AHEAD, "enabled", True)
    monkeypatch.setattr(AHEAD, "begin", lambda key, action: begun.add(key[0]))
    optimizer = Optimizer([(0.0, 1.0)] * 2, budget=budget, seed=0)
    X = np.random.default_rng(0).random((told, 2))
    optimizer.tell(X, X.sum(axis=1))
    for _ in range(asked):
        optimizer.ask()
    assert begun == expected
    assert rehearsal.PATIENCE < 1.0


RUN = """
import numpy as np, glasses
from glasses.runtime.ahead import AHEAD
optimizer = glasses.Optimizer([(0.0, 1.0)] * 2, budget=14, seed=1)
for _ in range(14):
    x = optimizer.ask()
    optimizer.tell(x, float(np.sin(5 * x[0]) + x[1] ** 2))
print(np.array(optimizer.record().x_iters).tobytes().hex())
print(len(AHEAD._begun))
"""


@pytest.mark.slow
def test_decisions_do_not_depend_on_it(tmp_path):
    """Two processes, one that rehearses and one that does not: the same points to the last bit, nothing on standard error."""
    outputs = []
    for word in ("on", "off"):
        environment = os.environ | {"GLASSES_COMPILE_AHEAD": word}
        done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        outputs.append(done.stdout.split())
    assert outputs[0][0] == outputs[1][0]
    assert (int(outputs[0][1]) > 0, int(outputs[1][1])) == (True, 0)


def test_imports_of_this_package_are_read_off_its_lines_as_its_parser_sees_them():
    root = Path(glasses.__file__).parent
    for path in root.rglob("*.py"):
        if path.name == "template.py":  # holds a program of the user's in a text
            continue
        content = path.read_bytes()
        package = ".".join(("glasses", *path.relative_to(root).parent.parts))
        assert own_imports(content) == parsed_imports(ast.parse(content), package), path
