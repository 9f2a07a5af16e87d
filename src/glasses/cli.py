"""The command line: ``glasses COMMAND``. Each command loads what it needs when it is called."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from pathlib import Path

import glasses
from glasses.page.commands import add_page_commands
from glasses.runtime.ahead import AHEAD
from glasses.study.commands import add_study_commands

EXAMPLES = """examples:
  glasses new study.toml                         a study file to start from, which runs as it is
  glasses run study.toml                         evaluate until its budget is spent; again to go on
  glasses show study.toml                        state, best, recommended, plan
  glasses forecast study.toml                    what the rest of the budget is expected to buy
  glasses ask study.toml                         the next experiment, for a person at a bench
  glasses demo                                   tune a simulated controller in 30 evaluations
  glasses help forecast                          what a command takes
"""


def main(arguments: list[str] | None = None) -> int:
    """Parse and run."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if len(rest) == 1 and getattr(options, "value", "") is None:
        options.value = rest.pop()  # `tell FILE --trial 7 0.8`: argparse does not look for an optional word that late
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    AHEAD.enabled = options.action is _demo or getattr(options, "decides_often", False)  # else its end would wait for it
    if arguments is None and not (AHEAD.enabled or getattr(options, "stays", False)):
        _leave_garbage()
    return run_command("glasses", options, install="glasses[study]")


def _leave_garbage() -> None:
    """For a process that ends within seconds: hardly ever look for garbage, and not at its end among all that was imported.

    That is a quarter of the CPU time of ``glasses ask``. A million objects are collected all the same, so memory is bounded.
    """
    gc.set_threshold(1_000_000)
    atexit.register(gc.freeze)


def run_command(name: str, options: argparse.Namespace, *, install: str) -> int:
    """Run ``options.action(options)`` by the conventions of every command of this repository, and return its exit status.

    A mistake of the user's (``ValueError``) or of the system (``OSError``) is one sentence on standard error that begins with
    ``name``, and status 2; so is a missing library, with ``install`` as the remedy. An interruption is 130, a closed pipe 1.
    """
    try:
        return options.action(options) or 0
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{name}: {error.filename or 'a file'}: {error.strerror or error}.", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"{name}: this command needs {error.name}: pip install '{install}'.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted; what was finished is kept, and the same command goes on from here.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "glasses",
        description="Bayesian optimisation that plans for all the evaluations you have left.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"glasses {glasses.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    add_study_commands(commands)
    add_page_commands(commands)

    demo = commands.add_parser("demo", help="tune a simulated controller in 30 evaluations")
    demo.add_argument("--out", type=Path, default=Path("glasses-run"), help="folder of the picture (default %(default)s)")
    demo.set_defaults(action=_demo)

    completion = commands.add_parser("completion", help="print a completion script for a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    completion.set_defaults(action=_completion)

    help_ = commands.add_parser("help", help="what there is, or what a command takes")
    help_.add_argument("command", nargs="?", choices=sorted(commands.choices), help="a command (default: all of them)")
    help_.set_defaults(action=_help)
    return parser


def _help(options: argparse.Namespace) -> None:
    main([*([] if options.command is None else [options.command]), "--help"])


def _completion(options: argparse.Namespace) -> None:
    import shtab

    print(shtab.complete(_parser(), options.shell))


def _demo(options: argparse.Namespace) -> None:
    from glasses.demo import main as demonstrate

    demonstrate(options.out)


if __name__ == "__main__":
    sys.exit(main())
