"""Models to be tuned: losses against scikit-learn's own, the kept minima, and the search that finds them."""

import sys

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from glasses import Choice, Float, Int
from glasses_lab import problems
from glasses_lab.campaign.run import run
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import best_known, mixed, tuning
from glasses_lab.problems.best_known import Best, keep, search
from glasses_lab.problems.tuning import FLOOR, TUNING, losses, rows


@pytest.mark.parametrize("name", TUNING)
def test_the_kept_minimum_is_evaluated_at_its_place(name):
    problem, known = problems.get(name), best_known.best_known(name)
    assert problem.true(known.point) == pytest.approx(problem.minimum, rel=1e-6)
    assert problem.space.read(known.point)[0][0].tolist() == problem.minimizers[0].tolist()
    some = [problem.true(x) for x in problem.from_unit(np.random.default_rng(8).random((2, problem.d)))]
    assert min(some) > problem.minimum


@pytest.mark.parametrize("data", ["digits", "cancer", "iris"])
def test_losses(data):
    """[eq:error] and [eq:logloss] from scikit-learn's predictions of every row by the folds without it."""
    X, y = rows(data)
    x = {"neighbours": 7, "weights": "uniform", "metric": "manhattan", "components": 0.5, "scaling": "standard"}
    estimator = tuning._scaled("standard", tuning._knn(x, X.shape[1]))
    p = cross_val_predict(estimator, X, y, cv=StratifiedKFold(3, shuffle=True, random_state=0), method="predict_proba")
    found = losses("knn", data, tuple(x.items()))
    assert found["error"] == pytest.approx(np.mean(p.argmax(axis=1) != y), abs=1e-12)
    assert found["logloss"] == pytest.approx(-np.mean(np.log(np.maximum(p[np.arange(len(y)), y], FLOOR))), rel=1e-9)
    assert set(np.unique(y)) == set(range(p.shape[1]))


@pytest.mark.parametrize("model", ["svm", "forest", "boosting", "mlp"])
def test_a_configuration_has_one_value(model):
    space = mixed("m", lambda x: 0.0, tuning.MODELS[model].parameters, 0.0, [])
    first, second = space.from_unit(np.random.default_rng(1).random((2, space.d)))
    values = []
    for x in (first, second, first):
        losses.cache_clear()
        values.append(losses(model, "iris", tuple(x.items())))
    assert values[0] == pytest.approx(values[2], abs=0, nan_ok=True)
    assert values[0]["error"] != values[1]["error"] or values[0]["logloss"] != values[1]["logloss"]


def test_a_whole_game():
    record = run(Task("tune-knn-cancer-logloss", "random", 0, "fair", 4, 3))
    assert record["error"] is None
    problem = problems.get("tune-knn-cancer-logloss")
    assert record["y"] == [problem.true(x) for x in record["x"]]
    assert record["minimum"] == problem.minimum <= min(record["y"])


def test_names_and_libraries_that_are_not_there(monkeypatch):
    with pytest.raises(ValueError, match="There is no tuning problem 'tune-svm-wine-error'"):
        problems.get("tune-svm-wine-error")
    rows.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ValueError, match=r"need the library scikit-learn: pip install 'glasses-lab\[elsewhere\]'"):
        problems.get("tune-svm-digits-error")


def test_the_search_finds_a_minimum():
    parameters = {"a": Float(0.0, 10.0), "n": Int(1, 9), "c": Choice(["x", "y", "z"])}
    bowl = mixed("b", lambda x: (x["a"] - 3) ** 2 + abs(x["n"] - 4) + (x["c"] != "y"), parameters, 0.0, [])
    found = search(bowl, 128)
    assert (found.point["n"], found.point["c"], found.count) == (4, "y", 128)
    assert found.minimum == bowl.true(found.point) < 0.01
    assert search(bowl, 128) == found
    branin = problems.get("Branin")
    assert search(branin, 64).minimum == pytest.approx(branin.minimum, abs=1e-6)


def test_only_lower_values_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(best_known, "FILE", tmp_path / "best.toml")
    best_known._kept.cache_clear()
    try:
        keep({"p": Best(2.0, {"a": 0.1, "c": "x"}, 16), "q": Best(1.0, np.array([0.5, 1.0]), 16)})
        keep({"p": Best(3.0, {"a": 0.2, "c": "y"}, 32)})
        assert best_known.best_known("p") == Best(2.0, {"a": 0.1, "c": "x"}, 16)
        keep({"p": Best(1.5, {"a": 0.2, "c": "y"}, 32)})
        assert best_known.best_known("p") == Best(1.5, {"a": 0.2, "c": "y"}, 32)
        assert best_known.best_known("q").point == [0.5, 1.0]
        assert np.isnan(best_known.best_known("r").minimum)
    finally:
        best_known._kept.cache_clear()
