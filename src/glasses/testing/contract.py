"""What all contracts share: float64 for the pure functions, and that a part does not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import pytest
from hypothesis import HealthCheck, settings

from glasses.runtime.frozen import check_frozen

# A fixture gives the part, and one test serves many subclasses; what hypothesis draws is the same every time.
PROPERTY = settings(
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


class Contract:
    """The base of all contracts."""

    @pytest.fixture(autouse=True)
    def float64(self) -> Iterator[None]:
        """Parts run in float64 inside compiled programs, and so do these tests."""
        with jax.enable_x64(True):
            yield


def check_immutable(kind: str, part: Any) -> None:
    """It can be part of a program's identity: it does not change, and equal ones are one."""
    check_frozen(kind, part)
    assert hash(part) == hash(part)
    assert part == part
    assert repr(part)
