"""Every method of ours plays a whole game (the peers: tests_peers)."""

import numpy as np
import pytest

from glasses.campaign.methods import METHODS
from glasses.campaign.protocols import PROTOCOLS
from glasses.campaign.run import run
from glasses.campaign.suite import Task
from glasses.lookahead.losses import Glasses
from glasses.problems import get

OURS = [name for name, method in METHODS.items() if not method.needs]


def check(record, evaluations):
    assert record["error"] is None
    assert len(record["y"]) == 3 + evaluations
    low, high = np.array(get(record["problem"]).bounds).T
    X = np.array(record["x"])
    assert np.all((low <= X) & (high >= X))
    assert len(np.unique(X, axis=0)) == len(X)


@pytest.mark.parametrize("method", OURS)
def test_ours(method):
    check(run(Task("Sixhumpcamel", method, 0, "fair", 3, 3)), 3)


def test_methods_decide_differently():
    """Each name stands for a rule of its own: the decisions of one run are not all those of another."""
    runs = {
        method: run(Task("Sixhumpcamel", method, 1, "fair", 3, 6))["x"] for method in ("mpi", "lcb", "el", "el-2", "glasses")
    }
    assert len({str(x) for x in runs.values()}) == len(runs)


def test_the_protocols():
    branin, draw = get("Branin"), get("GP-SE-2-0.3")
    assert PROTOCOLS["paper"].noise_sd == 0.1
    assert PROTOCOLS["paper"].model(branin).bias
    assert type(PROTOCOLS["paper"].search).__name__ == "Direct"
    assert PROTOCOLS["fair"].model(branin).noise == 0.0
    assert PROTOCOLS["fair"].looking_ahead(3) == Glasses(steps=3)
    known = PROTOCOLS["known"].model(draw)
    assert (known.fit.lengthscale, known.noise, type(known.kernel).__name__) == (0.3, 0.0, "SquaredExponential")
    with pytest.raises(ValueError, match="Protocol 'known' needs draws from a GP"):
        PROTOCOLS["known"].model(branin)
