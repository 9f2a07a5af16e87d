"""What the documentation says of BoTorch and Ax: its Python runs as printed, and the reference names what is there."""

import importlib
import re
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
PARTS = ("ax", "botorch")


@pytest.mark.filterwarnings("ignore")
def test_the_page_runs_as_printed(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "how_to" / "botorch.md").read_text(), re.DOTALL)
    assert len(blocks) >= 4
    torch.manual_seed(0)
    scope = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "botorch.md", "exec"), scope)
    said = capsys.readouterr().out
    assert said.count("\n") >= len(blocks) - 1
    assert "nan" not in said.lower()


def test_the_reference_names_what_is_there():
    documented = re.findall(r"^::: (glasses\.(?:ax|botorch)[\w.]*)", (DOCS / "reference" / "hosts.md").read_text(), re.M)
    for path in documented:
        holder, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(holder), name).__doc__, path
    for name in importlib.import_module("glasses.botorch").__all__:
        assert any(path.endswith(f".{name}") for path in documented)
