"""Compiled programs: float64 and settings of their own, one device, and a cache on disk.

A ``Program`` wraps a pure function of arrays. Called with NumPy or JAX arrays it runs the compiled function in float64 and
returns JAX arrays. Keyword arguments are static: hashable configuration that is part of the program's identity. It is traced,
compiled and run under ``own_settings``, so that nothing the user has set in JAX changes a result or stops a call, and nothing
outside the call changes.

Cache. JAX's own persistent cache is one global setting of the process and would also hold the user's programs, so executables
are kept here (``cache``). The key is the program's name, shapes, static configuration, a digest of the source code they come
from (``sources``), the versions of the libraries, the compiler's options as XLA has read them, the device and the processor's
features; a program found by it is loaded without being traced. Where the source cannot be digested, the key is the text of the
traced program.

Compiler options. On a CPU matrix products use one thread: with several the rounding depends on how the work is divided, and
the same run in another process could end elsewhere. The fusion emitters double the time to compile these programs and do not
speed them up. XLA divides a program into 32 parts for as many threads; in four parts it compiles a tenth faster on two cores.
The level of optimisation is fixed because a flag of JAX can lower it; ``@quickly_compiled`` programs run for milliseconds and
are compiled at level 1, a fifth faster. ``GLASSES_OPTIMIZATION_LEVEL=0`` or ``=1`` is for tests, of which most run a program
once, several at a time: compiled in one part, a fifth faster than for users, and at 0 faster still but running twice as long;
last bits may differ.

A process keeps the ``KEPT`` executables it used last; others are loaded from disk again. Without that bound a long run
over many dimensions runs out of memory mappings, and XLA answers with a segmentation fault.

Cost: a call of a known program about 0.1 ms; of a cached one some 10 ms once per process; a new one seconds.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable
from jaxlib import xla_client

from glasses.runtime.ahead import AHEAD
from glasses.runtime.blas import ONE_BLAS_THREAD
from glasses.runtime.cache import alone, cache_folder, read, write
from glasses.runtime.device import device
from glasses.runtime.lapack import bind_lapack
from glasses.runtime.machine import machine
from glasses.runtime.settings import own_settings
from glasses.runtime.sources import OWN, digest_of_class, digest_of_own_module, remember_loaded

KEPT = 64  # executables in memory: each holds some 350 memory mappings, of which Linux allows a process 65,530
_LEVEL = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": True}
_QUICK = {"xla_backend_optimization_level": 1}
_IN_PARTS = {"xla_cpu_parallel_codegen_split_count": 4}
_IN_ONE = {"xla_cpu_parallel_codegen_split_count": 1}
_ON_CPU = {**_LEVEL, **_IN_PARTS, "xla_cpu_multi_thread_eigen": False, "xla_cpu_use_fusion_emitters": False}
_UNKNOWN: set[str] = set()  # options that this version of XLA was seen not to have

_KNOWN: OrderedDict[tuple[str, Any], Any] = OrderedDict()  # the least recently used first
_LOCK = threading.Lock()
_TURNS: dict[tuple[str, Any], Any] = {}  # a lock for each program being made


class Program:
    """A pure function compiled once per shape and per static configuration."""

    def __init__(self, function: Callable[..., Any], *, quick: bool = False) -> None:
        self.function, self.quick = function, quick
        self.__doc__ = function.__doc__
        self.name = f"{function.__module__.removeprefix('glasses.')}.{function.__name__}"
        remember_loaded()

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        where = device()
        with own_settings():
            leaves, tree = jax.tree.flatten(arrays)
            leaves = [_placed(leaf, where) for leaf in leaves]
            shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
            key = (self.name, (self, tuple(static.items()), where, tree, shapes, _lower_level()))
            arrays = jax.tree.unflatten(tree, leaves)
            AHEAD.check()
            executable = _recall(key)
            if executable is None:
                with _turn(key):  # two threads that need the same program wait for one compilation
                    executable = _recall(key) or _remember(key, self._obtain(arrays, static, where))
            if where.platform != "cpu":
                return executable(*arrays)
            with ONE_BLAS_THREAD:
                return jax.block_until_ready(executable(*arrays))

    def _obtain(self, arrays: tuple[Any, ...], static: dict[str, Any], where: Any) -> Any:
        def bound(*args: Any) -> Any:
            return self.function(*args, **static)

        bound.__name__ = self.function.__name__
        here = jax.sharding.SingleDeviceSharding(where)
        arrays = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=here), arrays)
        folder = cache_folder()
        if folder is None:
            return _compiled(jax.jit(bound).lower(*arrays), where, self.quick)
        lowered = None
        identity = _identity(self.function, static)
        if identity is None:
            lowered = jax.jit(bound).lower(*arrays)
            identity = lowered.as_text()
        shapes = str(jax.tree.map(lambda a: (a.shape, str(a.dtype)), arrays))
        whole = "\n".join([_surroundings(where), repr(_options(where, self.quick)), self.name, shapes, identity])
        path = folder / f"{self.name}-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"
        found = _load(path, where)
        if found is not None:
            return found
        with alone(path) as waited:  # workers that start together need the same programs
            found = _load(path, where) if waited else None
            if found is None:
                found = _compiled(lowered or jax.jit(bound).lower(*arrays), where, self.quick)
                _store(path, found)
            return found


def _placed(leaf: Any, where: Any) -> Any:
    """An array that an executable for this device takes: NumPy's, or JAX's on the device."""
    if not isinstance(leaf, jax.Array):
        return np.asarray(leaf)
    return leaf if leaf.device == where else jax.device_put(leaf, where)


def program(function: Callable[..., Any]) -> Program:
    """Decorate a pure function of arrays (positional) and static configuration (keywords)."""
    return Program(function)


def quickly_compiled(function: Callable[..., Any]) -> Program:
    """The same for a program that waits longer for its compiler than it ever runs."""
    return Program(function, quick=True)


def programs_in_memory() -> dict[str, int]:
    """How many executables each program holds in this process: what the compilation tests count."""
    with _LOCK:
        return dict(Counter(name for name, _ in _KNOWN))


def forget_programs() -> None:
    """Drop every executable held in memory (the disk keeps its own)."""
    with _LOCK:
        _KNOWN.clear()


def _forked() -> None:
    """In the child of a fork no other thread holds a lock."""
    global _LOCK
    _LOCK = threading.Lock()
    _TURNS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _turn(key: tuple[str, Any]) -> Any:
    with _LOCK:
        return _TURNS.setdefault(key, threading.Lock())


def _recall(key: tuple[str, Any]) -> Any:
    with _LOCK:
        if key in _KNOWN:
            _KNOWN.move_to_end(key)
        return _KNOWN.get(key)


def _remember(key: tuple[str, Any], executable: Any) -> Any:
    with _LOCK:
        _KNOWN[key] = executable
        _TURNS.pop(key, None)
        while len(_KNOWN) > KEPT:
            _KNOWN.popitem(last=False)
    return executable


def _lower_level() -> int | None:
    """The level of optimisation that tests ask for, below that of users."""
    wanted = os.environ.get("GLASSES_OPTIMIZATION_LEVEL")
    return int(wanted) if wanted in ("0", "1") else None


def _options(where: Any, quick: bool) -> dict[str, Any]:
    """The compiler's options for a program on this device."""
    on_cpu = where.platform == "cpu"
    options = (_ON_CPU if on_cpu else _LEVEL) | (_QUICK if quick else {})
    level = _lower_level() if on_cpu else None
    return options if level is None else options | {"xla_backend_optimization_level": level, **_IN_ONE}


