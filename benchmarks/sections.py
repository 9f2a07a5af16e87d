"""The measurements. Each prints JSON; ``__main__`` runs each in a process of its own."""

import json
import os
import resource
import sys
import time
from functools import partial

from benchmarks.setting import cpu_seconds, data


def decide(loss, X, y, left, seed, **settings):
    """One full decision of ours: a fresh optimiser, told everything, asked once."""
    import glasses

    optimizer = glasses.Optimizer([(0.0, 1.0)] * X.shape[1], budget=len(y) + left, seed=seed, loss=loss, **settings)
    optimizer.tell(X, y)
    return optimizer.ask()


def decisions(repeats=9):
    """N = 25, d = 2, 20 evaluations left, warm: ours and the peers', interleaved."""
    import numpy as np

    import glasses
    from glasses_lab.campaign.methods import Start
    from glasses_lab.campaign.peers import PEERS
    from glasses_lab.campaign.protocols import PROTOCOLS
    from glasses_lab.problems import Problem

    square = Problem("square", lambda x: 0.0, ((0.0, 1.0),) * 2, 0.0, np.zeros((0, 2)))

    def peer(name):
        return lambda X, y, seed: PEERS[name](Start(square, PROTOCOLS["exact"], X, y, len(y) + 20, seed)).ask

    def ours(loss, **settings):
        return lambda X, y, seed: lambda: decide(loss, X, y, 20, seed, **settings)

    methods = {
        "glasses ExpectedLoss (1 step)": ours(glasses.ExpectedLoss()),
        "glasses Glasses (20 steps, open loop)": ours(glasses.Glasses()),
        "glasses TwoStage (default)": ours(glasses.TwoStage()),
        "glasses TwoStage (all 20 steps)": ours(glasses.TwoStage(steps=None)),
        "glasses PAPER (20 steps, EP, DIRECT)": lambda X, y, seed: lambda: decide(None, X, y, 20, seed, preset=glasses.PAPER),
        "BoTorch LogEI, defaults (1 step)": peer("botorch-logei"),
        "BoTorch LogEI, noise fixed (1 step)": peer("botorch-logei-exact"),
        "Optuna GPSampler (1 step)": peer("optuna-gp"),
        "BoTorch one-shot tree (4 steps)": peer("botorch-tree-4"),
    }
    slow = {"BoTorch one-shot tree (4 steps)", "glasses PAPER (20 steps, EP, DIRECT)"}
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
    import numpy as np

    import glasses

    losses = {
        "ExpectedLoss": glasses.ExpectedLoss(),
        "Glasses": glasses.Glasses(),
        "TwoStage": glasses.TwoStage(),
        "TwoStage, all": glasses.TwoStage(steps=None),
    }
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


def waiting(evaluations=30):
    """A whole run in this new process, an objective that takes no time: CPU seconds of all and of the first decision of the
    model, wall seconds of the longest later one. ``INPUTS``: how many there are."""
    import numpy as np

    start = time.process_time()
    import glasses

    d = int(os.environ["INPUTS"])
    optimizer = glasses.Optimizer([(0.0, 1.0)] * d, budget=evaluations, seed=1)
    wall, cpu = [], []
    for _ in range(evaluations):
        clock, used = time.perf_counter(), time.process_time()
        x = optimizer.ask()
        wall.append(time.perf_counter() - clock)
        cpu.append(time.process_time() - used)
        optimizer.tell(x, float(np.sum((x - 0.3) ** 2) + np.sin(5 * x[0])))
    optimizer.result()
    n = optimizer.n_initial
    return {"first": cpu[n], "longest later": max(wall[n + 1 :]), "all": time.process_time() - start}


def large():
    """CPU seconds of one warm default decision, told everything at once, and the peak of resident memory so far in GiB."""
    found = {}
    for n, d in ((100, 2), (1000, 2), (5000, 2), (200, 20), (200, 50), (200, 100), (5000, 20)):
        decide(None, *data(n, d, 0), 22, 0)
        seconds = [cpu_seconds(partial(decide, None, *data(n, d, s), 22, s)) for s in (1, 2, 3)]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        found[f"{n} observations, {d} parameters"] = [sorted(seconds)[1], peak]
        print(n, d, seconds, peak, file=sys.stderr, flush=True)
    return found


