"""What a person changes afterwards: results corrected or withdrawn, trials cancelled, and all of that taken back.

Finished trials of Optuna cannot be altered, and nothing is overwritten. So every change is an attribute of the study, inserted
once and kept for ever, and the trials that everybody sees are the stored ones with the changes applied:

    key      ``glasses:change:000003:5f1c0a9b``: a number, one more than the largest seen, and a random one. Two people who
             change something at the same moment may draw the same number; both changes are kept, and sorted keys are one order
             for all. No clock is asked
    correct  a value (or ``failed``) and values of parameters instead of the stored ones, for a trial that ended; of a running
             one its point alone. Of several the later ones prevail. A pruned trial with a corrected value is complete
    withdraw the result is no evidence and costs nothing; whatever is corrected, it stays so until that is undone
    cancel   a trial that was asked for is not done: no evidence, no cost. It is void once a result is stored all the same
    undo     takes back one change, which may be an undo

``applied`` is a pure function of the trials and the changes.
"""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from getpass import getuser
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.marks import CANCELLED, LOST, REASON, WITHDRAWN

PREFIX = "glasses:change:"
KINDS = ("correct", "withdraw", "cancel", "undo")
_KEY = re.compile(re.escape(PREFIX) + r"(\d{6,}):[0-9a-f]+")


@dataclass(frozen=True)
class Change:
    """One change of one trial: who made it, when and why. ``params`` holds only what differs, in the user's values."""

    key: str
    what: str
    trial: int
    value: float | None = None
    failed: bool = False
    params: dict[str, Any] | None = None
    reason: str | None = None
    who: str = ""
    when: str = ""  # UTC, by the clock of whoever made it: for people, nothing is decided by it
    undoes: str | None = None

    def as_attribute(self) -> dict[str, Any]:
        """The value of the attribute ``key``."""
        return {name: value for name, value in asdict(self).items() if name != "key"}


def new_change(seen: Iterable[Change], what: str, trial: int, **more: Any) -> Change:
    """A change after all that were seen, by whoever is logged in, now."""
    number = 1 + max((_number(each.key) for each in seen), default=0)
    key = f"{PREFIX}{number:06d}:{secrets.token_hex(8)}"
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Change(key, what, trial, who=login_name(), when=when, **more)


def login_name() -> str:
    """Who is logged in; ``unknown`` where the machine does not know."""
    try:
        return getuser()
    except (OSError, KeyError, ImportError):  # a container without a list of users
        return "unknown"


def read_changes(attributes: Mapping[str, Any]) -> list[Change]:
    """The changes among the attributes of a study, in their order."""
    return [_read(key, attributes[key]) for key in sorted(attributes, key=_order) if key.startswith(PREFIX)]


def _order(key: str) -> tuple[int, str]:
    return (_number(key) if key.startswith(PREFIX) else 0, key)


def _number(key: str) -> int:
    found = _KEY.fullmatch(key)
    if found is None:
        raise _unreadable(key)
    return int(found[1])


def _read(key: str, value: Any) -> Change:
    names = {each.name for each in fields(Change)} - {"key"}
    if not isinstance(value, dict) or not {"what", "trial"} <= value.keys():
        raise _unreadable(key)
    found = Change(key, **{name: each for name, each in value.items() if name in names})
    expected = (str, int, float | int | None, bool, dict | None, str | None, str, str, str | None)
    given = (
        found.what,
        found.trial,
        found.value,
        found.failed,
        found.params,
        found.reason,
        found.who,
        found.when,
        found.undoes,
    )
    if found.what not in KINDS or not all(isinstance(each, kind) for each, kind in zip(given, expected, strict=True)):
        raise _unreadable(key)
    return found


def _unreadable(key: str) -> ValueError:
    return ValueError(
        f"The stored study holds a change that this version cannot read ({key!r}): use the version that wrote it."
    )


def standing(changes: Sequence[Change]) -> list[Change]:
    """The changes that are not undone, in their order; an undo that is itself undone takes nothing back."""
    undone: set[str | None] = set()
    found = []
    for each in reversed(changes):  # an undo comes after what it undoes
        if each.key in undone:
            continue
        found.append(each)
        if each.what == "undo":
            undone.add(each.undoes)
    return found[::-1]


def applied(trials: Sequence[FrozenTrial], changes: Sequence[Change]) -> list[FrozenTrial]:
    """The trials as they are now understood; only those that differ are copied."""
    by_trial: dict[int, list[Change]] = {}
    for each in standing(changes):
        if each.what != "undo":
            by_trial.setdefault(each.trial, []).append(each)
    return [_applied(each, by_trial[each.number]) if each.number in by_trial else each for each in trials]


def _applied(stored: FrozenTrial, changes: list[Change]) -> FrozenTrial:
    trial = copy.copy(stored)
    marks = dict(stored.system_attrs)
    has_result = stored.state.is_finished() and (LOST not in marks or REASON in marks)
    for each in changes:
        if each.what == "correct":
            trial.params = {**trial.params, **(each.params or {})}
            if has_result and (each.failed or each.value is not None):
                trial.state = TrialState.FAIL if each.failed else TrialState.COMPLETE
                trial.value = None if each.failed or each.value is None else float(each.value)
                marks.pop(REASON, None)
                marks.pop(LOST, None)
                if each.failed:
                    marks[REASON] = each.reason or "corrected to failed"
    kinds = {each.what for each in changes}
    taken_back = (
        WITHDRAWN if "withdraw" in kinds and has_result else CANCELLED if "cancel" in kinds and not has_result else None
    )
    if taken_back is not None:
        trial.state, trial.value = TrialState.FAIL, None
        marks[taken_back] = True
    trial.system_attrs = marks
    return trial
