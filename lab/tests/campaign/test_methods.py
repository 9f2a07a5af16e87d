"""Every method of ours plays a whole game (the peers: tests_peers)."""

import numpy as np
import pytest

from glasses import GaussianProcess
from glasses.gaussian import expected_min
from glasses.lookahead.losses import Glasses
from glasses.search.decision import Problem
from glasses.search.propose import candidates_for
from glasses.surrogate.outputs import Affine
from glasses.surrogate.posterior import joint
from glasses_lab.campaign.binoculars import BATCH, _best_of_batch
from glasses_lab.campaign.methods import METHODS
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.campaign.run import run
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import get

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
    check(run(Task("Sixhumpcamel", method, 0, "fair", 3, 2)), 2)


def test_methods_decide_differently():
    """Each name stands for a rule of its own: the decisions of one run are not all those of another."""
    runs = {
        method: run(Task("Sixhumpcamel", method, 1, "fair", 3, 6))["x"] for method in ("mpi", "lcb", "el", "el-2", "glasses")
    }
    assert len({str(x) for x in runs.values()}) == len(runs)


def test_the_protocols():
    branin, draw = get("Branin"), get("GP-SE-2-0.3")
    assert PROTOCOLS["paper"].noise_sd == 0.1
    assert not PROTOCOLS["paper"].model(branin).constant_mean
    assert type(PROTOCOLS["paper"].search).__name__ == "Direct"
    assert PROTOCOLS["fair"].model(branin).noise == 0.0
    assert PROTOCOLS["fair"].looking_ahead(3) == Glasses(steps=3)
    known = PROTOCOLS["known"].model(draw)
    assert (known.fit.lengthscale, known.noise, type(known.kernel).__name__) == (0.3, 0.0, "SquaredExponential")
    with pytest.raises(ValueError, match="Protocol 'known' needs draws from a GP"):
        PROTOCOLS["known"].model(branin)


def test_binoculars_takes_the_best_point_of_the_best_batch():
    """[eq:qei]: no batch of candidates among 200, nor the believer's plan, is worth more together; the value is log EI."""
    model, rng = GaussianProcess(noise=0.0), np.random.default_rng(0)
    X = rng.random((8, 2))
    y = np.sin(7 * X[:, 0]) + np.cos(5 * X[:, 1])
    post = model.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))
    problem = Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=20)
    candidates = candidates_for(model.kernel, problem, 256, rng)
    found = _best_of_batch(candidates, np.asarray(BATCH), kernel=model.kernel)

    def worth(points):
        mu, S = joint(model.kernel, candidates.origin.post, points)
        return float(expected_min(np.asarray(mu), np.asarray(S), float(candidates.eta)).gain)

    points = np.asarray(candidates.points)
    best = worth(np.asarray(found.x))
    assert best > max(worth(points[rng.choice(256, BATCH, replace=False)]) for _ in range(200))
    alone = [float(expected_min([m], [[s * s]], float(candidates.eta)).gain) for m, s in zip(found.mean, found.sd, strict=True)]
    np.testing.assert_allclose(np.exp(np.asarray(found.value)), alone, rtol=1e-6)
