"""Problems and methods of the user's, named module:name: the example of docs/campaigns.md runs, wrong names are refused."""

import re
from pathlib import Path

import pytest

from glasses_lab.campaign.runner import run_suite
from glasses_lab.campaign.store import read_records
from glasses_lab.campaign.suite import read_suite
from glasses_lab.problems import get

PAGE = (Path(__file__).parents[3] / "docs" / "campaigns.md").read_text(encoding="utf-8")
CODE = next(code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "# mine.py" in code)
SUITE = """
name = "mine"
protocol = "exact"
methods = {methods}
initial = 3
evaluations = 4
problems = {problems}
seeds = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(CODE + "\n\ndef drawn(seed):\n    return valley if seed else Problem\n\nnumber = 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    return tmp_path


def suite(folder, problems, methods):
    path = folder / "mine.toml"
    path.write_text(SUITE.format(problems=problems, methods=methods).replace("'", '"'))
    return path


def test_the_example_of_the_page_runs(folder):
    found = read_suite(suite(folder, ["mine:valley"], ["mine:Shrinking", "random"]))
    run_suite(found, folder / "mine.jsonl", jobs=1)
    runs = read_records(folder / "mine.jsonl")
    assert len(runs) == 4
    assert get("mine:valley").name == "mine:valley"


@pytest.mark.parametrize(
    ("problems", "methods", "message"),
    [
        (["mine:no"], ["random"], "'mine:no' cannot be loaded"),
        (["nowhere_at_all:f"], ["random"], "cannot be loaded .ModuleNotFoundError"),
        (["mine:number"], ["random"], "must be a glasses_lab.problems.Problem"),
        (["mine:drawn"], ["random"], "must be a glasses_lab.problems.Problem"),
        (["mine:valley"], ["mine:number"], "must be a class"),
        (["mine:valley"], ["randm"], "There is no method 'randm'"),
    ],
)
def test_what_is_none_is_refused(folder, problems, methods, message):
    with pytest.raises(ValueError, match=message):
        read_suite(suite(folder, problems, methods))
