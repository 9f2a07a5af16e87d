"""The commands of a study: ``glasses new, run, worker, ask, tell, show, forecast, plot, export``. Imports are made when one is
called. Those that change what is stored are in ``second_thoughts``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glasses.study.file_command import add_file_command
from glasses.study.second_thoughts import add_second_thoughts, add_table_options, pairs, preview_of

if TYPE_CHECKING:
    from glasses.study.stored import StoredStudy


def add_study_commands(commands: Any) -> None:
    """Add them to the parser of the command line."""
    add = partial(add_file_command, commands)

    new = add(
        "new",
        "write a study file to start from",
        "  glasses new study.toml\n  glasses new study.toml --bench        for experiments that a person does",
        _new,
    )
    new.add_argument("--bench", action="store_true", help="without an objective: a person asks, measures and tells")

    run = add(
        "run",
        "evaluate until the budget is spent; run again to go on",
        "  glasses run study.toml\n  glasses run study.toml --most 5        only five evaluations now",
        _run,
    )
    worker = add(
        "worker",
        "like run, beside any number of others, on any machine that reaches the database",
        "  for i in 1 2 3 4; do glasses worker study.toml & done; wait",
        _run,
    )
    for each in (run, worker):
        each.set_defaults(decides_often=True)
        each.add_argument("--most", type=int, metavar="N", help="stop after N evaluations of this worker")
        each.add_argument(
            "--keep-going", action="store_true", help="also if the first evaluations all fail in the same way; they cost budget"
        )
        each.add_argument(
            "--patience", type=float, default=3600.0, metavar="S", help="seconds to wait for an unreachable database (3600)"
        )

    ask = add(
        "ask",
        "the next experiment, to be done by hand",
        "  glasses ask study.toml\n  glasses ask study.toml -n 3 --format json",
        _on_study(_ask, writing=True),
    )
    ask.add_argument("-n", type=int, default=1, help="how many (1)")
    _format(ask, "table", "json")

    tell = add(
        "tell",
        "the result of an experiment",
        "  glasses tell study.toml 0.83                                  the one experiment that is open\n"
        "  glasses tell study.toml --trial 7 0.83\n"
        "  glasses tell study.toml --trial 8 --failed\n"
        "  glasses tell study.toml --trial 7 0.8 --at gain=3.5           done a little differently\n"
        "  glasses tell study.toml --at gain=3.5 --at solver=rk4 0.91    one that nobody asked for\n"
        "  glasses tell study.toml --csv results.csv                     columns: value, and trial or every parameter\n"
        "  glasses tell study.toml                                       be asked for each open one",
        _tell,
    )
    tell.add_argument("value", nargs="?", help="the measured number, or `failed`")
    tell.add_argument("--trial", type=int, metavar="N", help="which experiment")
    tell.add_argument("--at", action="append", metavar="NAME=VALUE", help="where: what was done differently, or all of it")
    tell.add_argument("--failed", action="store_true", help="the experiment failed")
    tell.add_argument("--csv", type=Path, metavar="FILE", help="read results from a CSV file")
    tell.add_argument("--outside-budget", action="store_true", help="results from before the study: they cost nothing")
    add_table_options(tell)

    show = add(
        "show",
        "state, best, recommended and plan",
        "  glasses show study.toml\n  glasses show study.toml --format json | jq .best",
        _on_study(_show, writing=False),
    )
    show.add_argument("--no-plan", action="store_true", help="leave out what needs the model: quicker")
    _format(show, "table", "json")

    forecast = add(
        "forecast",
        "what the rest of the budget is expected to buy, or more than that",
        "  glasses forecast study.toml\n"
        "  glasses forecast study.toml --steps 10 --out forecast.png\n"
        "  glasses forecast study.toml --steps 25        10 are left: and what would 15 more buy?\n"
        "  glasses forecast study.toml --format json | jq .words",
        _on_study(_forecast, writing=False),
    )
    forecast.add_argument(
        "--steps", type=int, metavar="K", help="look K evaluations ahead (default: all that are left), also beyond the budget"
    )
    forecast.add_argument("--out", type=Path, help="also draw it into this picture")
    _format(forecast, "table", "json")

    plot = add(
        "plot",
        "draw convergence, the model through the recommended point, and the plan",
        "  glasses plot study.toml\n  glasses plot study.toml --out picture.svg",
        _on_study(_plot, writing=False),
    )
    plot.add_argument("--out", type=Path, help="the picture (default: the study file's name with .png)")

    export = add(
        "export",
        "every evaluation, for other programs",
        "  glasses export study.toml > results.csv\n  glasses export study.toml --format json --out results.json\n"
        "  glasses export study.toml --history > history.csv",
        _on_study(_export, writing=False),
    )
    export.add_argument("--out", type=Path, help="a file instead of the terminal")
    export.add_argument("--history", action="store_true", help="every result and every change: who, when, before, after, why")
    _format(export, "csv", "json")
    add_second_thoughts(add, lambda action: _on_study(action, writing=True))


def _format(parser: argparse.ArgumentParser, *kinds: str) -> None:
    parser.add_argument("--format", choices=kinds, default=kinds[0], help=f"default: {kinds[0]}")


def _stored(options: argparse.Namespace, *, writing: bool, patience: float = 30.0) -> StoredStudy:
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    return StoredStudy(read_study(options.file), writing=writing, patience=patience)


def _on_study(
    action: Callable[[StoredStudy, argparse.Namespace], None], *, writing: bool
) -> Callable[[argparse.Namespace], None]:
    """The action on the study of the file."""

    def act(options: argparse.Namespace) -> None:
        with _stored(options, writing=writing) as stored:
            action(stored, options)

    return act


def _new(options: argparse.Namespace) -> None:
    from glasses.study.template import write_bench, write_study

    if options.bench:
        study = write_bench(options.file)
        print(f"Wrote {study}. Put your own parameters in, then each morning:\n")
        print(f"  glasses ask {study}\n  glasses tell {study} VALUE\n  glasses show {study}")
        return
    study, code = write_study(options.file)
    print(f"Wrote {study} and {code}, which run as they are:\n")
    print(f"  glasses run {study}\n  glasses show {study}\n  glasses plot {study}")


def _run(options: argparse.Namespace) -> int:
    from glasses.study.file import read_study
    from glasses.study.worker import prepared, work

    if options.most is not None and options.most < 1:
        raise ValueError(f"--most must be at least 1, got {options.most}.")
    if not options.patience >= 0:
        raise ValueError(f"--patience must be at least 0 seconds, got {options.patience:g}.")
    evaluate = prepared(read_study(options.file))
    with _stored(options, writing=True, patience=options.patience) as stored:
        again = f"glasses run {shlex.quote(str(options.file))}"
        return work(stored, evaluate, again=again, most=options.most, keep_going=options.keep_going)


def _ask(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study import by_hand, report

    notes = _before_asking(stored)
    experiments = by_hand.ask(stored, options.n)
    costs = stored.budget.cost is not None
    if costs and len(experiments) < options.n:
        notes.append(f"Only {len(experiments)} of {options.n}: the budget does not pay for more.")
    if options.format == "json":
        print("".join(f"glasses: {each}\n" for each in notes), end="", file=sys.stderr)
        found: list[dict[str, Any]] = [{"trial": trial.number, "params": params} for trial, params in experiments]
        if costs:
            found = [{**each, "cost": stored.budget.at(each["params"])} for each in found]
        print(report.as_json(found))
        return
    names = list(stored.distributions)
    header = ["trial", *(report.labelled(name, stored.file.units.get(name)) for name in names)]
    rows = [[str(t.number), *(report.shown(p[n]) for n in names)] for t, p in experiments]
    if costs:
        header.append(report.labelled("cost", stored.file.cost_unit))
        rows = [[*row, f"{stored.budget.at(p):.6g}"] for row, (_, p) in zip(rows, experiments, strict=True)]
    print(report.table(header, rows))
    number = experiments[0][0].number if len(experiments) == 1 else "N"
    left = f"{stored.budget.words(stored.left())} left after this"
    print(f"\nThen: glasses tell {shlex.quote(str(options.file))} --trial {number} VALUE     ({left})")
    print("".join(f"{each}\n" for each in notes), end="")


def _before_asking(stored: StoredStudy) -> list[str]:
    """What a person should know who asks for another experiment: which ones are open, and that a criterion is met."""
    from optuna.trial import TrialState

    open_ = [str(each.number) for each in stored.storage.trials(TrialState.RUNNING) if each.params]
    notes = []
    if open_:
        which, are = ("trial", "is") if len(open_) == 1 else ("trials", "are")
        notes.append(f"Besides this, {len(open_)} {are} open already: {which} {', '.join(open_)}.")
    reason = stored.reason_to_stop()
    return notes if reason is None else [*notes, f"[stop] of the study file is met: {reason}"]


def _tell(options: argparse.Namespace) -> None:
    from glasses.study import by_hand, importing

    given = options.value is not None or options.failed
    if options.csv is not None and (given or options.trial is not None or options.at):
        raise ValueError("--csv holds the results itself: give nothing else with it.")
    if options.csv is None and (options.again or options.value_column is not None or options.outside_budget):
        raise ValueError("--again, --value-column and --outside-budget go with --csv FILE.")
    typed = not given and options.csv is None
    if typed and (options.trial is not None or options.at or not sys.stdin.isatty()):
        raise ValueError("A value is missing: type the number that was measured, or --failed.")
    outcome = by_hand.outcome_of(options.value, options.failed) if given else None
    point = pairs(options.at)
    with _stored(options, writing=True) as stored:
        remarks: list[str] = []
        if options.csv is not None:
            found = preview_of(stored, options, options.csv, outside_budget=options.outside_budget, by_trial=True)
            numbers, told, remarks = importing.store(stored, found), found.told, found.remarks()
        else:
            told = (
                by_hand.ask_for_results(stored, input)
                if outcome is None
                else [by_hand.check(stored, outcome, options.trial, point)]
            )
            numbers = by_hand.store(stored, told)
        print(by_hand.said(stored, told, numbers, remarks))


def _show(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study import report

    found = report.summary(stored, plan=not options.no_plan)
    print(report.as_json(found) if options.format == "json" else report.as_text(found, list(stored.distributions)))


def _forecast(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study import forecast, report

    found, data = forecast.forecast_of(stored, options.steps)
    if options.out is not None:
        from glasses.plot.files import write_forecast
        from glasses.study.objective import printable

        title = f"{printable(stored.file.name)}: what {len(data.k)} more evaluations are expected to buy"
        with _drawing(options.out):
            write_forecast(data, options.out, title)
    print(report.as_json(found) if options.format == "json" else forecast.as_text(found))
    if options.out is not None and options.format == "table":
        print(f"Wrote {options.out}.")


@contextmanager
def _drawing(out: Path) -> Iterator[None]:
    """Says which picture could not be drawn."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{out} cannot be drawn: {str(error).rstrip('.')}.") from None


