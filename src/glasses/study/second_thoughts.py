"""The commands of second thoughts: ``glasses correct, withdraw, cancel, retry, undo, import``.

Each says in one line what is now true, and what is left of the budget.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from glasses.study.importing import Preview
    from glasses.study.stored import StoredStudy

_SHOWN = 20  # rows of a preview

Action = Callable[["StoredStudy", argparse.Namespace], None]


def add_second_thoughts(
    add: Callable[[str, str, str, Any], argparse.ArgumentParser], on_study: Callable[[Action], Callable[[Any], None]]
) -> None:
    """Add them to the commands of a study: ``add`` makes a command, ``on_study`` opens the study of its file for writing."""
    correct = add(
        "correct",
        "another result, or another point, for a trial; what was told before is kept in the history",
        "  glasses correct study.toml --trial 3 3.4\n"
        "  glasses correct study.toml --trial 3 3.4 --at temperature=33 --reason 'typing mistake'\n"
        "  glasses correct study.toml --trial 3 --failed\n"
        "  glasses correct study.toml --trial 5 --at temperature=33      an open one: where it is really done",
        on_study(_correct),
    )
    correct.add_argument("value", nargs="?", help="the measured number, or `failed`")
    correct.add_argument("--at", action="append", metavar="NAME=VALUE", help="where it was really done")
    correct.add_argument("--failed", action="store_true", help="the experiment failed")
    withdraw = add(
        "withdraw",
        "take a result out of the data: no effect on the search, no cost",
        "  glasses withdraw study.toml --trial 3 --reason 'wrong bottle'",
        on_study(_withdraw),
    )
    cancel = add(
        "cancel",
        "a trial that was asked for is not done: no effect on the search, no cost",
        "  glasses cancel study.toml --trial 5",
        on_study(_cancel),
    )
    for each in (correct, withdraw, cancel):
        each.add_argument("--trial", type=int, metavar="N", required=True, help="which trial")
    retry = add(
        "retry",
        "queue failed trials again, at the same points",
        "  glasses retry study.toml --failed            all that failed\n  glasses retry study.toml --trial 3 --trial 4",
        on_study(_retry),
    )
    which = retry.add_mutually_exclusive_group(required=True)
    which.add_argument("--failed", action="store_true", help="all that failed")
    which.add_argument("--trial", type=int, action="append", metavar="N", help="which trial; may be given several times")
    undo = add(
        "undo",
        "take back the latest change, or another one; again for the one before",
        "  glasses undo study.toml\n  glasses undo study.toml --change glasses:change:000003:5f1c0a9b2d4e6f80",
        on_study(_undo),
    )
    undo.add_argument("--change", metavar="KEY", help="which one, by its key in `glasses export --history`; also an undo")
    for each in (correct, withdraw, cancel, retry, undo):
        each.add_argument("--reason", metavar="TEXT", help="kept in the history")
    bring = add(
        "import",
        "results from a table: a preview first, then all of it or nothing",
        "  glasses import study.toml old.csv                  results from before the study: they cost no budget\n"
        "  glasses import study.toml old.csv --yes --within-budget\n"
        "  glasses import study.toml old.csv --value-column yield",
        on_study(_import),
    )
    bring.add_argument("table", type=Path, help="a CSV file with a column for every parameter, and one named value")
    bring.add_argument("--yes", action="store_true", help="store it without a question")
    add_table_options(bring)
    budget = bring.add_mutually_exclusive_group()
    budget.add_argument("--within-budget", action="store_true", help="they count against the budget")
    budget.add_argument("--outside-budget", action="store_true", help="they cost nothing (the default)")


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """What every command that reads a table takes."""
    parser.add_argument("--again", action="store_true", help="store results once more that the study holds already")
    parser.add_argument("--value-column", metavar="NAME", help="the column of the results, if it is not named value")


def pairs(given: list[str] | None) -> dict[str, str] | None:
    """The texts of ``--at name=value``."""
    if not given:
        return None
    point: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name or name in point:
            raise ValueError(f"--at takes name=value, once for each parameter, got {each!r}.")
        point[name] = value
    return point


def _correct(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study.by_hand import left_words, outcome_of
    from glasses.study.points import checked_part, values_of

    point = pairs(options.at)
    if options.value is None and not options.failed and point is None:
        raise ValueError("A correction is missing: the number that was measured, --failed, or --at name=value.")
    outcome = None if options.value is None and not options.failed else outcome_of(options.value, options.failed)
    parameters = stored.file.parameters
    params = checked_part(values_of(point or {}, parameters), parameters, stored.distributions, "--at")
    before = _trial(stored, options.trial)
    change = stored.correct(options.trial, outcome=outcome, params=params, reason=options.reason)
    now = stored.trials()[options.trial]
    moved = change.params or {}
    print(f"Trial {now.number} is now {_state(now, moved)} (it was {_state(before, moved)}). {left_words(stored)}")


def _withdraw(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study.by_hand import left_words

    before = _trial(stored, options.trial)
    stored.withdraw(options.trial, options.reason)
    words = f"Trial {before.number} ({_state(before)}) is withdrawn: no effect on the search, no cost."
    print(f"{words} {left_words(stored)}")


def _cancel(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study.by_hand import left_words

    stored.cancel(options.trial, options.reason)
    words = f"Trial {options.trial} is cancelled: no effect on the search, no cost; a result that is told all the same counts."
    print(f"{words} {left_words(stored)}")


def _retry(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study.by_hand import left_words

    numbers = stored.retry(None if options.failed else options.trial, options.reason)
    queued = ", ".join(f"trial {number}" for number in numbers)
    next_command = "run" if stored.file.objective is not None else "ask"
    print(f"Queued again: {queued}. {left_words(stored)} Next: glasses {next_command} {shlex.quote(str(options.file))}")


def _undo(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study.by_hand import left_words
    from glasses.study.objective import printable

    undone = stored.undo(options.change, options.reason).undoes
    found = next(each for each in stored.changes() if each.key == undone)
    entry = next(each for each in stored.history(found.trial) if each["key"] == undone)
    words = {"correct": "the correction", "withdraw": "the withdrawal", "cancel": "the cancellation", "undo": "the undoing"}
    now = stored.trials()[found.trial]
    said = f"Undone: {words[found.what]} of trial {found.trial} by {printable(found.who)} at {printable(str(entry['when']))}."
    print(f"{said} Trial {now.number} is {_state(now, found.params or {})}. {left_words(stored)}")


def _import(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study import by_hand, importing

    found = preview_of(stored, options, options.table, outside_budget=not options.within_budget)
    print(_table(stored, found))
    for each in found.remarks():
        print(each)
    if not found.told:
        print(f"Nothing to store. {by_hand.left_words(stored)}")
        return
    outside = sum(bool(each.marks) for each in found.told)
    words = f"{len(found.told)} results" + (f", {outside} of them outside the budget" if outside else "")
    if not options.yes:
        if not sys.stdin.isatty():
            print(f"Nothing is stored: {words} would be, with --yes.")
            return
        try:
            agreed = input(f"Store {words}? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            agreed = False
        if not agreed:
            print("Nothing is stored.")
            return
    numbers = importing.store(stored, found)
    print(by_hand.said(stored, found.told, numbers))


def preview_of(stored: StoredStudy, options: argparse.Namespace, path: Path, **more: Any) -> Preview:
    """The preview of a file, by the options of ``add_table_options``."""
    from glasses.study import importing
    from glasses.study.tables import read_table

    text, note = read_table(path)
    found = importing.preview(stored, text, again=options.again, value_column=options.value_column, name=str(path), **more)
    if note is not None:
        found.notes.append(note)
    return found


def _table(stored: StoredStudy, found: Preview) -> str:
    from glasses.study import report

    names = list(stored.distributions)
    rows = [
        [
            str(each["line"]),
            *(report.shown(each["params"].get(name, "")) for name in names),
            "" if each["value"] is None else report.shown(each["value"]),
            each["does"],
        ]
        for each in found.rows[:_SHOWN]
    ]
    more = f"\n... and {len(found.rows) - _SHOWN} more rows." if len(found.rows) > _SHOWN else ""
    return report.table(["line", *names, "value", "what becomes of it"], rows) + more


def _trial(stored: StoredStudy, number: int) -> FrozenTrial:
    trials = stored.trials()
    if not 0 <= number < len(trials):
        stored.history(number)  # refuses it
    return trials[number]


def _state(trial: FrozenTrial, params: Mapping[str, Any] | None = None) -> str:
    """What a trial is, in a few words, with those of its parameters that matter."""
    from glasses.optuna.trials import state_of
    from glasses.study.objective import printable
    from glasses.study.report import shown

    state = state_of(trial)
    words = f"{trial.value:.6g}" if state == "complete" else state
    point = ", ".join(f"{name} = {shown(trial.params.get(name))}" for name in params or {})
    return printable(f"{words} at {point}" if point else words)
