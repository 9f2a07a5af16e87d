"""Two packages: what each wheel holds, which way imports point, and that the engine does not know of the lab."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts.requirements import requirements

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "src" / "glasses").rglob("*.py"))
LAB = sorted((ROOT / "lab" / "src" / "glasses_lab").rglob("*.py"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels, built from a copy of the sources."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "tests*")
    for name in ("src", "lab"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out)]
    subprocess.run([*build, str(copy), str(copy / "lab")], check=True, capture_output=True)
    return {path.name.split("-")[0]: path for path in out.glob("*.whl")}


def test_wheels_are_small_and_hold_no_results(wheels):
    assert wheels.keys() == {"glasses", "glasses_lab"}
    for name, wheel in wheels.items():
        files = zipfile.ZipFile(wheel).namelist()
        assert wheel.stat().st_size < 500_000, wheel.stat().st_size
        page = {Path(file).suffix for file in files if file.startswith("glasses/page/")}
        rest = {Path(file).suffix for file in files if file.startswith(f"{name}/") and not file.startswith("glasses/page/")}
        assert rest <= {".py", ".typed", ".toml"}
        assert page <= {".py", ".html", ".css", ".js", ".svg", ".LICENSE"}
        assert {Path(file).parts[0].split("-")[0] for file in files} == {name}
        sources = {path.relative_to(ROOT).as_posix() for path in (LAB if name == "glasses_lab" else ENGINE)}
        assert {file for file in files if file.endswith(".py")} == {source[source.index(name) :] for source in sources}
    assert "glasses_lab/campaign/suites/fair.toml" in zipfile.ZipFile(wheels["glasses_lab"]).namelist()


def test_a_lab_without_the_repository_says_where_results_are(wheels, tmp_path):
    for wheel in wheels.values():
        zipfile.ZipFile(wheel).extractall(tmp_path / "installed")

    def lab(*arguments):
        command = [sys.executable, "-m", "glasses_lab", *arguments]
        surroundings = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
        return subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)

    for command in (["paper", "table"], ["campaign", "choice"]):
        done = lab(*command)
        assert done.returncode == 2
        assert re.fullmatch(r"glasses-lab: The stored results \S+\.csv are not there: .* with --results\.\n", done.stderr)
    given = lab("paper", "table", "--results", str(ROOT / "lab" / "results"))
    assert given.returncode == 0, given.stderr
    assert (tmp_path / "glasses-paper" / "tables.md").read_text() == (ROOT / "docs" / "paper" / "tables.md").read_text()


def test_the_engine_does_not_name_the_lab():
    """Neither in imports nor in words: its commands, its folders, its campaigns."""
    forbidden = re.compile(r"glasses[_-]lab|campaign|reproduction|glasses (paper|problems)|from lab\b", re.IGNORECASE)
    found = {f"{path.name}:{m[0]}" for path in ENGINE for m in forbidden.finditer(path.read_text())}
    assert found == set()
    assert len(ENGINE) > 50
    assert "glasses-lab" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def test_imports_of_the_lab_point_one_way():
    order = ["problems", "campaign", "reproduction", "cli"]
    for path in LAB:
        layer = path.relative_to(ROOT / "lab" / "src" / "glasses_lab").parts[0].removesuffix(".py")
        if layer in order:
            used = set(re.findall(r"from glasses_lab\.(\w+)", path.read_text())) & set(order)
            assert used <= set(order[: order.index(layer) + 1]), path


def test_every_equation_of_the_lab_is_cited_by_a_test():
    tags = {tag for path in LAB for tag in re.findall(r"\[(eq:\w+)\]", path.read_text())}
    tests = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "lab" / "tests").rglob("*.py")]
    cited = {tag for path in tests for tag in re.findall(r"\[(eq:\w+)\]", path.read_text())}
    assert len(tags) > 8
    assert tags <= cited, f"equations nobody checks: {sorted(tags - cited)}"


def test_modules_stay_small():
    paths = [*LAB, *(ROOT / "lab" / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    assert {path.name: n for path in paths if (n := len(path.read_text().splitlines())) > 400} == {}


def test_the_installed_command_is_this_one():
    scripts = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["glasses-lab"].partition(":")
    action = getattr(importlib.import_module(module), function)
    by_module = subprocess.run([sys.executable, "-m", "glasses_lab", "problems"], capture_output=True, text=True, check=True)
    assert action(["problems"]) == 0
    assert "Branin" in by_module.stdout.split()


def test_the_lock_serves_both_packages():
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    wanted = [Requirement(line) for line in requirements()]
    assert {each.name for each in wanted} >= {"jax", "joblib", "rich", "dask", "optuna", "pytest"}
    for each in wanted:
        assert each.name in pins, f"{each.name} is not in requirements.lock: make lock"
        assert each.specifier.contains(pins[each.name])


def test_what_the_peers_tests_import_from_here_is_there():
    """They run in environments of their own, so a name that has moved would be missed."""
    needing_peers = {"glasses.botorch", "glasses.ax"}
    looked_up = 0
    for path in sorted((ROOT / "lab" / "tests_peers").glob("*.py")):
        for line in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(line, ast.ImportFrom)
                and (line.module or "").startswith("glasses")
                and line.module not in needing_peers
            ):
                module = importlib.import_module(line.module)
                assert all(hasattr(module, each.name) for each in line.names), (path.name, line.module)
                looked_up += 1
    assert looked_up > 20
