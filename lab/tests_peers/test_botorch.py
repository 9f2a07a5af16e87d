"""What BoTorch's rules refuse."""

import numpy as np
import pytest

from glasses import Choice, Int
from glasses_lab.campaign.methods import Start
from glasses_lab.campaign.peers import PEERS
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.problems import mixed


def test_rules_for_boxes_say_so():
    oven = mixed("oven", lambda x: x["layers"], {"layers": Int(1, 4), "kind": Choice(["a", "b"])}, 1.0, [])
    X = oven.from_unit(np.random.default_rng(4).random((3, 2)))
    with pytest.raises(ValueError, match="oven has parameters, which of BoTorch's rules only LogEI takes"):
        PEERS["botorch-tree-2"](Start(oven, PROTOCOLS["fair"], X, np.zeros(3), 9, 0))
