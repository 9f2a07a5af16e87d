"""Each environment runs the tests of the libraries it has; ``test_peers`` runs in all of them."""

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("GLASSES_CACHE_DIR", str(Path(__file__).parents[2] / ".cache" / "programs"))
os.environ.setdefault("GLASSES_COMPILE_AHEAD", "off")

LIBRARIES = {
    "acquisition": "botorch",
    "ax": "ax",
    "botorch": "botorch",
    "hebo": "hebo",
    "optuna": "optuna",
    "pages": "ax",
    "ray_tune": "ray",
    "smac": "smac",
    "vizier": "vizier",
}

collect_ignore = [f"test_{name}.py" for name, library in LIBRARIES.items() if find_spec(library) is None]

for name in ("botorch", "ax.api.client"):
    if find_spec(name.split(".")[0]) is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they load is deprecated by what they load it from
            import_module(name)
