"""The mistakes of a person at the bench, one by one, through the command line. Each can be put right."""

import csv
import io
import json

import pytest
from pictures import drawn
from shell import dump, glasses

from glasses.study.file import read_study
from glasses.study.stored import StoredStudy

BENCH = """
name = "bench"
budget = 4
n_initial = 4

[parameters]
temperature = [20.0, 80.0]
k = { type = "int", low = 1, high = 5 }
"""


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(BENCH)
    return path


def summary(capsys, bench):
    return json.loads(glasses(capsys, "show", bench, "--no-plan", "--format", "json"))


def rows(capsys, bench, *more):
    return list(csv.DictReader(io.StringIO(glasses(capsys, "export", bench, *more), newline="")))


def done(capsys, bench, *values):
    for value in values:
        glasses(capsys, "ask", bench)
        glasses(capsys, "tell", bench, value)


def test_a_mistyped_result_is_corrected(bench, capsys):
    done(capsys, bench, "34.0")
    before = dump(bench)
    out = glasses(capsys, "correct", bench, "--trial", "0", "3.4", "--reason", "typing mistake")
    assert out == "Trial 0 is now 3.4 (it was 34). 3 of 4 left.\n"
    assert summary(capsys, bench)["best"]["value"] == 3.4
    assert [row["value"] for row in rows(capsys, bench)] == ["3.4"]
    assert set(before) <= set(dump(bench))  # nothing that was stored is gone
    told, corrected = rows(capsys, bench, "--history")
    assert (told["what"], told["after:value"], corrected["what"]) == ("told", "34.0", "correct")
    assert (corrected["before:value"], corrected["after:value"]) == ("34.0", "3.4")
    assert corrected["reason"] == "typing mistake"
    assert corrected["who"] == told["who"] != ""
    assert corrected["when"].endswith("+00:00")
    assert json.loads(glasses(capsys, "export", bench, "--history", "--format", "json"))[1]["after"]["value"] == 3.4


def test_a_negative_correction_and_a_failed_one(bench, capsys):
    done(capsys, bench, "34.0")
    assert "Trial 0 is now -0.001 (it was 34)" in glasses(capsys, "correct", bench, "--trial", "0", "-1e-3")
    assert "Trial 0 is now failed (it was -0.001)" in glasses(capsys, "correct", bench, "--trial", "0", "--failed")
    assert "Trial 0 is now 2 (it was failed)" in glasses(capsys, "correct", bench, "--trial", "0", "2")


def test_a_slightly_different_point_was_run(bench, capsys):
    glasses(capsys, "ask", bench)
    out = glasses(capsys, "tell", bench, "--trial", "0", "0.8", "--at", "temperature=33.0")
    assert out.startswith("Stored: trial 0. Trial 0 was done at temperature = 33, not ")
    assert out.endswith("3 of 4 left.\n")
    (row,) = rows(capsys, bench)
    assert (row["temperature"], row["value"]) == ("33.0", "0.8")
    out = glasses(capsys, "correct", bench, "--trial", "0", "--at", "temperature=35")
    assert out == "Trial 0 is now 0.8 at temperature = 35 (it was 0.8 at temperature = 33). 3 of 4 left.\n"
    with StoredStudy(read_study(bench)) as stored:
        assert stored.optimizer().record().x == {"temperature": 35.0, "k": int(row["k"])}
        assert stored.storage.raw_trials()[0].params["temperature"] not in (33.0, 35.0)


def test_another_point_can_be_noted_before_the_result(bench, capsys):
    glasses(capsys, "ask", bench)
    out = glasses(capsys, "correct", bench, "--trial", "0", "--at", "temperature=33")
    assert out.startswith("Trial 0 is now running at temperature = 33 (it was running at temperature = ")
    assert summary(capsys, bench)["open"][0]["params"]["temperature"] == 33.0
    assert glasses(capsys, "tell", bench, "0.8") == "Stored: trial 0. 3 of 4 left.\n"
    assert rows(capsys, bench)[0]["temperature"] == "33.0"


