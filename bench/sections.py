"""The measurements. Each prints JSON; ``__main__`` runs each in a process of its own."""

import json
import resource
import sys
import time
from functools import partial

from bench.setting import cpu_seconds, data, use_one_thread


def decide(loss, X, y, left, seed, **settings):
    """One full decision of ours: a fresh optimiser, told everything, asked once."""
    import glasses

    optimizer = glasses.Optimizer([(0.0, 1.0)] * X.shape[1], budget=len(y) + left, seed=seed, loss=loss, **settings)
    optimizer.tell(X, y)
    return optimizer.ask()


def decisions(repeats=9):
    """N = 25, d = 2, 20 evaluations left, warm: ours and the peers', interleaved."""
    use_one_thread()
    import numpy as np

    import glasses
    from glasses.campaign.methods import Start
    from glasses.campaign.peers import PEERS
    from glasses.campaign.protocols import PROTOCOLS
    from glasses.problems import Problem

    square = Problem("square", lambda x: 0.0, ((0.0, 1.0),) * 2, 0.0, np.zeros((0, 2)))

    def peer(name):
        return lambda X, y, seed: PEERS[name](Start(square, PROTOCOLS["fair"], X, y, len(y) + 20, seed)).ask

    def ours(loss, **settings):
        return lambda X, y, seed: lambda: decide(loss, X, y, 20, seed, **settings)

    methods = {
        "glasses ExpectedLoss (1 step)": ours(glasses.ExpectedLoss()),
        "glasses Glasses (20 steps, open loop)": ours(glasses.Glasses()),
        "glasses TwoStage (20 steps, default)": ours(glasses.TwoStage()),
        "glasses paper() (20 steps, EP, DIRECT)": lambda X, y, seed: (
            lambda: decide(X=X, y=y, left=20, seed=seed, **glasses.paper())
        ),
        "BoTorch LogEI, defaults (1 step)": peer("botorch-logei"),
        "BoTorch LogEI, noise fixed (1 step)": peer("botorch-logei-exact"),
        "Optuna GPSampler (1 step)": peer("optuna-gp"),
        "BoTorch one-shot tree (4 steps)": peer("botorch-tree-4"),
    }
    slow = {"BoTorch one-shot tree (4 steps)", "glasses paper() (20 steps, EP, DIRECT)"}
    seconds = {name: [] for name in methods}
    for make in methods.values():
        make(*data(25, 2, 1000), 0)()  # warm
    for seed in range(repeats):
        X, y = data(25, 2, seed)
        for name, make in methods.items():
            if name not in slow or seed < 3:
                seconds[name].append(cpu_seconds(make(X, y, seed)))
    return {name: {"median": float(np.median(s)), "all": s} for name, s in seconds.items()}


def growth():
    """CPU seconds of one warm decision against the horizon, the data and the dimension."""
    use_one_thread()
    import numpy as np

    import glasses

    losses = {"ExpectedLoss": glasses.ExpectedLoss(), "Glasses": glasses.Glasses(), "TwoStage": glasses.TwoStage()}
    axes = {
        "horizon": [(25, 2, left) for left in (1, 2, 5, 8, 16, 32, 64, 100)],
        "N": [(n, 2, 20) for n in (10, 25, 50, 100, 200, 500, 1000)],
        "d": [(25, d, 20) for d in (1, 2, 5, 10, 20)],
    }
    found = {}
    for axis, cases in axes.items():
        for name, loss in losses.items():
            rows = []
            for n, d, left in cases:
                decide(loss, *data(n, d, 99), left, 0)
                times = [cpu_seconds(partial(decide, loss, *data(n, d, s), left, s)) for s in range(3)]
                rows.append([{"horizon": left, "N": n, "d": d}[axis], float(np.median(times))])
            found.setdefault(axis, {})[name] = rows
            print(axis, name, rows, file=sys.stderr, flush=True)
    return found


def first():
    """Wall seconds from nothing to the first model-based suggestion of the default, in this new process."""
    start = time.perf_counter()
    X, y = data(10, 2, 0)
    decide(None, X, y, 20, 0)
    return time.perf_counter() - start


def memory():
    """Peak resident memory of one decision: horizon 100, 4,096 places surveyed and every one of them valued."""
    import glasses

    X, y = data(25, 2, 0)
    decide(glasses.Glasses(), X, y, 100, 0, search=glasses.Cascade(places=4096, valued=4096))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def expectation():
    """E[min] of 256 problems with 20 variables: CPU seconds and errors of EP and QMC."""
    use_one_thread()
    import numpy as np

    import glasses

    X, y = data(25, 2, 3)
    problems = []
    post = glasses.GaussianProcess().posterior(X, (y - y.mean()) / y.std())
    from glasses.surrogate.posterior import joint

    rng = np.random.default_rng(0)
    import jax

    with jax.enable_x64(True):
        for _ in range(256):
            m, S = joint(glasses.Matern52(), post, jax.numpy.asarray(rng.random((20, 2))))
            problems.append((np.asarray(m), np.asarray(S)))
    m, S = (np.array(part) for part in zip(*problems, strict=True))
    eta = float(((y - y.mean()) / y.std()).min())
    exact = glasses.expected_min(m, S, eta, method=glasses.QMC(2048)).gain
    found = {}
    for method in (glasses.QMC(32), glasses.QMC(128), glasses.EP(fallback=None), glasses.EP()):
        run = partial(glasses.expected_min, m, S, eta, method=method)
        result = run()
        times = [cpu_seconds(run) for _ in range(3)]
        error = np.abs(result.gain / exact - 1)
        trusted = result.status == 1
        found[str(method)] = {
            "seconds": float(np.median(times)),
            "median error": float(np.median(error)),
            "worst error": float(error.max()),
            "trusted": float(trusted.mean()),
            "worst error where trusted": float(error[trusted].max()) if trusted.any() else None,
        }
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
