"""The 24 noiseless functions of COCO's BBOB suite (Hansen et al. 2009): ``BBOB-7-d5-i2`` is f7 in 5 dimensions, instance 2.

The box is [-5, 5]^d; the minimum and its place are the suite's own. Instances move and turn the functions. Instances 1 to 5 are
for development. Those from 6 on are refused: they are kept for judging what was developed, and must not have been seen before.
Needs the library cocoex (``pip install 'glasses-lab[elsewhere]'``), loaded on demand.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from glasses_lab.problems.problem import Problem

FUNCTIONS, DIMENSIONS, INSTANCES = range(1, 25), (2, 3, 5, 10, 20, 40), range(1, 6)


def bbob_by_name(name: str) -> Problem | None:
    """None if the name is not of this form."""
    parts = re.fullmatch(r"BBOB-([1-9]\d*)-d([1-9]\d*)-i([1-9]\d*)", name)
    if parts is None:
        return None
    function, d, instance = map(int, parts.groups())
    if instance not in INSTANCES:
        raise ValueError(
            f"{name} is instance {instance}, and those from {INSTANCES.stop} on are kept for judging: use 1 to {INSTANCES[-1]}."
        )
    if function not in FUNCTIONS or d not in DIMENSIONS:
        raise ValueError(
            f"BBOB has functions 1 to {FUNCTIONS[-1]} in {', '.join(map(str, DIMENSIONS))} dimensions, got {name}: write for "
            "example BBOB-7-d5-i2."
        )
    evaluated, known = (_bare(name, function, d, instance) for _ in range(2))  # the one that is asked for its optimum is marked
    minimizer = np.asarray(known.best_parameter(), dtype=float)
    return Problem(name, lambda x: float(evaluated(x)), ((-5.0, 5.0),) * d, float(known.best_value()), minimizer[None])


def _bare(name: str, function: int, d: int, instance: int) -> Any:
    try:
        from cocoex import BareProblem
    except ImportError:
        raise ValueError(f"{name} needs the library cocoex: pip install 'glasses-lab[elsewhere]'.") from None
    return BareProblem("bbob", function, d, instance)
