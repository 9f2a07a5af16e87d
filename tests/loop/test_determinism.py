"""Same seed, same suggestions, in any process; change the units, and the run changes its units and nothing else."""

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from problems import hills

from glasses import ExpectedLoss, Glasses, minimize

CODE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from problems import hills
import glasses
result = glasses.minimize(hills, [(0, 1), (0, 1)], budget=int(sys.argv[3]), seed=int(sys.argv[2]))
print(json.dumps([x.tolist() for x in result.x_iters]))
"""


def suggestions(seed, budget):
    folder = __file__.rsplit("/", 2)[0]
    done = subprocess.run(
        [sys.executable, "-c", CODE, folder, str(seed), str(budget)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_twenty_suggestions_in_two_processes():
    first, second, other = suggestions(5, 24), suggestions(5, 24), suggestions(6, 7)
    assert len(first) == 24
    assert first == second
    assert all(a != b for a, b in zip(first, other, strict=False))


@cache
def run(loss, a=1.0, b=0.0, low=(0.0, 0.0), width=(1.0, 1.0)):
    """Run on a box elsewhere, with another unit of y; the points as fractions of the box."""
    low, width = np.array(low), np.array(width)
    box = list(zip(low, low + width, strict=True))
    result = minimize(lambda x: a * hills((x - low) / width) + b, box, budget=14, n_initial=4, seed=8, loss=loss)
    return (np.array(result.x_iters) - low) / width, result


@pytest.mark.parametrize("loss", [ExpectedLoss(), pytest.param(Glasses(), marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize(
    "units",
    [
        {"a": 1000.0},
        {"a": 1e-6, "b": -3.0e-6},
        {"b": 250.0},
        {"low": (3.0, -700.0), "width": (1.0, 1.0)},
        {"low": (0.0, 0.0), "width": (1e-5, 3e4)},
        {"a": 7.3, "b": -11.0, "low": (-1.7, 20.0), "width": (0.3, 90.0)},
    ],
    ids=str,
)
def test_a_change_of_units_changes_nothing_else(loss, units):
    plain, result = run(loss)
    moved, changed = run(loss, **units)
    np.testing.assert_allclose(moved, plain, atol=1e-5)
    a, b = units.get("a", 1.0), units.get("b", 0.0)
    assert changed.fun == pytest.approx(a * result.fun + b, rel=1e-4)
    assert changed.recommended.mean == pytest.approx(a * result.recommended.mean + b, abs=1e-3 * abs(a))
    assert changed.recommended.sd == pytest.approx(a * result.recommended.sd, rel=0.05, abs=1e-4 * a)
