"""An optimiser as a JSON file: ``Optimizer.save`` and ``Optimizer.load``.

The file holds the space, the settings and everything told, asked and changed, in plain JSON with a version number; reading it
runs nothing. Parts of a decision (losses, models, searches) are kept by the names of this package's classes and their fields;
parts and cost functions of one's own cannot be kept and are given again at ``load``. The file is written beside its place and
moved there, so that an interruption leaves the former one whole. A decision is a function of the data, so a loaded optimiser
suggests what the saved one would have.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, cast

import numpy as np

from glasses import gaussian, lookahead, search, surrogate
from glasses.loop.forms import X
from glasses.loop.history import Change
from glasses.loop.shown import optimizer_html, optimizer_text
from glasses.space.parameters import Choice, Float, Int
from glasses.surrogate import kernels

if TYPE_CHECKING:
    from glasses.lookahead.loss import Loss
    from glasses.loop.optimizer import Optimizer
    from glasses.search.decision import Search
    from glasses.surrogate.gaussian_process import GaussianProcess

FORMAT, VERSION = "glasses optimizer", 1
WITH_CONSTRAINTS = 2  # the version of a file with constraints: one that does not know them must not read it
_PARAMETERS = {kind.__name__: kind for kind in (Float, Int, Choice)}
_KINDS = {
    kind.__name__: kind
    for module in (gaussian, lookahead, search, surrogate, kernels)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind)
}
_VERSIONS = VERSION, WITH_CONSTRAINTS
_PARTS = ("loss", "model", "search")
_SETTINGS = ("budget", "seed", "n_initial", "count_failures", "best_possible")


class Saved(Generic[X]):
    """What an optimiser shows and keeps of itself."""

    def __repr__(self) -> str:
        return optimizer_text(cast("Optimizer", self))

    def _repr_html_(self) -> str:
        return optimizer_html(cast("Optimizer", self))

    def to_frame(self) -> Any:
        """Every evaluation as a row of a pandas.DataFrame, those that failed last."""
        return cast("Optimizer", self).record().to_frame()

    def save(self, path: str | Path) -> None:
        """Keep everything in a JSON file: the space, the settings, what was told, asked and changed."""
        optimizer, path = cast("Optimizer", self), _path(path)
        with optimizer._lock:
            save(optimizer, path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        cost: Any = None,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
    ) -> Self:
        """The optimiser of a file that ``save`` wrote: it suggests what the saved one would have.

        ``cost``, ``loss``, ``model``, ``search``: needed where they were of one's own (a file cannot hold functions and
        classes); given besides, they replace those of the file.
        """
        return load(cls, _path(path), cost=cost, parts={"loss": loss, "model": model, "search": search})


def _path(given: Any) -> Path:
    """Where a file is."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str) or not Path(given).name:
        raise ValueError(f"path must name a file such as 'run.json', got {given!r}.")
    return Path(given)


