"""Factorisations in executables from disk, bound without the package of SciPy that they come from."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

CHILD = """
import pickle, sys
from pathlib import Path
import jax, numpy as np
from jax.experimental import serialize_executable
from glasses.runtime.lapack import bind_lapack

where = jax.devices("cpu")[0]
bind_lapack(where)
assert not [name for name in sys.modules if name.startswith("scipy.linalg")]
code, inputs, results = pickle.loads(Path(sys.argv[1]).read_bytes())
load = serialize_executable.deserialize_and_load
run = load(code, inputs, results, backend=where.client, execution_devices=[where])
np.testing.assert_array_equal(run(4.0 * np.eye(3, dtype=np.float32)), 2.0 * np.eye(3))

import scipy.linalg.cython_lapack  # afterwards as everywhere

assert "dpotrf" in scipy.linalg.cython_lapack.__pyx_capi__
np.testing.assert_array_equal(scipy.linalg.cholesky(4.0 * np.eye(3)), 2.0 * np.eye(3))
"""


def factor(A):
    return jnp.linalg.cholesky(A)


def test_an_executable_from_disk_factorises_without_loading_all_of_scipy(tmp_path):
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e6)  # what JAX's cache held could not be written once more
    try:
        with jax.enable_x64(False):
            compiled = jax.jit(factor).lower(np.eye(3, dtype=np.float32)).compile()
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
    path = tmp_path / "cholesky"
    path.write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    subprocess.run([sys.executable, "-c", CHILD, path], check=True)