def _compiled(lowered: Any, where: Any, quick: bool) -> Any:
    """Compiled with our options; those that this version of XLA does not know are left out."""
    wanted = _options(where, quick)
    while True:
        options = {name: value for name, value in wanted.items() if name not in _UNKNOWN}
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:
            unknown = re.search(r"No such compile option: '(\w+)'", str(error))
            if unknown is None or unknown[1] not in options:
                raise
            _UNKNOWN.add(unknown[1])


def _identity(function: Callable[..., Any], static: dict[str, Any]) -> str | None:
    """The function with its static configuration, as values and digests of source code; None if some cannot be digested."""
    if function.__module__.split(".")[0] != OWN or "<locals>" in function.__qualname__:
        return None
    words = _words(tuple(static.items()))
    return None if words is None else f"{digest_of_own_module(function.__module__)}\n{words}"


def _words(value: Any) -> str | None:
    """A complete description of static configuration, or None if some of it may hide code."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple):
        name, parts = type(value).__qualname__, [_words(each) for each in value]
    elif is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__qualname__} {digest_of_class(type(value))}"
        parts = [_words(getattr(value, each.name)) for each in fields(value)]
        parts += [None] if name.endswith(" None") else []
    else:
        return None
    return None if None in parts else f"{name}({', '.join(map(str, parts))})"


@cache
def _surroundings(where: Any) -> str:
    """Everything besides the program itself that an executable depends on."""
    return "|".join([*machine(), where.platform, where.device_kind, str(where.id), _options_of_xla()])


def _options_of_xla() -> str:
    """The options that XLA has read from its flags, which may be others than the environment holds by now."""
    options = xla_client.CompileOptions()
    _ = options.executable_build_options.debug_options  # filled from the flags when it is first looked at
    return hashlib.sha256(options.SerializeAsString()).hexdigest()


def _load(path: Path, where: Any) -> Any:
    payload = read(path)
    if payload is None:
        return None
    bind_lapack(where)
    try:
        code, inputs, results = pickle.loads(payload)
        load = serialize_executable.deserialize_and_load
        return load(code, inputs, results, backend=where.client, execution_devices=[where])
    except Exception:  # written by something else: compiled again
        return None


def _store(path: Path, compiled: Any) -> None:
    try:
        payload = pickle.dumps(serialize_executable.serialize(compiled))
    except (ValueError, NotImplementedError):  # an executable that cannot be serialised is compiled again next time
        return
    write(path, payload)
