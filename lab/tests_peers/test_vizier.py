"""Vizier is told to minimise, and the scales of the parameters."""

import numpy as np
import pytest
from vizier import pyvizier
from vizier.pyvizier.converters import TrialToModelInputConverter

from glasses_lab.campaign.peers.axes import Axes
from glasses_lab.campaign.peers.vizier import statement
from glasses_lab.problems import mixed
from lab.tests.every_kind import PARAMETERS, POINT


def test_the_statement():
    """Halfway on its own scale is halfway for Vizier."""
    axes = Axes(mixed("oven", lambda x: x["rate"], PARAMETERS, 1.0, []))
    stated = statement(axes)
    assert stated.single_objective_metric_name == "y"
    assert stated.metric_information.item().goal.is_minimize
    converter = TrialToModelInputConverter.from_problem(stated, scale=True, max_discrete_indices=0)
    features = converter.to_features([pyvizier.Trial(parameters=axes.encode({**POINT, "angle": 0.0}))])
    halves = np.asarray(features.continuous.padded_array)[0]
    assert halves == pytest.approx([0.5, 0.5, 0.5, 0.5, 3 / 5], abs=0.01)
    assert np.asarray(features.categorical.padded_array).tolist() == [[2]]
