"""What the front door accepts: numbers, values and seeds, refused with a sentence where they are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glasses.runtime.frozen import check_frozen

LARGEST = 1e100


def whole(name: str, value: Any, least: int, remedy: str = "") -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}{remedy}.")
    return int(value)


def amount(name: str, value: Any) -> float:
    """A positive number."""
    number = number_of(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return number


def number_of(value: Any) -> float:
    """A number as a float; NaN for anything else, also for one that is too large."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def called(name: str, given: Any, what: str) -> Any:
    """Something to be called."""
    if not callable(given):
        raise ValueError(f"{name} must be {what}, got {given!r}.")
    return given


def flag(name: str, given: Any) -> bool:
    """True or False."""
    if not isinstance(given, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {given!r}.")
    return bool(given)


def words(name: str, given: Any) -> str | None:
    """A text, or None."""
    if given is not None and not isinstance(given, str):
        raise ValueError(f"{name} must be a text such as 'spilled', got {given!r}.")
    return given


def caught(catch: Any) -> Any:
    """An exception class or a tuple of them; None: the default."""
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if catch is not None and not all(isinstance(each, type) and issubclass(each, Exception) for each in kinds):
        raise ValueError(f"catch must be an exception class such as ValueError, or a tuple of them, got {catch!r}.")
    return catch


def checked_noise(value: Any) -> Any:
    """A standard deviation in the units of y, or None; as it was given."""
    if value is not None and not 0 <= number_of(value) < math.inf:
        raise ValueError(f"noise must be a standard deviation of at least 0, or None to learn it, got {value!r}.")
    return value


def checked_best_possible(value: Any) -> float | None:
    """A finite number in the units of y, or None."""
    if value is None:
        return None
    number = number_of(value)
    if not math.isfinite(number):
        raise ValueError(
            f"best_possible must be a finite number in the units of y, got {value!r}: "
            "say which value none can beat, such as 0 for an error, or leave it out."
        )
    return number


def checked_levels(levels: Any) -> np.ndarray:
    """Quantile levels as an array."""
    try:
        found = np.array(levels, dtype=float)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros(0)
    if found.ndim != 1 or not found.size or not np.all((found > 0) & (found < 1)):
        raise ValueError(f"levels must be numbers between 0 and 1 such as (0.1, 0.9), got {levels!r}.")
    return found


def checked_seed(seed: Any) -> int:
    """The seed, or a fresh one."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return whole("seed", seed, 0)


def values_of(y: Any, what: str, single: bool) -> list[float | None]:
    """One value per point; None for an evaluation that failed: told as None, NaN or infinite."""
    if single and not (isinstance(y, list | tuple | np.ndarray) and np.ndim(y) == 1 and len(y) == 1):
        return [_value(y, what)]
    if isinstance(y, str | bytes):
        raise ValueError(f"{what} must be a number, got the text {y!r}.")
    try:
        given = list(y)
    except TypeError:
        given = [y]
    return [_value(each, what if single else f"{what}[{i}]") for i, each in enumerate(given)]


def _value(value: Any, what: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, str | bytes | bool | np.bool_) or np.iscomplexobj(value):
        raise ValueError(f"{what} must be a number, got {value!r}.")
    try:
        number = float(np.asarray(value, dtype=float).reshape(()))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be one number per point, got {value!r}.") from None
    if not math.isfinite(number):
        return None
    if abs(number) > LARGEST:
        raise ValueError(
            f"{what} = {number:g} is beyond {LARGEST:g} in size and would hide every other value: "
            f"rescale or clip the objective."
        )
    return number


PROTOCOLS = {
    "loss": ("steps", "is_gain", "looks_ahead", "race", "predict_steps", "acquisition_value"),
    "model": ("kernel", "fit", "noise", "outputs", "hyperparameter_samples", "posterior", "samples"),
    "search": ("candidates", "decide"),
}


def checked_part(name: str, given: Any, example: Any) -> Any:
    """A loss, model or search: with everything that is asked of one, and immutable, because programs are compiled for it."""
    expected = f"{name} must be an object such as {example!r}, got {given!r}"
    if isinstance(given, type):
        raise ValueError(f"{expected}: write {given.__name__}().")
    absent = [each for each in PROTOCOLS[name] if not hasattr(given, each)]
    if absent:
        raise ValueError(f"{expected}: it lacks {', '.join(absent)}.")
    check_frozen(name, given)
    return given
