"""The examples of docs/extending.md run as printed, and what they define passes the tests of its kind."""

import importlib.util
import runpy
from pathlib import Path

import numpy as np
import pytest

from glasses import Glasses

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = (part.split("```python\n") for part in PAGE.split("\n## ")[1:])
EXAMPLES = {text.splitlines()[0]: code[0].split("```")[0] for text, *code in SECTIONS}


def module_of(path):
    """A module of tests, by its path below tests/."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "tests" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_kernel(example):
    kernel, tests = example["RationalQuadratic"](), module_of("surrogate/test_kernels.py")
    tests.test_a_covariance_is_symmetric_and_positive_definite_with_the_right_diagonal(kernel, None)
    tests.test_a_covariance_is_symmetric_and_positive_definite_with_the_right_diagonal(kernel, tests.CHOICE)
    tests.test_derivatives_are_finite_everywhere_and_right(kernel)
    tests.test_hyperparameters_and_the_vector_of_a_fit_are_two_forms_of_one_thing(kernel)


def check_transform(example):
    transform, tests = example["LogAboveBest"](), module_of("surrogate/test_outputs.py")
    tests.test_there_and_back(transform=transform)
    tests.test_a_gain_below_the_best_value_is_the_same_gain_in_both_units(transform=transform)
    tests.test_a_change_of_units_changes_nothing(transform=transform)
    tests.test_moments_are_those_of_the_transformed_normal(transform)


def check_loss(example):
    loss, tests = example["ImprovementBeyond"](), module_of("lookahead/test_losses.py")
    tests.test_padding_of_the_pending_points_is_invisible(loss)
    tests.test_gradient_against_finite_differences(loss, None)


def check_oracle(example):
    oracle, tests = example["LargestVariance"](), module_of("lookahead/test_oracles.py")
    contract = [each for name, each in vars(tests.TestContract).items() if name.startswith("test_")]
    assert len(contract) > 4
    for each in contract:
        each(None, oracle)


def check_search(example):
    search, tests = example["EveryCandidate"](), module_of("search/test_search.py")
    tests.test_pending_points_move_the_decision(search, Glasses())


CHECKS = {
    "A kernel": check_kernel,
    "An output transform": check_transform,
    "A loss": check_loss,
    "An oracle": check_oracle,
    "A search": check_search,
}


def test_there_is_one_short_example_each():
    assert list(EXAMPLES) == list(CHECKS)
    assert PAGE.count("```python") == len(EXAMPLES)
    for code in EXAMPLES.values():
        assert len([line for line in code.splitlines() if line.strip()]) <= 25


@pytest.mark.slow
@pytest.mark.parametrize("title", CHECKS)
def test_an_example_runs_and_passes_the_tests_of_its_kind(title, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(EXAMPLES[title], encoding="utf-8")
    example = runpy.run_path(str(path), run_name="example")
    result = example["result"]
    assert result.success
    assert result.fun < np.median(result.func_vals)
    CHECKS[title](example)
