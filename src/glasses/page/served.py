"""The study that a page serves: its file, read again when it changes, and two connections to its database.

``reader`` looks several times per second and therefore never takes the write lock; ``writer`` stores what a person does. What
is checked and then stored is done in one ``turn``, so that two browsers at this server cannot come in between each other.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

from glasses.study.file import read_study
from glasses.study.stored import StoredStudy

PATIENCE = 10.0  # seconds to wait for a database that is out of reach, before the page says so


class Served:
    """``trouble``: what is wrong with the study file as it is now; the study goes on as it was read before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.turn = threading.Lock()
        self.asking = threading.Lock()  # decisions are made one after the other, each sees the points of all others
        self.decisions = 0  # being made, or waiting for their turn
        self.trouble: str | None = None
        self.ending = threading.Event()
        self._refreshing = threading.Lock()
        self._stamp = self._stamp_now()
        self.writer, self.reader = self._open()
        self.budget_line = self._line_of_budget()

    def refresh(self) -> None:
        """Read the study file again if it has changed."""
        with self._refreshing:
            stamp = self._stamp_now()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                opened = self._open()
            except ValueError as error:
                self.trouble = said_without_folders(str(error), self.path)
                return
            before = self.writer, self.reader
            self.writer, self.reader = opened
            self.trouble = None
            self.budget_line = self._line_of_budget()
            for each in before:
                each.close()

    def close(self) -> None:
        """Give the connections back."""
        self.ending.set()
        for each in (self.writer, self.reader):
            each.close()

    def _open(self) -> tuple[StoredStudy, StoredStudy]:
        file = read_study(self.path)
        writer = StoredStudy(file, writing=True, patience=PATIENCE)  # makes the study where there is none yet
        reader = StoredStudy(file, writing=False, patience=PATIENCE)
        for each in (writer, reader):
            each.give_up_waiting = self.ending.is_set
        return writer, reader

    def _stamp_now(self) -> tuple[int, int] | None:
        try:
            facts = self.path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_size

    def _line_of_budget(self) -> str:
        """Where a person changes the budget."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        number = next((i for i, line in enumerate(lines, 1) if re.match(r"\s*budget\s*=", line)), None)
        return f"line {number} of {self.path.name}" if number is not None else f"budget in {self.path.name}"


def said_without_folders(words: str, path: Path) -> str:
    """A sentence with the study file's name where it had its path."""
    folder = str(path.resolve().parent)
    return words.replace(str(path), path.name).replace(f"{folder}/", "")
