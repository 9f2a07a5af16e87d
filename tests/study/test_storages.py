"""The storages that a study may have, through the contract of ``glasses.testing``."""

import itertools

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend

from glasses.study.storage import open_storage as open_database
from glasses.study.storage import sqlite_address
from glasses.testing import StorageContract

_NUMBERS = itertools.count()


class TestDatabasesOfStudies(StorageContract):
    """What ``storage = ...`` of a study file opens."""

    @pytest.fixture(params=["sqlite", "postgresql"])
    def open_storage(self, request, tmp_path):
        if request.param == "sqlite":
            address = sqlite_address(tmp_path / "study.db")
        else:
            address = request.getfixturevalue("postgres").database(f"contract{next(_NUMBERS)}")
        handles = []

        def open_it():
            handles.append(open_database(address, writing=True, patience=10.0))
            return handles[-1]

        yield open_it
        for each in handles:
            each.remove_session()
            each.engine.dispose()


class TestStoragesOfOptuna(StorageContract):
    """What ``optuna.create_study(storage=...)`` may be given beside ``GlassesSampler``."""

    @pytest.fixture(params=["memory", "journal"])
    def open_storage(self, request, tmp_path):
        if request.param == "memory":
            storage = optuna.storages.InMemoryStorage()
            return lambda: storage
        return lambda: optuna.storages.JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
