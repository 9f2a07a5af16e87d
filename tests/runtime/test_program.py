"""Compiled programs: few of them, in float64, and a cache on disk that can only help."""

import os
import re
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import hills

from glasses import ExpectedLoss, GaussianProcess, NoGain, Optimizer, TwoStage, minimize
from glasses.lookahead import Marginalized, Rollout
from glasses.runtime import program as module
from glasses.runtime.program import Program, forget_programs, program, programs_in_memory

BOX = [(0.0, 1.0), (0.0, 1.0)]


def environment(cache, **more):
    """Of a child process with a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return kept | {"GLASSES_CACHE_DIR": str(cache)} | more


@pytest.mark.slow
def test_a_whole_run_compiles_a_handful_of_programs():
    """30 evaluations with the default: one of each stage, whatever is left; the last for the recommendation."""
    forget_programs()
    minimize(hills, BOX, budget=30, seed=0)
    programs = programs_in_memory()
    assert programs == {
        "surrogate.fit._fit": 1,
        "surrogate.fit._condition": 1,
        "search.predict._marginals": 1,
        "search.propose._climb": 1,
        "search.propose._build": 1,
        "search.screen._survey": 1,
        "search.look._look": 1,
        "search.value._value": 1,
        "search.recommend._mean_and_slope": 1,
    }
    minimize(hills, BOX, budget=12, seed=1)
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
    averaging = Optimizer(
        BOX, budget=10, seed=0, loss=ExpectedLoss(), model=GaussianProcess(hyperparameter_samples=2), n_initial=3
    )
    averaging.tell(X := [[0.1, 0.2], [0.7, 0.4], [0.3, 0.9]], [hills(x) for x in X])
    averaging.ask()
    calls = 0
    for (name, _), executable in module._KNOWN.items():
        for line in executable.as_text().splitlines():
            if "lapack_" in line and "custom_call_target" in line:
                calls += 1
                shapes = re.findall(r"f64\[([\d,]*)\]", line)
                assert all(shape.count(",") <= 1 for shape in shapes), (name, line)
    assert calls > 0


@pytest.mark.slow
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
    "settings", [{}, {"cost": {"x": 0.8}}, {"model": GaussianProcess(hyperparameter_samples=2)}, {"loss": Rollout(race=(16,))}]
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
        found = original(self, *args, **settings)  # it fails, once, for an option that this version of XLA does not know
        compiled.append(1)
        return found

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


def test_workers_that_start_together_compile_a_program_once(tmp_path, monkeypatch):
    compiled = counted(tmp_path, monkeypatch)
    x, together = np.random.default_rng(0).random((4, 4)), threading.Barrier(4)

    def work():
        together.wait()
        with jax.enable_x64(True):
            Program(cube)(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(compiled) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cached_program_is_not_even_traced(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path))
    traced = []

    def square(x, *, model):
        traced.append(model)
        return x * x

    square.__module__, square.__qualname__ = "glasses.search.value", "square"  # as if it stood in the package
    for model in (GaussianProcess(), GaussianProcess(noise=0.1), GaussianProcess()):
        assert float(Program(square)(np.array(3.0), model=model)) == 9.0
    assert traced == [GaussianProcess(), GaussianProcess(noise=0.1)]


def test_code_that_cannot_be_digested_is_part_of_the_key(tmp_path, monkeypatch):
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


@pytest.mark.slow
def test_every_flipped_byte_means_compiling_again(tmp_path, monkeypatch):
    """A digest stands before the code: no damaged program is run, wherever the damage is."""
    compiled = counted(tmp_path, monkeypatch)
    x = np.random.default_rng(0).random((4, 4))
    expected = Program(cube)(x)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 43).astype(int):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        before = len(compiled)
        np.testing.assert_array_equal(Program(cube)(x), expected)
        assert len(compiled) == before + 1
    for damage in (b"", b"nonsense", whole[:100]):
        file.write_bytes(damage)
        np.testing.assert_array_equal(Program(cube)(x), expected)
    assert len(compiled) == 1 + 43 + 3


class Lowered:
    """A program for a version of XLA that does not know one of the options, or fails for another reason."""

    def __init__(self, unknown):
        self.unknown, self.options, self.tried = unknown, None, 0

    def compile(self, compiler_options):
        self.options, self.tried = compiler_options, self.tried + 1
        for name in compiler_options:
            if name == self.unknown:
                raise jax.errors.JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")
        if self.unknown == "all":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return "compiled"


def test_an_option_that_xla_does_not_know_is_left_out_from_then_on(monkeypatch):
    monkeypatch.setattr(module, "_UNKNOWN", set())
    monkeypatch.delenv("GLASSES_OPTIMIZATION_LEVEL", raising=False)
    new = Lowered("xla_cpu_use_fusion_emitters")
    for tried in (2, 1):
        new.tried = 0
        assert module._compiled(new, jax.devices("cpu")[0], False) == "compiled"
        assert new.tried == tried
    assert new.options == {name: value for name, value in module._ON_CPU.items() if name != new.unknown}
    with pytest.raises(jax.errors.JaxRuntimeError, match="out of memory"):
        module._compiled(Lowered("all"), jax.devices("cpu")[0], False)


def test_the_level_of_tests_is_another_program(tmp_path, monkeypatch):
    """In memory and on disk: whoever turns it on or off never gets the other's."""
    monkeypatch.setenv("GLASSES_CACHE_DIR", str(tmp_path))
    forget_programs()
    for level in ("0", "1", None):
        if level is None:
            monkeypatch.delenv("GLASSES_OPTIMIZATION_LEVEL")
        else:
            monkeypatch.setenv("GLASSES_OPTIMIZATION_LEVEL", level)
        program(_twice)(np.ones(3))
        program(_twice)(np.ones(3))
    assert len(list(tmp_path.iterdir())) == 3
    cpu = jax.devices("cpu")[0]
    assert module._options(cpu, False)["xla_backend_optimization_level"] == 3
    assert module._options(cpu, True)["xla_backend_optimization_level"] == 1


