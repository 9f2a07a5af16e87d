"""The commands of the page: ``glasses serve`` and ``glasses report``. Imports are made when one is called."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from glasses.study.file_command import add_file_command


def add_page_commands(commands: Any) -> None:
    """Add them to the parser of the command line."""
    add = partial(add_file_command, commands)

    serve = add(
        "serve",
        "open the study's page in the browser: what to do next, the plan, the forecast, all trials",
        "  glasses serve study.toml\n"
        "  glasses serve study.toml --no-open --port 8000\n"
        "  glasses serve study.toml --host 0.0.0.0        for other machines, which need the address with its token",
        _serve,
    )
    serve.set_defaults(stays=True)
    serve.add_argument("--no-open", action="store_true", help="only print the address")
    serve.add_argument("--port", type=int, help="default: the one of last time if it is free, otherwise (and for 0) a free one")
    serve.add_argument("--host", default="127.0.0.1", help="listen on this address (127.0.0.1: this machine alone)")
    serve.add_argument("--token", help="the secret of the address, at least 16 letters and digits (default: kept, or drawn)")

    report = add(
        "report",
        "write the study as one HTML file, for a colleague or a supplement: it needs no network",
        "  glasses report study.toml\n  glasses report study.toml --out report.html",
        _report,
    )
    report.add_argument("--out", type=Path, help="the file (default: the study file's name with .html)")


def _serve(options: argparse.Namespace) -> int:
    from glasses.page.serve import serve

    return serve(options.file, host=options.host, port=options.port, token=options.token, browser=not options.no_open)


def _report(options: argparse.Namespace) -> None:
    from glasses.page.report import report_of
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    with StoredStudy(read_study(options.file), writing=False, patience=30.0) as stored:
        text = report_of(stored)
    out = options.out or options.file.with_suffix(".html")
    out.write_text(text, encoding="utf-8")
    print(f"Wrote {out}.")
