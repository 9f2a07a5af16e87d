"""Results from tables: what people have in their files, a preview first, and our own export back as it was."""

import csv
import io
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shell import dump, glasses

from glasses.cli import main
from glasses.optuna.marks import LATE, OUTSIDE
from glasses.study import importing, report, tables
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy

BENCH = """
name = "bench"
budget = 9
n_initial = 9

[parameters]
temperature = [20.0, 80.0]
k = { type = "int", low = 1, high = 5 }
how = { choices = ["warm", "=cold", "'=odd", "2"] }
"""
OLD = "temperature,k,how,value\n30,1,warm,1.5\n40,2,=cold,failed\n50,3,2,\n"


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(BENCH)
    return path


@pytest.fixture
def old(tmp_path):
    def write(content=OLD, encoding="utf-8"):
        path = tmp_path / "old.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def points(bench):
    with StoredStudy(read_study(bench)) as stored:
        return [(tuple(each.params.values()), each.value) for each in stored.trials()]


def test_the_preview_stores_nothing_and_yes_stores_it_outside_the_budget(bench, capsys, old):
    glasses(capsys, "ask", bench)
    before = dump(bench)
    out = glasses(capsys, "import", bench, old())
    assert out.splitlines()[0].split() == ["line", "temperature", "k", "how", "value", "what", "becomes", "of", "it"]
    assert "stored, outside the budget" in out.splitlines()[1]
    assert "1 rows had no value yet." in out
    assert out.endswith("Nothing is stored: 2 results, 2 of them outside the budget would be, with --yes.\n")
    assert dump(bench) == before
    out = glasses(capsys, "import", bench, old(), "--yes")
    assert out.endswith("Stored: trial 1. Stored as failed: trial 2. 8 of 9 left.\n")
    assert "1 complete, 1 failed, 1 running (2 of them outside the budget); 8 of 9 left" in glasses(
        capsys, "show", bench, "--no-plan"
    )


def test_twice_stores_once_unless_again(bench, capsys, old):
    glasses(capsys, "import", bench, old(), "--yes", "--within-budget")
    assert "7 of 9 left" in glasses(capsys, "show", bench, "--no-plan")
    for command in (["import", bench, old(), "--yes"], ["tell", bench, "--csv", old()]):
        out = glasses(capsys, *command)
        assert "2 rows are in the study already (--again stores them once more)" in out
        assert "Nothing to store." in out
    glasses(capsys, "tell", bench, "--csv", old(), "--again", "--outside-budget")
    assert len(points(bench)) == 4
    assert "7 of 9 left" in glasses(capsys, "show", bench, "--no-plan")
    assert "2 rows are in the study" in glasses(capsys, "tell", bench, "--csv", old(OLD + "60,1,warm,2\n"))
    assert len(points(bench)) == 5


def test_results_measured_twice_with_the_same_value_are_both_stored_once(bench, capsys, old):
    twice = "temperature,k,how,value\n" + "30,1,warm,1.5\n" * 2
    glasses(capsys, "import", bench, old(twice), "--yes")
    glasses(capsys, "import", bench, old(twice), "--yes")
    assert len(points(bench)) == 2
    glasses(capsys, "import", bench, old(twice + "30,1,warm,1.5\n"), "--yes")
    assert len(points(bench)) == 3


def test_an_old_table_does_not_bring_back_what_was_corrected_or_withdrawn(bench, capsys, old):
    table = old("temperature,k,how,value\n30,1,warm,34\n40,1,warm,2\n")
    glasses(capsys, "import", bench, table, "--yes")
    glasses(capsys, "correct", bench, "--trial", "0", "3.4")
    glasses(capsys, "withdraw", bench, "--trial", "1")
    assert "2 rows are in the study already" in glasses(capsys, "import", bench, table, "--yes")


def test_a_question_on_a_terminal(bench, capsys, old, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "n")
    assert glasses(capsys, "import", bench, old()).endswith("Nothing is stored.\n")
    assert asked == ["Store 2 results, 2 of them outside the budget? [y/N] "]
    monkeypatch.setattr("builtins.input", lambda question: "Y")
    assert "Stored: trial 0." in glasses(capsys, "import", bench, old())


