"""The commands as a person uses them: from `glasses new` to a picture, at the bench, and with every wrong input."""

import csv
import io
import json
import re
import sqlite3
import subprocess
import sys
import tomllib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pictures import drawn
from shell import dump, glasses

from glasses.cli import main
from glasses.runtime.cache import read, write
from glasses.study.worker import _duration

BENCH = """
name = "bench"
budget = 12
n_initial = 12

[parameters]
x = [0.0, 1.0]
k = { type = "int", low = 1, high = 5 }
how = { choices = ["warm", "cold", "2"] }
"""


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(BENCH)
    return path


def test_from_new_to_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "study.toml"
    assert f"glasses run {path}" in glasses(capsys, "new", path)
    path.write_text(path.read_text().replace("budget = 20", 'budget = 12\nplanner = "el"'))
    out = glasses(capsys, "run", path, "--most", "9")
    assert len(out.splitlines()) == 2 + 9
    out = glasses(capsys, "run", path)
    assert "Done: 12 of 12 evaluations" in out
    assert len(out.splitlines()) >= 2 + 3
    shown = glasses(capsys, "show", path)
    assert "12 complete; 0 of 12 left" in shown
    assert "recommended" in shown
    with drawn(tmp_path / "study.png") as picture:
        assert "Wrote" in glasses(capsys, "plot", path)
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert picture.curve(0, "evaluation")[:, 1] == pytest.approx([float(row["value"]) for row in rows])
    assert len(rows) == 12
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert found["best"]["value"] == min(float(row["value"]) for row in rows)
    path.write_text(path.read_text().replace("budget = 12", "budget = 13"))
    found = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert found["left"] == 1 == len(found["plan"])
    assert found["expected_best"] <= found["best"]["value"]
    assert "Done: 13 of 13" in glasses(capsys, "run", path)


def test_a_bench_session(bench, capsys, tmp_path, monkeypatch):
    out = glasses(capsys, "ask", bench)
    assert out.splitlines()[0].split() == ["trial", "x", "k", "how"]
    assert "11 of 12 left" in out
    assert "Stored: trial 0. 11 of 12 left." in glasses(capsys, "tell", bench, "-1.5e-3")
    asked = json.loads(glasses(capsys, "ask", bench, "-n", "3", "--format", "json"))
    assert [each["trial"] for each in asked] == [1, 2, 3]
    assert isinstance(asked[0]["params"]["k"], int)
    assert "running: trial 2" in glasses(capsys, "show", bench, "--no-plan")
    glasses(capsys, "tell", bench, "--trial", "2", "0.5")
    glasses(capsys, "tell", bench, "--trial", "1", "--failed")
    glasses(capsys, "tell", bench, "--at", "x=0.25", "--at", "k=2", "--at", "how=2", "0.75")
    results = tmp_path / "results.csv"
    results.write_text("trial,x,k,how,value\n3,,,,0.3\n,0.5,1,cold,0.1\n,0.5,2,cold,failed\n,0.5,3,warm,\n")
    assert "1 rows had no value yet. 5 of 12 left" in glasses(capsys, "tell", bench, "--csv", results)
    results.write_text("trial,value\n3,0.3\n")
    assert "Nothing to store. 1 rows were told before." in glasses(capsys, "tell", bench, "--csv", results)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    glasses(capsys, "ask", bench, "-n", "2")
    answers = iter(["0.9", ""])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    glasses(capsys, "tell", bench)
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", bench))))
    states = [row["state"] for row in rows]
    assert states == ["complete", "failed", "complete", "complete", "complete", "complete", "failed", "complete", "running"]
    assert float(rows[0]["value"]) == -1.5e-3
    assert rows[4]["how"] == "2"
    assert rows[1]["reason"] == "told as failed"


def test_an_interrupted_ask_takes_no_place(bench, capsys, monkeypatch):
    from glasses.optuna.sampler import GlassesSampler

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GlassesSampler, "_suggest", interrupted)
        glasses(capsys, "ask", bench, status=130)
    assert "12 of 12 left" in glasses(capsys, "show", bench, "--no-plan")


def test_asking_for_more_than_a_finite_space_holds(bench, capsys):
    bench.write_text("budget = 9\nnoise = 0.0\n[parameters]\nhow = { choices = ['a', 'b', 'c'] }")
    assert len(json.loads(glasses(capsys, "ask", bench, "-n", "5", "--format", "json"))) == 3
    assert "All 3 configurations" in glasses(capsys, "ask", bench, status=2)