def save(optimizer: Optimizer, path: str | Path) -> None:
    """Write the file."""
    ledger, space = optimizer._ledger, optimizer.space
    parameters = [_plain(each, _PARAMETERS, "parameter") for each in space.parameters]
    cost = None if ledger.cost is None else ledger.cost.given
    settings = {name: getattr(optimizer, name) for name in _SETTINGS if name != "count_failures"}
    content = {
        "format": FORMAT,
        "version": WITH_CONSTRAINTS if ledger.constraints else VERSION,
        "names": space.names,
        "parameters": parameters,
        **settings,
        "count_failures": ledger.count_failures,
        "cost": "function" if callable(cost) else _table(cost),
        "parts": {name: _part(getattr(optimizer, name)) for name in _PARTS},
        "ledger": ledger.state(),
        "changes": [_change(each) for each in optimizer.history],
    }
    if ledger.constraints:
        content["constraints"] = list(ledger.constraints)
    target = Path(path)
    text = json.dumps(content, indent=1, allow_nan=False)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def load(kind: type[Any], path: str | Path, *, cost: Any, parts: Mapping[str, Any]) -> Any:
    """Read the file; ``cost`` and ``parts`` replace what it could not keep, or what shall be different."""
    content = _read(Path(path))
    try:
        bounds = [_object(each, _PARAMETERS) for each in content["parameters"]]
        names, kept = content["names"], content["cost"]
        settings = {name: content[name] for name in _SETTINGS}
        given = {name: each for name, each in parts.items() if each is not None}
        lacking = [name for name in _PARTS if content["parts"][name] is None and name not in given]
        stored = {name: _object(content["parts"][name], _KINDS) for name in _PARTS if name not in given and name not in lacking}
        state, changes = content["ledger"], [_loaded_change(each) for each in content["changes"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    if lacking:
        raise ValueError(
            f"{path} was saved with a {lacking[0]} of your own, which a file cannot hold: load(path, {lacking[0]}=...)."
        )
    if kept == "function" and cost is None:
        raise ValueError(f"{path} was saved with a cost function, which a file cannot hold: load(path, cost=...).")
    n_initial = settings.pop("n_initial")
    try:
        space = dict(zip(names, bounds, strict=True)) if names is not None else bounds
        price = cost if cost is not None else _loaded_table(kept)
        constraints = tuple(content["constraints"]) if "constraints" in content else None
        optimizer = kind(space, cost=price, n_initial=1, constraints=constraints, **settings, **stored, **given)
        optimizer.n_initial = optimizer._planner.n_initial = int(n_initial)
        optimizer._ledger.restore(state)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    optimizer._history.changes.extend(changes)
    return optimizer


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _damaged(path, "not whole JSON") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} holds no saved optimiser: expected a file that Optimizer.save wrote.")
    if content.get("version") not in _VERSIONS:
        known = " and ".join(map(str, _VERSIONS))
        raise ValueError(
            f"{path} is of version {content.get('version')!r}, this glasses reads version {known}: use the one that wrote it."
        )
    return content


def _damaged(path: str | Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged ({why.rstrip('.')}): expected a whole file that Optimizer.save wrote.")


def _plain(value: Any, known: Mapping[str, type], what: str) -> Any:
    """A frozen object of a known class, a list of values or a value of JSON's own."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return float(value)
    if isinstance(value, tuple | list):
        return [_plain(each, known, what) for each in value]
    name = type(value).__name__
    if known.get(name) is type(value) and is_dataclass(value):
        return {"kind": name, **{each.name: _plain(getattr(value, each.name), known, what) for each in fields(value)}}
    raise ValueError(f"A file cannot hold the {what} {value!r}: use numbers, text, True, False or None.")


def _object(value: Any, known: Mapping[str, type]) -> Any:
    """What ``_plain`` made plain."""
    if isinstance(value, list):
        return tuple(_object(each, known) for each in value)
    if isinstance(value, dict):
        arguments = {name: _object(each, known) for name, each in value.items() if name != "kind"}
        return known[value["kind"]](**arguments)
    return value


def _part(value: Any) -> Any:
    """A part of a decision; None where it holds something of one's own."""
    try:
        return _plain(value, _KINDS, "part")
    except ValueError:
        return None


def _table(cost: Any) -> Any:
    """A cost table, whose keys may be numbers, as pairs."""
    if cost is None:
        return None
    return [[name, [[key, c] for key, c in each.items()] if isinstance(each, Mapping) else each] for name, each in cost.items()]


def _loaded_table(kept: Any) -> Any:
    if kept is None:
        return None
    return {name: dict(each) if isinstance(each, list) else each for name, each in kept}


def _change(change: Change) -> dict[str, Any]:
    found = {each.name: _form(getattr(change, each.name)) for each in fields(change)}
    return {name: each for name, each in found.items() if each is not None or not name.endswith("constraints")}


def _form(value: Any) -> Any:
    """A point or a value: arrays as lists."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    return value


def _loaded_change(kept: Mapping[str, Any]) -> Change:
    read: dict[str, Any] = {
        name: np.array(each["array"]) if isinstance(each, dict) and each.keys() == {"array"} else each
        for name, each in kept.items()
    }
    read |= {name: tuple(each) for name, each in kept.items() if name.endswith("constraints")}
    return Change(**read)