@pytest.mark.parametrize(
    ("content", "encoding", "remark"),
    [
        (" Temperature (°C) ;K;HOW;Value\n30,5;1;warm;1,5\n", "utf-8", "Decimal commas were read as points."),
        ("temperature [°C]\tk\thow\tvalue\n30,5\t1\twarm\t1,5e0\n", "utf-16", "was read as UTF-16."),
        ("temperature [°C];k;how;value;note\n30.5;1;warm;1.5;heiß\n", "latin-1", "was read as Latin-1"),
        ("\ufefftemperature,k,how,value\n30.5,1,warm,1.5\n", "utf-8", ""),
        ('temperature,k,how,value,"a\nnote"\n30.5,1,warm,1.5,"two\nlines"\n', "utf-8", "Not used: a"),
        ("how,value,k,temperature\r\nwarm,1.5,1,30.5\r\n", "utf-8", ""),
    ],
)
def test_tables_as_people_have_them(bench, capsys, old, content, encoding, remark):
    out = glasses(capsys, "import", bench, old(content, encoding), "--yes")
    assert remark in out
    assert points(bench) == [((30.5, 1, "warm"), 1.5)]


def test_the_column_of_the_results_may_have_another_name(bench, capsys, old):
    table = old("temperature,k,how,Yield (%),value\n30,1,warm,1.5,9\n")
    assert "Not used: value." in glasses(capsys, "import", bench, table, "--yes", "--value-column", "yield")
    assert points(bench) == [((30.0, 1, "warm"), 1.5)]
    assert "has no column 'yeld', got temperature, k, how, Yield (%), value" in glasses(
        capsys, "import", bench, table, "--value-column", "yeld", status=2
    )


def test_a_unit_that_is_not_the_study_s_is_refused(bench, old, monkeypatch):
    with StoredStudy(read_study(bench)) as stored:
        object.__setattr__(stored.file, "units", {"temperature": "°C"})
        object.__setattr__(stored.file, "unit", "mg")
        for content, words in (
            ("temperature (°F),k,how,value\n30,1,warm,1\n", "gives temperature in °F, the study file in °C: convert"),
            ("temperature,k,how,value [g]\n30,1,warm,1\n", "gives value in g, the study file in mg: convert"),
        ):
            with pytest.raises(ValueError, match=words.replace("[", r"\[")):
                importing.preview(stored, content)
        assert importing.preview(stored, "temperature (° C),k [mm],how,value\n30,1,warm,1\n").told
        assert importing.preview(stored, "temperature,k,how,value (mg)\n30,1,warm,1\n").columns["value (mg)"] == "value"


def test_rows_of_open_trials(bench, capsys, old):
    asked = json.loads(glasses(capsys, "ask", bench, "-n", "4", "--format", "json"))
    cells = [
        ",".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in each["params"].values())
        for each in asked
    ]
    filled = f"trial,temperature,k,how,value\n0,{cells[0]},1.0\n1,,,,2.0\n2,33,,,3.0\n"
    out = glasses(capsys, "tell", bench, "--csv", old(filled))
    assert "Trial 2 was done at temperature = 33, not" in out
    assert "Trial 0 was done" not in out  # its number is only rounded, as `ask` shows it
    found = points(bench)
    assert [value for _, value in found] == [1.0, 2.0, 3.0, None]
    assert found[0][0] == tuple(asked[0]["params"].values())
    assert found[2][0][0] == 33.0
    assert "3 rows were told before." in glasses(capsys, "tell", bench, "--csv", old(filled))
    glasses(capsys, "correct", bench, "--trial", "0", "1.5")
    assert "3 rows were told before." in glasses(capsys, "tell", bench, "--csv", old(filled))
    glasses(capsys, "withdraw", bench, "--trial", "1")
    assert "1 rows are withdrawn and left out." in glasses(capsys, "tell", bench, "--csv", old(filled))
    both = f"trial,temperature,k,how,value\n3,{cells[3]},4.0\n"
    assert "Stored: trial 3." in glasses(capsys, "import", bench, old(both), "--yes")


