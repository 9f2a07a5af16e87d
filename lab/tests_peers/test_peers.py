"""The peers play whole games, in their own environment: ``make test-peers``."""

import json

import numpy as np
import pytest

from glasses import Choice, Float, Int
from glasses_lab.campaign.methods import METHODS, Start
from glasses_lab.campaign.peers import PEERS
from glasses_lab.campaign.peers.optuna import terminator
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.campaign.run import run
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import Problem, get, mixed

NAMES = [name for name, method in METHODS.items() if method.needs]


def test_the_catalogue_and_the_adapters_agree():
    assert set(NAMES) == set(PEERS)


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_game(name):
    first, second = (run(Task("Sixhumpcamel", name, 0, "fair", 3, 2)) for _ in range(2))
    assert first["error"] is None
    assert len(first["y"]) == 5
    low, high = np.array(get("Sixhumpcamel").bounds).T
    X = np.array(first["x"])
    assert np.all((low <= X) & (high >= X))
    assert len(np.unique(X, axis=0)) == 5
    assert first["x"] == second["x"]  # same seed, same decisions


@pytest.mark.parametrize("name", ["botorch-logei", "botorch-logei-exact", "botorch-tree-2", "botorch-binoculars", "optuna-gp"])
def test_peers_minimise(name):
    """A bowl seen at its rim: the next points go to its bottom, not to the corners."""
    bowl = Problem("bowl", lambda x: float(np.sum((x - 3.0) ** 2)), ((0.0, 10.0),) * 2, 0.0, np.full((1, 2), 3.0))
    X = np.array([[0, 0], [0, 6], [6, 0], [6, 6], [3, 7], [1, 3], [10, 10], [5, 4.0]], dtype=float)
    player = PEERS[name](Start(bowl, PROTOCOLS["fair"], X, np.array([bowl(x) for x in X]), 12, 0))
    best = min(bowl(x) for x in X)
    for _ in range(4):
        x = player.ask()
        player.tell(x, bowl(x))
        best = min(best, bowl(x))
    assert best < 0.3
    recommended = player.recommend()
    assert recommended is None or bowl(recommended) < 0.3


PARAMETERS = {
    "rate": Float(1e-4, 1.0, log=True),
    "layers": Int(1, 4),
    "units": Int(4, 256, log=True),
    "drop": Float(0.0, 0.55, step=0.1),
    "kind": Choice(["a", "b", "c"]),
}


def cost(x):
    kind = {"a": 0.5, "b": 0.0, "c": 1.0}[x["kind"]]
    return (np.log10(x["rate"]) + 2) ** 2 + (x["layers"] - 3) ** 2 + np.log2(x["units"] / 32) ** 2 + x["drop"] + kind


@pytest.mark.parametrize("name", ["botorch-logei", "botorch-logei-exact", "optuna-gp", "optuna-tpe"])
def test_whole_numbers_and_choices(name):
    """Points that can be run, none of them twice, and better ones than the design has."""
    oven = mixed("oven", cost, PARAMETERS, 0.0, [])
    X = oven.from_unit(np.random.default_rng(4).random((8, 5)))
    y = np.array([oven(x) for x in X])
    player = PEERS[name](Start(oven, PROTOCOLS["fair"], X, y, 18, 0))
    asked = []
    for _ in range(10):
        x = player.ask()
        assert oven.point(x) == x
        asked.append(x)
        player.tell(x, oven(x))
    assert len({json.dumps(x) for x in [*X, *asked]}) == 18
    assert min(map(oven, asked)) < y.min()
    recommended = player.recommend()
    assert recommended is None or oven(recommended) < y.min()


def test_rules_for_boxes_say_so():
    oven = mixed("oven", cost, PARAMETERS, 0.0, [])
    X = oven.from_unit(np.random.default_rng(4).random((3, 5)))
    with pytest.raises(ValueError, match="oven has parameters, which of BoTorch's rules only LogEI takes"):
        PEERS["botorch-tree-2"](Start(oven, PROTOCOLS["fair"], X, np.zeros(3), 9, 0))


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