def _plot(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.loop.ledger import ExhaustedError
    from glasses.plot.files import write_overview
    from glasses.plot.numbers import overview_data
    from glasses.study import report
    from glasses.study.objective import printable

    optimizer = stored.optimizer()
    plan = None
    if optimizer.remaining and optimizer.values:
        try:
            plan = optimizer.plan()
        except ExhaustedError:
            plan = None
    note = None if plan is None else report.forecast_or_note(optimizer)[1]
    with report.without_notes():
        data = overview_data(optimizer, plan, maximize=stored.file.maximize)
    out = options.out or options.file.with_suffix(".png")
    with _drawing(out):
        write_overview(data, out, f"{printable(stored.file.name)}: {report.spent_words(stored)}")
    print(f"Wrote {out}.")
    if note is not None:
        print(note)


def _export(stored: StoredStudy, options: argparse.Namespace) -> None:
    from glasses.study import report
    from glasses.study.objective import printable

    rows = report.history_rows(stored) if options.history else report.rows_of(stored)
    if options.format == "csv":
        text = report.as_csv(rows)
    else:
        text = report.as_json(stored.history() if options.history else rows) + "\n"
    if options.out is None:
        on_screen = sys.stdout.isatty()  # a terminal would interpret control characters in a value
        sys.stdout.write("".join(f"{printable(line)}\n" for line in text.splitlines()) if on_screen else text)
    else:
        options.out.write_text(text, encoding="utf-8")
        print(f"Wrote {len(rows)} rows to {options.out}.")
