"""The database of a study: Optuna's tables in SQLite or PostgreSQL, reached with patience.

A database that cannot be reached for a while (a restart, a lock, a network) is waited for, and that is said; only a wait
longer than ``patience`` gives up. SQLite has no row locks, so there every transaction that may write begins by taking the
write lock (BEGIN IMMEDIATE): what one worker reads is still true when it writes. Reading commands (``writing=False``) never
create or change anything.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    PendingRollbackError,
    ProgrammingError,
    SQLAlchemyError,
)

_PATIENT = (
    "create_new_study",
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
    "record_heartbeat",
    "_get_stale_trial_ids",
)


class UnreachableError(ValueError):
    """The database cannot be opened, or stayed out of reach for too long."""


class NothingYetError(ValueError):
    """There is no such study to look at yet."""


def open_storage(url: str, *, heartbeat: int, writing: bool, patience: float) -> PatientStorage:
    """The storage at that address; ``heartbeat`` in seconds, three of which without a sign mean that a worker is dead."""
    try:
        shown = sqlalchemy.engine.make_url(url).render_as_string(hide_password=True)
    except (ValueError, SQLAlchemyError):
        raise UnreachableError("The address in storage cannot be read: postgresql://USER@HOST:PORT/DATABASE.") from None
    if url.startswith("sqlite:") and not writing and not Path(url.removeprefix("sqlite:///")).exists():
        raise NothingYetError(f"There is no database {shown} yet: nothing has been evaluated.")
    for attempt in range(20):
        try:
            return PatientStorage(url, heartbeat=heartbeat, writing=writing, patience=patience)
        except (OperationalError, ProgrammingError, IntegrityError, StorageInternalError) as error:
            racing = any(word in str(error).lower() for word in ("already exists", "locked", "unique", "duplicate"))
            if racing and attempt < 19:  # other workers make the same tables at this moment
                time.sleep(0.1 * (attempt + 1))
                continue
            if not writing and any(words in cause(error) for words in ("no such table", "does not exist")):
                raise NothingYetError(f"The database {shown} holds no study yet: nothing has been evaluated.") from None
            raise UnreachableError(f"The database {shown} cannot be opened: {cause(error)}.") from None
        except (SQLAlchemyError, RuntimeError) as error:
            raise UnreachableError(f"The database {shown} cannot be used: {cause(error)}.") from None
        except ImportError:
            raise UnreachableError(f"{shown} needs a driver: pip install 'glasses[study]'.") from None
    raise AssertionError


class PatientStorage(RDBStorage):
    """Optuna's storage, whose every call outlasts an outage of up to ``patience`` seconds."""

    def __init__(self, url: str, *, heartbeat: int, writing: bool, patience: float) -> None:
        self.patience = patience
        self.outages = 0  # so far
        self.give_up: Callable[[], bool] | None = None  # whether somebody wants this to end, asked while it waits
        self._word = threading.Lock()
        sqlite = url.startswith("sqlite:")
        settings: dict[str, Any] = {"connect_args": {"timeout": 5.0}} if sqlite else {"pool_pre_ping": True}
        if not sqlite:
            settings["connect_args"] = {"connect_timeout": 5}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            super().__init__(
                url, settings, heartbeat_interval=heartbeat, grace_period=3 * heartbeat, skip_table_creation=not writing
            )
        if sqlite and writing:
            sqlalchemy.event.listen(self.engine, "connect", _no_implicit_transactions)
            sqlalchemy.event.listen(self.engine, "begin", _take_the_write_lock)
            self.engine.dispose()

    def wait_out(self, call: Callable[[], Any]) -> Any:
        """Call, and again while the database is out of reach."""
        began: float | None = None
        said = False
        while True:
            try:
                result = call()
            except (StorageInternalError, DBAPIError) as error:
                if not _is_outage(error):
                    raise
                now = time.monotonic()
                if began is None:
                    began = now
                    self.outages += 1
                if self.give_up is not None and self.give_up():
                    raise UnreachableError(f"Stopped while the database was out of reach ({cause(error)}).") from error
                if now - began > self.patience:
                    raise UnreachableError(
                        f"The database stayed out of reach for {self.patience:.0f} s ({cause(error)}): start again later."
                    ) from error
                if not said and self._word.acquire(blocking=False):  # one voice for all threads
                    said = True
                    _say(f"the database is out of reach ({cause(error)}); waiting for it ...")
                time.sleep(min(1.0, 0.25 + 0.1 * (now - began)))
            else:
                if said and began is not None:
                    _say(f"the database is back after {time.monotonic() - began:.0f} s; going on.")
                    self._word.release()
                return result


def _patiently(name: str) -> Callable[..., Any]:
    original = getattr(RDBStorage, name)

    @wraps(original)
    def call(self: PatientStorage, *args: Any, **kwargs: Any) -> Any:
        return self.wait_out(lambda: original(self, *args, **kwargs))

    return call


for _name in _PATIENT:
    setattr(PatientStorage, _name, _patiently(_name))


def cause(error: BaseException) -> str:
    """The first line of what the database itself said."""
    while error.__cause__ is not None:
        error = error.__cause__
    inner = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()]
    return (lines[0] if lines else type(inner).__name__).rstrip(".")


def _is_outage(error: BaseException) -> bool:
    source: BaseException | None = error
    while source is not None:
        if isinstance(source, PendingRollbackError):
            return True  # the connection broke in the middle of a transaction, which is rolled back by now
        if isinstance(source, OperationalError | InterfaceError):
            words = str(source).lower()
            return not any(each in words for each in ("no such table", "no such column", "readonly", "read-only"))
        if isinstance(source, DBAPIError) and source.connection_invalidated:
            return True
        source = source.__cause__
    return False


def _no_implicit_transactions(connection: Any, record: Any) -> None:
    connection.isolation_level = None


def _take_the_write_lock(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _say(words: str) -> None:
    print(f"glasses: {words}", file=sys.stderr, flush=True)
