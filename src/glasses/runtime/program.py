"""Compiled programs: float64 without touching the user's JAX configuration, and a cache on disk.

A ``Program`` wraps a pure function of arrays. Called with NumPy or JAX arrays it runs the compiled function in
float64 (the scoped ``jax.enable_x64``, so nothing outside the call changes) and returns JAX arrays. Keyword arguments are
static: hashable configuration that is part of the program's identity.

Cache. JAX's own persistent cache is one global setting of the process and would also swallow the user's programs, so
executables are kept here. The key is the program's name, its static configuration and shapes, a digest of the numerical
source, the versions of JAX and jaxlib, the platform and the processor's features; a program found by it is loaded without
being traced. Configuration from outside the package (somebody's own loss) may hide code that its ``repr`` does not show: then
the key is the text of the lowered program. A file that is missing, cut, foreign or unreadable means compiling again, never a
failure. ``cache`` says where the folder is.

A process keeps the ``KEPT`` executables it used last; others are loaded from disk again. Without that bound a long run
over many dimensions runs out of memory mappings, and XLA answers with a segmentation fault.

BLAS. The factorisations inside a program are BLAS calls on small matrices. Threads of OpenBLAS gain nothing there and wait for
each other on every call: with the cores busy a decision took up to 5 s instead of 0.3 s. So they are held to one while a
program of ours runs, and have their number back when none does.

Cost: a call of a known program about 0.1 ms; of a cached one some 10 ms once per process; a new one seconds.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy
import jax.scipy.linalg
from jax.experimental import serialize_executable
from threadpoolctl import OpenBLASController, ThreadpoolController

from glasses.runtime.cache import cache_folder

COMPILED = ("gaussian", "surrogate", "lookahead", "search", "numerics", "runtime", "space")  # whose code ends up in programs

KEPT = 64  # executables in memory: each holds some 350 memory mappings, of which Linux allows a process 65,530

_KNOWN: OrderedDict[tuple[str, Any], Any] = OrderedDict()  # the least recently used first
_LOCK = threading.Lock()


class _OneBlasThread:
    """Held to one thread from the first program that enters to the last that leaves, in all threads of the process.

    Held is the library that XLA calls, SciPy's; NumPy's own is left alone where it is another one. A library on OpenMP counts
    threads per thread and is not touched.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                if self._libraries is None:  # what XLA calls is loaded by now
                    self._libraries = _held_libraries()
                self._before = [library.num_threads for library in self._libraries]
                self._set([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def forked(self) -> None:
        """In the child of a fork nothing runs, whatever the parent was doing."""
        was_inside, self._lock, self._inside = self._inside, threading.Lock(), 0
        if was_inside:
            self._restore()

    def _restore(self) -> None:
        now = [library.num_threads for library in self._libraries or ()]
        self._set([was if is_ == 1 else is_ for was, is_ in zip(self._before, now, strict=True)])

    def _set(self, numbers: list[int]) -> None:
        """threadpoolctl lets only the thread that set a number first set it again; here any thread may be the last to leave."""
        OpenBLASController.clear_controlling_thread(force=True)
        for library, number in zip(self._libraries or (), numbers, strict=True):
            library.set_num_threads(number)
        OpenBLASController.clear_controlling_thread(force=True)


def _held_libraries() -> list[Any]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    found = [library for library in found if getattr(library, "threading_layer", None) != "openmp"]
    return [library for library in found if "scipy.libs" in Path(library.filepath).parts] or found


_ONE_BLAS_THREAD = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ONE_BLAS_THREAD.forked)


class Program:
    """A pure function compiled once per shape and per static configuration."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.name = f"{function.__module__.removeprefix('glasses.')}.{function.__name__}"

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        with jax.enable_x64(True):
            leaves, tree = jax.tree.flatten(arrays)
            leaves = [jax.numpy.asarray(leaf) for leaf in leaves]
            shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
            key = (self.name, (self, tuple(static.items()), tree, shapes))
            arrays = jax.tree.unflatten(tree, leaves)
            executable = _recall(key)
            if executable is None:
                executable = _remember(key, self._obtain(arrays, static))
            if jax.default_backend() != "cpu":
                return executable(*arrays)
            with _ONE_BLAS_THREAD:
                return jax.block_until_ready(executable(*arrays))

    def _obtain(self, arrays: tuple[Any, ...], static: dict[str, Any]) -> Any:
        def bound(*args: Any) -> Any:
            return self.function(*args, **static)

        bound.__name__ = self.function.__name__
        folder, words = cache_folder(), _words(tuple(static.values()))
        if folder is None:
            return _compiled(jax.jit(bound).lower(*arrays))
        lowered = None
        if words is None:
            lowered = jax.jit(bound).lower(*arrays)
            words = lowered.as_text()
        shapes = str(jax.tree.map(lambda a: (a.shape, str(a.dtype)), arrays))
        identity = "\n".join([_surroundings(), self.name, shapes, words])
        path = folder / f"{self.name}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
        found = _load(path)
        if found is not None:
            return found
        compiled = _compiled(lowered or jax.jit(bound).lower(*arrays))
        _store(path, compiled)
        return compiled


def _compiled(lowered: Any) -> Any:
    """On a CPU without the fusion emitters: they double the time to compile these programs and do not speed them up."""
    if jax.default_backend() == "cpu":
        try:
            return lowered.compile(compiler_options={"xla_cpu_use_fusion_emitters": False})
        except jax.errors.JaxRuntimeError:  # a jaxlib that does not know the option
            pass
    return lowered.compile()


def program(function: Callable[..., Any]) -> Program:
    """Decorate a pure function of arrays (positional) and static configuration (keywords)."""
    return Program(function)


def programs_in_memory() -> dict[str, int]:
    """How many executables each program holds in this process: what the compilation tests count."""
    with _LOCK:
        return dict(Counter(name for name, _ in _KNOWN))


def forget_programs() -> None:
    """Drop every executable held in memory (the disk keeps its own)."""
    with _LOCK:
        _KNOWN.clear()


def _recall(key: tuple[str, Any]) -> Any:
    with _LOCK:
        if key in _KNOWN:
            _KNOWN.move_to_end(key)
        return _KNOWN.get(key)


def _remember(key: tuple[str, Any], executable: Any) -> Any:
    with _LOCK:
        _KNOWN[key] = executable
        while len(_KNOWN) > KEPT:
            _KNOWN.popitem(last=False)
    return executable


def _words(value: Any) -> str | None:
    """A complete description of static configuration, or None if some of it comes from outside this package."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple):
        parts = [_words(each) for each in value]
    elif is_dataclass(value) and type(value).__module__.startswith("glasses."):
        parts = [_words(getattr(value, each.name)) for each in fields(value)]
    else:
        return None
    return None if None in parts else f"{type(value).__qualname__}({', '.join(map(str, parts))})"


@cache
def _surroundings() -> str:
    """Everything besides the program itself that an executable depends on."""
    device = jax.devices()[0]
    flags = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        flags = next((line for line in info.read_text().splitlines() if line.startswith(("flags", "Features"))), "")
    source = hashlib.sha256()
    package = Path(__file__).parents[1]
    for part in COMPILED:
        for path in [package / part] if part.endswith(".py") else sorted((package / part).rglob("*.py")):
            source.update(path.read_bytes())
    versions = [jax.__version__, version("jaxlib"), source.hexdigest()]
    machine = [platform.system(), platform.machine(), device.platform, device.device_kind, flags]
    return "|".join([*versions, *machine, os.environ.get("XLA_FLAGS", "")])


@cache
def _register_lapack() -> None:
    """Lower the factorisations and a solve: that registers the library calls which a loaded executable refers to."""
    matrix = jax.numpy.eye(2)
    jax.jit(lambda a: jax.scipy.linalg.solve_triangular(jax.numpy.linalg.cholesky(a), a, lower=True)).lower(matrix)
    jax.jit(jax.numpy.linalg.eigh).lower(matrix)


def _load(path: Path) -> Any:
    try:
        if os.name == "posix" and path.stat().st_uid != os.getuid():
            return None  # somebody else's file is not run
        _register_lapack()
        return serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes()))
    except Exception:  # a cache miss of any kind is answered by compiling
        return None


def _store(path: Path, compiled: Any) -> None:
    try:
        payload = pickle.dumps(serialize_executable.serialize(compiled))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(payload)
        os.replace(file.name, path)  # two processes may write the same program: the last whole file wins
    except Exception:  # a read-only home or an executable that cannot be serialised: go on without
        return
