"""float64 without touching anybody's configuration, few programs, and a cache that can only help."""

import re
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from problems import hills
from threadpoolctl import threadpool_info, threadpool_limits

import glasses
from glasses import ExpectedLoss, GaussianProcess, NoGain, Optimizer, TwoStage, minimize
from glasses.lookahead import Marginalized, Rollout
from glasses.runtime import program as compilation
from glasses.runtime.program import COMPILED, Program, cache_folder, forget_programs, program, programs_in_memory

BOX = [(0.0, 1.0), (0.0, 1.0)]
GLASSES = re.compile(r"from glasses\.(\w+)")


@pytest.mark.slow
def test_a_whole_run_compiles_a_handful_of_programs():
    """30 evaluations with the default: one fit, one survey, a recommendation, three stages for each of three horizons."""
    forget_programs()
    minimize(hills, BOX, budget=30, seed=0)
    programs = programs_in_memory()
    assert programs == {
        "surrogate.fit._fit": 1,
        "search.survey.survey": 1,
        "search.recommend.lowest_mean": 1,
        "search.cascade._screen": 3,
        "search.cascade._value": 3,
        "search.cascade._polish": 3,
    }
    minimize(hills, BOX, budget=30, seed=1)
    assert programs_in_memory() == programs


@pytest.mark.slow
def test_no_program_calls_a_batched_factorisation():
    """XLA's CPU runtime was seen to wait forever on a batched LAPACK call inside nested loops: every call is for one matrix."""
    optimizer = Optimizer(BOX, budget=16, seed=0, loss=ExpectedLoss())
    optimizer.ask(8)
    optimizer.tell(optimizer.pending[:6], [hills(x) for x in optimizer.pending[:6]])
    optimizer.ask(2)
    for optimizer.loss in (TwoStage(), Rollout(race=(16,)), Marginalized(samples=2)):
        optimizer.ask()
    optimizer.result()
    optimizer.forecast()
    doubting = Optimizer(BOX, budget=10, seed=0, loss=ExpectedLoss(), model=GaussianProcess(draws=2), n_initial=3)
    doubting.tell(X := [[0.1, 0.2], [0.7, 0.4], [0.3, 0.9]], [hills(x) for x in X])
    doubting.ask()
    calls = 0
    for (name, _), executable in compilation._KNOWN.items():
        for line in executable.as_text().splitlines():
            if "lapack_" in line and "custom_call_target" in line:
                calls += 1
                shapes = re.findall(r"f64\[([\d,]*)\]", line)
                assert all(shape.count(",") <= 1 for shape in shapes), (name, line)
    assert calls > 0


def test_importing_and_running_leave_jax_as_it_was():
    code = (
        "import jax, jax.numpy as jnp, glasses\n"
        "before = (jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir, jax.config.jax_platforms)\n"
        "glasses.minimize(lambda x: float(x[0]), [(0, 1)], budget=5, n_initial=3, seed=0, loss=glasses.ExpectedLoss())\n"
        "assert before == (jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir, jax.config.jax_platforms)\n"
        "assert jnp.ones(2).dtype == jnp.float32\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_programs_run_in_float64_inside_a_float32_world():
    double = program(lambda x: x / 3.0)
    with jax.enable_x64(False):
        out = double(np.array([1.0]))
    assert out.dtype == jnp.float64
    assert float(out[0]) == 1 / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"cost": {"x": 0.8}}, {"model": GaussianProcess(draws=2)}, {"loss": Rollout(race=(16,))}]
)
def test_a_run_in_a_float32_world_never_falls_to_32_bits(settings):
    """JAX warns where it cuts an array to 32 bits: nowhere in a run with failures, pending points and forecasts."""
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = Optimizer({"x": (1.0, 2.0)}, budget=10, n_initial=3, seed=0, **settings)
        for x, y in ((1.1, 0.4), (1.3, None), (1.6, 0.1), (1.9, 0.7)):
            optimizer.tell({"x": x}, y)
        optimizer.ask()
        optimizer.ask()
        optimizer.forecast()
        optimizer.plan()
        optimizer.result()
        NoGain().reason(optimizer)


def counted(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path))
    compiled = []
    original = jax.stages.Lowered.compile

    def spy(self, *args, **settings):
        compiled.append(1)
        return original(self, *args, **settings)

    monkeypatch.setattr(jax.stages.Lowered, "compile", spy)
    return compiled


def cube(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0])) * 3.0


def test_the_disk_cache_spares_compiling(tmp_path, monkeypatch):
    compiled = counted(tmp_path, monkeypatch)
    x = np.random.default_rng(0).random((4, 4))
    first = Program(cube)(x)
    assert len(compiled) == 1
    assert len(list(tmp_path.iterdir())) == 1
    second = Program(cube)(x)
    assert len(compiled) == 1
    np.testing.assert_array_equal(first, second)