def test_an_export_whose_open_rows_were_filled_in(bench, capsys, old):
    glasses(capsys, "ask", bench, "-n", "2")
    glasses(capsys, "tell", bench, "--trial", "0", "1.0")
    text = glasses(capsys, "export", bench)
    lines = text.splitlines()
    assert ",,20" in lines[2]
    lines[2] = lines[2].replace(",,20", ",7.5,20", 1)
    out = glasses(capsys, "tell", bench, "--csv", old("\n".join(lines)))
    assert "Stored: trial 1." in out
    assert "1 rows were told before." in out
    assert [value for _, value in points(bench)] == [1.0, 7.5]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "needs a column named value (and trial, or every parameter), got nothing"),
        ("a;b\n1;2\n", "needs a column named value"),
        ("temperature,k,how,value\n30,1,warm\n", "line 2: expected 4 cells, one for each column"),
        ("temperature,k,how,value,Value \n30,1,warm,1,1\n", "two columns of one name: temperature, k, how, value, Value"),
        ("temperature,k,how,value\n30,1,warm,1.234,5\n", "line 2: expected 4 cells"),
        ("temperature;k;how;value\n30;1;warm;1.234,5\n", "line 2: The value must be a number, or `failed`, got '1.234,5'"),
        ("temperature,k,how,value\n30,1,hot,1\n", "line 2: ['how'] must be one of 'warm'"),
        ("temperature,k,value\n30,1,1\n", "line 2: ['how'] must be one of"),
        ("temperature,k,how,value\n30,1,warm,1\n30,1,warm,1e200\n", "line 3: The value '1e200' is beyond 1e100"),
        ("trial,value\n7,1\n", "line 2: there is no open trial 7"),
        ("trial,value\nx,1\n", "line 2: trial must be a whole number, got 'x'"),
        ("trial,value\n0,1\n0,1\n", "line 3: there is no open trial 0"),
        ('temperature,k,how,value\n30,1,"warm,1\n', "is not a CSV file: unexpected end of data"),
        (b"temperature,k,how,value\n30,1,warm,\x00", "is not a text in UTF-8, UTF-16 or Latin-1"),
        (b"\xff\xfea", "is not a text in UTF-8, UTF-16 or Latin-1"),
        (b"x" * 10_000_001, "has more than 10 MB: give a smaller table"),
        (
            "trial,state,temperature,k,how,value,started,finished\n0,complete,30,1,warm,1,yesterday,today\n",
            "line 2: started must be a time such as 2026-01-31T12:00:00, got 'yesterday'",
        ),
    ],
)
def test_tables_that_are_refused(bench, capsys, old, content, sentence):
    glasses(capsys, "ask", bench)
    before = dump(bench)
    for command in (["import", bench, old(content), "--yes"], ["tell", bench, "--csv", old(content)]):
        said = glasses(capsys, *command, status=2)
        assert str(old(content)) in said
        if "started" in sentence and command[0] == "tell":
            assert "line 2: trial 0 is open here, and at another point: `glasses import` takes rows of another study" in said
        else:
            assert sentence in said
        assert dump(bench) == before


def test_two_previews_of_one_table_store_it_once(bench, old):
    """Two browsers show the same preview, and both say yes."""
    with StoredStudy(read_study(bench)) as stored, StoredStudy(read_study(bench)) as other:
        mine, theirs = importing.preview(stored, OLD), importing.preview(other, OLD)
        assert len(mine.told) == len(theirs.told) == 2
        assert importing.store(stored, mine) == [0, 1]
        assert importing.store(other, theirs) == []
        assert theirs.told == []


# formulas


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", "'=1", "''@", "-", "1-1", "'quoted'", "a=1"]
)
def test_no_spreadsheet_runs_a_text(text):
    written = tables.as_csv([{"note": text}])
    (cell,) = list(csv.reader(io.StringIO(written, newline="")))[1]
    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")
    assert tables.unguarded(cell) == text
    assert tables.value_of(cell) == text


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
        max_leaves=5,
    )
)
def test_a_cell_that_is_read_and_written_again_is_the_same(value):
    written = tables.as_csv([{"note": value, "last": 1}])
    cell = list(csv.reader(io.StringIO(written, newline=""), strict=True))[1][0]
    assert tables.as_csv([{"note": tables.value_of(cell), "last": 1}]) == written
    if not isinstance(value, str):
        assert tables.value_of(cell) == value


