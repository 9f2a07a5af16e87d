"""What commands and code print, as the documentation shows it: ``make docs-outputs`` remakes it, a test compares.

The blocks of a page run in order, in one empty folder:

    ```python      run; what is printed is compared with a ```text block that follows at once, if there is one
    ```console     lines that begin with ``$ `` are commands, the lines below each are what it prints
    <!-- unseen console   the same, not shown: here the lines below a command are its input
    <!-- unseen python    run, not shown; ``said`` is all that was printed so far, for sentences that quote it
    <!-- unseen console, costly   not in the tests

A line ``...`` stands for any lines. ``glasses`` runs in this process, everything else in a shell. Numbers may differ in their
last digits (another processor rounds differently) and times altogether; a page that differs in nothing else is left as it is.
A picture that a page shows and that its commands make in their folder is put beside the page. Notebooks: ``notebooks``.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from scripts import notebooks

DOCS = Path(__file__).parents[1] / "docs"
_BLOCK = re.compile(
    r"^<!-- unseen (?P<unseen>console|python)(?P<costly>, costly)?\n(?P<hidden>.*?)^-->$"
    r"|^```(?P<kind>python|console|text)\n(?P<shown>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?!\w)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\+00:00)?")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([\w./-]+)\)")
_USER = "ann"  # whose name is printed as that of who changed something


@dataclass
class Session:
    """What the blocks of one page share: a folder, and the names of its Python."""

    folder: Path
    costly: bool = False
    scope: dict[str, Any] = field(default_factory=lambda: {"__name__": "page", "said": ""})

    def python(self, code: str, name: str = "page") -> str:
        """What the code prints."""
        with self._here() as printed:
            exec(compile(code, name, "exec"), self.scope)
        return self._said(printed.getvalue())

    def command(self, line: str, stdin: str = "", *, refused: bool = False) -> str:
        """What a command prints, on both of its streams. ``refused``: it ends with status 2, as the page shows."""
        words = shlex.split(line, comments=True)
        if words[0] != "glasses" or "|" in words or ">" in words:
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=self.folder,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                env=self._environment(),
            )
            printed, status = done.stdout + done.stderr, done.returncode
        else:
            from glasses.cli import main

            with self._here() as caught, mock.patch.object(sys, "stdin", io.StringIO(stdin)):
                status = main(words[1:])
            printed = caught.getvalue()
        if status != (2 if refused else 0):
            raise RuntimeError(f"{line}: status {status}\n{printed}")
        return self._said(printed)

    def _said(self, printed: str) -> str:
        self.scope["said"] += printed
        return printed

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "LOGNAME": _USER, "USER": _USER, "COLUMNS": "160", "PATH": path}

    @contextlib.contextmanager
    def _here(self) -> Iterator[io.StringIO]:
        printed = io.StringIO()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            mock.patch.dict(os.environ, self._environment()),
            mock.patch.object(sys, "path", [str(self.folder), *sys.path]),
        ):
            yield printed
        for name, module in list(sys.modules.items()):  # of this folder: another page may have one of the same name
            if (file := getattr(module, "__file__", None)) and Path(file).is_relative_to(self.folder):
                del sys.modules[name]


def remade(page: str, session: Session) -> str:
    """The page with what its blocks print now."""
    parts, end, printed, code_ended = [], 0, "", -1
    for block in _BLOCK.finditer(page):
        parts.append(page[end : block.start()])
        end = block.end()
        new = block[0]
        if block["costly"] and not session.costly:
            pass
        elif block["unseen"] == "python":
            session.python(block["hidden"])
        elif block["unseen"] == "console":
            for command, below in _commands(block["hidden"]):
                session.command(command, "".join(f"{line}\n" for line in below))
        elif block["kind"] == "python":
            printed, code_ended = session.python(block["shown"]), block.end()
        elif block["kind"] == "console":
            lines: list[str] = []
            for command, below in _commands(block["shown"]):
                blank = len(below) - len("\n".join(below).rstrip().splitlines())
                refused = any(line.startswith("glasses: ") for line in below)
                lines += [f"$ {command}", *_kept(below, session.command(command, refused=refused)), *[""] * blank]
            new = "\n".join(["```console", *lines, "```"])
        elif code_ended >= 0 and not page[code_ended : block.start()].strip():
            new = "\n".join(["```text", *_kept(block["shown"].splitlines(), printed), "```"])
        parts.append(new)
    return "".join([*parts, page[end:]])


def _commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a block with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"A block of commands begins with a line like `$ glasses show study.toml`, got {line!r}.")
    return found


def _kept(shown: list[str], printed: str) -> list[str]:
    """The lines as shown if they still say what is printed, otherwise those printed, with as many left out as before."""
    old, new = "\n".join(shown).rstrip().splitlines(), [line.rstrip() for line in printed.rstrip().splitlines()]
    if same("\n".join(old), "\n".join(new)):
        return old
    if "..." in old:
        head, tail = old.index("..."), len(old) - 1 - old.index("...")
        return [*new[:head], "...", *new[len(new) - tail :]]
    return new


def same(shown: str, printed: str) -> bool:
    """Whether a text with ``...`` says what was printed, but for times, widths and the last digits of numbers."""
    segments = [segment.strip("\n") for segment in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    lines = printed.strip("\n").splitlines()
    if len(segments) == 1:
        return _alike(segments[0], "\n".join(lines))
    for k, segment in enumerate(segments):
        count = len(segment.splitlines())
        starts = [0] if k == 0 else [len(lines) - count] if k == len(segments) - 1 else range(len(lines) - count + 1)
        start = next((at for at in starts if at >= 0 and _alike(segment, "\n".join(lines[at : at + count]))), None)
        if start is None:
            return False
        lines = lines[start + count :]
    return True


def _alike(a: str, b: str) -> bool:
    a, b = (_TIME.sub("TIME", text) for text in (a, b))
    words = [re.sub(r"[ \t]+", " ", _NUMBER.sub("#", text)).strip() for text in (a, b)]
    return words[0] == words[1] and all(map(_near, _NUMBER.findall(a), _NUMBER.findall(b)))


def _near(a: str, b: str) -> bool:
    if a == b:
        return True
    if all(re.fullmatch(r"[-+−]?\d+", each) for each in (a, b)):
        return False
    last = max(len(each.partition("e")[0].partition(".")[2]) for each in (a, b))  # one unit of the last digit printed
    x, y = (float(each.replace("−", "-")) for each in (a, b))
    return math.isclose(x, y, rel_tol=5e-3, abs_tol=max(1e-6, 1.01 * 10.0**-last if "e" not in a + b else 0.0))


def pages() -> list[Path]:
    """Every page and notebook with something to run."""
    found = [path for path in DOCS.rglob("*.md") if any(b["kind"] != "text" for b in _BLOCK.finditer(path.read_text("utf-8")))]
    return sorted(
        [*(path for path in found if not {path.name, path.parent.name} & {*NOT_RUN}), *(DOCS / "notebooks").glob("*.ipynb")]
    )


NOT_RUN = {
    "campaigns.md": "its problem and method run in lab/tests/campaign/test_own.py",
    "extending": "their examples run in tests/test_extending.py",
    "extending.md": "its examples run in tests/test_extending.py",
    "botorch.md": "it needs torch: lab/tests_peers/test_pages.py",
}


# Every picture of the documentation and the command that makes it. Those of docs-outputs are made by commands of a page.
PICTURES = {
    "architecture.svg": "python scripts/architecture.py",
    "calibration.png": "glasses-lab campaign forecasts forecasts --method default --moments 5 --fit --out docs/calibration.png",
    "forecast.png": "make docs-outputs",
    "growth.png": "make bench",
    "how_to/conditional.png": "python -m benchmarks.conditional 12",
    "how_to/pruning.png": "python -m benchmarks.pruning",
    "how_to/sklearn.png": "make searches",
    "page-correct.png": "make screenshots",
    "page-map.png": "make screenshots",
    "page-phone.png": "make screenshots",
    "page.png": "make screenshots",
    "paper/comparison.png": "make paper",
    "paper/loss.png": "make paper",
    "paper/steps.png": "make paper",
    "paper/values.png": "make paper",
    "run.png": "make docs-outputs",
    "study.png": "make docs-outputs",
}


def shown_pictures(path: Path) -> list[Path]:
    """The pictures that a page shows."""
    return [(path.parent / name).resolve() for name in _PICTURE.findall(path.read_text(encoding="utf-8"))]


def remake(path: Path, folder: Path, *, costly: bool = False) -> tuple[str, str]:
    """A page or notebook as it is and as it is remade, in an empty folder."""
    text = path.read_text(encoding="utf-8")
    return text, notebooks.remade(text, folder, same) if path.suffix == ".ipynb" else remade(text, Session(folder, costly))


def difference(old: str, new: str) -> str:
    """What a page says and what it should say."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "in the page", "printed now", n=0, lineterm="")
    return "\n".join(line[:300] for line in lines)


def main() -> None:
    """Remake pages, and the pictures that they show and make."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("pages", type=Path, nargs="*", help="default: every page of docs with something to run")
    for path in parser.parse_args().pages or pages():
        with tempfile.TemporaryDirectory() as folder:
            old, new = remake(path, Path(folder), costly=True)
            for picture in shown_pictures(path) if path.suffix == ".md" else []:
                if (made := Path(folder) / picture.name).is_file():
                    shutil.copyfile(made, picture)
                    print(f"{path}: {picture.name}")
        if new != old:
            path.write_text(new, encoding="utf-8")
        print(f"{path}: {difference(old, new) or 'as it was'}")


if __name__ == "__main__":
    main()