def memory():
    """Peak resident memory of one decision: horizon 100, 4,096 candidates proposed and every one of them valued."""
    import glasses
    from glasses.search import MultiStart

    X, y = data(25, 2, 0)
    decide(glasses.Glasses(), X, y, 100, 0, search=MultiStart(candidates=4096, screened=4096))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def expectation():
    """E[min] of 256 problems with 20 variables: CPU seconds and errors of EP and QMC."""
    import jax
    import numpy as np

    from glasses.gaussian import EP, QMC, expected_min
    from glasses.surrogate import GaussianProcess
    from glasses.surrogate.outputs import Affine
    from glasses.surrogate.posterior import joint

    X, y = data(25, 2, 3)
    problems = []
    model = GaussianProcess()
    post = model.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for _ in range(256):
            m, S = joint(model.kernel, post, jax.numpy.asarray(rng.random((20, 2))))
            problems.append((np.asarray(m), np.asarray(S)))
    m, S = (np.array(part) for part in zip(*problems, strict=True))
    eta = float(((y - y.mean()) / y.std()).min())
    exact = expected_min(m, S, eta, method=QMC(2048)).gain
    found = {}
    for method in (QMC(32), QMC(128), EP(fallback=None), EP()):
        run = partial(expected_min, m, S, eta, method=method)
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


def study(repeats=7):
    """A trial through Optuna against the engine's own decision, and the commands from the shell; wall seconds, medians."""
    import subprocess
    import tempfile
    from pathlib import Path

    import numpy as np
    import optuna
    from optuna.distributions import FloatDistribution

    import glasses
    from glasses.study.file import read_study
    from glasses.study.objective import Evaluation
    from glasses.study.stored import StoredStudy

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}

    def wall(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def trial(storage, X, y, seed):
        sampler = glasses.optuna.GlassesSampler(budget=45, seed=seed, search_space=space)
        study = optuna.create_study(storage=storage, sampler=sampler)
        for (a, b), value in zip(X, y, strict=True):
            point = {"x": float(a), "y": float(b)}
            study.add_trial(optuna.trial.create_trial(params=point, distributions=space, value=float(value)))
        return wall(lambda: study.ask(space))

    found = {"engine": [], "in memory": [], "SQLite": []}
    decide(None, *data(25, 2, 99), 20, 0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(repeats):
            X, y = data(25, 2, seed)
            found["engine"].append(wall(partial(decide, None, X, y, 20, seed)))
            found["in memory"].append(trial(None, X, y, seed))
            found["SQLite"].append(trial(f"sqlite:///{folder}/{seed}.db", X, y, seed))
        path = Path(folder) / "large.toml"
        path.write_text(
            "budget = 1000\n[parameters]\na = [0.0, 1.0]\nb = [0.0, 1.0]\n"
            'c = { type = "int", low = 1, high = 20 }\nd = { choices = ["u", "v", "w"] }\n'
        )
        rng = np.random.default_rng(0)
        with StoredStudy(read_study(path)) as stored:
            for _ in range(1000):
                a, b, c, d = rng.random(), rng.random(), int(rng.integers(1, 21)), "uvw"[rng.integers(3)]
                value = (a - 0.3) ** 2 + (b - 0.6) ** 2 + 0.01 * c + 0.1 * "uvw".index(d) + 0.05 * rng.standard_normal()
                stored.add({"a": a, "b": b, "c": c, "d": d}, Evaluation(float(value)))

        def shell(*arguments):
            command = [sys.executable, "-m", "glasses", *map(str, arguments)]
            return wall(lambda: subprocess.run(command, check=True, capture_output=True))

        found["show, 1,000 trials, model needed"] = []
        found["show, 1,000 trials, unchanged"] = []
        shell("show", path)
        for k in range(3):
            path.write_text(path.read_text() + f"# {k}\n")
            with StoredStudy(read_study(path)) as stored:
                stored.add({"a": 0.5, "b": 0.5, "c": 1, "d": "u"}, Evaluation(1.0 + k))
            found["show, 1,000 trials, model needed"].append(shell("show", path))
            found["show, 1,000 trials, unchanged"].append(shell("show", path))
        small = Path(folder) / "small.toml"
        small.write_text("budget = 45\n[parameters]\nx = [0.0, 1.0]\ny = [0.0, 1.0]\n")
        with StoredStudy(read_study(small)) as stored:
            for (a, b), value in zip(*data(25, 2, 0), strict=True):
                stored.add({"x": float(a), "y": float(b)}, Evaluation(float(value)))
        found["ask"], found["tell"] = [], []
        for k in range(4):
            found["ask"].append(shell("ask", small))
            found["tell"].append(shell("tell", small, 0.5 + 0.1 * k))
        found["help"] = [shell("--help") for _ in range(3)]
    return {name: float(np.median(times)) for name, times in found.items()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
