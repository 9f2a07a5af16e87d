"""The command line: ``glasses-lab COMMAND``. Each command loads what it needs when it is called.

Errors and exit statuses are those of ``glasses`` (``glasses.cli.run_command``).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glasses.cli import run_command

if TYPE_CHECKING:
    from glasses_lab.campaign.suite import Suite, Task

SUITES = (
    "fair",
    "nine",
    "samples",
    "protocol",
    "development",
    "bbob",
    "bbob-10",
    "bbob-last",
    "many-parameters",
    "tuning",
    "laboratory",
)
EXAMPLES = """examples:
  glasses-lab problems                           the test problems
  glasses-lab campaign run my-suite.toml         your own comparison, resumable
  glasses-lab campaign table my-suite.toml       what it says so far
  glasses-lab paper all                          the paper's figures and tables from the stored results
  glasses-lab paper run                          do those campaigns again (hours), resumable
"""


def main(arguments: list[str] | None = None) -> int:
    """Parse and run."""
    os.environ.setdefault("GLASSES_COMPILE_AHEAD", "off")  # a thread beside a run would count in its CPU seconds
    return run_command("glasses-lab", _parser().parse_args(arguments), install="glasses-lab")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "glasses-lab",
        description="Research with GLASSES: test problems, campaigns that compare methods, the paper reproduced.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    problems = commands.add_parser("problems", help="list the test problems")
    problems.set_defaults(action=_problems)
    best = commands.add_parser("best", help="search for the lowest values of tuning and laboratory problems, and keep them")
    best.add_argument("names", nargs="*", metavar="PROBLEM", help="default: all of them")
    best.add_argument("--count", type=int, default=256, help="points of the cover, and steps after it (default %(default)s)")
    best.set_defaults(action=_best)
    _add_campaign(commands)
    _add_paper(commands)
    return parser


def _add_campaign(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    campaign = commands.add_parser(
        "campaign", help="compare methods on problems: run, table, forecasts, choice"
    ).add_subparsers(required=True, metavar="ACTION")
    run = campaign.add_parser("run", help="do every run of a suite that is not done yet")
    run.add_argument("suite", help="a TOML file, or one of the lab's suites: " + ", ".join(SUITES))
    _running(run)
    run.set_defaults(action=_campaign_run)

    table = campaign.add_parser("table", help="print the tables of a suite's results")
    table.add_argument("suite", help="as for run")
    table.add_argument("--results", type=Path, help="file of results (default results/SUITE.jsonl)")
    table.add_argument("--rows", type=Path, help="also write one line of measures per run to this CSV file")
    table.set_defaults(action=_campaign_table)

    forecasts = campaign.add_parser("forecasts", help="replay a suite's runs: were the forecasts right, when to stop?")
    forecasts.add_argument("suite", help="as for run")
    forecasts.add_argument("--results", type=Path, help="file of results (default results/SUITE.jsonl)")
    forecasts.add_argument("--method", default="two-stage", help="whose runs (default %(default)s)")
    forecasts.add_argument("--seeds", type=int, help="only the first so many of each problem (default: all that were run)")
    forecasts.add_argument("--terminator", action="store_true", help="also Optuna's terminator (in the peers' environment)")
    forecasts.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    forecasts.add_argument(
        "--moments", type=int, help="forecasts at so many moments of each run (default: at every evaluation)"
    )
    forecasts.add_argument(
        "--fit",
        action="store_true",
        help="also fit the correction: to one half of the problems, judged by the other, and to all",
    )
    forecasts.add_argument("--out", type=Path, help="also draw the calibration to this picture")
    forecasts.set_defaults(action=_campaign_forecasts)

    choice = campaign.add_parser("choice", help="what the default was chosen on and the last word on it: tables")
    choice.add_argument(
        "--results", type=Path, help="file of fresh results, or folder of stored ones (default: lab/results of the repository)"
    )
    choice.add_argument("--page", type=Path, help="also put the tables between the marks of this Markdown page")
    choice.set_defaults(action=_campaign_choice)
    for each in (run, table, forecasts):
        each.add_argument("--first-seed", type=int, help="seeds from here on, instead of the suite's own: a fresh batch")


def _add_paper(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    paper = commands.add_parser(
        "paper", help="the paper reproduced: table, loss, steps, values, all, order, run"
    ).add_subparsers(required=True, metavar="WHAT")
    for name, words in (
        ("table", "the tables, from the stored results"),
        ("loss", "figure: the loss 1 to 20 steps ahead"),
        ("steps", "figure: predicted steps for two putative points"),
        ("values", "figure: the planners against the exact optimum, three evaluations left"),
        ("all", "every table and figure, in about a minute"),
    ):
        part = paper.add_parser(name, help=words)
        part.add_argument("--out", type=Path, default=Path("glasses-paper"), help="folder (default %(default)s)")
        if name in ("table", "all"):
            part.add_argument(
                "--results", type=Path, help="folder of fresh or stored results (default: lab/results of the repository)"
            )
        if name == "all":
            part.add_argument("--page", type=Path, help="also put the tables between the marks of this Markdown page")
        part.set_defaults(action=_paper, what=name)
    order = paper.add_parser("order", help="does a loss know which point of its plan comes first? (some minutes)")
    order.set_defaults(action=_paper_order)
    again = paper.add_parser("run", help="do the campaigns again; resumable")
    again.add_argument("suites", nargs="*", help="fair, nine, samples, protocol (default: all of them)")
    _running(again)
    again.set_defaults(action=_paper_run)


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, help="file of results, or for `paper run` its folder (default results/)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--cluster", help="dask:ADDRESS or ray:ADDRESS instead of local processes")
    parser.add_argument("--methods", help="only these, separated by commas")
    parser.add_argument("--retry-failed", action="store_true", help="also do the runs again that are recorded as failed")


def _problems(options: argparse.Namespace) -> None:
    from glasses_lab.problems import get, names

    print(f"{'name':26}  {'d':>2}  {'minimum':>12}  box")
    for name in names():
        try:
            found = get(name)
        except ValueError:  # a family, whose names say the rest
            print(f"{name:26}   family: lower-case letters are numbers")
            continue
        box = [f"[{low:g}, {high:g}]" for low, high in found.bounds]
        if found.parameters is not None:
            box = [f"{key}: {each}" for key, each in found.parameters.items()]
        print(f"{name:26}  {found.d:2}  {found.minimum:12.6g}  {' x '.join(box)}")


def _best(options: argparse.Namespace) -> None:
    from glasses_lab.problems import get
    from glasses_lab.problems.best_known import best_known, keep, search
    from glasses_lab.problems.laboratory import LABORATORY
    from glasses_lab.problems.tuning import TUNING

    if options.count < 16:
        raise ValueError(f"--count must be at least 16, got {options.count}.")
    for name in options.names or [*TUNING, *LABORATORY]:
        found = search(get(name), options.count)
        print(f"{name}: {found.minimum:.6g} (known: {best_known(name).minimum:.6g}) at {found.point}", flush=True)
        keep({name: found})


def _chosen(options: argparse.Namespace) -> tuple[Suite, Path]:
    """The suite that was named, with its seeds, and the file of its results."""
    from glasses_lab.campaign.suite import read_suite

    suite = read_suite(options.suite).from_seed(options.first_seed)
    return suite, options.results or Path("results") / f"{suite.name}.jsonl"


def _campaign_run(options: argparse.Namespace) -> None:
    _run(*_chosen(options), options)


def _paper_run(options: argparse.Namespace) -> None:
    from glasses_lab.campaign.suite import read_suite
    from glasses_lab.reproduction.page import SUITES

    suites = [read_suite(name) for name in options.suites or SUITES]
    for suite in suites:
        _run(suite, (options.results or Path("results")) / f"{suite.name}.jsonl", options)


def _run(suite: Suite, path: Path, options: argparse.Namespace) -> None:
    from glasses_lab.campaign.methods import method_of
    from glasses_lab.campaign.runner import run_suite

    methods = None if options.methods is None else options.methods.split(",")
    for method in methods or []:
        method_of(method)
    if options.jobs == 0:
        raise ValueError("--jobs must be at least 1, or -1 for one process per core, got 0.")
    run_suite(suite, path, jobs=options.jobs, cluster=options.cluster, methods=methods, retry_failed=options.retry_failed)


def _campaign_table(options: argparse.Namespace) -> None:
    from glasses_lab.campaign.decades import function_of
    from glasses_lab.campaign.decades_tables import decades_tables
    from glasses_lab.campaign.measures import write_rows
    from glasses_lab.campaign.tables import by_function, overall
    from glasses_lab.reproduction.stored import fresh

    suite, path = _chosen(options)
    wanted = {task.key for task in suite.tasks}
    found = fresh(suite.name, path, wanted)
    if found is None:
        raise ValueError(f"{path} holds no run of suite {suite.name}: run `glasses-lab campaign run {options.suite}` first.")
    rows, told = found
    if options.rows:
        batch = "" if options.first_seed is None else f" --first-seed {options.first_seed}"
        write_rows(rows, options.rows, told | {"command": told["command"] + batch})
    tables = [overall(rows), decades_tables(rows, suite.families)]
    if all(function_of(row.problem) == row.problem for row in rows):  # else there are too many problems for a line each
        tables.insert(1, by_function(rows))
    print("\n\n".join([f"{suite.name}: {len(rows)} of {len(wanted)} runs", *(table for table in tables if table)]))


def _campaign_forecasts(options: argparse.Namespace) -> None:
    from functools import partial

    from glasses.loop.correction import CORRECTION
    from glasses_lab.campaign.calibration import (
        across_halves,
        calibration,
        calibration_table,
        draw_calibration,
        gathered,
        worst,
    )
    from glasses_lab.campaign.forecasts import replay
    from glasses_lab.campaign.runner import run_suite
    from glasses_lab.campaign.stopping_rules import judged, savings_table
    from glasses_lab.campaign.store import read_records
    from glasses_lab.campaign.suite import Suite

    suite, path = _chosen(options)
    tasks = _finished(suite, path, options)
    if not tasks:
        raise ValueError(
            f"{path} holds no finished run of {options.method}: run `glasses-lab campaign run {options.suite}` first."
        )
    if options.moments is not None and options.moments < 1:
        raise ValueError(f"--moments must be at least 1, got {options.moments}: leave it out for every evaluation.")
    chosen, work = Suite(suite.name, tasks), partial(replay, results=path.resolve(), moments=options.moments)
    kept = path.with_suffix(".forecasts.jsonl" if options.moments is None else f".forecasts-{options.moments}.jsonl")
    replayed = [run for run in run_suite(chosen, kept, jobs=options.jobs, work=work) if not run["error"]]
    peer = None
    beside = path.with_suffix(".terminator.jsonl")
    if options.terminator:
        run_suite(chosen, beside, jobs=options.jobs, work=partial(work, peer=True))
    if beside.exists():
        peer = {run["key"]: run["used"] for run in read_records(beside) if not run["error"]}
        print(f"Optuna's terminator was asked about {len(peer)} runs ({beside}); rules are judged on those replayed here.")
    forecasts = gathered(replayed)
    lines = calibration(forecasts), calibration(forecasts.corrected(CORRECTION))
    print(f"{suite.name}, {options.method}: {len(replayed)} runs replayed\n\n{calibration_table(*lines)}")
    print(f"\n{worst(lines[1])}")
    if options.moments is None:  # a rule is asked before every evaluation
        print(f"\n{savings_table(judged(replayed, peer))}")
    if options.fit:
        print(f"\n{across_halves(replayed)}")
    if options.out:
        draw_calibration(*lines, options.out)
        print(f"\nfigure {options.out}")


def _finished(suite: Suite, path: Path, options: argparse.Namespace) -> tuple[Task, ...]:
    """The runs of the chosen method that were finished, of the first ``--seeds`` seeds of each problem."""
    from glasses_lab.campaign.store import read_records

    done = {record["key"] for record in read_records(path) if not record["error"]}
    if options.seeds is not None and options.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {options.seeds}: leave it out for all runs.")
    first: dict[str, int] = {}
    for task in suite.tasks:
        first[task.problem] = min(task.seed, first.get(task.problem, task.seed))
    return tuple(
        task
        for task in suite.tasks
        if task.method == options.method and task.key in done and task.seed - first[task.problem] < (options.seeds or math.inf)
    )


def _campaign_choice(options: argparse.Namespace) -> None:
    from glasses_lab.reproduction.choice import make

    make(options.results, options.page)


def _paper_order(options: argparse.Namespace) -> None:
    from glasses_lab.reproduction.order import table

    print(table())


def _paper(options: argparse.Namespace) -> None:
    from glasses_lab.reproduction import page

    page.make(options.what, options.out, getattr(options, "results", None), getattr(options, "page", None))


if __name__ == "__main__":
    sys.exit(main())
