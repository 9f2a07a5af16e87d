"""The README's code runs as printed, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_code_runs_in_order(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    scope = {}
    for block in blocks:
        exec(block, scope)
    assert scope["result"].fun < 0.1
    assert scope["optimizer"].remaining == 24
    assert "Recommendation" in capsys.readouterr().out


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("*/README.md"), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target
