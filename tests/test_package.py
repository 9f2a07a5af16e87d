"""The surface: public names, tags of equations, what gets imported."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import glasses

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "glasses").rglob("*.py"))


def test_public_names():
    names = """
        DEFAULT PAPER Choice ExhaustedError ExpectedLoss Failure Float Forecast GaussianProcess Glasses Int NoGain Optimizer
        Plan Preset Price Recommendation Result Target TwoStage maximize minimize
    """
    assert sorted(glasses.__all__) == sorted(names.split())
    assert all(hasattr(glasses, name) for name in glasses.__all__)


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("gaussian", "EP QMC expected_min"),
        ("search", "Direct MultiStart"),
        (
            "testing",
            "KernelContract LookAheadContract LossContract OracleContract OutputTransformContract SearchContract "
            "StoppingCriterionContract StorageContract",
        ),
        (
            "lookahead",
            "DeterminantalPoints ExpectedLoss Glasses KrigingBeliever LocalPenalization Loss LowerConfidenceBound Marginalized "
            "Oracle ProbabilityOfImprovement Rollout ThompsonPaths TwoStage",
        ),
        (
            "surrogate",
            "Additive Compress Constant Exponential GaussianProcess Hyperparameter Kernel Known MAP Matern52 MaximumLikelihood "
            "Normal OutputTransform Outputs PartlyAdditive SquaredExponential Standardize Subset Warped",
        ),
    ],
)
def test_names_of_the_subpackages(package, names):
    module = getattr(glasses, package)
    assert sorted(module.__all__) == sorted(names.split())
    assert all(hasattr(module, name) for name in module.__all__)


def test_names_are_loaded_when_they_are_used():
    assert {name for names in glasses._HOMES.values() for name in names} == set(glasses.__all__)
    typed = re.findall(r"^    from glasses\.([\w.]+) import (.+)$", Path(glasses.__file__).read_text(), re.MULTILINE)
    assert {module: tuple(names.split(", ")) for module, names in typed} == glasses._HOMES
    code = "import sys, glasses.cli, glasses.study.stored; print([m for m in ('jax', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"
    code = "import glasses; print(glasses.optuna.GlassesSampler.__name__, glasses.Int(1, 2), 'plot' in dir(glasses))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "GlassesSampler Int(low=1, high=2, log=False, step=None) True"
    with pytest.raises(AttributeError, match="has no attribute 'optimise'"):
        getattr(glasses, "optimise")  # noqa: B009


def test_every_equation_is_cited_by_a_test():
    tags = {tag for path in SOURCES for tag in re.findall(r"\[(eq:\w+)\]", path.read_text())}
    tests = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "lab" / "tests_peers").rglob("*.py")]
    cited = {tag for path in tests for tag in re.findall(r"\[(eq:\w+)\]", path.read_text())}
    assert len(tags) > 15
    assert tags <= cited, f"equations nobody checks: {sorted(tags - cited)}"


def test_modules_stay_small():
    assert {path.name: n for path in SOURCES if (n := len(path.read_text().splitlines())) > 400} == {}


def test_the_core_imports_only_what_it_needs():
    heavy = (
        "matplotlib",
        "optuna",
        "torch",
        "botorch",
        "ax",
        "sklearn",
        "pandas",
        "rich",
        "joblib",
        "distributed",
        "sqlalchemy",
        "glasses_lab",
        "glasses.study",
        "pytest",
        "hypothesis",
        "glasses.testing",
    )
    code = f"import sys, glasses; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(("part", "library"), [("botorch", "BoTorch"), ("ax", "Ax")])
def test_what_to_install_is_said_in_one_sentence(part, library, monkeypatch):
    """torch is in the peers' environment alone; there the tests of these two parts are run."""
    for name in [name for name in sys.modules if name.startswith(f"glasses.{part}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(ImportError) as refused:
        getattr(glasses, part)
    assert str(refused.value) == f"glasses.{part} needs {library}: pip install 'glasses[{part}]'."


def test_no_registry_addresses_in_the_locks():
    for name in ("requirements.lock", "requirements-peers.lock"):
        assert not re.search(r"https?://|--index|--find-links", (ROOT / name).read_text())
