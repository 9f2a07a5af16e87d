"""Optuna's private names are used in one file. A new version of Optuna, or a new storage, touches that file alone."""

import ast
import inspect
from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage

import glasses

ROOT = Path(glasses.__file__).parent
STORAGE = ROOT / "optuna" / "storage.py"
CLASSES = (
    optuna.Study,
    optuna.Trial,
    optuna.trial.FrozenTrial,
    optuna.samplers.BaseSampler,
    optuna.pruners.HyperbandPruner,
    optuna.distributions.FloatDistribution,
    optuna.distributions.IntDistribution,
    optuna.distributions.CategoricalDistribution,
    InMemoryStorage,
    JournalStorage,
    RDBStorage,
    optuna.storages._CachedStorage,
)


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_names():
    """The private methods and attributes of Optuna's classes, their parents included."""
    names = set()
    for each in {parent for one in CLASSES for parent in one.__mro__ if parent.__module__.startswith("optuna")}:
        names |= {name for name in vars(each) if is_private(name)}
        tree = ast.parse(inspect.getsource(each))
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)}
    return names


def uses(source, names):
    """Where a source uses a private name of Optuna's: as an attribute, as a text, or by importing a private module.

    An attribute of ``self`` counts only if the source itself does not define it: then it is inherited.
    """
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    own |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not (of_self and node.attr in own):
                found.append(f"{node.lineno}: .{node.attr}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names - own:
            found.append(f"{node.lineno}: {node.value!r}")
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            imported = [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                if module.split(".")[0] == "optuna" and any(map(is_private, [*module.split("."), *imported])):
                    found.append(f"{node.lineno}: {module}")
    return found


def test_the_names_are_those_of_optuna():
    names = private_names()
    assert {"_storage", "_study_id", "_trial_id", "_stop_flag", "_contains", "_suggest", "_create_new_trial"} <= names
    assert {"_get_stale_trial_ids", "_raise_error_if_multi_objective", "_get_trials", "_backend"} <= names


@pytest.mark.parametrize(
    "source",
    [
        "study._storage",
        "trial._trial_id",
        "self.study._stop_flag",
        "getattr(storage, '_get_stale_trial_ids')",
        "from optuna.storages._rdb import models",
        "import optuna.storages._rdb.models",
        "from optuna.storages import _CachedStorage",
        "class S:\n    def f(self): self._raise_error_if_multi_objective(1)",
    ],
)
def test_a_use_is_noticed(source):
    assert uses(source, private_names())


def test_private_names_of_optuna_are_used_in_one_file():
    names = private_names()
    files = [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if path != STORAGE and (path.parent.name == "study" or "optuna" in path.read_text())
    ]
    assert {path.parent.name for path in files} >= {"optuna", "study"}
    assert {str(path.relative_to(ROOT)): found for path in files if (found := uses(path.read_text(), names))} == {}
    assert uses(STORAGE.read_text(), names)