MANY_DEVICES = """
import numpy as np, jax, glasses
assert len(jax.local_devices()) == 4
def run():
    loss = glasses.ExpectedLoss()
    return glasses.minimize(lambda x: float((x[0] - .3) ** 2), [(0, 1)], budget=6, n_initial=3, seed=0, loss=loss)
points = [run().x_iters for _ in range(2)]
with jax.default_device(jax.local_devices()[2]):
    points.append(run().x_iters)
assert all(np.array_equal(points[0], each) for each in points)
print(np.asarray(points[0]).tolist())
"""


@pytest.mark.slow
def test_programs_run_on_one_device_of_several(tmp_path):
    """In the process that compiles them and in the next one, which loads them; also on a device that the user has chosen."""
    found = []
    for count in (4, 4):
        env = environment(tmp_path, XLA_FLAGS=f"--xla_force_host_platform_device_count={count}")
        done = subprocess.run([sys.executable, "-c", MANY_DEVICES], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(done.stdout)
    assert found[0] == found[1]


LATE_FLAG = """
import os, sys
import numpy as np, glasses
def run():
    return glasses.minimize(lambda x: float(np.sin(7 * x[0]) + x[1] ** 2), [(0, 1)] * 2, budget=12, seed=4).x_iters
if sys.argv[1] == "late":
    glasses.minimize(lambda x: float(x[0]), [(0, 1)], budget=4, seed=0, loss=glasses.ExpectedLoss())
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
print([[v.hex() for v in x] for x in run()])
"""


@pytest.mark.slow
def test_a_flag_of_the_environment_that_comes_too_late_changes_nothing(tmp_path):
    """Rounding and keys depend on how the program is compiled, not on what the environment holds by then: the same run with
    and without the flag, set early or late, in a cache that all of them share."""
    found = set()
    for how, flags in (("late", None), ("never", None), ("early", "--xla_cpu_multi_thread_eigen=false")):
        env = environment(tmp_path, **({} if flags is None else {"XLA_FLAGS": flags}))
        done = subprocess.run([sys.executable, "-c", LATE_FLAG, how], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        found.add(done.stdout)
    assert len(found) == 1


def test_a_process_keeps_a_bounded_number_of_executables(monkeypatch):
    """Each executable costs hundreds of memory mappings; the least recently used go first and come back when called."""
    monkeypatch.setattr(module, "KEPT", 3)
    forget_programs()
    twice = program(_twice)
    for size in (1, 2, 3, 1, 4):
        np.testing.assert_array_equal(twice(np.ones(size)), 2 * np.ones(size))
    kept = [key[1][-2][0][0] for key in module._KNOWN]
    assert kept == [(3,), (1,), (4,)]
    np.testing.assert_array_equal(twice(np.ones(2)), [2.0, 2.0])
    assert sum(programs_in_memory().values()) == 3


def _twice(x):
    return 2 * x
