"""What the columns of a table mean in a study: found by their names, whatever their case, perhaps with a unit in brackets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from glasses.optuna.marks import LATE, OUTSIDE
from glasses.study.file import StudyFile
from glasses.study.objective import printable
from glasses.study.tables import SEPARATORS, records

_OURS = ("trial", "value", "state", "failed", "reason", "started", "finished", OUTSIDE, LATE)
_UNIT = re.compile(r"(.*\S)\s*(?:\((.*)\)|\[(.*)\])", re.DOTALL)


class Columns:
    """The columns of one table: ``header`` as it is written, and for each what it means, "" for nothing."""

    def __init__(self, file: StudyFile, header: Sequence[str], value_column: str | None) -> None:
        self.file = file
        self.header = [each if each.startswith("extra:") else each.strip() for each in header]
        self._targets = [*file.parameters, *(each for each in _OURS if each != "value" or value_column is None)]
        self._value = value_column
        self.meanings = [self._meaning(each)[0] for each in self.header]

    @property
    def known(self) -> int:
        """How many columns mean something."""
        return sum(bool(each) for each in self.meanings)

    @property
    def used(self) -> dict[str, str]:
        """Column: what it means."""
        return {name: meaning for name, meaning in zip(self.header, self.meanings, strict=True) if meaning}

    def unit(self, column: str) -> str | None:
        """The unit in the name of a column that means something."""
        return self._meaning(column)[1]

    def _meaning(self, column: str) -> tuple[str, str | None]:
        if column.startswith("extra:"):
            return column, None
        found = _UNIT.fullmatch(column)
        names = [(column, None), *([(found[1], found[2] or found[3])] if found else [])]
        targets = {each: each for each in self._targets} | ({} if self._value is None else {self._value.strip(): "value"})
        for name, unit in names:
            if name in targets:
                return targets[name], unit
        for name, unit in names:
            alike = {targets[each] for each in targets if each.casefold() == name.casefold()}
            if len(alike) == 1:
                return alike.pop(), unit
        return "", None

    def check(self, name: str) -> list[str]:
        """Refuse what cannot be read; what is to be said about the rest."""
        shown = printable(", ".join(self.header)) or "nothing"
        if "value" not in self.meanings:
            if self._value is not None:
                raise ValueError(f"{name} has no column {self._value!r}, got {shown}.")
            raise ValueError(f"{name} needs a column named value (and trial, or every parameter), got {shown}.")
        used = [each for each in self.meanings if each]
        if len(set(used)) < len(used):
            raise ValueError(f"{name} has two columns of one name: {shown}.")
        for column, meaning in self.used.items():
            given, ours = self.unit(column), self._unit_of(meaning)
            if given and ours and _plain(given) != _plain(ours):
                unit = printable(given.strip())
                raise ValueError(
                    f"{name} gives {meaning} in {unit}, the study file in {ours}: convert the column and name it anew."
                )
        unused = [column for column, meaning in zip(self.header, self.meanings, strict=True) if column and not meaning]
        return [f"Not used: {printable(', '.join(unused))}."] if unused else []

    def _unit_of(self, meaning: str) -> str | None:
        if meaning == "value":
            return self.file.unit
        return self.file.units.get(meaning)


def _plain(unit: str) -> str:
    return unicodedata.normalize("NFKC", unit).replace(" ", "")


def columns_of(file: StudyFile, text: str, value_column: str | None, name: str) -> tuple[str, Columns]:
    """The separator under which most columns of a table mean something, and those columns."""
    found: dict[str, Columns] = {}
    refusal: ValueError | None = None
    for separator in SEPARATORS:
        try:
            header = next((cells for _, cells in records(text, separator, name)), [])
        except ValueError as error:
            refusal = refusal or error
        else:
            found[separator] = Columns(file, header, value_column)
    if not found:
        assert refusal is not None
        raise refusal
    separator = max(found, key=lambda each: found[each].known)
    return separator, found[separator]
