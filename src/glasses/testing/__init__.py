"""Contracts: what every part of a decision must do, as tests to inherit for a part of your own.

A contract is a class of tests. Subclass it in a file of tests, give the part by a fixture of its kind, and run pytest::

    class TestMine(KernelContract):
        @pytest.fixture
        def kernel(self):
            return Mine()

The parts of this library pass the same classes. Needs pytest and hypothesis: ``pip install 'glasses[testing]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import hypothesis as hypothesis
    import pytest
except ImportError as error:
    words = "glasses.testing needs pytest and hypothesis: pip install 'glasses[testing]'."
    raise ImportError(words, name=error.name) from error

if TYPE_CHECKING:
    from glasses.testing.criteria import StoppingCriterionContract
    from glasses.testing.kernels import KernelContract
    from glasses.testing.losses import LookAheadContract, LossContract
    from glasses.testing.oracles import OracleContract
    from glasses.testing.outputs import OutputTransformContract
    from glasses.testing.searches import SearchContract
    from glasses.testing.storages import StorageContract

_HOMES = {
    "KernelContract": "kernels",
    "LookAheadContract": "losses",
    "LossContract": "losses",
    "OracleContract": "oracles",
    "OutputTransformContract": "outputs",
    "SearchContract": "searches",
    "StoppingCriterionContract": "criteria",
    "StorageContract": "storages",
}
__all__ = [
    "KernelContract",
    "LookAheadContract",
    "LossContract",
    "OracleContract",
    "OutputTransformContract",
    "SearchContract",
    "StoppingCriterionContract",
    "StorageContract",
]

pytest.register_assert_rewrite(*(f"{__name__}.{home}" for home in set(_HOMES.values())))  # assertions that say what was found


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