def test_the_result_of_a_lost_evaluation_can_still_be_told(bench, capsys):
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    with StoredStudy(read_study(bench)) as stored:
        trial = stored.claim()
        stored.point(trial)
        stored.give_back(trial)
    assert "Stored: trial 0. 11 of 12 left" in glasses(capsys, "tell", bench, "--trial", "0", "0.5")
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", bench))))
    assert [row["state"] for row in rows] == ["lost", "complete"]
    assert rows[1]["glasses:late_result_of"] == "0"


def test_a_value_between_two_steps_is_refused_before_anything_is_stored(bench, capsys, tmp_path):
    bench.write_text('budget = 9\n[parameters]\nminutes = { type = "int", low = 5, high = 60, step = 5 }')
    glasses(capsys, "ask", bench)
    before = dump(bench)
    table = tmp_path / "table.csv"
    table.write_text("minutes,value\n10,1.0\n7,2.0\n")
    assert f"{table}, line 3: minutes = 7 lies between two steps" in glasses(capsys, "tell", bench, "--csv", table, status=2)
    assert dump(bench) == before


SPACES = """
budget = 20
n_initial = 20

[parameters]
x = [0.0, 1.0]
c = { choices = ["a", " a", "b ", "two\\nlines", "\\u2028", 3, true] }
"""


def test_a_choice_is_taken_by_its_exact_text(bench, capsys, tmp_path):
    bench.write_text(SPACES)
    table = tmp_path / "table.csv"
    told = [
        ("a", "a"),
        (" a", " a"),
        ("b ", "b "),
        ("two\nlines", "two\nlines"),
        ("\u2028", "\u2028"),
        (" 3 ", 3),
        ("true", True),
    ]
    for text, _ in told:
        glasses(capsys, "tell", bench, "--at", "x= 0.5 ", "--at", f"c={text}", "1.0")
    rows = json.loads(glasses(capsys, "export", bench, "--format", "json"))
    assert [row["c"] for row in rows] == [value for _, value in told]
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", "c", "value"], *([" 0.5 ", text, "2.0"] for text, _ in told)])
    glasses(capsys, "tell", bench, "--csv", table)
    rows = json.loads(glasses(capsys, "export", bench, "--format", "json"))
    assert [row["c"] for row in rows] == [value for _, value in told] * 2
    before = dump(bench)
    for text in ("b", "a ", " true", "twolines", ""):
        refused = f"must be one of 'a', ' a', 'b ', 'two\\nlines', '\\u2028', 3, True, got {text!r}"
        assert refused in glasses(capsys, "tell", bench, "--at", "x=0.5", "--at", f"c={text}", "1.0", status=2)
        table.write_text(f"x,c,value\n0.5,{text},1.0\n")
        assert refused in glasses(capsys, "tell", bench, "--csv", table, status=2)
    assert dump(bench) == before


def test_ranges_that_leave_all_data_outside(bench, capsys):
    glasses(capsys, "tell", bench, "--at", "x=0.1", "--at", "k=1", "--at", "how=warm", "0.5")
    bench.write_text(BENCH.replace("x = [0.0, 1.0]", "x = [0.5, 1.0]"))
    assert "nan" not in glasses(capsys, "show", bench)
    found = json.loads(glasses(capsys, "show", bench, "--format", "json"))
    assert found["best"] is None
    assert found["plan"][0]["mean"] == pytest.approx(0.5)  # from the one value, which the model still uses


