"""The documentation: its Python runs as printed, every public name is in the reference, the site builds without a warning."""

import importlib
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import glasses

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUN = sorted(path for path in DOCS.rglob("*.md") if path.parent.name == "how_to" or path.name in ("index.md", "tutorial.md"))
PARTS = ("gaussian", "lookahead", "optuna", "search", "sklearn", "surrogate", "testing")


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def logger():
    """The logger of the library, left as it was: a page shows how to give it a handler."""
    found = logging.getLogger("glasses")
    handlers = list(found.handlers)
    yield found
    found.handlers[:] = handlers
    found.setLevel(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.usefixtures("logger")
@pytest.mark.filterwarnings("ignore:The evaluation at")  # a page about failures has one
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs_as_printed(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    assert found, "a page that shows no code needs no test: take it out of this one"
    scope = {"__name__": "page"}
    for block in found:
        exec(compile(block, str(page), "exec"), scope)
    said = capsys.readouterr().out
    assert said.strip()
    assert "nan" not in said.lower()


def test_every_public_name_is_in_the_reference():
    documented = set(re.findall(r"^::: ([\w.]+)", "".join(p.read_text() for p in (DOCS / "reference").glob("*.md")), re.M))
    for module in (glasses, *(importlib.import_module(f"glasses.{part}") for part in PARTS)):
        for name in getattr(module, "__all__", ("GlassesSearchCV",)):
            home = getattr(module, name)
            origin = getattr(home, "__module__", "glasses.presets")
            assert {f"{origin}.{name}", f"glasses.presets.{name}"} & documented, f"{name} of {module.__name__}"
    for path in documented:  # and nothing is documented that is not there
        holder, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(holder), name).__doc__, path


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "glasses forecast" in (tmp_path / "site" / "reference" / "commands.html").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html"))
    loaded = re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="(https?://[^"]*)"', text)
    assert not loaded  # it is read without a network
