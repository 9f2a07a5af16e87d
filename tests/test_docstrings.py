"""The examples in docstrings run, each by itself, and whatever is public and called has one or needs none."""

import doctest
import importlib
import pkgutil

import pytest

import glasses

# What comes back, and objects
WITHOUT = ["DEFAULT", "ExhaustedError", "Failure", "Forecast", "PAPER", "Plan", "Recommendation", "Result"]
NEEDING_TORCH = ("glasses.ax", "glasses.botorch")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples():
    found = []
    for module in pkgutil.walk_packages(glasses.__path__, "glasses."):
        if not module.name.endswith("__main__") and module.name not in NEEDING_TORCH:
            finder = doctest.DocTestFinder(exclude_empty=True)
            found += [each for each in finder.find(importlib.import_module(module.name), globs={}) if each.examples]
    return {each.name: each for each in found}


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name):
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(EXAMPLES[name], out=said.append, clear_globs=False)
    assert not said, "".join(said)


def test_what_is_called_has_an_example():
    for name in set(glasses.__all__) - set(WITHOUT):
        each = getattr(glasses, name)
        assert f"{each.__module__}.{name}" in EXAMPLES, f"glasses.{name} has no example in its docstring"
