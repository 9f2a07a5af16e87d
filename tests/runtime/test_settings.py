"""No setting of the user's JAX program reaches a decision: each is set, cache cold and warm, and compared to the last bit."""

import ast
import json
import os
import subprocess
import sys

import pytest
from jax._src import config

LEFT_ALONE = (  # which devices there are, logging, JAX's own caches, and what only says more in a traceback
    "platform", "device", "devices", "cache", "log", "logging", "traceback", "cpu_collectives", "topology", "pprint", "dump",
    "proxy", "cross_host", "mock", "visible", "distributed", "preemption", "recoverability", "share_binary", "pgle", "leaked",
    "garbage", "backend_target", "xla_backend", "client_create", "source_url", "source_file", "pallas", "mosaic", "cusparse",
    "jax2tf", "export", "magma", "ragged", "emit_pipeline", "mesh", "debug_info", "async_dispatch", "socket",
)  # fmt: skip

DECIDE = """
import sys, json
import jax, jax.numpy, jax.scipy.linalg
def decide():
    optimizer = glasses.Optimizer([(0.0, 1.0)], budget=8, n_initial=4, seed=3, loss=glasses.{loss})
    for _ in range(6):
        x = optimizer.ask()
        optimizer.tell(x, (x[0] - 0.3) ** 2 + 0.1 * abs(x[0] - 0.6))
    result = optimizer.result()
    return [[float(v).hex() for v in x] for x in result.x_iters] + [float(result.recommended.mean).hex()]
settings = json.loads(sys.argv[1])
for name, value in settings.items():
    jax.config.update(name, value)
import glasses
shown = decide()
{more}
for name, value in settings.items():
    now = jax.config.values[name]
    assert now == value or str(value).lower() in str(now).lower(), (name, now)
print(json.dumps(shown))
"""


def run(cache, settings=None, *, loss="ExpectedLoss()", more=""):
    env = os.environ | {"GLASSES_CACHE_DIR": str(cache)}
    code = DECIDE.format(loss=loss, more=more)
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(settings or {})], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (settings, done.stderr[-3000:])
    return done.stdout


def alternatives():
    """Every setting of the installed JAX that a decision could feel, with another value than it has."""
    for name, state in sorted(config.config_states.items()):
        kind, _, kwargs = config.config.meta[name]
        if name == "jax_enable_x64" or any(word in name for word in LEFT_ALONE):
            continue
        if kind is bool:
            yield name, not state.value
        elif kind in ("enum", "enum_class"):
            values = kwargs["enum_values"] if kind == "enum" else [each.name.lower() for each in kwargs["enum_class"]]
            yield from ((name, value) for value in values if str(value).lower() not in str(state.value).lower())


SETTINGS = list(alternatives())


@pytest.fixture(scope="module")
def expected():
    """The decisions under JAX's defaults, and the cache they left: that of all tests."""
    cache = os.environ["GLASSES_CACHE_DIR"]
    return run(cache), cache


def test_the_list_holds_what_was_seen_to_matter():
    names = {name for name, _ in SETTINGS}
    assert len(names) > 30
    assert names >= {
        "jax_numpy_rank_promotion", "jax_numpy_dtype_promotion", "jax_disable_jit", "jax_debug_infs", "jax_debug_nans",
        "jax_default_prng_impl", "jax_threefry_partitionable", "jax_default_matmul_precision", "jax_transfer_guard",
    }  # fmt: skip


def test_the_programs_own_settings_are_known_to_jax():
    """A setting that is misspelt in the table would protect nothing."""
    from glasses.runtime.settings import OWN

    gone = {"jax_refs_to_pins", "jax_memory_fitting_effort", "jax_exec_time_optimization_effort"}  # since JAX 0.11
    assert set(OWN) <= set(config.config_states) | gone


MATTERING = [  # with a cold cache each ended a decision with an exception or changed it; those of a line do not meet
    {
        "jax_numpy_rank_promotion": "raise",
        "jax_numpy_dtype_promotion": "strict",
        "jax_transfer_guard": "disallow",
        "jax_debug_infs": True,
        "jax_debug_nans": True,
        "jax_enable_x64": True,
        "jax_threefry_partitionable": False,
    },
    {"jax_disable_jit": True, "jax_default_prng_impl": "rbg"},
    {"jax_disable_most_optimizations": True, "jax_default_matmul_precision": "bfloat16"},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", MATTERING, ids=["arithmetic", "tracing", "compiling"])
def test_a_setting_changes_nothing_with_a_cold_cache_and_leaves_nothing_behind(settings, expected, tmp_path):
    """Neither its own decisions nor those of a later process that loads what it compiled."""
    assert run(tmp_path, settings) == expected[0]
    assert run(tmp_path) == expected[0]


ALL_WARM = """
from glasses.runtime.program import forget_programs
for setting, other in SETTINGS:
    usual = jax.config.values[setting]
    jax.config.update(setting, other)
    try:
        forget_programs()
        assert decide() == shown, (setting, other)
    finally:
        jax.config.update(setting, usual)
"""


@pytest.mark.slow
def test_no_setting_of_jax_reaches_a_decision_with_a_warm_cache(expected):
    """All of them, one after the other in one process, every program loaded again under each."""
    listed = repr([(name, value) for name, value in SETTINGS])
    assert ast.literal_eval(listed) == SETTINGS
    assert run(expected[1], more=f"SETTINGS = {listed}\n{ALL_WARM}") == expected[0]


@pytest.mark.slow
def test_random_numbers_of_losses_are_their_own(expected, tmp_path):
    """Thompson paths draw inside programs: another generator of the user's changes nothing, cold."""
    loss = "Glasses(oracle=__import__('glasses.lookahead').lookahead.ThompsonPaths(), steps=2)"
    plain = run(os.environ["GLASSES_CACHE_DIR"], loss=loss)
    assert run(tmp_path, {"jax_default_prng_impl": "rbg"}, loss=loss) == plain
    assert run(tmp_path, loss=loss) == plain
