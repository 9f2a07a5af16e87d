"""``GlassesSearchCV`` against scikit-learn's own checks, its searches' contract, and studies that go on."""

import numpy as np
import pytest
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from glasses import Choice, Float, Int, Price, Target
from glasses.sklearn import GlassesSearchCV
from glasses.study.file import read_study
from glasses.study.stored import StoredStudy

X, Y = make_classification(n_samples=60, n_features=5, random_state=0)
C = {"C": Float(1e-2, 10.0, log=True)}


class Peak(ClassifierMixin, BaseEstimator):
    """Its score is known: 1 - (x - .3)^2 - .1 |k - 2|. Folds of the values in ``broken`` cannot be fitted."""

    def __init__(self, x=0.0, k=0, broken=()):
        self.x, self.k, self.broken = x, k, broken

    def fit(self, X, y):
        if self.k in self.broken:
            raise RuntimeError("broken")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return 1 - (self.x - 0.3) ** 2 - 0.1 * abs(self.k - 2)


def search(budget=8, estimator=None, **settings):
    parameters = {"x": (0.0, 1.0), "k": Int(0, 3)}
    return GlassesSearchCV(estimator or Peak(), parameters, budget=budget, cv=2, random_state=1, **settings)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the checks give estimators what they warn of
def test_scikit_learns_checks_of_estimators():
    tuned = GlassesSearchCV(LogisticRegression(max_iter=200), C, budget=2, cv=2, random_state=0)
    found = {each["check_name"]: each["status"] for each in check_estimator(tuned, on_skip=None, on_fail=None)}
    assert set(found.values()) <= {"passed", "skipped"}, {name: status for name, status in found.items() if status == "failed"}
    assert sum(status == "passed" for status in found.values()) > 40


def test_the_contract_of_a_search():
    found = search().fit(X, Y)
    scores = [1 - (p["x"] - 0.3) ** 2 - 0.1 * abs(p["k"] - 2) for p in found.cv_results_["params"]]
    assert len(scores) == 8
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores)
    assert found.best_index_ == int(np.argmax(scores)) == int(np.argmin(found.cv_results_["rank_test_score"]))
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    assert found.best_score_ == max(scores)
    assert found.best_estimator_.get_params()["x"] == found.best_params_["x"]
    assert found.score(X, Y) == found.best_estimator_.score(X, Y)
    random = RandomizedSearchCV(Peak(), {"x": uniform(0, 1), "k": [0, 1, 2, 3]}, n_iter=2, cv=2).fit(X, Y)
    assert found.cv_results_.keys() == random.cv_results_.keys()
    assert vars(found).keys() - vars(random).keys() == {"parameters", "budget", "n_initial", "stop", "study"}
    assert np.mean(scores[4:]) > np.mean(scores[:4])  # it has learned something


def test_same_state_same_candidates():
    first, again, other = search().fit(X, Y), search().fit(X, Y), search().set_params(random_state=2).fit(X, Y)
    assert first.cv_results_["params"] == again.cv_results_["params"] != other.cv_results_["params"]
    assert clone(first).get_params().keys() == first.get_params().keys()


def test_in_a_pipeline_and_inside_another_cross_validation():
    tuned = GlassesSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": loguniform(1e-2, 1e2)}, budget=3, cv=2, random_state=0
    )
    assert tuned.fit(X, Y).best_params_.keys() == {"svc__C"}
    assert np.all(cross_val_score(tuned, X, Y, cv=2) > 0.5)
    assert not hasattr(clone(tuned).set_params(refit=False).fit(X, Y), "best_estimator_")


def test_more_jobs_than_folds_are_given_several_candidates(monkeypatch):
    monkeypatch.setattr("glasses.sklearn.effective_n_jobs", lambda n: 6)
    asked = []
    tuned = search(budget=8)
    run = tuned._run_search
    tuned._run_search = lambda evaluate: run(lambda batch: asked.append(len(batch)) or evaluate(batch))
    tuned.fit(X, Y)
    assert asked == [3, 3, 2]


def test_a_candidate_that_cannot_be_fitted_has_failed():
    with pytest.warns(UserWarning, match="non-finite"):
        found = search(estimator=Peak(broken=(0, 1))).fit(X, Y)
    failed = np.isnan(found.cv_results_["mean_test_score"])
    assert len(failed) == 8
    assert [p["k"] in (0, 1) for p in found.cv_results_["params"]] == failed.tolist()
    assert 0 < failed.sum() < 8
    assert found.best_params_["k"] in (2, 3)
    with pytest.raises(RuntimeError, match="broken"):
        search(estimator=Peak(broken=(0, 1, 2, 3)), error_score="raise").fit(X, Y)
    with pytest.raises(ValueError, match=r"All the 2 fits failed[\s\S]*broken"):
        search(estimator=Peak(broken=(0, 1, 2, 3))).fit(X, Y)