def test_a_cached_program_is_not_even_traced(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path))
    traced = []

    def square(x, *, model):
        traced.append(model)
        return x * x

    square.__module__ = "glasses.test"
    for model in (GaussianProcess(), GaussianProcess(noise=0.1), GaussianProcess()):
        assert float(Program(square)(np.array(3.0), model=model)) == 9.0
    assert traced == [GaussianProcess(), GaussianProcess(noise=0.1)]


def test_code_from_outside_is_part_of_the_key(tmp_path, monkeypatch):
    """Two losses with the same name and the same repr but different code never share an executable."""
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path))

    def make(factor):
        @dataclass(frozen=True)
        class Mine:
            def scale(self, x):
                return factor * x

        return Mine()

    def apply(x, *, loss):
        return loss.scale(x)

    assert [float(Program(apply)(np.array(1.0), loss=make(k))) for k in (2.0, 3.0)] == [2.0, 3.0]


@pytest.mark.parametrize("damage", [b"", b"nonsense", "cut"])
def test_a_damaged_cache_file_means_compiling_again(tmp_path, monkeypatch, damage):
    compiled = counted(tmp_path, monkeypatch)
    x = np.random.default_rng(0).random((4, 4))
    expected = Program(cube)(x)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100] if damage == "cut" else damage)
    np.testing.assert_array_equal(Program(cube)(x), expected)
    assert len(compiled) == 2


def test_the_cache_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GLASSES_CACHE_DIR", "off")
    assert cache_folder() is None
    Program(cube)(np.eye(3))
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("GLASSES_CACHE_DIR")
    assert cache_folder() == tmp_path / "glasses" / "programs"


def test_an_unusable_folder_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path / "file" / "inside"))
    assert np.asarray(Program(cube)(np.eye(3))).shape == (3, 3)


def test_programs_live_in_the_folders_that_the_cache_watches():
    """The key of a cached program holds a digest of these folders: a program elsewhere could go stale."""
    root = Path(glasses.__file__).parent
    watched = [path for part in COMPILED for path in ([root / part] if part.endswith(".py") else (root / part).rglob("*.py"))]
    assert {path for path in root.rglob("*.py") if "@program" in path.read_text()} <= set(watched)
    imported = {name for path in watched for name in GLASSES.findall(path.read_text())}
    assert {name for name in imported if name not in COMPILED and f"{name}.py" not in COMPILED} <= {"cache"}


def test_a_process_keeps_a_bounded_number_of_executables(monkeypatch):
    """Each executable costs hundreds of memory mappings; the least recently used go first and come back when called."""
    monkeypatch.setattr(compilation, "KEPT", 3)
    forget_programs()
    twice = program(_twice)
    for size in (1, 2, 3, 1, 4):
        np.testing.assert_array_equal(twice(np.ones(size)), 2 * np.ones(size))
    kept = [key[1][-1][0][0] for key in compilation._KNOWN]
    assert kept == [(3,), (1,), (4,)]
    np.testing.assert_array_equal(twice(np.ones(2)), [2.0, 2.0])
    assert sum(programs_in_memory().values()) == 3


def _blas_threads():
    """Of the library that XLA calls."""
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [library["num_threads"] for library in found if "scipy.libs" in library["filepath"] or len(found) == 1]


def test_blas_has_one_thread_while_a_program_runs_and_its_own_number_afterwards(monkeypatch):
    """Also where programs overlap: the first to enter and the last to leave need not be the same."""
    scipy.linalg.cholesky(np.eye(3))
    seen, first_is_in, second_is_in, first_is_out = [], threading.Event(), threading.Event(), threading.Event()

    def execute(*arrays):
        if threading.current_thread() is other:
            first_is_in.wait(30)
            second_is_in.set()
            first_is_out.wait(30)
        else:
            first_is_in.set()
            second_is_in.wait(30)
        seen.append(_blas_threads())
        return arrays

    monkeypatch.setattr(compilation, "_recall", lambda key: execute)
    other = threading.Thread(target=program(_twice), args=(np.ones(1),))
    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        assert before
        assert set(before) == {2}
        other.start()
        program(_twice)(np.ones(2))
        assert set(_blas_threads()) == {1}  # the other one is still inside
        first_is_out.set()
        other.join()
        assert _blas_threads() == before
    assert [set(each) for each in seen] == [{1}, {1}]


def test_a_child_forked_while_a_program_runs_has_its_threads_back():
    scipy.linalg.cholesky(np.eye(3))
    held = compilation._OneBlasThread()
    with threadpool_limits(2, user_api="blas"):
        held.__enter__()
        assert set(_blas_threads()) == {1}
        held.forked()
        assert set(_blas_threads()) == {2}
        with held:
            assert set(_blas_threads()) == {1}
        assert set(_blas_threads()) == {2}


def _twice(x):
    return 2 * x
