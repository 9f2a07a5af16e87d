"""The lab's command line as a person uses it."""

import json

import pytest
from pictures import drawn

from glasses_lab.cli import main

SUITE = 'methods = ["random", "sobol"]\ninitial = 2\nevaluations = 4\nproblems = ["SinCos"]\nseeds = 3\n'


def test_campaign_from_file_to_table(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text(SUITE)
    results, rows = str(tmp_path / "r.jsonl"), str(tmp_path / "rows.csv")
    assert main(["campaign", "run", str(tmp_path / "mine.toml"), "--results", results, "--jobs", "1"]) == 0
    assert "6 of 6 runs to do" in capsys.readouterr().out
    assert main(["campaign", "table", str(tmp_path / "mine.toml"), "--results", results, "--rows", rows]) == 0
    out = capsys.readouterr().out
    assert "mine: 6 of 6 runs" in out
    assert "| Sobol |" in out
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 5 + 1 + 6
    assert "# command: glasses-lab campaign run mine" in (tmp_path / "rows.csv").read_text()
    record = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert record["problem"] == "SinCos"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["campaign", "run", "fare"], "There is no suite 'fare'; known, nearest first: fair"),
        (["campaign", "run", "fair", "--methods", "e1"], "There is no method 'e1'; known, nearest first: el"),
        (["campaign", "run", "fair", "--jobs", "0"], "--jobs must be at least 1"),
        (["campaign", "table", "fair", "--results", "nowhere.jsonl"], "There is no results file nowhere.jsonl"),
        (["paper", "run", "fear"], "There is no suite 'fear'; known, nearest first: fair"),
        (["paper", "table", "--results", "nowhere"], "nowhere holds no results"),
        (["campaign", "choice", "--results", "."], "bbob.csv are not there: they are part of the repository"),
        (["campaign", "table", "fair", "--results", "/"], "There is no results file /"),
        (["campaign", "run", "fair", "--results", "/proc/no/file.jsonl"], "/proc/no: No such file or directory"),
    ],
)
def test_mistakes_end_with_a_sentence_and_status_2(arguments, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("glasses-lab: ")
    assert sentence in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_help_and_problems(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "examples:" in capsys.readouterr().out
    assert main(["problems"]) == 0
    assert "Branin" in capsys.readouterr().out.split()


def test_paper_table_from_stored_results(tmp_path, capsys):
    with drawn(tmp_path / "new" / "comparison.png") as picture:
        assert main(["paper", "table", "--out", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "tables.md").read_text().count("| method |") == 4
    titles = [panel.get_title() for panel in picture.figure.axes]
    assert [title.split(":")[0] for title in titles] == ["fair", "fair", "nine", "nine", "samples", "samples"]
    assert "| two-stage |" in capsys.readouterr().out
