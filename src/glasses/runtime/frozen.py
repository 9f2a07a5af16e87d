"""What programs are compiled for must not change: configuration made of frozen dataclasses, tuples and plain values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any


def mutable_part(value: Any) -> Any:
    """The first part of a configuration that could change, or None if it is immutable throughout."""
    if value is None or isinstance(value, bool | int | float | str):
        return None
    if isinstance(value, tuple):
        parts = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        settings = type(value).__dataclass_params__  # type: ignore[attr-defined,union-attr]
        if not (settings.frozen and settings.eq):
            return value
        parts = [getattr(value, each.name) for each in fields(value)]
    else:
        return value
    return next((found for found in map(mutable_part, parts) if found is not None), None)


def check_frozen(name: str, value: Any) -> None:
    """Refuse configuration that could change after programs were compiled for it."""
    part = mutable_part(value)
    if part is not None:
        remedy = (
            "use a tuple or a number"
            if isinstance(part, list | dict | set) or hasattr(part, "__array__")
            else f"make {type(part).__name__} a dataclass with frozen=True"
        )
        raise ValueError(f"{name} must not change, because programs are compiled for it, got {part!r}: {remedy}.")
