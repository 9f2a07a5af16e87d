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


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/method.md",
        "docs/sharp_bits.md",
        "docs/benchmarks.md",
        "docs/paper.md",
        "docs/how_to_choose.md",
        "docs/campaigns.md",
        "docs/studies.md",
        "docs/page.md",
        "docs/tutorial.md",
        "docs/how_to/migrate.md",
        "docs/reference/parts.md",
        "docs/architecture.md",
        "docs/extending.md",
        "examples/README.md",
        "CONTRIBUTING.md",
        "lab/README.md",
    ],
)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target
