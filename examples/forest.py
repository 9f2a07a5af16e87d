"""Tune a scikit-learn model with mixed parameters through Optuna: sixteen trials, each planned for all that are left."""

import optuna
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import cross_val_score

from glasses.optuna.sampler import GlassesSampler

X, y = load_iris(return_X_y=True)


def accuracy(trial):
    model = trial.suggest_categorical("model", ["forest", "boosting"])
    depth = trial.suggest_int("depth", 1, 8)
    leaf = trial.suggest_int("leaf", 1, 32, log=True)
    if model == "forest":
        features = trial.suggest_float("features", 0.1, 1.0)  # conditional: sampled independently
        classifier = RandomForestClassifier(10, max_depth=depth, min_samples_leaf=leaf, max_features=features, random_state=0)
    else:
        classifier = HistGradientBoostingClassifier(max_iter=10, max_depth=depth, min_samples_leaf=leaf, random_state=0)
    return cross_val_score(classifier, X, y, cv=3).mean()


optuna.logging.set_verbosity(optuna.logging.WARNING)
sampler = GlassesSampler(budget=16, seed=1, warn_independent_sampling=False)
study = optuna.create_study(direction="maximize", sampler=sampler)
study.optimize(accuracy, n_trials=16)
print(f"best accuracy {study.best_value:.4f} with {study.best_params}")
