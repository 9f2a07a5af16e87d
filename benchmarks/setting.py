"""The common ground of all measurements: one thread, one data set per repetition, CPU seconds."""

ONE_THREAD = {  # the environment a process is started with: XLA and BLAS read it once
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "GLASSES_COMPILE_AHEAD": "off",  # else what is compiled beside a decision would count
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def data(n, d, seed):
    """n evaluations of a smooth function with several minima, on the unit cube."""
    import numpy as np

    rng = np.random.default_rng([seed, n, d])
    X = rng.random((n, d))
    W = rng.standard_normal((3, d)) * 4 / np.sqrt(d)
    y = np.sin(X @ W[0]) + np.cos(X @ W[1]) + 0.5 * np.sin(2 * X @ W[2])
    return X, y


def decide(loss, X, y, left, seed, **settings):
    """One full decision of ours: a fresh optimiser, told everything, asked once."""
    import glasses

    optimizer = glasses.Optimizer([(0.0, 1.0)] * X.shape[1], budget=len(y) + left, seed=seed, loss=loss, **settings)
    optimizer.tell(X, y)
    return optimizer.ask()


def cpu_seconds(action):
    """CPU seconds of one call."""
    import time

    start = time.process_time()
    action()
    return time.process_time() - start
