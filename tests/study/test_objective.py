"""Objectives: what is understood of them, and that a value can never become a command."""

import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from glasses.study.file import read_study
from glasses.study.objective import Command, PythonFunction, fill, placeholders, understood
from glasses.study.report import rows_of
from glasses.study.stored import StoredStudy

PRINT = "import sys; print('some talk'); print(sys.argv[1])"


def command(*arguments, folder=Path("."), timeout=None):
    return Command((sys.executable, *arguments), folder, timeout).prepare([])


@pytest.mark.parametrize(
    ("result", "value", "reason"),
    [
        (1, 1.0, None),
        (np.float32(0.5), 0.5, None),
        (np.array([2.0]), 2.0, None),
        ({"value": -3, "mass": 4.0}, -3.0, None),
        (math.nan, None, "gave nan"),
        (-math.inf, None, "gave -inf"),
        (1e200, None, "gave 1e+200"),
        (None, None, "gave None, not a number"),
        ("1.5", None, "gave '1.5', not a number"),
        (True, None, "gave True, not a number"),
        ([1.0, 2.0], None, "gave [1.0, 2.0], not a number"),
        ({"mass": 4.0}, None, "gave no value, only mass"),
        ({"value": 10**400}, None, "gave inf"),
        ("\x1b[2J", None, "gave '\\x1b[2J', not a number"),
    ],
)
def test_results(result, value, reason):
    found = understood(result)
    assert (found.value, found.reason) == (value, reason)


def test_whatever_else_is_said_can_be_stored():
    extras = understood({"value": 1, "list": [1, 2], "nan": math.nan, "object": object, "\ud800": 1}).extras
    assert extras == {"list": [1, 2], "nan": "nan", "object": "<class 'object'>", "?": 1}


@pytest.mark.parametrize(
    ("line", "value"),
    [("0.25", 0.25), ("-1e-3", -1e-3), ('{"value": 2, "more": [1]}', 2.0), ("nan", None), ("done", None), ("[1]", None)],
)
def test_the_last_line_of_a_command_is_its_result(line, value):
    assert command("-c", PRINT, "{x}")({"x": line}, 0).value == value


def test_commands_that_fail():
    assert command("-c", "import sys; sys.exit('no \x1b[31mfuel')")({}, 0).reason == "ended with status 1: no ?[31mfuel"
    assert command("-c", "import os; os.kill(os.getpid(), 9)")({}, 0).reason == "ended with signal 9"
    assert "printed nothing" in command("-c", "")({}, 0).reason
    with pytest.raises(ValueError, match="program 'no-such-program' is not found"):
        Command(("no-such-program",), Path(".")).prepare([])


def test_a_timeout_ends_the_command_and_its_children(tmp_path):
    child = "import time; time.sleep(1.5); open('alive', 'w')"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    began = time.monotonic()
    assert command("-c", code, folder=tmp_path, timeout=0.5)({}, 0).reason == "took longer than 0.5 s"
    assert time.monotonic() - began < 10
    time.sleep(1.6)
    assert not (tmp_path / "alive").exists()


@pytest.mark.parametrize(
    "value", ["; touch pwned", "$(touch pwned)", "`touch pwned`", "| touch pwned", "a b\n'\"", "{x}{trial}", "-rf", ""]
)
def test_a_value_never_becomes_a_command(tmp_path, value):
    code = "import json, sys; print(json.dumps(dict(value=len(sys.argv), got=sys.argv[1])))"
    found = command("-c", code, "{x}", folder=tmp_path)({"x": value}, 3)
    assert found.value == 2
    assert found.extras == {"got": value}
    assert list(tmp_path.iterdir()) == []


def test_placeholders():
    assert placeholders(["--a={a}", "{{b}}", "{c}{c}"]) == ["a", "c", "c"]
    assert fill("--a={a} {{b}} {trial}", {"a": 0.1, "trial": 7}) == "--a=0.1 {b} 7"
    assert fill("{flag}", {"flag": True}) == "true"
    assert fill("{small}", {"small": 1e-7}) == "1e-07"


def test_python_functions(tmp_path, monkeypatch):
    (tmp_path / "some_objective.py").write_text(
        "import sys\nnumber = 3\n"
        "def f(a, b): return {'value': a / b, 'who': 'f'}\ndef leave(a, b): sys.exit(4)\ndef other(a, c): ..."
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    evaluate = PythonFunction("some_objective:f", tmp_path).prepare(["a", "b"])
    assert evaluate({"a": 1.0, "b": 2.0}, 0).value == 0.5
    assert evaluate({"a": 1.0, "b": 0.0}, 0).reason == "ZeroDivisionError: float division by zero"
    assert PythonFunction("some_objective:leave", tmp_path).prepare(["a", "b"])({"a": 1, "b": 2}, 0).reason == "SystemExit: 4"
    for target, sentence in (
        ("some_objective:other", r"other\(a, c\) does not take the parameters a, b: missing a required argument: 'c'"),
        ("some_objective:g", "cannot be loaded: AttributeError"),
        ("no_such_module_here:f", "cannot be loaded: ModuleNotFoundError"),
        ("some_objective:number", "is not a function but 3"),
    ):
        with pytest.raises(ValueError, match=sentence):
            PythonFunction(target, tmp_path).prepare(["a", "b"])


FORKING = """
import os, sys


def measure(x):
    print("begun", end=" ")  # stays in the buffer, which a child inherits
    child = os.fork()
    if child == 0:
        {child}
    _, status = os.waitpid(child, 0)
    print("status", os.waitstatus_to_exitcode(status))
    return x
"""


@pytest.mark.parametrize(
    ("child", "status", "complaint"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no fuel')", 1, "no fuel"),
        ("return 5.0", 0, ""),
        ("raise RuntimeError('no air')", 1, "RuntimeError: no air"),
        ("raise KeyboardInterrupt", 1, "\nKeyboardInterrupt\n"),
        ("os.close(2); raise RuntimeError", 1, ""),
    ],
)
def test_a_child_that_comes_back_from_the_objective_stores_nothing(tmp_path, child, status, complaint):
    (tmp_path / "forking.py").write_text(FORKING.replace("{child}", child))
    path = tmp_path / "study.toml"
    path.write_text("budget = 3\nn_initial = 3\n[objective]\npython = 'forking:measure'\n[parameters]\nx = [0.0, 1.0]")
    done = subprocess.run(
        [sys.executable, "-m", "glasses", "run", path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.count("begun status") == 3
    assert done.stdout.count("begun") == 3
    assert done.stdout.count(f"status {status}\n") == 3
    assert done.stdout.count("Done: 3 of 3 evaluations.") == 1
    assert done.stderr.count("Traceback") == (3 if "Error" in complaint or "Interrupt" in complaint else 0)
    assert done.stderr.count(complaint or "Traceback") == (3 if complaint else 0)
    with StoredStudy(read_study(path)) as stored:
        rows = rows_of(stored)
    assert [row["value"] for row in rows] == [row["x"] for row in rows]
    assert len(rows) == 3
