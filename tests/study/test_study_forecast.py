"""Studies that stop by a criterion, and what the rest of one is worth."""

import json
import sys

import numpy as np
import pytest
from pictures import drawn
from shell import dump, glasses

LINE = """
name = "line"
direction = "{direction}"
budget = 10
n_initial = 3
noise = 0.0
planner = "el"
seed = 1
[objective]
python = "line_objective:measure"
[parameters]
x = [0.0, 1.0]
{stop}
"""


@pytest.fixture(params=["minimize", "maximize"])
def line(request, tmp_path, monkeypatch):
    """Writes a study over one parameter whose best value is 1 in size, in either direction; its sign. ``top``: more keys."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "line_objective", raising=False)
    sign = 1 if request.param == "minimize" else -1
    (tmp_path / "line_objective.py").write_text(
        f"import math\n\n\ndef measure(x):\n    return {sign} * math.sin(7 * x + 2.5)\n"
    )
    path = tmp_path / "line.toml"

    def write(stop="", top=""):
        path.write_text(top + LINE.format(direction=request.param, stop=stop))
        return path

    return write, sign


def test_a_study_stops_when_its_criterion_says_so(line, capsys):
    write, sign = line
    path = write("[stop]\nprice = 1e6")
    out = glasses(capsys, "run", path)
    assert "Stopped: No further evaluations are expected to be worth 1e+06 each: 1 more would buy 0." in out
    assert "7 of 10 evaluations are saved." in out
    assert f"change [stop] in {path}" in out
    assert "Done: 3 of 10 evaluations." in out
    assert "[stop] of the study file is met: No further evaluations" in glasses(capsys, "show", path)
    assert "are saved" in glasses(capsys, "worker", path)  # again: nothing is evaluated
    write("[stop]\nprice = 1e-12\ntarget = " + str(sign * -0.999))
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    best = found["best"]["value"]
    assert found["stop"] is None
    assert sign * best > -0.999
    out = glasses(capsys, "run", path)
    best = json.loads(glasses(capsys, "show", path, "--format", "json"))["best"]["value"]
    assert sign * best <= -0.999
    assert f"Stopped: The best value, {best:.6g}, has reached the target, {sign * -0.999:g}." in out
    done = int(out.split("Done: ")[1].split()[0])
    assert 3 < done < 10
    assert f"{10 - done} of 10 evaluations are saved." in out
    assert "has reached the target" in glasses(capsys, "show", path)
    write("[stop]\nno_gain = 0.9")
    assert "Stopped: No realistic gain is left" in glasses(capsys, "run", path)
    write()
    assert "Done: 10 of 10" in glasses(capsys, "run", path)
    write("[stop]\nno_gain = 0.9")
    assert json.loads(glasses(capsys, "show", path, "--format", "json"))["stop"] is None  # nothing is left to stop
    assert "Stopped" not in glasses(capsys, "run", path)


def test_a_worker_that_would_stop_waits_for_the_others(line, capsys, monkeypatch):
    """One evaluation is under way elsewhere: its result is awaited, and here it changes the mind of nobody."""
    from glasses.study.file import read_study
    from glasses.study.objective import Evaluation
    from glasses.study.stored import StoredStudy
    from glasses.study.worker import _Stop

    path = line[0]("[stop]\nprice = 1e6")
    glasses(capsys, "run", path, "--most", "3")
    with StoredStudy(read_study(path)) as other:
        trial = other.claim()
        params = other.point(trial)
        waits = []

        def wait(self, seconds):
            waits.append(seconds)
            if len(waits) == 2:
                other.finish(trial, Evaluation(0.0), params)

        monkeypatch.setattr(_Stop, "wait", wait)
        out = glasses(capsys, "run", path)
    assert len(waits) == 2
    assert out.count("nothing more is to begin; waiting for 1 evaluations of other workers ...") == 1
    assert "Stopped: No further evaluations" in out
    assert "Done: 4 of 10 evaluations." in out


def test_a_forecast_in_the_units_and_the_direction_of_the_study(line, capsys, tmp_path):
    write, sign = line
    path = write()
    glasses(capsys, "run", path, "--most", "4")
    before = dump(path)
    with drawn(tmp_path / "ahead.png") as picture:
        out = glasses(capsys, "forecast", path, "--out", tmp_path / "ahead.png")
    found = json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    assert dump(path) == before
    np.testing.assert_allclose(picture.curve(0, "expected best")[1:, 1], [each["expected"] for each in found["steps"]])
    best = json.loads(glasses(capsys, "show", path, "--format", "json", "--no-plan"))["best"]["value"]
    assert found["best"] == pytest.approx(best, abs=1e-9)
    assert [each["k"] for each in found["steps"]] == [1, 2, 3, 4, 5, 6]
    for each in found["steps"]:
        assert each["low"] <= each["high"]
        assert sign * found["clairvoyant"] <= sign * each["expected"] + 1e-9
        assert sign * each["expected"] <= sign * best + 1e-9
        assert sign * each["open_loop"] <= sign * best + 1e-9
        optimistic = each["low"] if sign > 0 else each["high"]
        assert sign * optimistic <= sign * best + 1e-9
    gain = [sign * (best - each["expected"]) for each in found["steps"]]
    words = f"3 more evaluations are expected to buy {gain[2]:.3g}, the next 3 {gain[5] - gain[2]:.3g}."
    assert found["words"] == words
    lines = out.splitlines()
    assert lines[0].endswith(f"6 of 10 left; best value now {best:.6g}.")
    assert [row.split()[0] for row in lines[3:7]] == ["1", "2", "5", "6"]
    assert lines[3].split()[1] == f"{found['steps'][0]['expected']:.4g}"
    assert lines[-2:] == [words, f"Wrote {tmp_path / 'ahead.png'}."]
    short = glasses(capsys, "forecast", path, "--steps", "1").splitlines()
    assert short[-1] == f"1 more evaluation is expected to buy {gain[0]:.3g}."
    glasses(capsys, "ask", path)
    assert "5 of 10 left, 1 under way" in glasses(capsys, "forecast", path)


def test_forecasts_that_cannot_be_made(line, capsys, tmp_path):
    path = line[0]()
    glasses(capsys, "ask", path)
    assert "A forecast needs 3 values" in glasses(capsys, "forecast", path, status=2)
    glasses(capsys, "tell", path, "0.5")
    glasses(capsys, "run", path, "--most", "3")
    for steps, sentence in (
        ("0", "steps must be a whole number of at least 1, got 0"),
        ("129", "At most 128 evaluations can be forecast at once, got steps = 129"),
    ):
        assert sentence in glasses(capsys, "forecast", path, "--steps", steps, status=2)
    picture = tmp_path / "picture.xyz"
    assert f"{picture} cannot be drawn" in glasses(capsys, "forecast", path, "--out", picture, status=2)


def test_too_few_values_are_said_by_every_command(line, capsys, tmp_path):
    path = line[0]("[stop]\nprice = 1e6")
    glasses(capsys, "run", path, "--most", "2")
    words = "A forecast needs 3 values, two more than there are parameters, got 2: tell 1 more first."
    assert words in glasses(capsys, "forecast", path, status=2)
    shown = glasses(capsys, "show", path)
    assert shown.splitlines()[-1] == words
    assert "Expected best" not in shown
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert (found["note"], found["expected_best"], found["stop"]) == (words, None, None)
    assert glasses(capsys, "plot", path, "--out", tmp_path / "now.png").splitlines()[-1] == words


def test_one_number_everywhere(line, capsys, tmp_path):
    """forecast, show, plot, a plan, a raised budget and Optuna's sampler say the same of the same moment."""
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    write, sign = line
    path = write()
    glasses(capsys, "run", path, "--most", "5")
    out = glasses(capsys, "forecast", path)
    found = json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    end = found["steps"][-1]
    row = out.splitlines()[-3].split()
    assert row[:4] == ["5", *(f"{end[name]:.4g}" for name in ("expected", "low", "high"))]
    shown = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert shown["expected_best"] == pytest.approx(end["expected"], rel=1e-9)
    assert shown["expected_band"] == pytest.approx([end["low"], end["high"]], rel=1e-9)
    words = f"Expected best value at the end of the budget: {row[1]}, 80 % from {row[2]} to {row[3]}."
    assert words in glasses(capsys, "show", path).splitlines()
    with drawn(tmp_path / "now.png") as picture:
        glasses(capsys, "plot", path, "--out", tmp_path / "now.png")
    assert picture.curve(0, "expected best at the end")[0, 1] == pytest.approx(end["expected"], rel=1e-9)
    with StoredStudy(read_study(path), writing=False) as stored:
        plan = stored.optimizer().plan()
    assert sign * plan.expected_best == pytest.approx(end["expected"], rel=1e-9)
    beyond = json.loads(glasses(capsys, "forecast", path, "--steps", "12", "--format", "json"))
    assert beyond["steps"][4]["expected"] == pytest.approx(end["expected"], rel=1e-9)


