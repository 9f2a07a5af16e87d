"""The gallery runs as it is written, in a copy of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread
from pictures import colours

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(tmp_path):
    """Run a command in a copy of the gallery; what it printed."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.db", "*.png", "*.log"))
    surroundings = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def call(*command):
        done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call.folder = tmp_path / "examples"
    return call


def test_a_python_function(run):
    out = run(sys.executable, "examples/function.py")
    assert "With 4 cups left" in out
    assert "Budget spent: 13 of 13 evaluations done" in out


def test_a_command_line_simulator(run):
    out = run("glasses", "run", "examples/simulator/study.toml")
    assert "Done: 12 of 12 evaluations" in out
    assert "extra:overshoot" in run("glasses", "export", "examples/simulator/study.toml").splitlines()[0]


def test_a_scikit_learn_model(run):
    assert "best accuracy 0.9" in run(sys.executable, "examples/forest.py")


def test_a_bench_session(run):
    out = run("sh", "examples/bench/session.sh")
    assert "5 complete, 1 failed; 3 of 9 left" in out
    assert colours(imread(run.folder / "bench" / "dye.png")) > 50


def test_four_workers(run):
    out = run("sh", "examples/workers/run.sh")
    assert "16 complete" in out
    assert "0 of 16 left" in out


def test_every_example_is_in_the_list():
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.iterdir():
        if path.name != "README.md" and not path.name.startswith((".", "__")):
            assert f"]({path.name})" in listed
