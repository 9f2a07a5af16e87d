"""A study file that changes: ranges, choices, parameters. Results stay evidence where they can, and what changed is said."""

import csv
import io
import json

import pytest
from optuna.trial import TrialState
from shell import dump, glasses

from glasses import Choice
from glasses.optuna.trials import is_lost
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy

FILE = """
budget = 14
n_initial = 4
seed = 3
{top}
[parameters]
x = {x}
how = {{ choices = {how} }}
{more}
"""


@pytest.fixture
def study(tmp_path):
    """Writes the file, or writes it anew."""

    def write(x="[0.0, 10.0]", how='["a", "b"]', more="", top=""):
        path = tmp_path / "study.toml"
        path.write_text(FILE.format(x=x, how=how, more=more, top=top))
        return path

    return write


def value_at(x, how):
    return (x - 3.0) ** 2 + (how == "b")


def tell(capsys, path, points):
    for x, how in points:
        glasses(capsys, "tell", path, "--at", f"x={x}", "--at", f"how={how}", value_at(x, how))


SIX = [(0.5, "a"), (2.0, "b"), (3.1, "a"), (5.0, "b"), (7.5, "a"), (9.5, "b")]


def changed(capsys, path):
    return json.loads(glasses(capsys, "show", path, "--no-plan", "--format", "json"))["changed"]


def test_a_narrowed_range_keeps_its_data(study, capsys):
    path = study()
    tell(capsys, path, SIX)
    assert changed(capsys, path) == []
    study(x="[4.0, 8.0]")
    assert changed(capsys, path) == ["4 of 6 evaluations lie outside today's ranges and are used by the model."]
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert found["complete"] == 6
    assert found["left"] == 8
    assert found["best"]["params"] == {"x": 5.0, "how": "b"}  # of those inside
    assert all(4 <= each["params"]["x"] <= 8 for each in [found["recommended"], *found["plan"]])
    shown = glasses(capsys, "show", path)
    assert "4 of 6 evaluations lie outside today's ranges and are used by the model." in shown
    assert "more evaluations are expected to buy" in glasses(capsys, "forecast", path)
    with StoredStudy(read_study(path)) as stored:
        optimizer = stored.optimizer()
        assert len(optimizer.values) == 6
        assert optimizer.result().fun == 5.0
        mean, _ = optimizer.predict({"x": 4.5, "how": "a"})
        assert mean[0] == pytest.approx(value_at(4.5, "a"), abs=1.5)
    for _ in range(2):
        asked = json.loads(glasses(capsys, "ask", path, "--format", "json"))[0]
        assert 4 <= asked["params"]["x"] <= 8
        glasses(capsys, "tell", path, value_at(**asked["params"]))
    glasses(capsys, "plot", path)
    study(x="[-5.0, 20.0]")
    assert changed(capsys, path) == []
    asked = json.loads(glasses(capsys, "ask", path, "--format", "json"))[0]
    assert -5 <= asked["params"]["x"] <= 20
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert [float(row["x"]) for row in rows[:6]] == [x for x, _ in SIX]


def test_with_all_data_outside_there_is_no_forecast_yet_and_no_best(study, capsys):
    path = study()
    tell(capsys, path, SIX[:4])
    study(x="[6.0, 8.0]")
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert found["best"] is None
    assert "got none: evaluate there first" in found["note"]
    assert "got none: evaluate there first" in glasses(capsys, "forecast", path, status=2)


def test_a_range_that_becomes_logarithmic_or_of_another_kind_is_refused(study, capsys):
    path = study()
    tell(capsys, path, SIX[:1])
    for x in ("{ low = 0.1, high = 10.0, log = true }", '{ type = "int", low = 0, high = 10 }', "{ choices = [1, 2] }"):
        study(x=x)
        assert "Parameter 'x' of the stored study 'study' is of another kind in the file" in glasses(
            capsys, "show", path, status=2
        )


def test_what_a_logarithmic_range_cannot_hold_is_kept_and_not_used(study, capsys):
    path = study(x='{ type = "int", low = 1, high = 10, log = true }')
    tell(capsys, path, [(1, "a"), (5, "b")])
    study(x='{ type = "int", low = 4, high = 10, log = true }')
    assert changed(capsys, path) == ["1 of 2 evaluations lies outside today's ranges and is used by the model."]


