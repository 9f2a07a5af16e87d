"""The package as a stranger gets it: ``make packages``. Resumable; some minutes, most of them spent by pip.

Builds the wheel and the sdist, installs both in fresh environments of every Python that is found, with each JAX allowed,
and tries them: a first suggestion, the extras, the types. Then the same first suggestion with other libraries: how long an
installation takes, how large it is, and how soon a new process has suggested a point. What was measured is kept in
``docs/packages.json``; the tables of ``docs/compare.md`` are made from it (``--page``: only they).

    installed    CPU seconds of ``pip install`` into a fresh environment, all files in pip's cache, so without the network;
                 the size and the number of packages there, without pip
    first        CPU seconds of a process that suggests a point from ten results in two dimensions and ends, the first one
                 (which compiles, where there is something to compile) and the median of five later ones
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD, KEPT, PAGE = ROOT / "build" / "packages", ROOT / "docs" / "packages.json", ROOT / "docs" / "compare.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
JAX = ("0.10", "0.11")
LARGEST = 500_000  # bytes of the wheel

DATA = """
import random
rng = random.Random(1)
X = [[rng.random(), rng.random()] for _ in range(10)]
y = [(a - 0.3) ** 2 + abs(b - 0.6) for a, b in X]
"""
FIRST = {
    "glasses": DATA
    + """
from glasses import Optimizer
point = Optimizer([(0, 1), (0, 1)], budget=30, x0=X, y0=y, seed=1).ask()
""",
    "optuna": DATA
    + """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
unit = optuna.distributions.FloatDistribution(0, 1)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
for (a, b), value in zip(X, y):
    study.add_trial(optuna.trial.create_trial(params={"a": a, "b": b}, distributions={"a": unit, "b": unit}, value=value))
point = study.ask({"a": unit, "b": unit}).params
""",
    "scikit-optimize": DATA
    + """
from skopt import Optimizer
optimizer = Optimizer([(0.0, 1.0), (0.0, 1.0)], n_initial_points=5, random_state=1)
optimizer.tell(X, y)
point = optimizer.ask()
""",
    "bayesian-optimization": DATA
    + """
from bayes_opt import BayesianOptimization
optimizer = BayesianOptimization(None, {"a": (0, 1), "b": (0, 1)}, random_state=1, verbose=0)
for (a, b), value in zip(X, y):
    optimizer.register({"a": a, "b": b}, -value)
point = optimizer.suggest()
""",
    "botorch": DATA
    + """
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
torch.manual_seed(1)
X, Y = torch.tensor(X, dtype=torch.double), -torch.tensor(y, dtype=torch.double)[:, None]
model = SingleTaskGP(X, Y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
point, _ = optimize_acqf(LogExpectedImprovement(model, Y.max()), box, q=1, num_restarts=10, raw_samples=256)
""",
}
FIRST["optuna, GP"] = FIRST["optuna"].replace("TPESampler", "GPSampler")
SAMPLERS = {"optuna": ", TPESampler", "optuna, GP": ", GPSampler", "botorch": ", LogEI"}
BEFORE = {"botorch": ["torch==2.13.0"], "optuna, GP": ["torch==2.13.0"]}
TYPED = """
import glasses

result: int = glasses.minimize(lambda x: x[0], [(0, 1)], budget=4)
reveal_type(glasses.Float(0, 1).low)
"""
EXTRAS = {"": "glasses.tiny", "plot": "glasses.plot", "sklearn": "glasses.sklearn", "study": "glasses.optuna"}


def found_pythons() -> dict[str, str]:
    """Version -> interpreter, of this machine."""
    found = {}
    for version in PYTHONS:
        kept = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
        path = str(kept[-1]) if kept else shutil.which(f"python{version}")
        if path:
            found[version] = path
    return found


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    """A command that must succeed, outside the repository."""
    given = {"cwd": BUILD, "capture_output": True, "text": True, "check": True, **options}
    try:
        return subprocess.run([str(each) for each in command], **given)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(map(str, command))}\n{error.stdout}{error.stderr}") from None


def built() -> tuple[Path, Path]:
    """The wheel and the sdist of what git knows, made from a copy without anything else."""
    dist = BUILD / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
        code = f"from setuptools import build_meta as b; b.build_sdist({str(dist)!r}); b.build_wheel({str(dist)!r})"
        run(sys.executable, "-c", code, cwd=folder)
    return next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))


def environment(name: str, python: str) -> Path:
    """A fresh environment; its interpreter."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def install(python: Path, *what: object) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def versions(python: Path) -> dict[str, str]:
    """Of everything installed but pip."""
    done = run(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check")
    return {each["name"]: each["version"] for each in json.loads(done.stdout) if each["name"] not in ("pip", "setuptools")}


def spent() -> float:
    """CPU seconds of all processes that were started here and have ended: other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def suggests(python: Path, code: str, cache: Path) -> float:
    """CPU seconds of a process that suggests a point."""
    begun = spent()
    run(python, "-c", code, env={**os.environ, "GLASSES_CACHE_DIR": str(cache), "PYTHONWARNINGS": "ignore"})
    return spent() - begun


def tried(version: str, python: str, wheel: Path, sdist: Path) -> dict:
    """The wheel in a fresh environment, its extras and types, the sdist, and every JAX allowed. Each suggests a point."""
    here, cache = environment(f"python{version}", python), BUILD / f"cache-{version}"
    install(here, "--no-compile", wheel)
    bare = versions(here)
    suggests(here, FIRST["glasses"], cache)
    install(here, "--no-compile", f"{wheel}[{','.join(filter(None, EXTRAS))}]", "mypy")
    run(here, "-m", "pip", "check")
    for module in EXTRAS.values():
        run(here, "-c", f"import {module}")
    (BUILD / "typed.py").write_text(TYPED)
    typed = run(here, "-m", "mypy", "typed.py", check=False).stdout
    assert 'expression has type "Result", variable has type "int"' in typed, typed
    assert 'Revealed type is "float"' in typed.replace("builtins.", ""), typed
    install(here, "--no-compile", "--force-reinstall", "--no-deps", sdist)
    suggests(here, FIRST["glasses"], cache)
    found: dict = {"needs": bare, "jax": {}}
    for jax in JAX:
        done = run(here, "-m", "pip", "install", "-q", "--no-compile", f"jax=={jax}.*", check=False)
        if done.returncode == 0:
            suggests(here, FIRST["glasses"], cache)
        found["jax"][jax] = versions(here)["jax"] if done.returncode == 0 else None
    return found


def wheels_for(version: str) -> bool:
    """Whether everything that the wheel needs can be had as wheels of a Python that is not here."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--only-binary=:all:", "--python-version", version, "--platform", "manylinux_2_27_x86_64"]
        more = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64", "--no-deps", "-d", folder]
        needs = ["jax<0.12", "jaxlib<0.12", "numpy", "scipy", "ml_dtypes", "opt_einsum", "threadpoolctl"]
        done = [
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", *wanted, *more, need], capture_output=True
            ).returncode
            for need in needs
        ]
    return not any(done)


