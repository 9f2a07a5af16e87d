"""``study.toml``: what is varied, what is measured, how often, and where the results are kept. Reading it runs nothing.

name = "pendulum"
direction = "minimize"           # or "maximize"
best_possible = 0.0              # a value that none can beat, where one is known: forecasts expect nothing beyond it
unit = "mPa"                     # of what is measured, for tables and pictures
budget = 30                      # all evaluations
storage = "sqlite:///study.db"   # default: the file's own name with .db, beside it
dropped = ["width"]              # parameters that stored trials have and this file has no longer

[objective]
command = "python simulate.py --gain {gain} --solver {solver}"    # or: python = "module:function"

[parameters]
gain = [0.0, 60.0]
rate = { low = 1e-5, high = 1e-1, log = true }
layers = { type = "int", low = 1, high = 8 }
solver = { choices = ["euler", "rk4"] }
load = { low = 1.0, high = 5.0, unit = "kg", default = 2.0 }    # default: what trials from before it was added had

[stop]                           # before the budget is spent, if one of these says so
price = 0.01                     # no further evaluations are expected to be worth so much each
target = 0.5                     # the best value is as good as this
no_gain = true                   # or a share of the spread of the values: less than that is left to gain

[cost]                           # evaluations that differ in price; the budget is then an amount in this unit
unit = "EUR"
formula = "0.2 + 0.01 * gain"    # or a price per unit (gain = 0.01), and a table of prices ([cost.solver], euler = 1.0)
"""

from __future__ import annotations

import math
import re
import shlex
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glasses.configuration.tomlfile import TomlFile
from glasses.configuration.unknown import unknown
from glasses.loop.checks import checked_best_possible
from glasses.loop.stopping import Criterion, NoGain, Price, Target
from glasses.space.parameters import Parameter
from glasses.study.cost_table import read_cost
from glasses.study.formula import Formula
from glasses.study.objective import Command, Objective, PythonFunction, placeholders
from glasses.study.parameter_table import Described, checked_unit, described

PLANNERS = ("two-stage", "glasses", "el")
_TOP = (
    "name",
    "direction",
    "best_possible",
    "budget",
    "storage",
    "seed",
    "n_initial",
    "noise",
    "planner",
    "count_failures",
    "retries",
    "heartbeat",
    "objective",
    "parameters",
    "stop",
    "cost",
    "unit",
    "dropped",
)
_OBJECTIVE = ("command", "python", "timeout")
_STOP = ("price", "target", "no_gain")


@dataclass(frozen=True)
class StudyFile:
    """A study as its file describes it."""

    path: Path
    name: str
    maximize: bool
    best_possible: float | None  # in the sense of the study
    budget: float  # evaluations, a whole number; with a cost an amount
    parameters: dict[str, Parameter]
    objective: Objective | None  # None: a person evaluates, through ask and tell
    storage: str  # an SQLAlchemy address; of SQLite with an absolute path
    seed: int
    n_initial: int | None
    noise: float | None
    planner: str
    count_failures: bool
    retries: int
    heartbeat: int  # seconds between two signs of life of a worker
    stop: Criterion | None  # for the optimiser of the study, which minimises
    unit: str | None = None  # of the measured value
    units: dict[str, str] = field(default_factory=dict)  # of the parameters that have one
    defaults: dict[str, Any] = field(default_factory=dict)  # what trials without a parameter are taken to have
    dropped: tuple[str, ...] = ()  # parameters of stored trials that the study no longer has
    cost: Formula | dict[str, Any] | None = None  # as ``loop.cost.Cost`` takes it; None: every evaluation costs 1
    cost_unit: str | None = None