def test_it_stops_by_a_criterion_of_the_score():
    assert len(search(budget=30, stop=Target(0.5)).fit(X, Y).cv_results_["params"]) < 10
    assert len(search(budget=12, stop=Price(100.0)).fit(X, Y).cv_results_["params"]) == 4  # after the initial ones, at once


def test_a_finite_space_ends_when_all_is_evaluated():
    found = GlassesSearchCV(Peak(), {"k": [0, 1, 2, 3]}, budget=30, cv=2, random_state=0).fit(X, Y)
    assert sorted(p["k"] for p in found.cv_results_["params"]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 5], Choice([1, 5])),
        (uniform(2, 3), Float(2.0, 5.0)),
        (loguniform(1e-3, 1.0), Float(1e-3, 1.0, log=True)),
        (randint(1, 9), Int(1, 8)),
        (Int(1, 3), Int(1, 3)),
    ],
)
def test_parameters_as_scikit_learns_users_write_them(given, expected):
    from glasses.sklearn import _space

    assert _space({"a": given}) == {"a": expected}


class Interrupting(Peak):
    """Ctrl-C while the third candidate is evaluated."""

    left = 5

    def fit(self, X, y):
        Interrupting.left -= 1
        if not Interrupting.left:
            raise KeyboardInterrupt
        return super().fit(X, y)


STUDY = """
name = "search"
direction = "maximize"
budget = 6
n_initial = 6
[parameters]
x = [0.0, 1.0]
k = { type = "int", low = 0, high = 3 }
"""


@pytest.mark.study
def test_a_search_in_a_study_goes_on(tmp_path):
    path = tmp_path / "search.toml"
    path.write_text(STUDY)
    with pytest.raises(KeyboardInterrupt):
        GlassesSearchCV(Interrupting(), study=path, cv=2).fit(X, Y)
    with StoredStudy(read_study(path), writing=False) as stored:
        assert stored.left() == 4
    found = GlassesSearchCV(Peak(), study=path, cv=2).fit(X, Y)
    scores = [1 - (p["x"] - 0.3) ** 2 - 0.1 * abs(p["k"] - 2) for p in found.cv_results_["params"]]
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores)
    assert len(scores) == 6
    with StoredStudy(read_study(path), writing=False) as stored:
        assert stored.left() == 0
        assert sorted(t.value for t in stored.trials() if t.value is not None) == pytest.approx(sorted(scores))
    again = GlassesSearchCV(Peak(), study=path, cv=2).fit(X, Y)  # nothing is left: the table is the study's
    assert again.best_params_ == found.best_params_
    assert len(again.cv_results_["params"]) == 6
    with pytest.raises(ValueError, match="of 2 folds, this search has 3"):
        GlassesSearchCV(Peak(), study=path, cv=3).fit(X, Y)
    path.write_text(STUDY.replace("maximize", "minimize"))
    with pytest.raises(ValueError, match='write direction = "maximize" into'):
        GlassesSearchCV(Peak(), study=path, cv=2).fit(X, Y)


class NoFit:
    def get_params(self, deep=True):
        return {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": NoFit()}, "estimator must have a method fit"),
        ({"scoring": ["accuracy", "f1"]}, "scoring must be one score"),
        ({"scoring": {"a": "accuracy"}}, "scoring must be one score"),
        ({"scoring": lambda e, X, y: {"a": 1.0, "b": 2.0}}, "scoring must give one number"),
        ({"parameters": None}, "either parameters or a study file"),
        ({"parameters": {}}, "must be a dict of ranges and choices"),
        ({"parameters": {"gama": (0, 1)}}, r"There is no parameter of SVC 'gama'; known, nearest first: gamma"),
        ({"parameters": {"C": norm(0, 1)}}, r"parameters\['C'\] must be a range"),
        ({"parameters": {"C": (1.0, 0.0)}}, "C"),
        ({"budget": 0}, "budget"),
        ({"stop": 3}, "stop must be a criterion"),
    ],
)
def test_bad_input(arguments, message):
    settings = {"estimator": SVC(), "parameters": C, "cv": 2, **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        GlassesSearchCV(**settings, refit="a" if callable(arguments.get("scoring")) else True).fit(X, Y)
