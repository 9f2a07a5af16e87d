"""SMAC is told the scales of the parameters and whether evaluations are exact, and starts from those it is given."""

import numpy as np
import pytest

from glasses_lab.campaign.methods import Start
from glasses_lab.campaign.peers.axes import axis
from glasses_lab.campaign.peers.smac import Smac, hyperparameter
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import mixed
from lab.tests.every_kind import PARAMETERS


def test_the_scales():
    """Halfway on its own scale is halfway for SMAC."""
    assert hyperparameter("rate", axis(PARAMETERS["rate"])).to_vector(1e-2) == pytest.approx(0.5)
    assert hyperparameter("angle", axis(PARAMETERS["angle"])).to_vector(0.0) == pytest.approx(0.5)
    assert hyperparameter("layers", axis(PARAMETERS["layers"])).to_vector(3) == pytest.approx(0.5)
    assert hyperparameter("units", axis(PARAMETERS["units"])).to_vector(32) == pytest.approx(0.5, abs=0.01)
    assert list(hyperparameter("kind", axis(PARAMETERS["kind"])).choices) == ["0", "1", "2"]


@pytest.mark.parametrize(("protocol", "exact"), [("fair", True), ("paper", False)])
def test_what_it_is_told(protocol, exact):
    oven = mixed("oven", lambda x: x["rate"] + x["layers"], PARAMETERS, 1.0, [])
    X = oven.from_unit(np.random.default_rng(0).random((6, 6)))
    player = Smac(Start(oven, PROTOCOLS[protocol], X, np.arange(6.0), 9, 0))
    assert player.facade.scenario.deterministic is exact
    history = player.facade.runhistory
    assert [value.cost for value in history.values()] == [0, 1, 2, 3, 4, 5]
    told = [player.axes.decode(dict(history.get_config(key.config_id))) for key in history]
    for given, kept in zip(X, told, strict=True):
        assert kept == {**given, "rate": pytest.approx(given["rate"], abs=1e-12), "angle": pytest.approx(given["angle"])}
