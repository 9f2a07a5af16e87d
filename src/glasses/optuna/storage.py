"""Optuna's storage behind one small interface. Every use of Optuna's private names is in this file.

``StudyStorage`` is one study in its storage: claim, finish, trials, attributes, signs of life. ``Database`` is Optuna's storage
in SQLite or PostgreSQL with one method, ``reach``, through which every access to the database goes. Everything else of this
package uses Optuna's public names; a test reads the source to make sure.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Any

try:
    import optuna
except ImportError as error:  # pragma: no cover
    raise ImportError("glasses.optuna needs Optuna 5: pip install 'glasses[study]'.", name="optuna") from error

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.storages._rdb import storage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

_MAKING = threading.Lock()
HEARTBEAT = "glasses:heartbeat"  # system attribute of a running trial: a number that changes with every sign of life


class StudyStorage:
    """The trials of a study, as its storage keeps them.

    System attributes (``mark``) belong to this package and to Optuna, user attributes (``note``) to the user. Attributes of a
    finished trial cannot be set: ``UpdateFinishedTrialError``.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._storage = study._storage
        self._beats = itertools.count()

    @property
    def key(self) -> int:
        """What tells this study from others of the same storage."""
        return self._study._study_id

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """All trials, or those in the given states, by number. Not to be changed: they may be Optuna's own copies.

        A Hyperband pruner shows the sampler one bracket of the study alone; the budget and the points taken are those of all.
        """
        return self._storage.get_all_trials(self._study._study_id, deepcopy=False, states=states or None)

    def current(self, trial: FrozenTrial) -> FrozenTrial:
        """The trial as it is stored now."""
        return self._storage.get_trial(trial._trial_id)

    def add(self, template: FrozenTrial) -> FrozenTrial:
        """Store a new trial."""
        return self._storage.get_trial(self._storage.create_new_trial(self._study._study_id, template))

    def claim(self, trial: FrozenTrial) -> bool:
        """WAITING becomes RUNNING, for one caller alone."""
        return self._change(trial, TrialState.RUNNING)

    def finish(self, trial: FrozenTrial, state: TrialState, value: float | None = None) -> bool:
        """RUNNING becomes the given state; False if it was finished before."""
        return self._change(trial, state, value)

    def _change(self, trial: FrozenTrial, state: TrialState, value: float | None = None) -> bool:
        try:
            return self._storage.set_trial_state_values(trial._trial_id, state, None if value is None else [value])
        except UpdateFinishedTrialError:
            return False

    def mark(self, trial: FrozenTrial, key: str, value: Any) -> None:
        """Set a system attribute."""
        self._storage.set_trial_system_attr(trial._trial_id, key, value)

    def note(self, trial: FrozenTrial, key: str, value: Any) -> None:
        """Set a user attribute."""
        self._storage.set_trial_user_attr(trial._trial_id, key, value)

    def beat(self, trial: FrozenTrial) -> None:
        """A sign of life for a running trial. Only its change counts, not the time at which it was written."""
        self.mark(trial, HEARTBEAT, next(self._beats))

    def suggest(self, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """The parameters of a running trial; those that it does not have yet are decided by the sampler and stored."""
        active = optuna.trial.Trial(self._study, trial._trial_id)
        return {name: active._suggest(name, each) for name, each in distributions.items()}


def contains(distribution: BaseDistribution, value: float) -> bool:
    """Whether an internal number is a value of the distribution."""
    return distribution._contains(value)


def is_stopping(study: Study) -> bool:
    """Whether ``study.stop()`` was called in the current ``optimize``."""
    return study._stop_flag


def has_current_tables(connection: Any) -> bool:
    """Whether a SQLite database (an open connection of ``sqlite3``) has the tables of this version of Optuna.

    Optuna asks alembic, which takes a tenth of a second to load; the answer is one row and the names of its own files.
    """
    try:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        versions = connection.execute("SELECT count(*) FROM version_info").fetchone()[0]
    except Exception:  # no such table: Optuna makes it
        return False
    return versions == 1 and rows == [(_newest_revision(),)]


@cache
def _newest_revision() -> str | None:
    """The one revision of Optuna's tables that no other one follows; None if there is no such thing."""
    folder = Path(storage.__file__).parent / "alembic" / "versions"
    texts = [path.read_text() for path in folder.glob("*.py")]
    revisions = {found[1] for text in texts if (found := re.search(r'^revision = "(.+)"', text, re.MULTILINE))}
    followed = {found[1] for text in texts if (found := re.search(r'^down_revision = "(.+)"', text, re.MULTILINE))}
    newest = revisions - followed
    return newest.pop() if len(newest) == 1 else None


class _Checked(storage._VersionManager):
    """Optuna's check of its tables, where they are known to be current: nothing to do until it is asked for more."""

    def _init_version_info_model(self) -> None: ...

    def _init_alembic(self) -> None: ...

    def check_table_schema_compatibility(self) -> None: ...


class Database(RDBStorage):
    """Optuna's storage in a database. ``reach`` makes every access: a subclass can repeat it or explain its errors.

    ``current``: its tables are known to be those of this version (``has_current_tables``).
    """

    def __init__(self, url: str, settings: dict[str, Any], *, current: bool, writing: bool) -> None:
        if not current:
            super().__init__(url, settings, skip_table_creation=not writing)
            return
        with _MAKING:
            usual = storage._VersionManager
            setattr(storage, "_VersionManager", _Checked)  # noqa: B010  # a checker takes a class for a constant
            try:
                super().__init__(url, settings, skip_table_creation=True)
            finally:
                setattr(storage, "_VersionManager", usual)  # noqa: B010

    def _set_trial_param_without_commit(
        self,
        session: Any,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
        previous_distribution: BaseDistribution | None = None,
    ) -> None:
        """Each trial keeps its own list of choices, which may have changed since the first one: Optuna would refuse that."""
        if isinstance(distribution, CategoricalDistribution):
            previous_distribution = distribution
        super()._set_trial_param_without_commit(
            session, trial_id, param_name, param_value_internal, distribution, previous_distribution
        )

    def reach(self, name: str, call: Callable[[], Any]) -> Any:
        """Do one access, a transaction of its own; ``name`` is the method of Optuna's that makes it."""
        return call()


_ACCESSES = (
    "create_new_study",
    "delete_study",
    "set_study_user_attr",
    "get_study_id_from_name",
    "get_study_name_from_id",
    "get_study_directions",
    "get_study_user_attrs",
    "get_study_system_attrs",
    "get_all_studies",
    "_create_new_trial",
    "_set_trial_param",
    "set_trial_state_values",
    "set_trial_user_attr",
    "set_trial_system_attr",
    "get_trial",
    "get_all_trials",
    "_get_trials",
)


def _through_reach(name: str) -> Callable[..., Any]:
    original = getattr(RDBStorage, name)

    @wraps(original)
    def access(self: Database, *args: Any, **kwargs: Any) -> Any:
        return self.reach(name, lambda: original(self, *args, **kwargs))

    return access


for _name in _ACCESSES:
    setattr(Database, _name, _through_reach(_name))
