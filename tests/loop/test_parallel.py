"""``minimize`` over executors: asynchronous, nothing lost, whoever runs the evaluations."""

import os
import re
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import distributed
import jax.numpy as jnp
import numpy as np
import pytest
from joblib.externals import loky

from glasses import ExpectedLoss, Int, maximize, minimize

BOX = [(0.0, 1.0), (0.0, 1.0)]


def bowl(x):
    return float(np.sum((np.asarray(x) - 0.4) ** 2))


def fatal(x):
    os._exit(3)


def bowl_in_jax(x):
    return float(jnp.sum((jnp.asarray(x) - 0.4) ** 2))


@pytest.mark.slow
def test_a_process_pool_whose_objective_uses_jax():
    """JAX runs in this process too: forked ones would hang."""
    bowl_in_jax([0.1, 0.2])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = minimize(bowl_in_jax, BOX, budget=12, n_initial=8, loss=ExpectedLoss(), seed=0, executor=pool)
    assert result.success
    assert result.nfev == 12
    assert len({tuple(x) for x in result.x_iters}) == 12
    assert result.fun == pytest.approx(bowl(result.x), abs=1e-6)


def test_one_worker_decides_as_no_executor_does():
    settings = {"budget": 7, "n_initial": 4, "loss": ExpectedLoss(), "seed": 3}
    alone = minimize(bowl, BOX, **settings)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = minimize(bowl, BOX, executor=pool, **settings)
    np.testing.assert_array_equal(result.x_iters, alone.x_iters)
    np.testing.assert_array_equal(result.func_vals, alone.func_vals)


def test_forked_processes_are_refused_before_anything_is_evaluated():
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        with pytest.raises(ValueError, match=r"must not fork .* got a ProcessPoolExecutor .* fork: use .*spawn") as caught:
            minimize(bowl, BOX, budget=3, executor=pool)
        assert not pool._processes
    assert 'get_context("spawn")' in str(caught.value)


def test_a_function_that_cannot_be_sent_is_refused_before_anything_is_evaluated():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        with pytest.raises(ValueError, match=r"fun cannot be sent to another process \(.*lambda.*\): define it with def"):
            minimize(lambda x: 1.0, BOX, budget=3, executor=pool)
        with pytest.raises(ValueError, match="fun cannot be sent to another process"):
            maximize(lambda x: 1.0, BOX, budget=3, executor=pool)
        assert not pool._processes


def test_a_process_that_starts_afresh_does_not_load_jax_for_us(tmp_path, monkeypatch):
    (tmp_path / "an_objective.py").write_text("import sys\n\ndef loaded(x):\n    return float('jax' in sys.modules)\n")
    monkeypatch.syspath_prepend(tmp_path)
    from an_objective import loaded

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        down = minimize(loaded, BOX, budget=2, n_initial=2, seed=0, executor=pool)
        up = maximize(loaded, BOX, budget=1, n_initial=1, seed=0, executor=pool)
    assert [*down.func_vals, *up.func_vals] == [0.0, 0.0, 0.0]
    assert loaded([0.0]) == 1.0


@pytest.mark.parametrize(
    "pool",
    [lambda: ProcessPoolExecutor(1, mp_context=get_context("forkserver")), lambda: loky.ProcessPoolExecutor(1)],
    ids=["forkserver", "loky"],
)
@pytest.mark.slow
def test_processes_that_start_afresh_are_welcome(pool):
    with pool() as executor:
        result = minimize(bowl, BOX, budget=3, n_initial=3, seed=0, executor=executor)
    assert result.nfev == 3


def test_a_dask_cluster():
    # Its pages on one free port of the loopback: without an address they ask for 8787 on every interface, which may be taken.
    loopback = "127.0.0.1:0"
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            dashboard_address=loopback,
            worker_dashboard_address=loopback,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        result = minimize(
            bowl, BOX, budget=9, n_initial=8, loss=ExpectedLoss(), seed=0, executor=client.get_executor(), workers=2
        )
    assert result.success
    assert result.nfev == 9


@pytest.mark.slow
def test_a_slow_evaluation_blocks_nobody():
    """One evaluation takes as long as all the others together: they finish while it runs."""
    order = []

    def objective(x):
        first = not order
        order.append("slow" if first else "quick")
        if first:
            time.sleep(2.0)
            order.append("slow is done")
        return bowl(x)

    with ThreadPoolExecutor(3) as pool:
        result = minimize(objective, BOX, budget=10, n_initial=10, seed=0, executor=pool, workers=3)
    assert result.success
    assert order.index("slow is done") == 10  # after all nine others had begun


def test_failures_happen_in_workers_too():
    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match="kept as failed"):
        result = minimize(lambda x: 1 / 0 if x[0] > 0.5 else bowl(x), BOX, budget=8, n_initial=8, seed=0, executor=pool)
    assert result.nfev == 8
    assert {each.reason for each in result.failures} == {"ZeroDivisionError: division by zero"}


@pytest.mark.slow
def test_a_pool_whose_worker_dies_ends_the_run_with_what_is_known():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = minimize(fatal, BOX, budget=5, n_initial=5, seed=0, executor=pool)
    assert not result.success
    assert result.status == 4
    assert re.search(r"The executor broke .* None had ended: .* import the file of the objective", result.message)


def test_an_exhausted_space_waits_for_what_is_running():
    with ThreadPoolExecutor(3) as pool:
        result = minimize(lambda x: float(x[0]), [Int(0, 4)], budget=20, noise=0.0, seed=0, executor=pool)
    assert result.nfev == 5
    assert result.status == 3
    assert result.fun == 0.0


def test_a_stop_by_the_callback_cancels_what_has_not_begun():
    cancelled = []

    class Lazy(ThreadPoolExecutor):
        def submit(self, *args):
            if len(cancelled) < 2:
                cancelled.append(super().submit(*args))
                return cancelled[-1]
            waiting = Future()
            cancelled.append(waiting)
            return waiting

    def stop(result):
        raise StopIteration

    with Lazy(1) as pool:
        result = minimize(bowl, BOX, budget=9, n_initial=9, seed=0, executor=pool, workers=3, callback=stop)
    assert result.status == 99
    assert result.nfev in (1, 2)  # whatever had finished by then is kept
    assert cancelled[2].cancelled()


def test_an_executor_that_does_not_tell_its_size_is_asked_for_it():
    class Foreign:
        def submit(self, *args): ...

    with pytest.raises(ValueError, match="workers must say how many"):
        minimize(bowl, BOX, budget=3, executor=Foreign())
