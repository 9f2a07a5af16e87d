"""A suite: which methods are run on which problems with which seeds, read from one TOML file.

name = "fair"                    # of the suite
protocol = "fair"                # paper, exact, fair or known
methods = ["el", "glasses"]
initial = 5                      # evaluations given to every method: a number, or "2d"
evaluations = "10d"              # decided by the method, after the initial ones

[[runs]]                         # any number; a key given here replaces the one above for these problems
problems = ["SinCos", "Branin"]  # "BBOB-{1..5}-d{2,3}-i1" stands for ten
seeds = 20                       # 0 .. 19; first_seed = 100 starts later
family = "easy ones"             # what tables call these problems together; may be left out
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from glasses.configuration.tomlfile import TomlFile
from glasses.configuration.unknown import unknown
from glasses_lab.campaign.methods import method_of
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import get

SUITES = Path(__file__).parent / "suites"
_KEYS = ("protocol", "methods", "initial", "evaluations", "problems", "seeds", "first_seed", "family")


@dataclass(frozen=True)
class Task:
    """One run: everything that decides its outcome."""

    problem: str
    method: str
    seed: int
    protocol: str
    initial: int
    evaluations: int

    @property
    def key(self) -> str:
        """What makes it the same run in a file of results."""
        return f"{self.problem} | {self.method} | {self.seed} | {self.protocol} | {self.initial}+{self.evaluations}"


@dataclass(frozen=True)
class Suite:
    """Tasks, ordered by seed first, so that a campaign stopped early is still balanced."""

    name: str
    tasks: tuple[Task, ...]
    families: dict[str, str] = field(default_factory=dict)  # problem -> family, where one is named

    def from_seed(self, first: int | None) -> Suite:
        """The same suite with seeds from ``first`` on; None leaves it as it is."""
        if first is None:
            return self
        if first < 0:
            raise ValueError(f"The first seed must be at least 0, got {first}.")
        lowest = min(task.seed for task in self.tasks)
        return replace(self, tasks=tuple(replace(task, seed=task.seed - lowest + first) for task in self.tasks))

    def methods(self) -> list[str]:
        """In the order of the file."""
        return list(dict.fromkeys(task.method for task in self.tasks))


def expanded(name: str) -> list[str]:
    """The names that braces stand for, as in a shell: ``{1..3}`` for 1, 2, 3 and ``{2,5}`` for 2, 5."""
    braces = re.search(r"\{([^{}]*)\}", name)
    if braces is None:
        return [name]
    ends = re.fullmatch(r"(\d{1,3})\.\.(\d{1,3})", braces[1])
    inside = [str(k) for k in range(int(ends[1]), int(ends[2]) + 1)] if ends else braces[1].split(",")
    return [full for each in inside for full in expanded(name[: braces.start()] + each + name[braces.end() :])]


def suites() -> list[str]:
    """Names of the suites that come with the library."""
    return sorted(path.stem for path in SUITES.glob("*.toml"))


def read_suite(which: str | Path) -> Suite:
    """The suite of that file, or the one of that name that comes with the library."""
    path = Path(which)
    if not path.is_file():
        path = SUITES / f"{which}.toml"
        if str(which) not in suites():
            raise ValueError(f"{unknown('suite', str(which), suites())[:-1]}; or give the path of a TOML file.")
    return _Reader(path).suite()


class _Reader:
    """Reads one file; every complaint names its line and key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = TomlFile(path, "a suite")

    def suite(self) -> Suite:
        content = self.file.content
        for key in content:
            if key not in (*_KEYS, "name", "runs"):
                self._refuse(None, key, unknown("key", key, ["name", "runs", *_KEYS]))
        name = content.get("name", self.path.stem)
        if not isinstance(name, str) or not name.strip():
            self._refuse(None, "name", f"expected a name in quotes, got {name!r}.")
        groups = content.get("runs", [{}])
        if not isinstance(groups, list) or not groups or not all(isinstance(group, dict) for group in groups):
            self._refuse(None, "runs", "expected tables that start with [[runs]].")
        tasks = [
            task for i, group in enumerate(groups) for task in self._tasks(content, group, i if "runs" in content else None)
        ]
        seen: dict[tuple[str, str, int], Task] = {}
        for task in tasks:
            other = seen.setdefault((task.problem, task.method, task.seed), task)
            if other is not task:
                raise ValueError(
                    f"{self.path} lists {task.problem} with {task.method} and seed {task.seed} twice ({other.key!r} and "
                    f"{task.key!r}), which one table cannot hold: remove one or make two suites."
                )
        families = self._families(content, groups)
        return Suite(name, tuple(sorted(tasks, key=lambda task: task.seed)), families)

    def _families(self, top: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for i, group in enumerate(groups):
            family = group.get("family", top.get("family", ""))
            if not isinstance(family, str):
                self._refuse(i if "family" in group else None, "family", f"expected a name in quotes, got {family!r}.")
            listed = group.get("problems", top.get("problems", [])) if family else ()
            for problem in (name for each in listed for name in expanded(each)):
                if found.setdefault(problem, family) != family:
                    raise ValueError(
                        f"{self.path} puts {problem} into two families, {found[problem]!r} and {family!r}: keep one."
                    )
        return found

    def _tasks(self, top: dict[str, Any], group: dict[str, Any], index: int | None) -> list[Task]:
        for key in group:
            if key not in _KEYS:
                self._refuse(index, key, unknown("key", key, list(_KEYS)))

        def value(key: str, usual: Any = None) -> tuple[int | None, Any]:
            where = index if key in group else None
            found = group.get(key, top.get(key, usual))
            if found is None:
                self._refuse(index, key, "is missing: give it at the top or under [[runs]].")
            return where, found

        where, protocol = value("protocol", "exact")
        if protocol not in PROTOCOLS:
            self._refuse(where, "protocol", unknown("protocol", str(protocol), list(PROTOCOLS)))
        where, methods = value("methods")
        self._check_names(where, "methods", methods)
        for method in methods:
            try:
                method_of(method)
            except ValueError as error:
                self._refuse(where, "methods", str(error))
        where, seeds = value("seeds")
        self._check_whole(where, "seeds", seeds, 1)
        where, first = value("first_seed", 0)
        self._check_whole(where, "first_seed", first, 0)
        where, problems = value("problems")
        self._check_names(where, "problems", problems)
        tasks = []
        for name in (name for each in problems for name in expanded(each)):
            try:
                problem = get(name)
                PROTOCOLS[protocol].model(problem)
            except ValueError as error:
                self._refuse(where, "problems", str(error))
            initial, evaluations = (self._count(*value(key), key, problem.d) for key in ("initial", "evaluations"))
            tasks += [
                Task(name, method, seed, protocol, initial, evaluations)
                for seed in range(first, first + seeds)
                for method in methods
            ]
        return tasks

    def _count(self, where: int | None, given: Any, key: str, d: int) -> int:
        if isinstance(given, str) and re.fullmatch(r"[1-9]\d{0,3}d", given):
            return int(given[:-1]) * d
        if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
            return given
        return self._refuse(where, key, f'expected a whole number of at least 1 or one such as "2d", got {given!r}.')

    def _check_names(self, where: int | None, key: str, given: Any) -> None:
        if not (isinstance(given, list) and given and all(isinstance(each, str) for each in given)):
            self._refuse(where, key, f"expected a list of names in quotes, got {given!r}.")

    def _check_whole(self, where: int | None, key: str, given: Any, least: int) -> None:
        if not isinstance(given, int) or isinstance(given, bool) or given < least:
            self._refuse(where, key, f"expected a whole number of at least {least}, got {given!r}.")

    def _refuse(self, index: int | None, key: str, why: str) -> NoReturn:
        if index is None:
            self.file.refuse(key, why)
        self.file.refuse(key, why, "runs", index)
