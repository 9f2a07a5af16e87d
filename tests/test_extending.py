"""The pages of docs/extending run as printed: the part, the run, the contract, the campaign."""

import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from glasses_lab.campaign.methods import Start, method_of
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import get

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "extending").glob("*.md"))
CODE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
CONTRACTS = {"kernels": 7, "losses": 6, "oracles": 10, "outputs": 6, "searches": 7, "stopping": 12, "storages": 8}  # tests


def files_of(page):
    """The code of a page, by the name of its file."""
    return dict(CODE.findall(page.read_text(encoding="utf-8")))


def test_every_part_has_a_page_with_a_short_example_and_its_contract():
    index = (DOCS / "extending.md").read_text(encoding="utf-8")
    assert [page.stem for page in PAGES] == sorted(CONTRACTS)
    for page in PAGES:
        files = files_of(page)
        assert page.read_text(encoding="utf-8").count("```python") == len(files) >= 3, page
        assert f"extending/{page.name}" in index
        (contract,) = [text for name, text in files.items() if name.startswith("test_")]
        assert re.search(r"from glasses\.testing import (\w+Contract)", contract)[1] in index
        for name, text in files.items():
            assert len([line for line in text.splitlines() if line.strip()]) <= 26, (page, name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that is the current one and on the path; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


class Counted:
    """Outcomes of an inner run of pytest."""

    def __init__(self):
        self.passed = self.others = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.passed += 1
        elif not report.passed:
            self.others += 1


def run_tests(name):
    """Run a file of tests as a stranger would, without the settings of this suite."""
    counted = Counted()
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull, "--rootdir", ".", name]
    assert pytest.main(options, plugins=[counted]) == 0
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_printed(page, folder, capsys):
    files = files_of(page)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    ran = runpy.run_path("run.py", run_name="__main__")
    if "result" in ran:
        assert ran["result"].success
        assert ran["result"].fun < np.median(ran["result"].func_vals)
        assert ran["result"].message in capsys.readouterr().out
    else:
        assert ran["study"].best_value < np.median([trial.value for trial in ran["study"].trials])
    (contract,) = [name for name in files if name.startswith("test_")]
    counted = run_tests(contract)
    assert (counted.passed, counted.others) == (CONTRACTS[page.stem], 0)
    if "compare.py" in files:
        named = re.search(r'methods = \["(compare:\w+)"', page.read_text(encoding="utf-8"))[1]
        check_campaign(named)


def check_campaign(name):
    """A method of a campaign that is begun with the start of a run decides with the part of the page."""
    problem = get("Branin")
    X = problem.from_unit(np.random.default_rng(0).random((4, 2)))
    start = Start(problem, PROTOCOLS["exact"], X, np.array([problem(x) for x in X]), 8, 0)
    optimizer = method_of(name).start(start).optimizer
    assert optimizer.remaining == 4
    parts = [optimizer.loss, optimizer.model.kernel, optimizer.model.outputs, optimizer.search]
    parts.append(getattr(optimizer.loss, "oracle", None))
    assert [type(part).__name__ for part in parts if not type(part).__module__.startswith(("glasses", "builtins"))]