def compared(name: str, python: str, wheel: Path) -> dict:
    """An installation and a first suggestion of a library, each from nothing."""
    what = {"glasses": [wheel], "optuna, GP": ["optuna", "scipy"]}.get(name, [name])
    here = environment("compared", python)
    with tempfile.TemporaryDirectory() as folder:  # fills pip's cache
        run(here, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "-d", folder, *BEFORE.get(name, []), *what)
    empty = sum(each.stat().st_size for each in here.parents[1].rglob("*") if each.is_file())
    begun = spent()
    install(here, *BEFORE.get(name, []), *what)
    seconds = spent() - begun
    size = sum(each.stat().st_size for each in here.parents[1].rglob("*") if each.is_file()) - empty
    found = versions(here)
    with tempfile.TemporaryDirectory() as cache:
        times = [suggests(here, FIRST[name], Path(cache)) for _ in range(6)]
    version = found.get(name.split(",")[0], found.get("glasses"))
    return {
        "version": version,
        "installed": round(seconds, 1),
        "megabytes": round(size / 1e6),
        "packages": len(found),
        "cold": round(times[0], 2),
        "warm": round(statistics.median(times[1:]), 2),
    }


def tables(found: dict) -> dict[str, str]:
    """What the page shows."""
    tried_ = [
        [
            version,
            ", ".join(each or f"no {jax} there" for jax, each in row["jax"].items()),
            row["needs"]["numpy"],
            row["needs"]["scipy"],
        ]
        for version, row in found["tried"].items()
    ]
    tried_ += [
        [version, "not tried; wheels of all it needs are there" if there else "not tried; not all it needs is there", "", ""]
        for version, there in found.get("wheels", {}).items()
    ]
    others = [
        [f"{name.split(',')[0]} {each['version']}{SAMPLERS.get(name, '')}"]
        + [f"{each[key]:g}" for key in ("installed", "megabytes", "packages", "cold", "warm")]
        for name, each in found.get("compared", {}).items()
    ]
    heads = ["", "installed, CPU s", "MB", "packages", "first suggestion, CPU s", "in later processes"]
    return {
        "pythons": table(["Python", "JAX", "NumPy", "SciPy"], tried_),
        "first": table(heads, others),
        "packages-about": f"`make packages`, {found['date']}, two cores: the wheel has {found['wheel'] // 1000} kB, the sdist "
        f"{found['sdist'] // 1000} kB.",
    }


def table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows])


def filled(page: str, found: dict) -> str:
    """The page with its tables of what was measured."""
    for name, text in tables(found).items():
        begin = f"<!-- table {name} -->"
        before, rest = page.split(begin, 1)
        page = f"{before}{begin}\n\n{text}\n\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}"
    return page


def main() -> None:
    """Measure what is not kept yet, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    options = parser.parse_args()
    found = {} if options.again or not KEPT.exists() else json.loads(KEPT.read_text())

    def keep() -> None:
        found["date"] = time.strftime("%Y-%m-%d")
        KEPT.write_text(json.dumps(found, indent=1) + "\n")

    if not options.page:
        BUILD.mkdir(parents=True, exist_ok=True)
        wheel, sdist = built()
        found["wheel"], found["sdist"] = wheel.stat().st_size, sdist.stat().st_size
        assert found["wheel"] < LARGEST, f"The wheel has {found['wheel']} bytes, more than {LARGEST}."
        assert "glasses/py.typed" in zipfile.ZipFile(wheel).namelist()
        keep()
        pythons = found_pythons()
        for version, python in pythons.items():
            if version not in found.setdefault("tried", {}):
                found["tried"][version] = tried(version, python, wheel, sdist)
                keep()
                print(version, found["tried"][version]["jax"], flush=True)
        for version in PYTHONS:
            if version not in pythons and version not in found.setdefault("wheels", {}):
                found["wheels"][version] = wheels_for(version)
                keep()
        for name in FIRST:
            if name not in found.setdefault("compared", {}):
                found["compared"][name] = compared(name, pythons["3.11"], wheel)
                keep()
                print(name, found["compared"][name], flush=True)
    if "tried" in found:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
