"""The documentation: it shows what its code and its commands print, names everything public, and builds without a warning."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

import glasses_lab.cli
from benchmarks import report, searches
from scripts import notebooks, outputs, packages, site

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


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
@pytest.mark.parametrize("page", outputs.pages(), ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_runs_and_shows_what_is_printed(page, tmp_path):
    shown, now = outputs.remake(page, tmp_path)
    assert now == shown, f"make docs-outputs writes what is printed now:\n{outputs.difference(shown, now)}"


def test_what_the_pages_show_can_be_wrong(tmp_path):
    page = "```python\nprint(1, 0.5)\n```\n\n```text\n{}\n```\n\n```console\n$ echo one; echo two; echo 3\n{}\n```\n"
    good = page.format("1 0.5000001", "one\n...\n3")
    assert outputs.remade(good, outputs.Session(tmp_path)) == good
    for shown, printed in [("2 0.5", "one\ntwo\n3"), ("1 0.6", "two\n...\n3"), ("", "...\n4"), ("1 0.5 3", "")]:
        remade = outputs.remade(page.format(shown, printed), outputs.Session(tmp_path))
        assert remade != page.format(shown, printed)
        assert outputs.remade(remade, outputs.Session(tmp_path)) == remade
    with pytest.raises(RuntimeError, match="status 3"):
        outputs.remade("```console\n$ exit 3\n```\n", outputs.Session(tmp_path))
    with pytest.raises(RuntimeError, match=r"status 2[\s\S]*nothing\.toml"):  # a refusal must be shown as one
        outputs.remade("```console\n$ glasses show nothing.toml\n```\n", outputs.Session(tmp_path))
    sentence = "glasses: There is no file nothing.toml: `glasses new nothing.toml` writes one to start from."
    refusal = f"```console\n$ glasses show nothing.toml\n{sentence}\n```\n"
    assert outputs.remade(refusal, outputs.Session(tmp_path)) == refusal
    with pytest.raises(NameError):
        outputs.remade("```python\nundefined\n```\n", outputs.Session(tmp_path))


def test_what_is_the_same_in_print():
    assert outputs.same("at 2026-11-18T20:41:19.634+00:00: 12.50  a", "at 2027-01-01T00:00:00.000+00:00: 12.49   a")
    assert outputs.same("a\n...\nb\n...\nc", "a\n1\nb\n2\nc")
    assert not outputs.same("a\n...\nb\n...\nc", "a\n1\nd\n2\nc")
    assert not outputs.same("17 of 20 left", "18 of 20 left")
    assert not outputs.same("0.0123", "-0.0123")
    assert not outputs.same("x1", "x2")


def test_the_outputs_of_a_notebook_can_be_wrong(tmp_path):
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": ["print(1)\n", "2 + 2"]}
    notebook = json.dumps({"cells": [cell, {"cell_type": "markdown", "metadata": {}, "source": ["# A"]}]})
    new = notebooks.remade(notebook, tmp_path, outputs.same)
    printed, value = json.loads(new)["cells"][0]["outputs"]
    assert (printed["text"], value["data"]["text/plain"]) == (["1\n"], ["4"])
    assert notebooks.remade(new, tmp_path, outputs.same) == new
    assert json.loads(notebooks.remade(new.replace('"4"', '"5"'), tmp_path, outputs.same)) == json.loads(new)


def test_every_picture_has_a_command_that_makes_it():
    pictures = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*") if path.suffix in (".png", ".svg", ".jpg")}
    assert pictures == set(outputs.PICTURES)
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = {str(picture.relative_to(DOCS)): page for page in pages for picture in outputs.shown_pictures(page)}
    assert set(shown) == pictures  # none is missing, none is left over
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for picture, command in outputs.PICTURES.items():
        program, *words = command.split()
        if command == "make docs-outputs":
            name = Path(picture).stem
            assert re.search(
                rf"^\$ (?:glasses plot {name}\.toml|.* {name}\.png)( *#.*)?$", shown[picture].read_text(), re.MULTILINE
            )
        elif program == "make":
            assert words[0] in targets, command
        elif program == "python":
            file = f"{words[1].replace('.', '/')}.py" if words[0] == "-m" else words[0]
            assert (ROOT / file).is_file(), command
        else:
            assert glasses_lab.cli._parser().parse_args(words).out.name == Path(picture).name


def test_the_page_of_benchmarks_comes_from_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "_draw", lambda found, path: None)
    for name in ("benchmarks.json", "accelerator.json"):
        shutil.copyfile(DOCS / name, tmp_path / name)
    report.write(json.loads((tmp_path / "benchmarks.json").read_text()), tmp_path)
    assert (tmp_path / "benchmarks.md").read_text() == (DOCS / "benchmarks.md").read_text()


def test_the_tables_of_packages_come_from_what_was_measured():
    text, found = packages.PAGE.read_text(encoding="utf-8"), json.loads(packages.KEPT.read_text())
    assert packages.filled(text, found) == text, "python -m scripts.packages --page"
    assert packages.filled(text, {**found, "wheel": 600_000}) != text
    assert found["wheel"] < packages.LARGEST
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    tried = [each.rpartition(" ")[2] for each in classifiers if re.fullmatch(r"Programming Language .* 3\.\d+", each)]
    assert tried == list(found["tried"])
    assert all(set(row["jax"]) == set(packages.JAX) for row in found["tried"].values())


def test_the_table_of_searches_comes_from_the_kept_ones():
    found = searches.read()
    text = searches.PAGE.read_text(encoding="utf-8")
    assert searches.filled(text, found) == text, "python -m benchmarks.searches --page"
    assert len(found) == searches.SEEDS * len(searches.TASKS) * len(searches.METHODS)
    key = next(key for key in found if key[1] == "glasses")
    worse = {**found, key: {**found[key], "scores": [score - 0.1 for score in found[key]["scores"]]}}
    assert searches.filled(text, worse) != text


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    assert not site.undocumented(text)
    assert site.undocumented(text.replace("::: glasses.loop.minimize.minimize", "")) == ["glasses.minimize is left out"]
    assert site.undocumented(text.replace("::: glasses.loop.result.Plan", "")) == ["glasses.Plan is left out"]
    (wrong,) = site.undocumented(text + "\n::: glasses.loop.minimize.nothing\n")
    assert wrong == "glasses.loop.minimize.nothing is not there or has no docstring"
    with pytest.raises(PluginError, match=r"glasses\.Optimizer is left out"):
        site.on_pre_build(SimpleNamespace(docs_dir=ROOT / "tests" / "nowhere"))


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
