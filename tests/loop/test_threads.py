"""One optimiser in several threads, and one that travels between processes."""

import copy
import pickle
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

from glasses import ExpectedLoss, Optimizer, TwoStage


def test_six_threads_never_overrun_the_budget_and_lose_nothing():
    optimizer = Optimizer([(0.0, 1.0)], budget=40, n_initial=36, seed=0, loss=ExpectedLoss())
    told, refused, errors = [], [], []

    def work():
        while optimizer.remaining:
            try:
                x = optimizer.ask()
            except ValueError as error:  # another thread took the last one
                refused.append(str(error))
                continue
            try:
                value = float(np.sin(9 * x[0]))
                told.append((float(x[0]), value))
                optimizer.tell(x, value)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    assert all("0 of 40 evaluations remain" in each for each in refused)
    result = optimizer.record()
    assert (result.nfev, optimizer.pending, len(told)) == (40, [], 40)
    assert sorted((float(x[0]), y) for x, y in zip(result.x_iters, result.func_vals, strict=True)) == sorted(told)


def begun(loss):
    optimizer = Optimizer([(0.0, 1.0), (0.0, 2.0)], budget=14, n_initial=4, seed=3, loss=loss)
    for x in ([0.1, 0.3], [0.9, 1.2], [0.4, 1.9], [0.7, 0.2], [0.3, 0.8]):
        optimizer.tell(x, float(np.sin(5 * x[0]) + x[1]))
    return optimizer


@pytest.mark.parametrize("loss", [ExpectedLoss(), TwoStage()], ids=str)
@pytest.mark.parametrize("again", [lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_in_a_float32_world_decides_the_same(loss, again):
    """What was computed is not taken along, so nothing of it can fall to 32 bits on the way."""
    optimizer = begun(loss)
    plan = optimizer.plan()
    with jax.enable_x64(False):
        other = again(optimizer)
        np.testing.assert_array_equal(other.plan().points, plan.points)
        np.testing.assert_array_equal(other.ask(), optimizer.ask())
        np.testing.assert_array_equal(other.predict([0.5, 0.5]), optimizer.predict([0.5, 0.5]))
    assert other.posterior().X.dtype == np.float64


LOAD = """
import pickle, sys, warnings
warnings.simplefilter("error")
optimizer = pickle.loads(bytes.fromhex(sys.stdin.read()))
print([v.hex() for v in optimizer.ask()])
"""


@pytest.mark.slow
def test_a_pickled_optimiser_decides_the_same_in_another_process():
    optimizer = begun(ExpectedLoss())
    optimizer.plan()  # fitted and decided before it is pickled
    done = subprocess.run([sys.executable, "-c", LOAD], input=pickle.dumps(optimizer).hex(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == str([float(v).hex() for v in optimizer.ask()])


def test_the_posterior_survives_pickling_whatever_the_precision():
    post = begun(ExpectedLoss()).posterior()
    with jax.enable_x64(False):
        again = pickle.loads(pickle.dumps(post))
    assert again.L.dtype == np.float64
    np.testing.assert_array_equal(again.L, post.L)
