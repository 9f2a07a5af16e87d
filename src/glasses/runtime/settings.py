"""The JAX settings that programs are built and run under: their own, whatever the user's program has set.

A setting changes what is traced (number of bits, random generators, promotion of types), what the compiler does with it, or
whether a call is allowed at all (transfer guards, checks for NaN). Two processes must make the same decision, and a program
kept on disk by one must serve the other, so none of them may reach a program. JAX keeps every such setting as a state that a
thread can override for itself; ``own_settings`` overrides those that differ, for the calling thread alone, and puts them back.

What is left alone: which platforms and devices there are, logging, and whether JAX keeps a cache of its own on disk, into which
programs are not written (they have one: ``program``). Flags of XLA are part of the cache
key instead (``program``), as XLA has read them.

This is the one module that reads JAX's table of settings, which has no public name. A name that a version of JAX does not have
is skipped. A test sets every state that the installed JAX has and compares decisions to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from jax._src import config as _config

OWN: dict[str, Any] = {
    "jax_enable_x64": True,
    "jax_explicit_x64_dtypes": "warn",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_random_seed_offset": 0,
    "jax_enable_custom_prng": False,
    "jax_legacy_prng_key": "allow",
    "jax_debug_key_reuse": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_default_matmul_precision": None,
    "jax_allow_f16_reductions": True,
    "jax_softmax_custom_jvp": False,
    "jax_disable_jit": False,
    "jax_no_tracing": False,
    "jax_no_execution": False,
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_enable_checks": False,
    "jax_check_tracer_leaks": False,
    "jax_check_static_indices": False,
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_transfer_guard": None,
    "jax_transfer_guard_host_to_device": "allow",
    "jax_transfer_guard_device_to_device": "allow",
    "jax_transfer_guard_device_to_host": "allow",
    "jax_thread_guard": False,
    "jax_compiler_enable_remat_pass": True,
    "jax_optimization_level": "UNKNOWN",
    "jax_memory_fitting_level": "O2",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_memory_fitting_effort": 0.0,
    "jax_enable_pgle": False,
    "jax_xla_profile_version": 0,
    "jax_use_direct_linearize": True,
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_embedded_constants_max_bytes": 32,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_captured_constants_report_frames": 0,
    "jax_custom_vjp3": False,
    "jax_remat3": False,
    "jax_scan3": False,
    "jax_refs_to_pins": False,
    "jax_mutable_array_checks": True,
    "jax_disable_bwd_checks": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_auto_pcast": True,
    "check_vma": False,
    "eager_constant_folding": False,
    "jax_serialization_version": 0,
    "jax_persistent_cache_min_compile_time_secs": 1e9,  # programs have a cache of their own
}


@contextmanager
def own_settings() -> Iterator[None]:
    """Inside, JAX has the settings of ``OWN`` in this thread."""
    with ExitStack() as stack:
        for state, value in _OVERRIDES:
            if state.value != value:
                stack.enter_context(state(value))
        yield


def default_device() -> Any:
    """What the user has set as JAX's default device: a device, the name of a platform, or None."""
    return _DEFAULT_DEVICE.value


def _overrides() -> list[tuple[Any, Any]]:
    """The states of the installed JAX that have an own value, with that value as the state itself stores it."""
    known = _config.config_states
    pairs = [(known[name], value) for name, value in OWN.items() if name in known]
    return [(state, value if state._parser is None else state._parser(value)) for state, value in pairs]


_OVERRIDES = _overrides()
_DEFAULT_DEVICE = _config.config_states["jax_default_device"]