def test_a_result_is_withdrawn_and_brought_back(bench, capsys):
    done(capsys, bench, "1.0", "2.0")
    out = glasses(capsys, "withdraw", bench, "--trial", "0", "--reason", "wrong bottle")
    assert out == "Trial 0 (1) is withdrawn: no effect on the search, no cost. 3 of 4 left.\n"
    found = summary(capsys, bench)
    assert (found["complete"], found["withdrawn"], found["best"]["value"]) == (1, 1, 2.0)
    assert "1 complete, 1 withdrawn; 3 of 4 left" in glasses(capsys, "show", bench, "--no-plan")
    assert rows(capsys, bench)[0]["state"] == "withdrawn"
    assert "Trial 0 is withdrawn: `glasses undo` brings it back" in glasses(
        capsys, "tell", bench, "--trial", "0", "3", status=2
    )
    out = glasses(capsys, "undo", bench)
    assert out.startswith("Undone: the withdrawal of trial 0 by ")
    assert out.endswith(". Trial 0 is 1. 2 of 4 left.\n")
    assert "There is no change to undo" in glasses(capsys, "undo", bench, status=2)
    key = rows(capsys, bench, "--history")[2]["key"]
    assert "Undone: the undoing of trial 0" in glasses(capsys, "undo", bench, "--change", key)
    assert summary(capsys, bench)["withdrawn"] == 1


def test_an_experiment_that_was_never_done_is_cancelled(bench, capsys):
    point = json.loads(glasses(capsys, "ask", bench, "--format", "json"))[0]["params"]
    out = glasses(capsys, "cancel", bench, "--trial", "0")
    assert out.startswith("Trial 0 is cancelled: no effect on the search, no cost;")
    assert out.endswith("4 of 4 left.\n")
    assert "1 cancelled; 4 of 4 left" in glasses(capsys, "show", bench, "--no-plan")
    assert json.loads(glasses(capsys, "ask", bench, "--format", "json"))[0]["params"] == point
    out = glasses(capsys, "tell", bench, "--trial", "0", "7")
    assert out == "Stored: trial 0. Trial 0 had been cancelled: its result counts after all. 2 of 4 left.\n"
    assert summary(capsys, bench)["complete"] == 1


def test_a_queued_trial_that_was_cancelled_takes_a_result_all_the_same(bench, capsys):
    done(capsys, bench, "failed")
    glasses(capsys, "retry", bench, "--failed")
    glasses(capsys, "cancel", bench, "--trial", "1")
    assert "1 failed, 1 cancelled; 3 of 4 left" in glasses(capsys, "show", bench, "--no-plan")
    assert "its result counts after all. 3 of 4 left" in glasses(capsys, "tell", bench, "--trial", "1", "7")
    assert "1 complete, 1 tried again; 3 of 4 left" in glasses(capsys, "show", bench, "--no-plan")


def test_a_spent_budget_of_failures_is_tried_again(bench, capsys):
    done(capsys, bench, "failed", "failed", "1.0", "failed")
    assert "0 of 4 evaluations are left" in glasses(capsys, "ask", bench, status=2)
    out = glasses(capsys, "retry", bench, "--failed", "--reason", "the pump is mended")
    assert out == f"Queued again: trial 4, trial 5, trial 6. 3 of 4 left. Next: glasses ask {bench}\n"
    shown = glasses(capsys, "show", bench, "--no-plan")
    assert "1 complete, 3 tried again, 3 queued; 3 of 4 left" in shown
    assert "queued: trial 4" in shown
    assert [row["what"] for row in rows(capsys, bench, "--history")].count("retry") == 3
    assert [each["trial"] for each in json.loads(glasses(capsys, "ask", bench, "-n", "3", "--format", "json"))] == [4, 5, 6]
    for trial in (4, 5, 6):
        glasses(capsys, "tell", bench, "--trial", trial, "2.0")
    assert "4 complete, 3 tried again; 0 of 4 left" in glasses(capsys, "show", bench, "--no-plan")
    assert "No trial has failed" in glasses(capsys, "retry", bench, "--failed", status=2)
    assert "Trial 5 is complete: only failed trials" in glasses(capsys, "retry", bench, "--trial", "5", status=2)