def test_refused_input_changes_nothing(bench, capsys, tmp_path):
    glasses(capsys, "ask", bench, "-n", "2")
    glasses(capsys, "tell", bench, "--trial", "0", "1.0")
    before = dump(bench)
    bad = tmp_path / "bad.csv"
    bad.write_text("x,k,how,value\n0.5,1,warm,1.0\n0.5,9,warm,2.0\n")
    few = tmp_path / "few.csv"
    few.write_text("x,value\n0.5,1.0\n")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("x,k,how,value\n0.5,1\n")
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("a,b\n1,2\n")
    for arguments, sentence in (
        (["tell", bench, "fast"], "The value must be a number, or `failed`, got 'fast'"),
        (["tell", bench, "1e200"], "beyond 1e100"),
        (["tell", bench, "--trial", "0", "2.0"], "Trial 0 was told before"),
        (["tell", bench, "--trial", "77", "2.0"], "There is no open trial 77"),
        (["tell", bench, "--trial", "1"], "A value is missing"),
        (["tell", bench, "--trial", "1", "2.0", "--failed"], "a value or has failed, not both"),
        (["tell", bench, "--trial", "1", "--at", "x=2", "2.0"], "--at['x'] = 2 lies outside [0, 1]"),
        (["tell", bench, "--trial", "1", "--at", "y=2", "2.0"], "There is no parameter 'y'"),
        (["tell", bench, "--at", "x=1", "2.0"], "must name exactly x, k, how"),
        (["tell", bench, "--at", "x", "2.0"], "--at takes name=value"),
        (["tell", bench, "--at", "x=1", "--at", "k=1.5", "--at", "how=warm", "2.0"], "must be a whole number"),
        (["tell", bench, "--at", "x=1", "--at", "k=1", "--at", "how=hot", "2.0"], "must be one of 'warm', 'cold', '2'"),
        (["tell", bench, "--csv", bad], f"{bad}, line 3: "),
        (["tell", bench, "--csv", few], "must be a number, got ''"),
        (["tell", bench, "--again", "2.0"], "go with --csv FILE"),
        (["tell", bench, "--csv", ragged], "line 2: expected 4 cells"),
        (["tell", bench, "--csv", nothing], "needs a column named value"),
        (["tell", bench, "--csv", tmp_path / "none.csv"], "No such file"),
        (["tell", bench, "--csv", bad, "1.0"], "--csv holds the results itself"),
        (["ask", bench, "-n", "11"], "11 asked but 10 of 12 evaluations are left (1 under way)"),
        (["ask", bench, "-n", "0"], "-n must be at least 1"),
        (["run", bench], "has no [objective] to run"),
        (["run", bench, "--most", "0"], "--most must be at least 1"),
        (["plot", bench, "--out", tmp_path / "picture.xyz"], "cannot be drawn"),
    ):
        assert sentence in glasses(capsys, *arguments, status=2), arguments
        assert dump(bench) == before, arguments


@settings(max_examples=60)
@given(
    value=st.one_of(st.text(max_size=6), st.floats().map(str), st.sampled_from(["failed", "nan", ""])),
    trial=st.one_of(st.none(), st.integers(-2, 4)),
    at=st.lists(
        st.one_of(st.text(max_size=6), st.tuples(st.sampled_from(["x", "k", "how", "z"]), st.text(max_size=4)).map("=".join)),
        max_size=4,
    ),
)
@example(value="1e9", trial=1, at=[])
def test_any_result_is_stored_or_refused(bench, capsys, value, trial, at):
    if not bench.with_suffix(".db").exists():
        glasses(capsys, "ask", bench, "-n", "2")
    before = dump(bench)
    arguments = [
        "tell",
        str(bench),
        *(f"--at={each}" for each in at),
        *([] if trial is None else [f"--trial={trial}"]),
        "--",
        value,
    ]
    capsys.readouterr()
    status = main(arguments)
    printed = capsys.readouterr()
    assert status in (0, 2)
    if status == 2:
        assert printed.err.startswith("glasses: ")
        assert printed.err.rstrip().endswith(".")
        assert dump(bench) == before
    else:
        assert "Stored" in printed.out
        bench.with_suffix(".db").unlink()


@settings(max_examples=60)
@given(
    text=st.one_of(
        st.text(max_size=60),
        st.lists(
            st.lists(st.sampled_from(["x", "k", "how", "value", "trial", "0.5", "1", "warm", '"', "nan", ""]), max_size=5).map(
                ",".join
            ),
            max_size=4,
        ).map("\n".join),
    )
)
def test_any_table_is_stored_or_refused(bench, capsys, text):
    if not bench.with_suffix(".db").exists():
        glasses(capsys, "ask", bench, "-n", "2")
    before = dump(bench)
    table = bench.with_name("table.csv")
    table.write_text(text, encoding="utf-8", newline="")
    capsys.readouterr()
    status = main(["tell", str(bench), "--csv", str(table)])
    printed = capsys.readouterr()
    if status == 2:
        assert printed.err.startswith("glasses: ")
        assert dump(bench) == before
    else:
        assert status == 0
        bench.with_suffix(".db").unlink()


