"""Hooks of the documentation site (``make site``): the command line's own help becomes its reference page, notebooks pages.

A public name without an entry in the reference ends the build, and so does an entry of something that is not there. Links to
files of the repository that are no pages (``../lab/README.md``) become plain text, because the site holds pages only.
"""

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from scripts import notebooks

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:lab|src|examples|tests|benchmarks|README|CONTRIBUTING|CHANGELOG)[^)]*\)")
_NOTEBOOK = re.compile(r"\]\(([\w./-]+)\.ipynb\)")


PARTS = ("gaussian", "lookahead", "optuna", "search", "sklearn", "surrogate", "testing")


def on_pre_build(config: Any, **_: Any) -> None:
    """Called by MkDocs first."""
    from mkdocs.exceptions import PluginError

    text = "".join(path.read_text("utf-8") for path in (Path(config.docs_dir) / "reference").glob("*.md"))
    if wrong := undocumented(text):
        raise PluginError(f"The reference in docs/reference is not that of the package: {'; '.join(wrong)}.")


def undocumented(reference: str) -> list[str]:
    """Public names that the reference leaves out, and entries that lead nowhere or say nothing."""
    documented = set(re.findall(r"^::: ([\w.]+)", reference, re.MULTILINE))
    wrong = []
    for module in ("glasses", *(f"glasses.{part}" for part in PARTS)):
        package = importlib.import_module(module)
        for name in getattr(package, "__all__", ("GlassesSearchCV",)):
            home = getattr(getattr(package, name), "__module__", "glasses.presets")
            if not {f"{home}.{name}", f"glasses.presets.{name}"} & documented:
                wrong.append(f"{module}.{name} is left out")
    for path in sorted(documented):
        if path.startswith(("glasses.ax", "glasses.botorch")):  # they need torch: lab/tests_peers/test_pages.py
            continue
        holder, _, name = path.rpartition(".")
        if not getattr(getattr(importlib.import_module(holder), name, None), "__doc__", None):
            wrong.append(f"{path} is not there or has no docstring")
    return wrong


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by MkDocs once: a page, and its pictures, for every notebook."""
    from mkdocs.structure.files import File

    for notebook in [each for each in files if each.src_uri.endswith(".ipynb")]:
        stem = notebook.src_uri.removesuffix(".ipynb")
        markdown, pictures = notebooks.rendered(notebook.content_string, Path(stem).name)
        files.append(File.generated(config, f"{stem}.md", content=markdown))
        for name, content in pictures.items():
            files.append(File.generated(config, f"{Path(stem).parent.as_posix()}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    if page.file.src_uri == "reference/commands.md":
        markdown += commands()
    return _NOTEBOOK.sub(r"](\1.md)", _OUTSIDE.sub(lambda found: found[1], markdown))


def commands() -> str:
    """One section per command, in its own words."""
    from glasses.cli import _parser

    parser = _parser()
    parser.prog = "glasses"
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    sections = []
    for name, command in actions[0].choices.items():
        sections.append(f"\n## glasses {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "".join(sections)