def test_a_measured_result_is_never_refused_for_lack_of_budget(bench, capsys, tmp_path):
    done(capsys, bench, "1", "2", "3", "4")
    out = glasses(capsys, "tell", bench, "--at", "temperature=30", "--at", "k=2", "0.5")
    assert out == "Stored: trial 4. This is evaluation 5 of a budget of 4: 0 of 4 left.\n"
    table = tmp_path / "more.csv"
    table.write_text("temperature,k,value\n40,1,7\n50,2,8\n")
    assert "This is evaluation 7 of a budget of 4" in glasses(capsys, "tell", bench, "--csv", table)
    assert summary(capsys, bench)["left"] == 0
    assert "1 asked but 0 of 4" in glasses(capsys, "ask", bench, status=2)


def test_nan_is_stored_as_failed_and_says_so(bench, capsys):
    glasses(capsys, "ask", bench, "-n", "2")
    assert glasses(capsys, "tell", bench, "--trial", "1", "nan") == "Stored as failed: trial 1. 2 of 4 left.\n"
    assert summary(capsys, bench)["failed"] == 1


def test_a_typing_mistake_is_asked_for_again(bench, capsys, monkeypatch):
    glasses(capsys, "ask", bench, "-n", "3")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["o.5", "1e200", "0.5", "", "failed"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    out = glasses(capsys, "tell", bench)
    assert "The value must be a number, or `failed`, got 'o.5'. Once more, or Enter to leave it open." in out
    assert "beyond 1e100" in out
    assert out.endswith("Stored: trial 0. Stored as failed: trial 2. 1 of 4 left.\n")

    def ended(question):
        raise EOFError

    monkeypatch.setattr("builtins.input", ended)
    assert "Nothing to store." in glasses(capsys, "tell", bench)


def test_the_picture_counts_every_evaluation_that_costs_budget(bench, capsys):
    bench.write_text(BENCH.replace("budget = 4", 'budget = 6\nplanner = "el"').replace("n_initial = 4", "n_initial = 3"))
    done(capsys, bench, "1", "2", "3", "failed")
    glasses(capsys, "ask", bench)
    with drawn(bench.with_suffix(".png")) as picture:
        glasses(capsys, "plot", bench)
    assert picture.figure.get_suptitle() == "bench: 4 of 6 evaluations, 1 under way"


def test_what_cannot_be_is_refused_and_changes_nothing(bench, capsys):
    done(capsys, bench, "1.0", "failed")
    glasses(capsys, "ask", bench)
    before = dump(bench)
    for arguments, sentence in (
        (["correct", bench, "--trial", "0"], "A correction is missing"),
        (["correct", bench, "--trial", "0", "x"], "The value must be a number"),
        (["correct", bench, "--trial", "0", "1.0"], "Nothing to correct: trial 0 is 1 at that point already"),
        (["correct", bench, "--trial", "0", "--at", "temperature"], "--at takes name=value"),
        (["correct", bench, "--trial", "0", "--at", "temperature=999"], "lies outside [20, 80]"),
        (["correct", bench, "--trial", "-1", "2.0"], "There is no trial -1"),
        (["correct", bench, "--trial", "8", "2.0"], "There is no trial 8: the study has trials 0 to 2"),
        (["correct", bench, "--trial", "2", "2.0"], "Trial 2 has no result to correct yet"),
        (["withdraw", bench, "--trial", "2"], "cancel it instead"),
        (["cancel", bench, "--trial", "0"], "withdraw its result instead"),
        (["undo", bench], "There is no change to undo"),
        (["undo", bench, "--change", "x"], "There is no change 'x'"),
        (["retry", bench, "--trial", "0"], "only failed trials are tried again"),
        (["tell", bench, "--trial", "0", "2.0"], "`glasses correct` gives it another result"),
    ):
        assert sentence in glasses(capsys, *arguments, status=2), arguments
        assert dump(bench) == before, arguments


def test_a_worker_counts_what_is_changed(make_study, capsys, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    path = make_study(4, n_initial=4)
    glasses(capsys, "run", path, "--most", "3")
    glasses(capsys, "correct", path, "--trial", "0", "--failed")
    glasses(capsys, "withdraw", path, "--trial", "1")
    glasses(capsys, "retry", path, "--failed")
    out = glasses(capsys, "run", path)
    assert "Done: 4 of 4 evaluations." in out  # none of them failed: the one that had is done again
    assert len([line for line in out.splitlines() if "x=" in line]) == 3
    assert len((path.parent / "diary").read_text().splitlines()) == 2 * 6