def test_looking_runs_nothing_and_writes_nothing(tmp_path, capsys, monkeypatch):
    """show, plot and export: neither the objective nor anything in the database is executed, and nothing is created."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "study.toml"
    path.write_text(BENCH.replace("[parameters]", '[objective]\npython = "trap:measure"\n[parameters]'))
    (tmp_path / "trap.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('sprung').touch()\ndef measure(**p): return 1.0"
    )
    for command in ("show", "forecast", "plot", "export"):
        assert "There is no database" in glasses(capsys, command, path, status=2)
    assert not path.with_suffix(".db").exists()
    glasses(capsys, "ask", path, "-n", "3")
    for trial in range(3):
        glasses(capsys, "tell", path, "--trial", trial, 0.5 * trial)
    with sqlite3.connect(path.with_suffix(".db")) as database:  # somebody else's database may hold anything
        database.execute("update trial_user_attributes set value_json = '\"x\"'")
        database.execute(
            "insert into trial_user_attributes (trial_id, key, value_json) values (1, 'evil', '\"\\u001b[2J=cmd()\"')"
        )
    before = dump(path)
    shown = glasses(capsys, "show", path) + glasses(capsys, "export", path, "--format", "json")
    glasses(capsys, "plot", path)
    assert "\x1b" not in shown
    assert not (tmp_path / "sprung").exists()
    assert dump(path) == before


def test_a_file_that_no_longer_fits_its_database_is_refused(bench, capsys):
    glasses(capsys, "ask", bench)
    glasses(capsys, "tell", bench, "1.0")
    text = bench.read_text()
    for old, new, sentence in (
        ("budget = 12", 'budget = 12\ndirection = "maximize"', "has the other direction"),
        ("k = {", "kk = {", "has a parameter 'k', the file has not"),
        ('type = "int", low = 1', "low = 1", "is of another kind in the file"),
        ("x = [0.0, 1.0]", "x = [0.0, 1.0]\nz = [0.0, 1.0]", "has no parameter 'z', the file has one"),
    ):
        bench.write_text(text.replace(old, new))
        assert sentence in glasses(capsys, "show", bench, status=2)
    bench.write_text(text.replace("x = [0.0, 1.0]", "x = [-1.0, 2.0]").replace("budget = 12", "budget = 20"))
    assert "19 of 20 left" in glasses(capsys, "show", bench)


def test_databases_that_cannot_be_used(bench, capsys, tmp_path):
    bench.with_suffix(".db").write_text("this is no database, whatever its name")
    assert "cannot be opened: file is not a database" in glasses(capsys, "show", bench, status=2)
    bench.write_text("storage = 'postgresql://someone:secret@127.0.0.1:1/none'\n" + BENCH)
    said = glasses(capsys, "show", bench, status=2)
    assert "cannot be opened" in said
    assert "secret" not in said
    bench.write_text(f"storage = 'sqlite:///{tmp_path}/no/folder/x.db'\n" + BENCH)
    assert "cannot be opened: unable to open database file" in glasses(capsys, "ask", bench, status=2)


def test_a_maximising_study_speaks_in_its_own_sign(bench, capsys):
    bench.write_text('direction = "maximize"\n' + BENCH.replace("n_initial = 12", 'n_initial = 3\nplanner = "el"'))
    for value in (1.0, 5.0, 3.0, 4.0, 2.0):
        glasses(capsys, "ask", bench)
        glasses(capsys, "tell", bench, value)
    found = json.loads(glasses(capsys, "show", bench, "--format", "json"))
    assert found["best"]["value"] == 5.0
    assert found["expected_best"] >= 5.0 - 1e-9
    assert found["recommended"]["mean"] > 3.0
    assert len(found["plan"]) == 7


def test_show_remembers_what_it_computed_and_notices_every_change(bench, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path / "cache"))
    for value in (1.0, 2.0):
        glasses(capsys, "ask", bench)
        glasses(capsys, "tell", bench, value)
    first = glasses(capsys, "show", bench)
    (kept,) = (tmp_path / "cache" / "said").glob("summary-*")
    assert glasses(capsys, "show", bench) == first
    told = json.loads(read(kept))
    told["recommended"]["mean"] = 777777.0
    write(kept, json.dumps(told).encode())
    assert "777777" in glasses(capsys, "show", bench)  # it was really remembered
    kept.write_text("damaged")
    assert glasses(capsys, "show", bench) == first
    write(kept, json.dumps(told).encode())
    glasses(capsys, "tell", bench, "--at", "x=0.5", "--at", "k=1", "--at", "how=warm", "0.5")
    assert "777777" not in glasses(capsys, "show", bench)
    bench.write_text(BENCH.replace("x = [0.0, 1.0]", "x = [0.0, 2.0]"))
    assert "777777" not in glasses(capsys, "show", bench)


def test_help_has_examples_and_shells_complete(capsys):
    commands = ("new", "run", "worker", "ask", "tell", "show", "forecast", "plot", "export")
    for command in (*commands, "correct", "withdraw", "cancel", "retry", "undo", "import"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert f"examples:\n  {'for i' if command == 'worker' else f'glasses {command}'}" in capsys.readouterr().out
    for shell in ("bash", "zsh", "tcsh"):
        assert "glasses" in glasses(capsys, "completion", shell)
    script = glasses(capsys, "completion", "bash")
    check = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert check.returncode == 0, check.stderr


def test_units_are_shown(bench, capsys):
    bench.write_text('budget = 9\nunit = "mPa s"\n[parameters]\ntemperature = { low = 20, high = 90, unit = "°C" }\nk = [0, 1]')
    assert glasses(capsys, "ask", bench).splitlines()[0].split("  ") == ["trial", "temperature (°C)", "k"]
    glasses(capsys, "tell", bench, "0.5")
    assert "value (mPa s)" in glasses(capsys, "show", bench, "--no-plan")
    found = json.loads(glasses(capsys, "show", bench, "--no-plan", "--format", "json"))
    assert (found["unit"], found["units"]) == ("mPa s", {"temperature": "°C"})


def test_a_study_for_a_person(tmp_path, capsys):
    path = tmp_path / "brew.toml"
    out = glasses(capsys, "new", path, "--bench")
    assert f"glasses ask {path}" in out
    assert list(tmp_path.iterdir()) == [path]  # no objective
    assert glasses(capsys, "ask", path).splitlines()[0].split("  ")[:2] == ["trial", "temperature (°C)"]
    assert "value (%)" in (glasses(capsys, "tell", path, "40.5"), glasses(capsys, "show", path, "--no-plan"))[1]
    assert "exists and is not overwritten" in glasses(capsys, "new", path, "--bench", status=2)
    text = path.read_text()
    for line in text.splitlines():  # what is commented out can be commented in
        if line.startswith("# ") and " = " in line:
            tomllib.loads(line[2:])


def test_ask_says_what_is_open_and_that_a_criterion_is_met(bench, capsys):
    assert "open already" not in glasses(capsys, "ask", bench)
    assert "Besides this, 1 is open already: trial 0." in glasses(capsys, "ask", bench)
    out = glasses(capsys, "ask", bench, "-n", "2")
    assert "Besides this, 2 are open already: trials 0, 1." in out
    capsys.readouterr()
    main(["ask", str(bench), "--format", "json"])
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 1
    assert said.err == "glasses: Besides this, 4 are open already: trials 0, 1, 2, 3.\n"
    bench.write_text(BENCH.replace("[parameters]", "[stop]\ntarget = 0.5\n[parameters]"))
    glasses(capsys, "tell", bench, "--trial", "0", "0.4")
    out = glasses(capsys, "ask", bench)
    assert "[stop] of the study file is met: The best value, 0.4, has reached the target, 0.5." in out
    assert out.splitlines()[1].split()[0] == "5"  # and the experiment is given all the same


def test_the_time_that_is_left(make_study, capsys, monkeypatch):
    monkeypatch.setattr("glasses.study.worker._SAID_EVERY", 0.0)
    out = glasses(capsys, "run", make_study(4, n_initial=4))
    said = [line for line in out.splitlines() if "the rest takes about" in line]
    assert len(said) == 3
    assert re.fullmatch(r"glasses: 1 done in [\d.]+ s, [\d.]+ s each; the rest takes about [\d.]+ s\.", said[0])
    assert _duration(3.14159) == "3.1 s"
    assert [_duration(seconds) for seconds in (42.4, 100, 5399, 9000)] == ["42 s", "2 min", "90 min", "2.5 h"]
