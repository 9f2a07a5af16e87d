"""The database of a study: Optuna's tables in SQLite or PostgreSQL. Errors are sentences, outages are waited for.

A database that cannot be reached for a while (a restart, a lock, a network) is waited for, and that is said; only a wait longer
than ``patience`` gives up. A database that is damaged or cannot be written is refused when it is opened, before anything is
evaluated. SQLite has no row locks, so there every transaction that may write begins by taking the write lock (BEGIN IMMEDIATE):
what one worker reads is still true when it writes. Reading commands (``writing=False``) never create or change anything.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy
from optuna.exceptions import DuplicatedStudyError, StorageInternalError, UpdateFinishedTrialError
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
)

from glasses.optuna.storage import Database, has_current_tables

_LOG = logging.getLogger("glasses.storage")
_READ_ONLY = ("readonly", "read-only")
_REMEDY = "restore a copy of it, or give storage another address"


class UnreachableError(ValueError):
    """The database cannot be opened, is damaged, cannot be written, or stayed out of reach for too long."""


class NothingYetError(ValueError):
    """There is no such study to look at yet."""


def sqlite_address(path: Path) -> str:
    """The address of a file. Characters with a meaning in addresses, such as %, are escaped: the path is taken as written."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def open_storage(address: str, *, writing: bool, patience: float) -> PatientStorage:
    """The storage at that address, once it is known to be usable."""
    try:
        url = make_url(address)
    except (ValueError, SQLAlchemyError):
        raise UnreachableError("The address in storage cannot be read: postgresql://USER@HOST:PORT/DATABASE.") from None
    shown = _shown(url)
    for attempt in range(20):
        try:
            if url.database is not None and _is_sqlite(url):
                if not writing and not Path(url.database).exists():
                    raise NothingYetError(f"There is no database {shown} yet: nothing has been evaluated.")
                current = _check_file(Path(url.database), shown, writing)
            else:
                current = False
            return PatientStorage(url, current=current, writing=writing, patience=patience)
        except (DatabaseError, StorageInternalError, sqlite3.Error) as error:
            racing = any(word in str(error).lower() for word in ("already exists", "locked", "unique", "duplicate"))
            if racing and attempt < 19:  # other workers make the same tables at this moment
                time.sleep(0.1 * (attempt + 1))
                continue
            if not writing and any(words in cause(error) for words in ("no such table", "does not exist")):
                raise NothingYetError(f"The database {shown} holds no study yet: nothing has been evaluated.") from None
            raise UnreachableError(f"The database {shown} cannot be opened: {cause(error)}.") from None
        except ImportError:
            raise UnreachableError(f"{shown} needs a driver: pip install 'glasses[study]'.") from None
        except (UnreachableError, NothingYetError):
            raise
        except Exception as error:  # whatever Optuna makes of tables that are not its own
            raise UnreachableError(f"The database {shown} cannot be used: {cause(error)}.") from None
    raise AssertionError


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _shown(url: URL) -> str:
    return f"sqlite:///{url.database}" if _is_sqlite(url) else url.render_as_string(hide_password=True)


def _check_file(path: Path, shown: str, writing: bool) -> bool:
    """Refuse a SQLite file that is damaged, or that cannot be written although it must be; whether its tables are current.

    A damaged index hides rows without any error: a study that is there would not be found, and begun anew. To be written, its
    folder must be writable as well: SQLite keeps a journal beside the file.
    """
    if not path.exists():
        return False
    with closing(sqlite3.connect(path, timeout=5.0, isolation_level=None)) as database:
        found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            words = " ".join(str(found).split()).rstrip(".")
            raise UnreachableError(f"The database {shown} is damaged ({words}): {_REMEDY}.")
        if writing:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            try:
                database.execute("BEGIN IMMEDIATE")
                database.execute(f"PRAGMA user_version = {version + 1}")
                database.execute("ROLLBACK")
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise
                raise UnreachableError(
                    f"The database {shown} cannot be written ({error}): allow writing to the file and to its folder."
                ) from None
        return has_current_tables(database)


class PatientStorage(Database):
    """Optuna's storage, whose every access outlasts an outage of up to ``patience`` seconds."""

    def __init__(self, url: URL, *, current: bool, writing: bool, patience: float) -> None:
        self.patience = patience
        self.outages = 0  # so far
        self.give_up: Callable[[], bool] | None = None  # asked during a wait: whether to end it
        self._said = threading.Lock()
        self._shown = _shown(url)
        sqlite = _is_sqlite(url)
        settings: dict[str, Any] = {"connect_args": {"timeout": 5.0}} if sqlite else {"pool_pre_ping": True}
        if not sqlite:
            settings["connect_args"] = {"connect_timeout": 5}
        super().__init__(url.render_as_string(hide_password=False), settings, current=current, writing=writing)
        if sqlite and writing:
            sqlalchemy.event.listen(self.engine, "connect", _no_implicit_transactions)
            sqlalchemy.event.listen(self.engine, "begin", _take_the_write_lock)
            self.engine.dispose()

    def reach(self, name: str, call: Callable[[], Any]) -> Any:
        """Do one access, again while the database is out of reach. What can never succeed ends with a sentence."""
        try:
            return self._wait_out(call)
        except (UnreachableError, UpdateFinishedTrialError, DuplicatedStudyError):
            raise
        except Exception as error:
            if isinstance(error, KeyError) and name == "get_study_id_from_name":
                raise  # there is no such study
            reading = name.lstrip("_").startswith("get")
            if not reading and not _is_refusal(error):
                raise  # of what was to be stored, not of the database
            if any(word in cause(error).lower() for word in _READ_ONLY):
                words = f"The database {self._shown} cannot be written ({cause(error)}): allow writing to it."
            else:
                words = f"The database {self._shown} cannot be used ({cause(error)}): {_REMEDY}."
            raise UnreachableError(words) from error

    def _wait_out(self, call: Callable[[], Any]) -> Any:
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
                if not said and self._said.acquire(blocking=False):  # one message for all threads
                    said = True
                    _say(f"the database is out of reach ({cause(error)}); waiting for it ...")
                time.sleep(min(1.0, 0.25 + 0.1 * (now - began)))
            else:
                if said and began is not None:
                    _say(f"the database is back after {time.monotonic() - began:.0f} s; going on.")
                    self._said.release()
                return result


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
            return not any(each in words for each in ("no such table", "no such column", "could not decode", *_READ_ONLY))
        if isinstance(source, DBAPIError) and source.connection_invalidated:
            return True
        source = source.__cause__
    return False


def _is_refusal(error: BaseException) -> bool:
    """Whether the database itself makes an access impossible, and not the value that was to be stored."""
    source: BaseException | None = error
    while source is not None:
        if isinstance(source, DatabaseError) and not isinstance(source, DataError | IntegrityError | InterfaceError):
            return True
        if isinstance(source, LookupError | AssertionError):
            return True  # a row that must be there is missing or cannot be understood
        source = source.__cause__
    return False


def _no_implicit_transactions(connection: Any, record: Any) -> None:
    connection.isolation_level = None


def _take_the_write_lock(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _say(words: str) -> None:
    _LOG.warning("%s", words)
    print(f"glasses: {words}", file=sys.stderr, flush=True)
