"""Hooks of the documentation site (``make site``): the command line's own help becomes its reference page, notebooks pages.

Links to files of the repository that are no pages (``../lab/README.md``) become plain text, because the site holds pages only.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from scripts import notebooks

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:lab|src|examples|tests|benchmarks|README|CONTRIBUTING|CHANGELOG)[^)]*\)")
_NOTEBOOK = re.compile(r"\]\(([\w./-]+)\.ipynb\)")


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
