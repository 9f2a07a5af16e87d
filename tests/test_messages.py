"""Every refusal of commit 9b401cf is still made, in the same words or in others that mean the same.

``messages.txt`` holds the sentences of all exceptions raised there, values left out; ``REWORDED`` says which were changed
since, and into what. A sentence that disappears from the source fails here until it is entered with its successor.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDED = (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8").splitlines()
REWORDED = {
    "steps must be a whole number of at least 1, or None for all evaluations left, got {}.": (
        'steps must be a whole number of at least 1, None for all evaluations left or "trusted" for as many as the model is '
        "trusted for, got {}."
    ),
    "A cascade narrows: polished <= valued <= places, got {}, {}, {}.": (
        "The search narrows: polished <= screened <= candidates, got {}, {}, {}."
    ),
    "Known hyperparameters leave nothing to draw: leave draws out.": (
        "Known hyperparameters leave nothing to sample: leave hyperparameter_samples out."
    ),
    "With known hyperparameters the mean is known too: leave bias out.": (
        "With known hyperparameters the mean is known too: leave constant_mean out."
    ),
    "draws must be a whole number of at least 0 sets of hyperparameters, got {}.": (
        "hyperparameter_samples must be a whole number of at least 0 sets of hyperparameters, got {}."
    ),
    "evaluations must be a whole number of at least 1, got {}.": "{} must be a whole number of at least {}, got {}.",
    "places must be a whole number of at least 16, got {}.": "{} must be a whole number of at least {}, got {}.",
    "A Dask cluster needs the library distributed: pip install 'glasses[cluster]'.": (
        "A Dask cluster needs the library distributed: pip install 'glasses-lab[cluster]'."
    ),
    "two_step_values needs star = (M,), (M,), (M, U) and mu, var of shape (U,), got {}, {}, {} and {}, {}: one row of "
    "covariances per point.": (
        "two_step_values needs query = (M,), (M,), (M, U) and mu, var of shape (U,), got {}, {}, {} and {}, {}: one row of "
        "covariances per point."
    ),
    "A correction needs {} forecasts for some number of evaluations ahead: play more runs.": (
        "A correction needs {} forecasts for some number of evaluations ahead: replay more runs."
    ),
    "There is no data to forecast from: tell at least one evaluation first.": (
        "A forecast needs {} values, two more than there are parameters, got {}: tell {} more first."
    ),
    "{} holds no results ({}): `glasses paper run`.": "{} holds no results ({}): run `glasses-lab paper run` first.",
    "{} holds no finished run of {}: run `glasses campaign run {}` first.": (
        "{} holds no finished run of {}: run `glasses-lab campaign run {}` first."
    ),
    "{} holds no run of suite {}: run `glasses campaign run {}` first.": (
        "{} holds no run of suite {}: run `glasses-lab campaign run {}` first."
    ),
    "Parameter {} of the stored study {} is of another kind in the file: {}": (
        "Parameter {} of the {} is of another kind in the file: {}"
    ),
    "The stored study {} has a parameter {}, the file has not: {}": (
        "The {} has a parameter {}, the file has not: to go on without it write "
        'dropped = ["{}"] at the top of the file; else {}'
    ),
    "The stored study {} has no parameter {}, the file has one: {}": (
        "The {} has no parameter {}, the file has one: give it default = ..., the value that the stored trials had; else {}"
    ),
    "workers = {} needs an executor: executor=concurrent.futures.ProcessPoolExecutor().": (
        "workers = {} needs an executor: executor={}."
    ),
}


def sentences(root):
    """The texts of all exceptions raised below a folder, with {} for what is filled in."""
    found = set()
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.exc if isinstance(node, ast.Raise) else node
            if isinstance(called, ast.Call) and (isinstance(node, ast.Raise) or _refuses(called)):
                found |= {_text(each) for each in called.args}
    return {each for each in found if each and len(each) > 12}


def _refuses(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in ("refuse", "_refuse", "error", "Evaluation")


def _text(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body)
    return None


NOW = sentences(ROOT / "src" / "glasses") | sentences(ROOT / "lab" / "src" / "glasses_lab")


def test_the_record_is_long():
    assert len(RECORDED) > 150


@pytest.mark.parametrize("sentence", RECORDED)
def test_a_recorded_sentence_is_still_said(sentence):
    assert REWORDED.get(sentence, sentence) in NOW


def test_nothing_is_reworded_that_is_still_said_as_it_was():
    assert not set(REWORDED) & NOW
    assert set(REWORDED) <= set(RECORDED)
