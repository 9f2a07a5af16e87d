"""The command line: ``glasses COMMAND``. Each command loads what it needs when it is called."""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glasses.study.commands import add_study_commands

if TYPE_CHECKING:
    from glasses.campaign.suite import Suite

EXAMPLES = """examples:
  glasses new study.toml                         a study file to start from, which runs as it is
  glasses run study.toml                         evaluate until its budget is spent; again to go on
  glasses show study.toml                        state, best, recommended, plan
  glasses forecast study.toml                    what the rest of the budget is expected to buy
  glasses ask study.toml                         the next experiment, for a person at a bench
  glasses demo                                   tune a simulated controller in 30 evaluations
  glasses paper all                              the paper's figures and tables from the stored results
  glasses paper run                              do those campaigns again (hours), resumable
  glasses campaign run my-suite.toml             your own comparison
  glasses campaign table my-suite.toml           what it says so far
"""


def main(arguments: list[str] | None = None) -> int:
    """Parse and run; a mistake of the user's ends with one sentence and status 2, an interruption with 130."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if len(rest) == 1 and getattr(options, "value", "") is None:
        options.value = rest.pop()  # `tell FILE --trial 7 0.8`: argparse does not look for an optional word that late
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.action(options) or 0
    except ValueError as error:
        print(f"glasses: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"glasses: {error.filename or 'a file'}: {error.strerror or error}.", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"glasses: this command needs {error.name}: pip install 'glasses[study,paper]'.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nglasses: interrupted; what was finished is kept, and the same command goes on from here.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "glasses",
        description="Bayesian optimisation that plans for all the evaluations you have left.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    add_study_commands(commands)

    demo = commands.add_parser("demo", help="tune a simulated controller in 30 evaluations")
    demo.add_argument("--out", type=Path, default=Path("glasses-run"), help="folder of the picture (default %(default)s)")
    demo.set_defaults(action=_demo)

    problems = commands.add_parser("problems", help="list the test problems")
    problems.set_defaults(action=_problems)

    campaign = commands.add_parser(
        "campaign", help="compare methods on problems: run, table, foresight, choice"
    ).add_subparsers(required=True, metavar="ACTION")
    run = campaign.add_parser("run", help="do every run of a suite that is not done yet")
    run.add_argument("suite", help="a TOML file, or one of the library's suites: fair, nine, samples, protocol, development")
    _running(run)
    run.set_defaults(action=_campaign_run)
    table = campaign.add_parser("table", help="print the tables of a suite's results")
    table.add_argument("suite", help="as for run")
    table.add_argument("--results", type=Path, help="file of results (default results/SUITE.jsonl)")
    table.add_argument("--rows", type=Path, help="also write one line of measures per run to this CSV file")
    table.set_defaults(action=_campaign_table)

    foresight = campaign.add_parser("foresight", help="play a suite's runs again: were the forecasts right, when to stop?")
    foresight.add_argument("suite", help="as for run")
    foresight.add_argument("--results", type=Path, help="file of results (default results/SUITE.jsonl)")
    foresight.add_argument("--method", default="two-stage", help="whose runs (default %(default)s)")
    foresight.add_argument("--seeds", type=int, help="only the first so many of each problem (default: all that were run)")
    foresight.add_argument("--terminator", action="store_true", help="also Optuna's terminator (in the peers' environment)")
    foresight.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    foresight.add_argument("--fit", action="store_true", help="also say which correction would put these forecasts right")
    foresight.add_argument("--out", type=Path, help="also draw the calibration to this picture")
    foresight.set_defaults(action=_campaign_foresight)
    choice = campaign.add_parser("choice", help="the campaign that chose the default planner: its tables and figure")
    choice.add_argument("--results", type=Path, help="file of fresh results (default: those that come with the library)")
    choice.add_argument("--out", type=Path, default=Path("glasses-choice"), help="folder (default %(default)s)")
    choice.add_argument("--page", type=Path, help="also put the tables between the marks of this Markdown page")
    choice.set_defaults(action=_campaign_choice)
    for each in (run, table, foresight):
        each.add_argument("--first-seed", type=int, help="seeds from here on, instead of the suite's own: a fresh batch")

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
                "--results", type=Path, help="folder of fresh results (default: those that come with the library)"
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

    completion = commands.add_parser("completion", help="print a completion script for a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    completion.set_defaults(action=_completion)
    return parser


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, help="file of results, or for `paper run` its folder (default results/)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--cluster", help="dask:ADDRESS or ray:ADDRESS instead of local processes")
    parser.add_argument("--methods", help="only these, separated by commas")
    parser.add_argument("--retry-failed", action="store_true", help="also do the runs again that are recorded as failed")


def _completion(options: argparse.Namespace) -> None:
    import shtab

    print(shtab.complete(_parser(), options.shell))


def _demo(options: argparse.Namespace) -> None:
    from glasses.demo import main as demonstrate

    demonstrate(options.out)


def _problems(options: argparse.Namespace) -> None:
    from glasses_lab.problems import names

    print("\n".join(names()))


def _campaign_run(options: argparse.Namespace) -> None:
    from glasses.campaign.suite import read_suite

    suite = read_suite(options.suite).from_seed(options.first_seed)
    _run(suite, options, options.results or Path("results") / f"{suite.name}.jsonl")


def _paper_run(options: argparse.Namespace) -> None:
    from glasses.campaign.suite import read_suite
    from glasses.reproduction.page import SUITES

    suites = [read_suite(name) for name in options.suites or SUITES]
    for suite in suites:
        _run(suite, options, (options.results or Path("results")) / f"{suite.name}.jsonl")


def _run(suite: Suite, options: argparse.Namespace, path: Path) -> None:
    from glasses.campaign.methods import METHODS
    from glasses.campaign.runner import run_suite
    from glasses.configuration.unknown import unknown

    methods = None if options.methods is None else options.methods.split(",")
    for method in methods or []:
        if method not in METHODS:
            raise ValueError(unknown("method", method, list(METHODS)))
    if options.jobs == 0:
        raise ValueError("--jobs must be at least 1, or -1 for one process per core, got 0.")
    run_suite(suite, path, jobs=options.jobs, cluster=options.cluster, methods=methods, retry_failed=options.retry_failed)


def _campaign_table(options: argparse.Namespace) -> None:
    from glasses.campaign.measures import measure, write_rows
    from glasses.campaign.store import read_records
    from glasses.campaign.suite import read_suite
    from glasses.campaign.tables import by_function, overall
    from glasses.reproduction.page import about

    suite = read_suite(options.suite).from_seed(options.first_seed)
    wanted = {task.key for task in suite.tasks}
    path = options.results or Path("results") / f"{suite.name}.jsonl"
    records = [record for record in read_records(path) if record["key"] in wanted]
    if not records:
        raise ValueError(f"{path} holds no run of suite {suite.name}: run `glasses campaign run {options.suite}` first.")
    rows = [measure(record) for record in records]
    if options.rows:
        told = about(suite.name, records)
        batch = "" if options.first_seed is None else f" --first-seed {options.first_seed}"
        write_rows(rows, options.rows, told | {"command": told["command"] + batch})
    print(f"{suite.name}: {len(rows)} of {len(wanted)} runs\n\n{overall(rows)}\n\n{by_function(rows)}")


def _campaign_foresight(options: argparse.Namespace) -> None:
    from functools import partial

    from glasses_lab.campaign import foresight as judge

    from glasses.campaign.runner import run_suite
    from glasses.campaign.store import read_records
    from glasses.campaign.suite import Suite, read_suite
    from glasses.loop.correction import HINDSIGHT

    suite = read_suite(options.suite).from_seed(options.first_seed)
    path = options.results or Path("results") / f"{suite.name}.jsonl"
    done = {record["key"] for record in read_records(path) if not record["error"]}
    if options.seeds is not None and options.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {options.seeds}: leave it out for all runs.")
    first: dict[str, int] = {}
    for task in suite.tasks:
        first[task.problem] = min(task.seed, first.get(task.problem, task.seed))
    tasks = tuple(
        task
        for task in suite.tasks
        if task.method == options.method and task.key in done and task.seed - first[task.problem] < (options.seeds or math.inf)
    )
    if not tasks:
        raise ValueError(f"{path} holds no finished run of {options.method}: run `glasses campaign run {options.suite}` first.")
    kept = path.with_suffix(".foresight.jsonl")
    chosen, work = Suite(suite.name, tasks), partial(judge.replay, results=path.resolve())
    played = [run for run in run_suite(chosen, kept, jobs=options.jobs, work=work) if not run["error"]]
    peer = None
    beside = path.with_suffix(".terminator.jsonl")
    if options.terminator:
        run_suite(chosen, beside, jobs=options.jobs, work=partial(work, peer=True))
    if beside.exists():
        peer = {run["key"]: run["used"] for run in read_records(beside) if not run["error"]}
        print(f"Optuna's terminator was asked about {len(peer)} runs ({beside}); rules are judged on those played again here.")
    forecasts = judge.gathered(played)
    lines = judge.calibration(forecasts), judge.calibration(forecasts.corrected(HINDSIGHT))
    print(f"{suite.name}, {options.method}: {len(played)} runs played again\n\n{judge.calibration_table(*lines)}")
    print(f"\n{judge.savings_table(judge.judged(played, peer))}")
    if options.fit:
        print(f"\nThese runs would be put right by {judge.fitted_stretch(forecasts)}; in use is {HINDSIGHT}.")
    if options.out:
        judge.draw_calibration(*lines, options.out)
        print(f"\nfigure {options.out}")


def _campaign_choice(options: argparse.Namespace) -> None:
    from glasses.reproduction.choice import make

    make(options.out, options.results, options.page)


def _paper_order(options: argparse.Namespace) -> None:
    from glasses.reproduction.order import table

    print(table())


def _paper(options: argparse.Namespace) -> None:
    from glasses_lab.reproduction import page

    page.make(options.what, options.out, getattr(options, "results", None), getattr(options, "page", None))


if __name__ == "__main__":
    sys.exit(main())