def test_choices_are_added_and_removed(study, capsys, storage):
    top = "\n".join(f'{key} = "{each}"' for key, each in storage.items())
    path = study(top=top)
    with StoredStudy(read_study(path)) as stored:
        first = stored.claim()
        params = stored.point(first)
        stored.finish(first, Evaluation(value_at(**params)), params)
    tell(capsys, path, SIX)
    study(how='["b", "c", "a"]', top=top)
    assert changed(capsys, path) == []
    with StoredStudy(read_study(path)) as stored:
        assert len(stored.optimizer().values) == 7
        assert [trial.params["how"] for trial in stored.trials()[1:]] == [how for _, how in SIX]
        seen = set()
        for _ in range(3):
            trial = stored.claim()
            params = stored.point(trial)
            seen.add(params["how"])
            stored.finish(trial, Evaluation(1.0 if params["how"] != "c" else -1.0), params)
        assert "c" in seen
    tell(capsys, path, [(1.0, "c")])
    study(how='["a", "c"]', top=top)
    with StoredStudy(read_study(path)) as stored:
        gone = sum(trial.params["how"] == "b" for trial in stored.trials())
        used = len(stored.trials()) - gone
        assert gone >= 3
        optimizer = stored.optimizer()
        assert len(optimizer.values) == used
        assert stored.left() == 14 - 11
        assert optimizer.remaining == 3
        assert Choice(["a", "c"]) in optimizer.space.parameters
    assert changed(capsys, path) == [f"{gone} have how = b, which is no choice any more: kept, not used."]
    assert "is no choice any more: kept, not used." in glasses(capsys, "show", path, "--no-plan")


def test_a_parameter_is_added_with_what_the_older_trials_had(study, capsys):
    path = study()
    tell(capsys, path, SIX)
    before = dump(path)
    study(more="load = { low = 1, high = 5 }")
    words = glasses(capsys, "ask", path, status=2)
    assert "has no parameter 'load', the file has one: give it default = ..., the value that the stored trials had" in words
    assert dump(path) == before
    study(more="load = { low = 1, high = 5, default = 2 }")
    assert changed(capsys, path) == ["6 have no load: taken as 2.0 (default)."]
    with StoredStudy(read_study(path)) as stored:
        assert {x["load"] for x in stored.optimizer().record().x_iters} == {2.0}
    asked = json.loads(glasses(capsys, "ask", path, "--format", "json"))[0]
    assert asked["params"].keys() == {"x", "how", "load"}
    glasses(capsys, "tell", path, "0.1")
    found = json.loads(glasses(capsys, "show", path, "--no-plan", "--format", "json"))
    assert found["best"]["params"] == {"x": 3.1, "how": "a", "load": 2.0}
    study(more="load = { low = 4, high = 5, default = 2 }")
    assert "lie outside today's ranges and are used by the model." in changed(capsys, path)[0]


def test_a_parameter_is_dropped_with_a_confirmation(study, capsys):
    path = study(more="load = [1.0, 5.0]")
    for load in (1.0, 2.0, 4.0):
        glasses(capsys, "tell", path, "--at", f"x={load}", "--at", "how=a", "--at", f"load={load}", load)
    study()
    words = glasses(capsys, "show", path, status=2)
    assert "has a parameter 'load', the file has not: to go on without it write dropped = [\"load\"] at the top" in words
    study(top='dropped = ["load"]')
    assert changed(capsys, path) == ["3 have a parameter load, which was dropped: used whatever it was."]
    with StoredStudy(read_study(path)) as stored:
        assert stored.optimizer().values == [1.0, 2.0, 4.0]
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert [row["load"] for row in rows] == ["1.0", "2.0", "4.0"]
    glasses(capsys, "ask", path)
    glasses(capsys, "tell", path, "0.5")


def test_what_is_under_way_when_the_file_changes(study, capsys):
    """An experiment asked for before is told after; a queued point that the file no longer has is not run."""
    path = study()
    asked = json.loads(glasses(capsys, "ask", path, "-n", "2", "--format", "json"))
    with StoredStudy(read_study(path)) as stored:
        queued = stored.claim()
        params = stored.point(queued)
        stored.give_back(queued)
    study(x="[20.0, 30.0]", more="load = { low = 1, high = 5, default = 2 }", how='["b", "c"]')
    with StoredStudy(read_study(path)) as stored:
        stored._heartbeats.unchanged = lambda *_: 1e9
        assert stored.requeue_lost() == []  # those asked for by hand are not taken for dead
        trial = stored.claim()
        assert trial.params == params
        assert stored.point(trial) is None
        assert is_lost(stored.trials()[trial.number])
        trial = stored.claim()
        assert 20 <= stored.point(trial)["x"] <= 30
        assert stored.left() == 11
        stored.finish(queued, Evaluation(7.0), params)  # its worker comes back after all
        late = stored.trials()[-1]
        assert (late.value, late.params, late.state) == (7.0, params, TrialState.COMPLETE)
    glasses(capsys, "tell", path, "--trial", asked[0]["trial"], "0.25")
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert [row["value"] for row in rows if row["state"] == "complete"] == ["0.25", "7.0"]
