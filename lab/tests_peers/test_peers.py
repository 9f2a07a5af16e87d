"""The peers of this environment play whole games: ``make test-peers`` runs this in every environment that there is."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from glasses import Choice, Float, Int
from glasses_lab.campaign.methods import METHODS, Start
from glasses_lab.campaign.peers import PEERS
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.campaign.run import run
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import Problem, get, mixed

NAMES = [name for name, method in METHODS.items() if method.needs and not method.missing()]
FOR_BOXES = {"botorch-tree-2", "botorch-tree-3", "botorch-tree-4", "botorch-binoculars"}
STEPS = {"hebo": 8, "smac": 8, "vizier": 8}  # these explore more than EI; the others get 4


def test_the_catalogue_and_the_adapters_agree():
    assert {name for name, method in METHODS.items() if method.needs} == set(PEERS)
    assert NAMES, "this environment has no peer at all"


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
    assert "missing" not in first["versions"].values()


@pytest.mark.parametrize("name", sorted({*NAMES} - {"botorch-tree-3", "botorch-tree-4", "optuna-tpe"}))
def test_peers_minimise(name):
    """A bowl seen at its rim: the next points go to its bottom, not to the corners."""
    bowl = Problem("bowl", lambda x: float(np.sum((x - 3.0) ** 2)), ((0.0, 10.0),) * 2, 0.0, np.full((1, 2), 3.0))
    X = np.array([[0, 0], [0, 6], [6, 0], [6, 6], [3, 7], [1, 3], [10, 10], [5, 4.0]], dtype=float)
    player = PEERS[name](Start(bowl, PROTOCOLS["fair"], X, np.array([bowl(x) for x in X]), 16, 0))
    best = min(bowl(x) for x in X)
    for _ in range(STEPS.get(name, 4)):
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


@pytest.mark.parametrize("name", sorted({*NAMES} - FOR_BOXES))
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


@pytest.mark.parametrize("name", sorted({*NAMES} & {"hebo", "smac", "vizier"}))
def test_a_noisy_game(name):
    """They are not told that evaluations are exact, and what they recommend lies in the box."""
    record = run(Task("Branin", name, 0, "paper", 4, 3))
    assert record["error"] is None
    assert len(record["y"]) == 7
    low, high = np.array(get("Branin").bounds).T
    for x in [*record["x"], *([record["recommended"]] if record["recommended"] else [])]:
        assert np.all((low <= x) & (high >= x))


@pytest.mark.parametrize("name", sorted({*NAMES} & {"hebo", "smac", "vizier"}))
def test_the_same_in_any_process(name):
    """Also where Python orders sets and strings in another way."""
    play = (
        "from glasses_lab.campaign.run import run; from glasses_lab.campaign.suite import Task; "
        f"print(run(Task('Sixhumpcamel', {name!r}, 0, 'fair', 5, 3))['x'])"
    )
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    first, second = (subprocess.check_output([sys.executable, "-c", play], env=each, text=True) for each in environments)
    assert first.startswith("[[")
    assert first == second
