"""Databases that cannot be used: read-only, damaged, in folders with odd names. Success, or one sentence with status 2."""

import csv
import io
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from shell import glasses

from glasses.cli import main

STUDY = """
name = "study"
budget = 9
n_initial = 9
heartbeat = 1
planner = "el"

[objective]
command = ["sh", "-c", "echo 0.5", "{x}", "{k}"]

[parameters]
x = [0.0, 1.0]
k = { type = "int", low = 1, high = 5 }
"""


def study(arguments):
    """The study with another command."""
    return STUDY.replace("""["sh", "-c", "echo 0.5", "{x}", "{k}"]""", json.dumps(arguments))


LOOKING = (("show", "--no-plan"), ("export",))
WRITING = (("ask",), ("tell", "--at", "x=0.5", "--at", "k=1", "1.0"), ("run", "--most", "1"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study with three evaluations and an open trial."""
    path = tmp_path_factory.mktemp("made") / "study.toml"
    path.write_text(STUDY)
    for command, *more in (("run", "--most", "2"), ("tell", "--at", "x=0.25", "--at", "k=2", "0.75"), ("ask",)):
        assert main([command, str(path), *more]) == 0
    return path


@pytest.fixture
def path(made, tmp_path):
    """A copy of that study for each test."""
    for each in (made, made.with_suffix(".db")):
        shutil.copy(each, tmp_path)
    return tmp_path / made.name


@contextmanager
def as_somebody_without_rights():
    """Root may write everything; a test of rights needs another user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared(path):
    """The same study in a folder that everybody can read and nobody but its owner can write."""
    folder = Path(tempfile.mkdtemp(prefix="glasses-read-only-"))
    for each in (path, path.with_suffix(".db")):
        shutil.copy(each, folder)
        (folder / each.name).chmod(0o444)
    folder.chmod(0o555)
    yield folder / path.name
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_a_read_only_database_can_be_looked_at_and_is_refused_by_who_writes(shared, capsys, what):
    if what == "folder":
        shared.with_suffix(".db").chmod(0o666)
    if what == "file":
        shared.parent.chmod(0o777)
    before = shared.with_suffix(".db").read_bytes()
    with as_somebody_without_rights():
        for command, *more in LOOKING:
            glasses(capsys, command, shared, *more)
        for command, *more in WRITING:
            said = glasses(capsys, command, shared, *more, status=2)
            assert "cannot be written" in said
            assert "allow writing to the file and to its folder" in said
    assert shared.with_suffix(".db").read_bytes() == before


def test_a_database_destroyed_during_a_run_loses_no_result(path, capsys):
    """The result in hand is printed as the command that stores it."""
    script = "import pathlib; pathlib.Path('study.db').write_bytes(b'gone' * 5000); print(0.5)"
    path.write_text(study([sys.executable, "-c", script, "{x}", "{k}"]))
    capsys.readouterr()
    assert main(["run", str(path), "--most", "1"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert f"once the database is back: glasses tell {path} --trial 4 0.5" in said
    assert "cannot be used (file is not a database): restore a copy of it" in said.splitlines()[-1]


def check_ends_well(capsys, arguments):
    """Success, or one sentence with status 2."""
    capsys.readouterr()
    status = main(arguments)
    printed = capsys.readouterr()
    assert status in (0, 2), (arguments, printed.err)
    if status == 2:
        assert printed.err.startswith("glasses: ")
        assert printed.err.endswith(".\n")
        assert printed.err.count("\n") == 1, printed.err


def flipped(data, rng, block):
    for _ in range(1 + len(data) // 20_000):
        place = rng.randrange(block, len(data))
        data[place] ^= 1 << rng.randrange(8)


def zeroed(data, rng, block):
    start = rng.randrange(len(data) // block) * block
    data[start : start + block] = bytes(block)


def noisy(data, rng, block):
    start = rng.randrange(len(data) - block)
    data[start : start + block] = rng.randbytes(block)


def overwritten(data, rng, block):
    start = rng.randrange(len(data) - block)
    text = b"an editor saved this file as text. "
    data[start : start + block] = (text * (block // len(text) + 1))[:block]


def truncated(data, rng, block):
    del data[rng.randrange(len(data)) :]


def words_changed(data, rng, block):
    """Letters of stored texts: states, names, JSON."""
    letters = [k for k, each in enumerate(data) if k > block and chr(each).isascii() and chr(each).isalpha()]
    for place in rng.sample(letters, 40):
        data[place] = ord("~")


DAMAGES = (flipped, zeroed, noisy, overwritten, truncated, words_changed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_a_damaged_database_gives_a_result_or_a_sentence(path, capsys, damage, seed):
    database = path.with_suffix(".db")
    data = bytearray(database.read_bytes())
    block = 4096
    damage(data, random.Random(f"{damage.__name__} {seed}"), block)
    for command, *more in (*LOOKING, *WRITING):
        database.write_bytes(data)
        database.with_name(database.name + "-journal").unlink(missing_ok=True)
        check_ends_well(capsys, [command, str(path), *more])


NONSENSE = (
    "update trials set state = 'NONSENSE'",
    "update trials set datetime_start = 'yesterday'",
    "update trials set number = 77",
    "update trials set study_id = 5",
    "update trial_params set distribution_json = '{'",
    "update trial_params set param_value = 'x'",
    "update trial_values set value_type = 'x'",
    "delete from trial_values",
    "update trial_system_attributes set value_json = '['",
    "update study_directions set direction = 'SIDEWAYS'",
    "delete from study_directions",
    "delete from version_info",
    "update alembic_version set version_num = 'v99'",
    "drop table trial_params",
)


@pytest.mark.parametrize("statement", NONSENSE)
def test_tables_that_make_no_sense_give_a_result_or_a_sentence(path, capsys, statement):
    """The file is sound, its content is not."""
    with sqlite3.connect(path.with_suffix(".db")) as database:
        database.execute(statement)
    data = path.with_suffix(".db").read_bytes()
    for command, *more in (*LOOKING, *WRITING):
        path.with_suffix(".db").write_bytes(data)
        check_ends_well(capsys, [command, str(path), *more])


def test_a_damaged_index_hides_no_study(path, capsys):
    """Without the index entry SQLite does not find the study by its name: it would be begun anew, its results forgotten."""
    with sqlite3.connect(path.with_suffix(".db")) as database:
        database.execute("pragma writable_schema = on")
        root = database.execute("select rootpage from sqlite_master where name = 'ix_studies_study_name'").fetchone()[0]
        size = database.execute("pragma page_size").fetchone()[0]
    data = bytearray(path.with_suffix(".db").read_bytes())
    page = slice((root - 1) * size, root * size)
    data[page] = data[page].replace(b"study", b"stuby")
    path.with_suffix(".db").write_bytes(data)
    for command, *more in (*LOOKING, *WRITING):
        assert "is damaged" in glasses(capsys, command, path, *more, status=2)


@pytest.mark.parametrize("name", ["p%20q", "a#b", "100%", "{x}", "a+b c", "%7B"])
def test_a_folder_is_taken_as_it_is_written(tmp_path, capsys, name):
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "study.toml"
    path.write_text(STUDY)
    glasses(capsys, "ask", path)
    assert sorted(each.name for each in folder.iterdir()) == ["study.db", "study.toml"]
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert "8 of 9 left" in glasses(capsys, "show", path, "--no-plan")


NAMES = (
    "late_result_of",
    "reason",
    "retry_history",
    "glasses:late_result_of",
    "glasses:lost",
    "glasses:point",
    "state",
    "loss",
)


@pytest.mark.parametrize("name", NAMES)
def test_extras_of_any_name_are_only_extras(tmp_path, capsys, name):
    path = tmp_path / "study.toml"
    (tmp_path / "say.py").write_text(f'print(\'{{"value": 1.0, {json.dumps(name)}: [1, "a"]}}\')')
    path.write_text(study([sys.executable, "say.py", "{x}", "{k}"]))
    glasses(capsys, "run", path, "--most", "2")
    glasses(capsys, "run", path, "--most", "1")
    assert "3 complete" in glasses(capsys, "show", path)
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert [row["state"] for row in rows] == ["complete"] * 3
    assert [row[f"extra:{name}"] for row in rows] == ['[1, "a"]'] * 3
    assert "reason" not in rows[0]


def test_no_parameter_hides_an_extra_in_the_export(tmp_path, capsys):
    """A parameter ``also_loss`` beside an extra ``loss``: both have a column."""
    path = tmp_path / "study.toml"
    (tmp_path / "say.py").write_text('print(\'{"value": 1.0, "loss": 7}\')')
    text = study([sys.executable, "say.py", "{x}", "{k}", "{also_loss}", "{extra.loss}"])
    path.write_text(text + "also_loss = [0.0, 1.0]\n'extra.loss' = [2.0, 3.0]\n")
    glasses(capsys, "run", path, "--most", "1")
    row = json.loads(glasses(capsys, "export", path, "--format", "json"))[0]
    assert row["extra:loss"] == 7
    assert 0.0 <= row["also_loss"] <= 1.0
    assert 2.0 <= row["extra.loss"] <= 3.0


def test_the_reason_of_a_failure_stored_by_an_older_version_is_still_read(path, capsys):
    glasses(capsys, "tell", path, "--at", "x=0.5", "--at", "k=3", "failed")
    with sqlite3.connect(path.with_suffix(".db")) as database:
        database.execute("delete from trial_system_attributes where key = 'glasses:reason'")
        database.execute("insert into trial_user_attributes (trial_id, key, value_json) values (5, 'reason', '\"spilled\"')")
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    assert [row["reason"] for row in rows if row["state"] == "failed"] == ["spilled"]
    assert "extra:reason" not in rows[0]
