"""Tuning real models on data that scikit-learn brings: ``tune-svm-digits-error`` and others, with the spaces people search.

    error    = mean over all rows of [predicted class != class]                                   [eq:error]
    logloss  = mean over all rows of -log max(p(class), .001)                                     [eq:logloss]

Every row is predicted once, by a model fitted to the other two of three stratified folds. Folds and the models' random numbers
are fixed and one thread works, so a configuration has one value. The floor of .001 bounds what a neighbour vote of 0 costs.
Of the digits every third row is used. Inputs are scaled within each fold. Networks run a fixed number of epochs, converged or
not.

Minima are the best values known, from ``best_known``; a run may find a lower one. Needs scikit-learn, loaded on demand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from glasses.configuration.unknown import unknown
from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses_lab.problems.best_known import best_known
from glasses_lab.problems.problem import Problem, mixed

FOLDS, FLOOR = 3, 1e-3
SCALING: dict[str, Parameter] = {"scaling": Choice(["standard", "minmax", "none"])}


@dataclass(frozen=True)
class Model:
    """What is searched, and how a configuration becomes an estimator for rows of that many columns."""

    parameters: dict[str, Parameter]
    estimator: Callable[[Mapping[str, Any], int], Any]


def _svm(x: Mapping[str, Any], columns: int) -> Any:
    from sklearn.svm import SVC

    return SVC(C=x["C"], gamma=x["gamma"], kernel=x["kernel"], degree=x["degree"], coef0=x["coef0"], max_iter=20_000)


def _knn(x: Mapping[str, Any], columns: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    kept = max(1, round(x["components"] * columns))
    votes = KNeighborsClassifier(x["neighbours"], weights=x["weights"], metric=x["metric"], algorithm="brute")
    return make_pipeline(PCA(kept, svd_solver="full"), votes)


def _forest(x: Mapping[str, Any], columns: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        x["trees"],
        criterion=x["criterion"],
        max_depth=x["depth"],
        min_samples_leaf=x["leaf"],
        max_features=x["features"],
        bootstrap=x["bootstrap"] == "yes",
        random_state=0,
    )


def _boosting(x: Mapping[str, Any], columns: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        n_estimators=x["trees"],
        learning_rate=x["rate"],
        max_depth=x["depth"],
        subsample=x["subsample"],
        min_samples_leaf=x["leaf"],
        max_features=None if x["features"] == "all" else x["features"],
        random_state=0,
    )


def _mlp(x: Mapping[str, Any], columns: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        (x["units"],) * x["layers"],
        activation=x["activation"],
        alpha=x["alpha"],
        learning_rate_init=x["rate"],
        batch_size=x["batch"],
        max_iter=12,
        tol=0.0,
        random_state=0,
    )


MODELS = {
    "svm": Model(
        {
            "C": Float(1e-3, 1e3, log=True),
            "gamma": Float(1e-5, 10.0, log=True),
            "kernel": Choice(["rbf", "poly", "sigmoid"]),
            "degree": Int(2, 5),
            "coef0": Float(0.0, 1.0),
            **SCALING,
        },
        _svm,
    ),
    "knn": Model(
        {
            "neighbours": Int(1, 50, log=True),
            "weights": Choice(["uniform", "distance"]),
            "metric": Choice(["euclidean", "manhattan", "chebyshev", "cosine"]),
            "components": Float(0.05, 1.0),
            **SCALING,
        },
        _knn,
    ),
    "forest": Model(
        {
            "trees": Int(5, 60, log=True),
            "depth": Int(2, 20),
            "leaf": Int(1, 20, log=True),
            "features": Float(0.02, 0.5, log=True),
            "criterion": Choice(["gini", "entropy"]),
            "bootstrap": Choice(["yes", "no"]),
        },
        _forest,
    ),
    "boosting": Model(
        {
            "trees": Int(10, 60, log=True),
            "rate": Float(1e-3, 1.0, log=True),
            "depth": Int(1, 6),
            "subsample": Float(0.3, 1.0),
            "leaf": Int(1, 20, log=True),
            "features": Choice(["sqrt", "log2", "all"]),
        },
        _boosting,
    ),
    "mlp": Model(
        {
            "units": Int(4, 64, log=True),
            "layers": Int(1, 2),
            "alpha": Float(1e-6, 1.0, log=True),
            "rate": Float(1e-4, 0.1, log=True),
            "batch": Int(16, 128, log=True),
            "activation": Choice(["relu", "tanh", "logistic"]),
            **SCALING,
        },
        _mlp,
    ),
}

TUNING = [
    *("tune-svm-digits-error", "tune-svm-cancer-error"),
    *("tune-knn-digits-error", "tune-knn-digits-logloss", "tune-knn-cancer-logloss"),
    *("tune-forest-digits-error", "tune-forest-digits-logloss", "tune-forest-cancer-logloss"),
    *("tune-boosting-cancer-error", "tune-boosting-cancer-logloss", "tune-boosting-iris-logloss"),
    *("tune-mlp-digits-error", "tune-mlp-digits-logloss", "tune-mlp-cancer-logloss", "tune-mlp-iris-logloss"),
]


def tuning_by_name(name: str) -> Problem | None:
    """``tune-MODEL-DATA-LOSS``. None if the name does not begin with ``tune-``."""
    if not name.startswith("tune-"):
        return None
    if name not in TUNING:
        raise ValueError(unknown("tuning problem", name, TUNING))
    known = best_known(name)
    return mixed(name, objective(name), parameters_of(name), known.minimum, [known.point] if known.point else [])


def parameters_of(name: str) -> dict[str, Parameter]:
    """What is searched."""
    return MODELS[name.split("-")[1]].parameters


def objective(name: str) -> Callable[[Mapping[str, Any]], float]:
    """The loss as a function of a configuration."""
    model, data, loss = name.split("-")[1:]
    rows(data)  # a missing library is said here
    return lambda x: losses(model, data, tuple(x.items()))[loss]


@lru_cache(maxsize=4096)
def losses(model: str, data: str, configuration: tuple[tuple[str, Any], ...]) -> dict[str, float]:
    """[eq:error] and [eq:logloss] of a configuration; the second nan for models without probabilities."""
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    x, (X, y) = dict(configuration), rows(data)
    wrong, surprise = np.zeros(len(y), dtype=bool), np.full(len(y), np.nan)
    estimator = _scaled(x.get("scaling", "none"), MODELS[model].estimator(x, X.shape[1]))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks and machines that have not converged
        for learn, check in folds(data):
            fitted = clone(estimator).fit(X[learn], y[learn])
            if hasattr(fitted, "predict_proba"):
                p = fitted.predict_proba(X[check])
                wrong[check] = fitted.classes_[p.argmax(axis=1)] != y[check]
                surprise[check] = -np.log(np.maximum(p[np.arange(len(check)), y[check]], FLOOR))
            else:
                wrong[check] = fitted.predict(X[check]) != y[check]
    return {"error": float(wrong.mean()), "logloss": float(surprise.mean())}


def _scaled(scaling: str, estimator: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    scalers = {"standard": [StandardScaler()], "minmax": [MinMaxScaler()], "none": []}
    return make_pipeline(*scalers[scaling], estimator)


@lru_cache
def rows(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and classes 0, 1, ... of one of the three data sets."""
    try:
        from sklearn import datasets
    except ImportError:
        raise ValueError("Tuning problems need the library scikit-learn: pip install 'glasses-lab[elsewhere]'.") from None
    load = {"digits": datasets.load_digits, "cancer": datasets.load_breast_cancer, "iris": datasets.load_iris}[data]
    X, y = load(return_X_y=True)
    return (X[::3], y[::3]) if data == "digits" else (X, y)


@lru_cache
def folds(data: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and to check on, three times."""
    from sklearn.model_selection import StratifiedKFold

    X, y = rows(data)
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
