"""A broken objective does not eat the budget: the first evaluations that fail in one way stop the run, and cost nothing."""

import json

import pytest
from optuna.trial import TrialState as State
from optuna.trial import create_trial
from shell import glasses

from glasses.optuna.trials import BROKEN, LOST, SIGN, broken_by
from glasses.study.file import read_study
from glasses.study.stored import StoredStudy


def write(folder, objective, command=None, more=""):
    module = f"o{abs(hash((objective, str(folder)))) % 10**9}"
    (folder / f"{module}.py").write_text(objective)
    said = f'python = "{module}:measure"' if command is None else f"command = {command!r}"
    path = folder / "study.toml"
    path.write_text(f"budget = 8\nn_initial = 8\n{more}\n[objective]\n{said}\n[parameters]\nx = [0.0, 1.0]\n")
    return path


TYPO = "def helper(x):\n    return nme + x\n\n\ndef measure(x):\n    return helper(x)\n"


def test_a_typo_stops_the_run_and_costs_nothing(tmp_path, capsys):
    path = write(tmp_path, TYPO)
    out = glasses(capsys, "run", path, status=1)
    assert "the first 3 evaluations failed in the same way" in out
    assert "They cost nothing: 8 of 8 evaluations are left" in out
    assert "    Traceback (most recent call last):" in out
    assert "in helper\n        return nme + x" in out
    assert "NameError: name 'nme' is not defined" in out
    assert "objective.py" not in out  # no frames of this package
    assert f"Once it is mended: glasses run {path}     (to go on as it is: glasses run {path} --keep-going)" in out
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert (found["failed"], found["free_failures"], found["left"]) == (3, 3, 8)
    assert found["last_failure"]["reason"] == "NameError: name 'nme' is not defined"
    assert "return nme + x" in found["last_failure"]["details"]
    assert "3 of the failed ones cost nothing: the objective was broken." in glasses(capsys, "show", path)
    assert "failed in the same way" in glasses(capsys, "run", path, status=1)  # again, and free again
    with StoredStudy(read_study(path)) as stored:
        points = [trial.params["x"] for trial in stored.trials()]
        assert points[:3] == points[3:]  # they do not repel the search
        assert stored.optimizer().record().failures == []
        assert stored.left() == 8
    mended = write(tmp_path, TYPO.replace("nme", "1.0"))
    assert "Done: 8 of 8 evaluations." in glasses(capsys, "run", mended)


def test_keep_going_goes_on(tmp_path, capsys):
    path = write(tmp_path, TYPO)
    out = glasses(capsys, "run", path, "--keep-going", status=1)
    assert "Done: 8 of 8 evaluations, 8 of them failed" in out
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert (found["failed"], found["free_failures"], found["left"]) == (8, 0, 0)


def test_a_command_that_ends_at_once_with_an_error(tmp_path, capsys):
    path = write(tmp_path, "", "sh -c 'echo first line >&2; echo no such model {x} >&2; exit 3'")
    out = glasses(capsys, "worker", path, status=1)
    assert "the first 3 evaluations failed in the same way" in out
    assert "    first line\n    no such model 0." in out
    assert "8 of 8 evaluations are left" in out


def test_failures_that_differ_or_come_after_a_success_cost_budget(tmp_path, capsys):
    several = "calls = []\ndef measure(x):\n    calls.append(x)\n    raise ValueError if len(calls) % 2 else OSError\n"
    assert "Done: 8 of 8 evaluations, 8 of them failed" in glasses(capsys, "run", write(tmp_path, several), status=1)
    (tmp_path / "study.db").unlink()
    later = "calls = []\ndef measure(x):\n    calls.append(x)\n    if len(calls) > 1:\n        raise ValueError\n    return x\n"
    assert "Done: 8 of 8 evaluations, 7 of them failed" in glasses(capsys, "run", write(tmp_path, later))
    (tmp_path / "study.db").unlink()
    nothing = "def measure(x):\n    return float('nan')\n"
    assert "8 of them failed" in glasses(capsys, "run", write(tmp_path, nothing), status=1)
    assert glasses(capsys, "run", write(tmp_path, nothing), "--most", "1", status=1)


def failed(number, sign="A", **marks):
    trial = create_trial(state=State.FAIL, system_attrs={SIGN: sign, **marks})
    trial.number = number
    return trial


@pytest.mark.parametrize(
    ("trials", "found"),
    [
        ([failed(0), failed(1)], [0, 1, 9]),
        ([failed(0)], []),
        ([failed(0), failed(1, "B")], []),
        ([failed(0, None), failed(1)], []),
        ([failed(0), failed(1, **{LOST: True})], []),
        ([failed(0), failed(1), failed(2, **{BROKEN: [0, 1, 2]}), failed(3)], []),  # those were free already
        ([failed(0), failed(1), failed(2)], [0, 1, 2, 9]),
        ([failed(0), failed(1), create_trial(value=1.0)], []),
    ],
)
def test_when_an_objective_is_broken(trials, found):
    assert broken_by(trials, 9, "A") == found
    assert broken_by(trials, 9, None) == []
