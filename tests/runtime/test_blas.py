"""One BLAS thread while a program runs, the user's own number afterwards."""

import threading

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from glasses.runtime import program as module
from glasses.runtime.blas import OneBlasThread
from glasses.runtime.program import program


def _blas_threads():
    """Of the library that XLA calls."""
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [library["num_threads"] for library in found if "scipy.libs" in library["filepath"] or len(found) == 1]


def test_blas_has_one_thread_while_a_program_runs_and_its_own_number_afterwards(monkeypatch):
    """Also where programs overlap: the first to enter and the last to leave need not be the same."""
    scipy.linalg.cholesky(np.eye(3))
    seen, first_is_in, second_is_in, first_is_out = [], threading.Event(), threading.Event(), threading.Event()

    def execute(*arrays):
        if threading.current_thread() is other:
            first_is_in.wait(30)
            second_is_in.set()
            first_is_out.wait(30)
        else:
            first_is_in.set()
            second_is_in.wait(30)
        seen.append(_blas_threads())
        return arrays

    monkeypatch.setattr(module, "_recall", lambda key: execute)
    other = threading.Thread(target=program(_twice), args=(np.ones(1),))
    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        assert before
        assert set(before) == {2}
        other.start()
        program(_twice)(np.ones(2))
        assert set(_blas_threads()) == {1}  # the other one is still inside
        first_is_out.set()
        other.join()
        assert _blas_threads() == before
    assert [set(each) for each in seen] == [{1}, {1}]


def test_a_child_forked_while_a_program_runs_has_its_threads_back():
    scipy.linalg.cholesky(np.eye(3))
    held = OneBlasThread()
    with threadpool_limits(2, user_api="blas"):
        held.__enter__()
        assert set(_blas_threads()) == {1}
        held.forked()
        assert set(_blas_threads()) == {2}
        with held:
            assert set(_blas_threads()) == {1}
        assert set(_blas_threads()) == {2}


def _twice(x):
    return 2 * x
