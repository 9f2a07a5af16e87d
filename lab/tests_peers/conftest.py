"""Each environment runs the tests of the libraries it has; ``test_peers`` runs in all of them."""

from importlib.util import find_spec

LIBRARIES = {"botorch": "botorch", "optuna": "optuna", "ray_tune": "ray", "hebo": "hebo", "smac": "smac", "vizier": "vizier"}

collect_ignore = [f"test_{name}.py" for name, library in LIBRARIES.items() if find_spec(library) is None]
