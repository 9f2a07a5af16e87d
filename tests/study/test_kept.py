"""What the model said of a study and is kept: the same to the last bit, without a model, and never in the way."""

import json
import os
import shutil
import warnings

import pytest
from shell import glasses

from glasses.optuna import sampler
from glasses.runtime import cache
from glasses.study import kept

STUDY = """
name = "kept"
budget = 8
n_initial = 3
planner = "el"
[parameters]
"""
SPACES = {
    "a number": ("x = [0.0, 1.0]", [{"x": 0.1}, {"x": 0.35}, {"x": 0.62}, {"x": 0.9}]),
    "a logarithm and a choice": (
        'x = { low = 1e-4, high = 1.0, log = true }\nhow = { choices = ["warm", "cold"] }',
        [{"x": 1e-3, "how": "warm"}, {"x": 0.5, "how": "cold"}, {"x": 0.02, "how": "cold"}, {"x": 0.3, "how": "warm"}],
    ),
}
VALUES = (1.0, 0.3, 0.55, 1.7)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where things are kept, apart from the programs that all tests share."""
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "said"


@pytest.fixture
def study(tmp_path, capsys):
    return told(tmp_path / "study.toml", capsys)


def told(path, capsys, space="a number"):
    """A study of four evaluations."""
    parameters, points = SPACES[space]
    path.write_text(STUDY + parameters)
    for point, value in zip(points, VALUES, strict=True):
        glasses(capsys, "tell", path, *(f"--at={name}={each}" for name, each in point.items()), value)
    return path


@pytest.fixture
def no_model(monkeypatch):
    """Called to forbid that any model is made from then on, and called again to allow it."""

    def refuse(*_, **__):
        raise AssertionError("a model was made")

    def forbid(yes=True):
        monkeypatch.setattr(sampler, "_make_optimizer", refuse if yes else usual)

    usual = sampler._make_optimizer
    return forbid


def copied(path, name):
    other = path.with_name(name) / path.name
    other.parent.mkdir()
    for each in (path, path.with_suffix(".db")):
        shutil.copy(each, other.with_name(each.name))
    return other


def asked(capsys, path):
    return json.loads(glasses(capsys, "ask", path, "--format", "json"))[0]["params"]


@pytest.mark.parametrize("space", SPACES)
def test_whoever_asks_after_a_plan_or_a_forecast_gets_the_same_without_a_model(
    space, tmp_path, folder, no_model, capsys, monkeypatch
):
    path = told(tmp_path / "study.toml", capsys, space)
    copies = [copied(path, name) for name in ("show", "forecast")]
    with monkeypatch.context() as patch:
        patch.setattr(kept, "cache_folder", lambda: None)
        ahead = glasses(capsys, "forecast", path, "--format", "json")
        expected = asked(capsys, path)
    assert not folder.exists()
    for other, command in zip(copies, ("show", "forecast"), strict=True):
        glasses(capsys, command, other)
        no_model()
        assert asked(capsys, other) == expected
        no_model(False)
    undecided = copied(copies[0], "again")
    glasses(capsys, "cancel", undecided, "--trial", "4")
    no_model()
    assert glasses(capsys, "forecast", undecided, "--format", "json") == ahead
    assert asked(capsys, undecided) == expected  # in the same state again, and in another folder
    glasses(capsys, "tell", undecided, "0.7")
    with pytest.raises(AssertionError, match="a model was made"):
        glasses(capsys, "forecast", undecided)


def test_a_forecast_is_kept_for_its_steps(study, folder, no_model, capsys):
    found = {steps: glasses(capsys, "forecast", study, *steps) for steps in ((), ("--steps", "2"))}
    no_model()
    for steps, said in found.items():
        assert glasses(capsys, "forecast", study, *steps) == said
    with pytest.raises(AssertionError, match="a model was made"):
        glasses(capsys, "forecast", study, "--steps", "3")
    study.write_text(study.read_text().replace("[0.0, 1.0]", "[0.0, 1.5]"))
    with pytest.raises(AssertionError, match="a model was made"):
        glasses(capsys, "forecast", study)


def test_a_criterion_is_asked_once_in_each_state(study, folder, no_model, capsys):
    study.write_text(study.read_text().replace("[parameters]", "[stop]\nprice = 100.0\n[parameters]"))
    said = glasses(capsys, "show", study)
    assert "[stop] of the study file is met" in said
    no_model()
    assert glasses(capsys, "show", study) == said
    assert "[stop] of the study file is met" in glasses(capsys, "ask", study)
    study.write_text(study.read_text().replace("price = 100.0", "price = 0.001"))
    with pytest.raises(AssertionError, match="a model was made"):
        glasses(capsys, "show", study)


def test_what_cannot_be_used_is_made_again(study, folder, capsys):
    """Cut, damaged, another program's, of another form: never a failure, and not a word."""
    expected = asked(capsys, copied(study, "first"))
    (path,) = folder.glob("suggestion-*")
    whole = path.read_bytes()
    wrong = ["nothing", "[1, 2]", "{}", '{"x": 7.0}', '{"x": "a"}', '{"x": NaN}', '{"x": null}', '{"y": 0.5}']
    for k, content in enumerate([whole[:-3], whole[:5], b"", b"{}", *map(str.encode, wrong)]):
        path.unlink(missing_ok=True)
        if k < 4:
            path.write_bytes(content)
        else:
            cache.write(path, content)
        assert asked(capsys, copied(study, f"copy{k}")) == expected
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_used_is_said_at_most_once(study, folder, capsys):
    expected = asked(capsys, copied(study, "first"))
    shutil.rmtree(folder.parent)
    folder.parent.write_text("in the way")  # as if it could not be written
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked(capsys, copied(study, "second")) == expected
    folder.parent.unlink()
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="is not used, because others can write into it") as said:
        assert asked(capsys, copied(study, "third")) == expected
    assert len(said) == 1
    assert not list(folder.iterdir())


def test_the_name_of_what_is_kept_changes_with_all_it_depends_on(folder, monkeypatch):
    first = kept.digest_of(1.0, "a")
    assert first == kept.digest_of(1.0, "a") != kept.digest_of(1.0 + 2**-52, "a")
    monkeypatch.setenv("XLA_FLAGS_OF_A_TEST", "1")
    assert kept.digest_of(1.0, "a") != first
    monkeypatch.delenv("XLA_FLAGS_OF_A_TEST")
    kept._code.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(kept, "machine", lambda: ("another processor",))
        assert kept.digest_of(1.0, "a") != first
        kept._code.cache_clear()
    kept._code.cache_clear()
    assert kept.digest_of(1.0, "a") == first
    monkeypatch.setattr(kept, "_STARTED", 0.0)  # as if the files had been changed since: this process keeps for itself
    kept._code.cache_clear()
    own = kept.digest_of(1.0, "a")
    assert own == kept.digest_of(1.0, "a") != first
    kept._code.cache_clear()
    assert kept.digest_of(1.0, "a") not in (own, first)
    monkeypatch.undo()
    kept._code.cache_clear()
    assert kept.digest_of(1.0, "a") == first


def test_the_oldest_are_deleted(tmp_path):
    for k in range(9):
        cache.write(tmp_path / f"file{k}", b"%d" % k, most=8)
        os.utime(tmp_path / f"file{k}", (k, k))
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"file{k}" for k in range(3, 9)]