def read_study(path: Path) -> StudyFile:
    """Read and check the whole file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the path of a study file, such as {path / 'study.toml'}.")
    if not path.exists():
        raise ValueError(f"There is no file {path}: `glasses new {path}` writes one to start from.")
    return _Reader(path).study()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = TomlFile(path, "a study")
        self.top = self.file.content

    def study(self) -> StudyFile:
        for key in self.top:
            if key not in _TOP:
                self.file.refuse(key, unknown("key", key, list(_TOP)))
        name = self.top.get("name", self.path.stem)
        if not isinstance(name, str) or not name.strip() or len(name) > 200 or not name.isprintable():
            self.file.refuse("name", f"expected a name in quotes of at most 200 characters, got {name!r}.")
        direction = self.top.get("direction", "minimize")
        if direction not in ("minimize", "maximize"):
            self.file.refuse("direction", f'expected "minimize" or "maximize", got {direction!r}.')
        planner = self.top.get("planner", PLANNERS[0])
        if planner not in PLANNERS:
            self.file.refuse("planner", unknown("planner", str(planner), list(PLANNERS)))
        table = self._parameters()
        parameters = {name: each.parameter for name, each in table.items()}
        count_failures = self.top.get("count_failures", True)
        if not isinstance(count_failures, bool):
            self.file.refuse("count_failures", f"expected true or false, got {count_failures!r}.")
        n_initial = self._whole("n_initial", 1) if "n_initial" in self.top else None
        cost, cost_unit, cheapest = read_cost(self.file, parameters)
        budget = self._whole("budget", 1) if cost is None else self._amount("budget", cheapest)
        if n_initial is not None and n_initial * cheapest > budget:
            self.file.refuse("n_initial", f"{n_initial} exceeds the budget of {budget}: lower it or raise the budget.")
        return StudyFile(
            path=self.path,
            name=name,
            maximize=direction == "maximize",
            best_possible=self._best_possible(),
            budget=budget,
            parameters=parameters,
            objective=self._objective(list(parameters)),
            storage=self._storage(),
            seed=self._whole("seed", 0, zlib.crc32(name.encode())),
            n_initial=n_initial,
            noise=self._noise(),
            planner=planner,
            count_failures=count_failures,
            retries=self._whole("retries", 0, 2),
            heartbeat=self._whole("heartbeat", 1, 10),
            stop=self._stop(direction == "maximize"),
            unit=self._unit(),
            units={name: each.unit for name, each in table.items() if each.unit is not None},
            defaults={name: each.default for name, each in table.items() if each.default is not None},
            dropped=self._dropped(list(table)),
            cost=cost,
            cost_unit=cost_unit,
        )

    def _whole(self, key: str, least: int, usual: int | None = None) -> int:
        if key not in self.top and usual is None:
            self.file.refuse(key, "is missing: say how many evaluations there are in all, such as budget = 30.")
        value = self.top.get(key, usual)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**53:
            self.file.refuse(key, f"expected a whole number of at least {least}, got {value!r}.")
        return int(value)

    def _amount(self, key: str, least: float) -> float:
        if key not in self.top:
            self.file.refuse(key, "is missing: say how much all evaluations may cost together, such as budget = 100.0.")
        value = self.top[key]
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e100:
            self.file.refuse(key, f"expected an amount above 0, in the unit of [cost], got {value!r}.")
        if value < least:
            self.file.refuse(key, f"{value:g} does not pay for the cheapest evaluation, which costs {least:g}: raise it.")
        return float(value)

    def _unit(self) -> str | None:
        try:
            return checked_unit(self.top["unit"]) if "unit" in self.top else None
        except ValueError as error:
            self.file.refuse("unit", str(error))

    def _dropped(self, names: list[str]) -> tuple[str, ...]:
        given = self.top.get("dropped", [])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            self.file.refuse("dropped", f'expected a list of names such as ["rate"], got {given!r}.')
        for name in given:
            if name in names:
                self.file.refuse("dropped", f"{name!r} is still a parameter: take it out of one of the two.")
        return tuple(given)

    def _best_possible(self) -> float | None:
        try:
            return checked_best_possible(self.top.get("best_possible"))
        except ValueError as error:
            self.file.refuse("best_possible", str(error))

    def _noise(self) -> float | None:
        noise = self.top.get("noise")
        if noise is not None and (isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < math.inf):
            self.file.refuse("noise", f"expected the standard deviation of an evaluation, 0 for exact ones, got {noise!r}.")
        return None if noise is None else float(noise)

    def _stop(self, maximize: bool) -> Criterion | None:
        given = self.top.get("stop", {})
        if not isinstance(given, dict) or ("stop" in self.top and not given):
            self.file.refuse("stop", f"expected a table with at least one of {', '.join(_STOP)}, got {given!r}.")
        criterion: Criterion | None = None
        for key in sorted(given, key=lambda key: key != "target"):  # what needs no model is asked first
            if key not in _STOP:
                self.file.refuse(key, unknown("key", key, list(_STOP)), "stop")
            try:
                found = self._criterion(key, given[key], maximize)
            except ValueError as error:
                self.file.refuse(key, str(error), "stop")
            if found is not None:
                criterion = found if criterion is None else criterion | found
        return criterion

    def _criterion(self, key: str, value: Any, maximize: bool) -> Criterion | None:
        if key == "no_gain":
            return None if value is False else NoGain() if value is True else NoGain(value)
        return Price(value) if key == "price" else Target(value, maximize)

    def _storage(self) -> str:
        from glasses.study.storage import sqlite_address

        given = self.top.get("storage", f"sqlite:///{self.path.stem}.db")
        remedy = 'expected "sqlite:///FILE.db" or "postgresql://USER@HOST/DATABASE"'
        if not isinstance(given, str) or not given.isprintable():
            self.file.refuse("storage", f"{remedy}, got {given!r}.")
        if re.fullmatch(r"sqlite:///[^?]+", given):
            path = (self.path.parent / given.removeprefix("sqlite:///")).resolve()
            if "?" in str(path):
                self.file.refuse("storage", f"a path with ? in it cannot be an address, got {str(path)!r}.")
            return sqlite_address(path)
        if re.match(r"postgresql(\+psycopg)?://.", given):
            return given
        return self.file.refuse("storage", f"{remedy}, got {re.sub(r'//[^@]*@', '//...@', given)!r}.")

    def _objective(self, names: list[str]) -> Objective | None:
        given = self.top.get("objective")
        if given is None:
            return None
        if not isinstance(given, dict):
            self.file.refuse("objective", 'expected a table: [objective], then command = "..." or python = "module:function".')
        for key in given:
            if key not in _OBJECTIVE:
                self.file.refuse(key, unknown("key", key, list(_OBJECTIVE)), "objective")
        timeout = given.get("timeout")
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e9):
            self.file.refuse("timeout", f"expected seconds above 0, got {timeout!r}.", "objective")
        if ("command" in given) == ("python" in given):
            self.file.refuse("objective", 'give either command = "..." or python = "module:function".')
        if "python" in given:
            target = given["python"]
            if not isinstance(target, str) or not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", target):
                self.file.refuse("python", f'expected "module:function", got {target!r}.', "objective")
            if timeout is not None:
                self.file.refuse("timeout", "only a command can be stopped: limit the function itself.", "objective")
            return PythonFunction(target, self.path.parent.resolve())
        return self._command(given["command"], names, timeout)

    def _command(self, given: Any, names: list[str], timeout: float | None) -> Command:
        try:
            arguments = shlex.split(given) if isinstance(given, str) else given
        except ValueError as error:
            self.file.refuse("command", f"cannot be split into arguments ({error}): check its quotes.", "objective")
        if not (isinstance(arguments, list) and arguments and all(isinstance(a, str) and "\0" not in a for a in arguments)):
            self.file.refuse("command", f"expected a command line or a list of its arguments, got {given!r}.", "objective")
        if not arguments[0].strip() or placeholders(arguments[:1]):
            self.file.refuse("command", f"the program itself must be a plain name, got {arguments[0]!r}.", "objective")
        used = placeholders(arguments)
        for name in used:
            if name not in names and name != "trial":
                self.file.refuse("command", unknown("parameter", name, [*names, "trial"]), "objective")
        for name in names:
            if name not in used:
                self.file.refuse(
                    "command", f"parameter {name!r} has no placeholder {{{name}}}, so it would do nothing.", "objective"
                )
        return Command(tuple(arguments), self.path.parent.resolve(), timeout)

    def _parameters(self) -> dict[str, Described]:
        given = self.top.get("parameters")
        if not isinstance(given, dict) or not given:
            self.file.refuse("parameters", "expected a table of at least one: [parameters], then name = [low, high].")
        found = {}
        for name, each in given.items():
            if not re.fullmatch(r"[A-Za-z_][\w.-]*", name) or len(name) > 200:
                self.file.refuse(name, "names are made of letters, digits, _ . and -, and begin with a letter.", "parameters")
            if name in ("trial", "value", "state", "failed", "started", "finished", "reason"):
                self.file.refuse(name, f"{name!r} has a meaning of its own in tables of results: rename it.", "parameters")
            try:
                found[name] = described(each)
            except ValueError as error:
                if str(error).startswith(str(self.path)):
                    raise
                self.file.refuse(name, str(error), "parameters")
        return found
