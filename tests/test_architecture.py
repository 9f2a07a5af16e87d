"""The map in the docs is what the source says, and imports point one way."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("architecture", ROOT / "scripts" / "architecture.py")
architecture = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(architecture)


def test_imports_point_one_way_and_the_engine_does_not_know_the_lab():
    edges = architecture.graph()
    order = [node for layer in architecture.layers(edges) for node in layer]
    numerics = ["glasses.runtime", "glasses.surrogate", "glasses.lookahead", "glasses.search", "glasses.loop", "glasses.study"]
    assert sorted(numerics, key=order.index) == numerics
    for node, below in edges.items():
        if not node.startswith("glasses_lab"):
            assert not [each for each in below if each.startswith("glasses_lab")], node


def test_a_circle_is_found():
    with pytest.raises(ValueError, match="Imports go round in a circle: a -> b -> a"):
        architecture.layers({"a": {"b"}, "b": {"a"}, "c": set()})


def test_the_map_is_what_the_source_says(capsys):
    assert architecture.main(["--check"]) == 0, capsys.readouterr().out


def test_the_walk_of_a_decision_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    walk = text.split("## One decision")[1].split("## Words")[0]
    files = re.findall(r"`((?:\w+/)+\w+\.py)`", walk)
    assert len(files) > 20
    assert [each for each in files if not (ROOT / "src" / "glasses" / each).is_file()] == []
    names = re.findall(r"`(\w+(?:\.\w+)*)`", text.split("## Words")[1])
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "glasses").rglob("*.py"))
    for name in names:
        assert re.search(rf"\b{name.split('.')[-1]}\b", sources), name
