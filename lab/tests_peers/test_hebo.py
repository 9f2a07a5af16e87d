"""HEBO is told the scales of the parameters, and starts from the evaluations it is given."""

import numpy as np
import pandas as pd
import pytest

from glasses_lab.campaign.methods import Start
from glasses_lab.campaign.peers.axes import Axes
from glasses_lab.campaign.peers.calls import peer_call
from glasses_lab.campaign.peers.hebo import Hebo, described
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import mixed
from lab.tests.every_kind import PARAMETERS, POINT

with peer_call():  # torch warns of its own past
    from hebo.design_space.design_space import DesignSpace


def problem():
    return mixed("oven", lambda x: x["rate"] + x["layers"], PARAMETERS, 1.0, [])


def test_the_design_space():
    axes = Axes(problem())
    space = DesignSpace().parse([described(name, each) for name, each in axes.by_name.items()])
    numbers, labels = space.transform(pd.DataFrame([axes.encode(POINT)]))
    seen = dict(zip(space.numeric_names, numbers[0].tolist(), strict=True))
    assert seen == pytest.approx({"rate": -2.0, "angle": 45.0, "layers": 3, "units": np.log10(32), "drop": 3}, rel=1e-6)
    assert labels.tolist() == [[2]]


def test_it_starts_from_the_given_evaluations():
    oven = problem()
    X = oven.from_unit(np.random.default_rng(0).random((6, 6)))
    player = Hebo(Start(oven, PROTOCOLS["fair"], X, np.arange(6.0), 9, 0))
    assert player.optimizer.y.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert [player.axes.decode(row) for row in player.optimizer.X.to_dict("records")] == X
