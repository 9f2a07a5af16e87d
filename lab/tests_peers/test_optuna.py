"""Optuna's terminators on stored runs."""

import numpy as np

from glasses_lab.campaign.peers.optuna import terminator


def test_the_terminator_of_optuna_judges_a_stored_run():
    """It stops a run that stands still after its fill of trials: never before 30, and by the bound never before 20."""
    n = 60
    rng = np.random.default_rng(0)
    X = np.where(np.arange(n)[:, None] < 20, rng.random((n, 2)) * 4 - 2, 0.01 * rng.standard_normal((n, 2))) * [1.0, 0.5]
    record = {"key": "k", "problem": "Sixhumpcamel", "seed": 0, "initial": 5, "evaluations": n - 5, "true": None}
    standing = {**record, "x": X.tolist(), "y": (X**2).sum(axis=1).tolist()}
    found = terminator(standing)
    by_model, by_bound = found["used"].values()
    assert 25 <= by_model < n - 5
    assert 15 <= by_bound <= n - 5
    begun = {**standing, "evaluations": 14, "x": standing["x"][:19], "y": standing["y"][:19]}
    assert set(terminator(begun)["used"].values()) == {14}