def test_exported_numbers_stay_numbers(bench, capsys):
    with StoredStudy(read_study(bench)) as stored:
        extras = {"note": "=cmd()", "drift": -0.5, "count": -3, "tag": "-3", "=x": "@y"}
        stored.add({"temperature": 30.0, "k": 1, "how": "=cold"}, Evaluation(-1.5, None, extras))
        stored.add({"temperature": 30.0, "k": 1, "how": "'=odd"}, Evaluation(None, "+leak"))
    first, second = csv.DictReader(io.StringIO(glasses(capsys, "export", bench)))
    assert (first["value"], first["extra:drift"], first["extra:count"]) == ("-1.5", "-0.5", "-3")
    assert (first["how"], first["extra:note"], first["extra:tag"], first["extra:=x"]) == ("'=cold", "'=cmd()", "'-3", "'@y")
    assert (second["how"], second["reason"]) == ("''=odd", "'+leak")
    shown = json.loads(glasses(capsys, "export", bench, "--format", "json"))
    assert shown[0]["how"] == "=cold"


# our own export comes back

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)
EXTRAS = st.dictionaries(
    TEXTS,
    st.one_of(TEXTS, st.integers(-(2**60), 2**60), st.floats(-1e9, 1e9), st.booleans(), st.just([1, "=a"]), st.none()),
    max_size=2,
)
EVALUATIONS = st.lists(
    st.tuples(
        st.floats(20.0, 80.0),
        st.integers(1, 5),
        st.sampled_from(["warm", "=cold", "'=odd", "2"]),
        st.one_of(st.none(), st.floats(-1e99, 1e99)),
        st.one_of(st.none(), TEXTS),
        EXTRAS,
        st.sampled_from(["inside", "outside", "withdrawn", "corrected", "late", "twice"]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=12, deadline=None)
@given(EVALUATIONS)
@example(
    [(20.0, 1, "warm", 1.0, None, {"a": None, "b": ""}, "inside"), (20.0, 1, "warm", 1.0, None, {"b": 1, "a": ""}, "late")]
)
@example([(30.0, 2, "=cold", None, None, {"-1": "-1", "a ": " "}, "inside"), (30.0, 2, "'=odd", None, "\r\n", {}, "outside")])
def test_our_own_export_comes_back_as_it_was(evaluations):
    folder = Path(tempfile.mkdtemp())
    try:
        first, again = folder / "first.toml", folder / "again.toml"
        for path in (first, again):
            path.write_text(BENCH)
        with StoredStudy(read_study(first)) as stored:
            for temperature, k, how, value, reason, extras, kind in evaluations:
                marks = {OUTSIDE: True} if kind == "outside" else {LATE: 0} if kind == "late" else {}
                outcome = Evaluation(value, None if value is not None else reason, extras)
                for _ in range(1 + (kind == "twice")):
                    number = stored.add({"temperature": temperature, "k": k, "how": how}, outcome, marks)
                if kind == "withdrawn":
                    stored.withdraw(number)
                if kind == "corrected":
                    stored.correct(number, outcome=Evaluation(value / 2 - 1 if value is not None else 0.5), params={"k": 6 - k})
            text = report.as_csv(report.rows_of(stored))
        with StoredStudy(read_study(again)) as stored:
            found = importing.preview(stored, text, outside_budget=False)
            assert found.skipped.get("withdrawn", 0) == text.count(",withdrawn,")
            assert len(importing.store(stored, found)) == len(found.rows) - found.skipped.get("withdrawn", 0)
            back = report.as_csv(report.rows_of(stored))
        if not {kind for *_, kind in evaluations} & {"withdrawn", "late"}:
            assert back == text
        else:
            assert rows_of(back) == rows_of(text)
    finally:
        shutil.rmtree(folder)


def rows_of(text):
    """The rows but for trial numbers and those without a result; empty cells are no cells."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    kept = [row for row in rows if row["state"] in ("complete", "failed")]
    return [{key: cell for key, cell in row.items() if cell and key not in ("trial", LATE)} for row in kept]


# any file at all

NAMES = "temperature k how value trial state started finished failed extra:a"
VALUES = """30 1 warm 1,5 '=cold nan 0 complete running =1+1 \u2028 2026-01-31T12:00:00"""
CELLS = st.sampled_from([*NAMES.split(), *VALUES.split(" "), '"', "", "temperature (K)", "9" * 400])
TABLES = st.builds(
    lambda rows, separator, encoding: "\n".join(separator.join(row) for row in rows).encode(encoding),
    st.lists(st.lists(CELLS, max_size=6), max_size=4),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
)
HEADED = st.builds(
    lambda header, rows: "\n".join([header, *(",".join(row) for row in rows)]).encode(),
    st.sampled_from(["temperature,k,how,value", "trial,value", "trial,state,temperature,k,how,value,started,finished"]),
    st.lists(st.lists(CELLS, min_size=1, max_size=8), max_size=3),
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=60), TABLES, HEADED))
@example(b"temperature,k,how,value\n30,1,warm,1\n")
@example(b"trial,state,temperature,k,how,value,started,finished\n0,complete,30,1,warm,1,0001-01-01T00:00,9999-12-31T23:59\n")
@example(b'"a\nb",k\n1,2\n')
@example(b"trial,value\n" + b"9" * 5000 + b",1\n")
def test_any_bytes_give_a_sentence_or_a_preview_and_store_nothing(bench, capsys, data):
    if not bench.with_suffix(".db").exists():
        glasses(capsys, "ask", bench, "-n", "2")
    before = dump(bench)
    table = bench.with_name("table.csv")
    table.write_bytes(data)
    capsys.readouterr()
    status = main(["import", str(bench), str(table)])
    printed = capsys.readouterr()
    assert status in (0, 2)
    assert dump(bench) == before
    if status == 2:
        assert printed.err.startswith("glasses: ")
        assert printed.err.endswith(".\n")
        assert printed.err.count("\n") == 1
    else:
        assert "Nothing" in printed.out