def test_beyond_the_budget(line, capsys, tmp_path):
    write, sign = line
    path = write()
    glasses(capsys, "run", path, "--most", "6")
    with drawn(tmp_path / "ahead.png") as picture:
        out = glasses(capsys, "forecast", path, "--steps", "12", "--out", tmp_path / "ahead.png")
    np.testing.assert_array_equal(picture.curve(0, "the budget ends")[:, 0], [4, 4])
    rows = [row.split() for row in out.splitlines() if row[:1].isdigit() and "more" not in row]
    assert [row[0] for row in rows] == ["1", "2", "4", "9", "12"]
    assert "Beyond the budget, 5 more evaluations are expected to buy " in out
    assert f"The budget ends after 4 more: {rows[2][1]} is expected then, 80 % from {rows[2][2]} to {rows[2][3]}." in out
    glasses(capsys, "run", path)
    out = glasses(capsys, "forecast", path)
    assert "0 of 10 left" in out
    assert [row.split()[0] for row in out.splitlines()[3:4]] == ["5"]
    gain = sign * (lambda f: f["best"] - f["steps"][-1]["expected"])(
        json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    )
    assert out.splitlines()[-1] == f"Beyond the budget, 5 more evaluations are expected to buy {gain:.3g}."


def test_a_best_possible_value(line, capsys):
    """A floor, or the ceiling of a study that maximises; one that is beaten is said, in the units of the study."""
    write, sign = line
    path = write()
    glasses(capsys, "run", path, "--most", "5")
    free = json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    limit = free["best"] - 0.1 * (free["best"] - free["steps"][-1]["expected"])
    write(top=f"best_possible = {limit!r}\n")
    near = json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    assert near["best_possible"] == limit
    for each in near["steps"]:
        assert all(sign * each[name] >= sign * limit for name in ("expected", "low", "high", "open_loop"))
    assert sign * near["clairvoyant"] >= sign * limit
    assert near["note"] is None
    beaten = free["best"] + sign * 0.25
    write(top=f"best_possible = {beaten!r}\n")
    words = (
        f"best_possible = {beaten:.6g} is to be a value that none can beat, but {free['best']:.6g} was told: forecasts leave"
    )
    for command in ("forecast", "show"):
        assert words in glasses(capsys, command, path)
    now = json.loads(glasses(capsys, "forecast", path, "--format", "json"))
    assert now["steps"] == free["steps"]
    for given in ("nan", "inf", '"0"', "true"):
        write(top=f"best_possible = {given}\n")
        words = "key 'best_possible': best_possible must be a finite number in the units of y, got "
        assert words in glasses(capsys, "show", path, status=2)
