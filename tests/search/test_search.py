import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from glasses import ExpectedLoss, Glasses, TwoStage
from glasses.lookahead import LowerConfidenceBound, ProbabilityOfImprovement, Rollout
from glasses.lookahead.candidates import query_point
from glasses.search import Direct, MultiStart
from glasses.search.propose import candidates_for, cover, neighbourhood, separated
from glasses.space.lattice import Lattice
from glasses.testing import SearchContract
from glasses.testing.searches import MODEL, decide, problem

for each in (
    SearchContract.test_pending_points_move_the_decision,
    SearchContract.test_a_decision_is_a_point_of_the_cube_with_the_steps_after_it,
):
    pytest.mark.slow(each)


class TestSearches(SearchContract):
    @pytest.fixture(params=[MultiStart(), Direct(evaluations=40)], ids=str)
    def search(self, request):
        return request.param


@pytest.mark.parametrize("loss", [ExpectedLoss(), ProbabilityOfImprovement(), LowerConfidenceBound()], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_myopic_losses_are_minimised_over_the_whole_square(loss, seed):
    """Against brute force on a fine grid."""
    found = decide(loss, MultiStart(), seed=seed)
    candidates = candidates_for(MODEL.kernel, problem(1, seed=seed), 256, np.random.default_rng(1))
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 1, 41)), -1).reshape(-1, 2)
    acquisition = jax.jit(
        jax.vmap(lambda x: loss.acquisition_value(candidates, query_point(MODEL.kernel, candidates, x), (), jnp.asarray(1)))
    )
    values = acquisition(jnp.asarray(grid))
    assert found.value >= float(values.max()) - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Glasses(), TwoStage(nodes=5)], ids=str)
def test_a_wider_search_finds_little_more(loss):
    narrow = decide(loss, MultiStart())
    wide = decide(loss, MultiStart(screened=256, polished=16))
    assert wide.value >= narrow.value - 1e-9
    assert wide.value - narrow.value < 0.03


def test_direct_and_multi_start_agree_on_the_myopic_loss():
    by_multi_start, by_direct = decide(ExpectedLoss(), MultiStart()), decide(ExpectedLoss(), Direct(evaluations=800))
    assert by_direct.value == pytest.approx(by_multi_start.value, abs=0.02)
    local = decide(ExpectedLoss(), Direct(evaluations=300, locally_biased=True))
    assert local.value == pytest.approx(by_multi_start.value, abs=0.05)


def test_direct_plans_too():
    found = decide(Glasses(), Direct(evaluations=60), left=5)
    assert found.steps.shape == (4, 2)
    assert np.isfinite(found.value)


def test_cover_is_a_sequence_and_even():
    long, short = cover(3, 100, np.random.default_rng(0)), cover(3, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(long[:20], short)
    assert np.all(np.histogram(cover(1, 64, np.random.default_rng(0))[:, 0], bins=8, range=(0, 1))[0] == 8)


def test_neighbourhood_has_every_scale():
    size = np.abs(neighbourhood(2, 64, np.random.default_rng(0))).max(axis=1)
    assert size.max() > 0.1
    assert size.min() < 1e-3


def test_starts_are_separated_while_they_can_be():
    points = np.array([[0.5], [0.51], [0.9], [0.1]])
    chosen = separated(np.array([4.0, 3.0, 2.0, 1.0]), points, 4)
    assert chosen.tolist() == [0, 2, 3, 1]


def test_the_first_starts_have_different_choices():
    """A choice of three values in the second coordinate: the best of each value, then by score and distance alone."""
    points = np.array([[0.5, 0.2], [0.9, 0.2], [0.1, 0.2], [0.5, 0.5], [0.7, 0.5], [0.3, 0.8], [0.51, 0.2]])
    score = np.array([9.0, 8.0, 7.0, 1.0, 0.0, -50.0, 8.5])
    lattice = Lattice(
        cells=np.array([0.0, 3.0]), log_low=None, log_width=None, is_choice=np.array([False, True]), resolution=None
    )
    assert separated(score, points, 6, lattice).tolist() == [0, 3, 5, 1, 2, 4]
    same = separated(score, points, 6, lattice._replace(is_choice=np.array([False, False])))
    assert same.tolist() == separated(score, points, 6).tolist() == [0, 1, 2, 3, 4, 5]


BATCHED = """
import json, sys
import glasses.runtime.device as device
device.on_accelerator = lambda: True
from glasses.runtime import batching
from glasses.search import value
assert value.on_accelerator() and batching.on_accelerator()
sys.path[:0] = sys.argv[1:]
import jax
jax.config.update("jax_enable_x64", True)
from test_search import LOSSES, decide, MultiStart
print(json.dumps([[decide(loss, MultiStart()).x.tolist(), float(decide(loss, MultiStart()).value)] for loss in LOSSES]))
"""
LOSSES = (ExpectedLoss(), Glasses(), Rollout(race=(16,)))


@pytest.mark.slow
def test_an_accelerator_values_in_batches_what_a_cpu_values_in_turn():
    """The path of a GPU, on a CPU: the same decisions up to rounding."""
    folder = Path(__file__).parent
    command = [sys.executable, "-c", BATCHED, str(folder), str(folder.parent)]
    cache = Path(__file__).parents[2] / ".cache" / "batched"  # its programs are not those of a CPU
    env = os.environ | {"GLASSES_CACHE_DIR": str(cache)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    for loss, (x, acquisition) in zip(LOSSES, json.loads(done.stdout), strict=True):
        found = decide(loss, MultiStart())
        np.testing.assert_allclose(found.x, x, atol=1e-6)
        assert float(found.value) == pytest.approx(acquisition, rel=1e-8)