def test_old_data_outside_todays_ranges_are_kept_and_used(bench, capsys, old):
    out = glasses(capsys, "import", bench, old("temperature,k,how,value\n99.5,1,warm,1.5\n30,7,warm,2.5\n40,2,2,3\n"), "--yes")
    assert "2 rows lie outside today's ranges: the model uses them, and suggests nothing there." in out
    assert points(bench) == [((99.5, 1, "warm"), 1.5), ((30.0, 7, "warm"), 2.5), ((40.0, 2, "2"), 3.0)]
    with StoredStudy(read_study(bench), writing=False) as stored:
        assert stored.best().number == 2  # the only one inside
        assert len(stored.optimizer().record().func_vals) == 3
    assert "2 of 3 evaluations lie outside today's ranges" in glasses(capsys, "show", bench)
    again = glasses(capsys, "import", bench, old("temperature,k,how,value\n99.5,1,warm,1.5\n"), "--yes")
    assert "1 rows are in the study already" in again


def test_results_told_from_a_table_lie_in_the_ranges(bench, capsys, old):
    path = old("temperature,k,how,value\n99.5,1,warm,1.5\n")
    assert main(["tell", str(bench), "--csv", str(path)]) == 2
    assert "= 99.5 lies outside [20, 80]" in capsys.readouterr().err


def test_old_data_that_lie_far_away_are_refused(bench, capsys, old):
    said = glasses(capsys, "import", bench, old("temperature,k,how,value\n1e9,1,warm,1\n"), "--yes", status=2)
    assert "line 2: ['temperature'] = 1e+09 lies 1000 times the width of the range away from it" in said


def test_a_column_that_old_data_lack_takes_its_default(bench, capsys, old):
    bench.write_text(BENCH.replace("low = 1, high = 5 }", "low = 1, high = 5, default = 3 }"))
    glasses(capsys, "import", bench, old("temperature,how,value\n30,warm,1.5\n"), "--yes")
    assert points(bench) == [((30.0, 3, "warm"), 1.5)]
