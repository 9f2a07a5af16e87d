"""The measurements. Each prints JSON; ``__main__`` runs each in a process of its own."""

import json
import os
import resource
import sys
import time
from functools import partial

from benchmarks.setting import cpu_seconds, data, decide


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


def hebo(repeats=9):
    """The same decisions of HEBO, in its own environment."""
    import numpy as np

    from glasses_lab.campaign.methods import Start
    from glasses_lab.campaign.peers import PEERS
    from glasses_lab.campaign.protocols import PROTOCOLS
    from glasses_lab.problems import Problem

    square = Problem("square", lambda x: 0.0, ((0.0, 1.0),) * 2, 0.0, np.zeros((0, 2)))

    def ask(seed):
        X, y = data(25, 2, seed)
        return PEERS["hebo"](Start(square, PROTOCOLS["exact"], X, y, len(y) + 20, seed)).ask

    ask(1000)()  # warm
    seconds = [cpu_seconds(ask(seed)) for seed in range(repeats)]
    return {"HEBO (1 step)": {"median": float(np.median(seconds)), "all": seconds}}


def far(repeats=3):
    """What more of everything costs: 60 left in 6 dimensions, 64 at once, 127 pending, budgets of 500 and 1,000.

    And what a plan of everything left loses by ending after 128 evaluations: the part of all there is to gain (the forecast's
    ``clairvoyant``) that 32, 64 and 128 evaluations bring, and how far (largest coordinate) the point chosen by planning so far
    lies from that of 128.
    """
    import numpy as np

    import glasses

    def told(n, d, left, seed):
        optimizer = glasses.Optimizer([(0.0, 1.0)] * d, budget=n + left, seed=seed)
        optimizer.tell(*data(n, d, seed))
        return optimizer

    def crowded(seed):
        optimizer = told(25, 2, 200, seed)
        optimizer.mark_pending(np.random.default_rng(seed).random((127, 2)))
        return optimizer

    cases = {
        "60 observations, 6 parameters, 60 left": (lambda s: told(60, 6, 60, s), None),
        "25 observations, 2 parameters, 64 asked for at once": (lambda s: told(25, 2, 100, s), 64),
        "25 observations, 2 parameters, 127 pending": (crowded, None),
        "25 observations, 2 parameters, 500 left": (lambda s: told(25, 2, 500, s), None),
        "25 observations, 2 parameters, 1,000 left": (lambda s: told(25, 2, 1000, s), None),
    }
    seconds = {}
    for name, (make, count) in cases.items():
        make(1000).ask(count)
        times = []
        for seed in range(repeats):
            optimizer = make(seed)
            times.append(cpu_seconds(partial(optimizer.ask, count)))
        seconds[name] = float(np.median(times))
        print(name, times, file=sys.stderr, flush=True)
    gains = {}
    for d in (2, 6):
        rows = []
        for seed in range(repeats):
            chosen = {}
            for steps in (32, 64, 128):
                optimizer = glasses.Optimizer([(0.0, 1.0)] * d, budget=1025, seed=seed, loss=glasses.Glasses(steps=steps))
                optimizer.tell(*data(25, d, seed))
                chosen[steps] = optimizer.ask()
            found = optimizer.forecast(128, raw=True)  # the model alone: it also decides
            part = (found.best - found.expected) / (found.best - found.clairvoyant)
            rows.append([[part[steps - 1], float(np.max(np.abs(x - chosen[128])))] for steps, x in chosen.items()])
        gains[str(d)] = np.median(rows, axis=0).tolist()
    return {"seconds": seconds, "gains": gains}


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
        "N": [(n, 2, 20) for n in (10, 25, 50, 100, 200, 500, 1000, 2000, 5000)],
        "d": [(25, d, 20) for d in (1, 2, 5, 10, 20, 50, 100)],
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
        optimizer.tell(x, _quick(x))
    optimizer.result()
    n = optimizer.n_initial
    return {"first": cpu[n], "longest later": max(wall[n + 1 :]), "all": time.process_time() - start}


def events(evaluations=140):
    """The same with everything that can happen on the way, 2 inputs: wall seconds of the longest decision after each event,
    up to the next one; the first decision of the model is left out."""
    import glasses

    happens = {
        6: "nothing yet",
        10: "two evaluations fail",
        14: "five under way from here on",
        20: "the budget is raised",
        24: "the data outgrow 32",
        56: "the data outgrow 64",
        88: "twelve under way from here on",
        120: "the data outgrow 128",
    }
    optimizer = glasses.Optimizer([(0.0, 1.0)] * 2, budget=40, seed=1)
    longest, event, width = {}, None, 1
    for told in range(evaluations):
        event = happens.get(told, event)
        width = {14: 5, 88: 12}.get(told, width)
        if told == 20:
            optimizer.budget = evaluations
        while len(optimizer.pending) < min(width, evaluations - told):
            clock = time.perf_counter()
            optimizer.ask()
            if event:
                longest[event] = max(longest.get(event, 0.0), time.perf_counter() - clock)
        x = optimizer.pending[0]
        optimizer.tell(x, None if told in (10, 12) else _quick(x))
    return longest


def _quick(x):
    """An objective that takes no time."""
    import numpy as np

    return float(np.sum((x - 0.3) ** 2) + np.sin(5 * x[0]))


def profile(evaluations=30):
    """Where a cold run of the default waits: wall seconds to trace, lower and compile each program, and those of the rest."""
    start = time.perf_counter()
    import jax

    import glasses

    glasses.Optimizer  # noqa: B018  # loads it
    imported = time.perf_counter() - start

    kinds = {"jaxpr_trace_duration": 0, "jaxpr_to_mlir_module_duration": 1, "backend_compile_duration": 2}
    found = {}

    def listen(event, seconds, fun_name="", **_):
        kind = kinds.get(event.rsplit("/", 1)[-1])
        if kind is not None:
            name = fun_name.removeprefix("jit(").removesuffix(")")
            found.setdefault(name, [0.0, 0.0, 0.0])[kind] += seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    start = time.perf_counter()
    glasses.minimize(_quick, [(0.0, 1.0)] * 2, budget=evaluations, seed=1)
    rest = time.perf_counter() - start - sum(map(sum, found.values()))
    return {"programs": found, "imports": imported, "rest": rest}


def large():
    """CPU seconds of a warm default decision: told everything at once, and the next one of that run; the peak of resident
    memory so far in GiB."""
    import numpy as np

    import glasses

    def two(n, d, seed):
        X, y = data(n, d, seed)
        optimizer = glasses.Optimizer([(0.0, 1.0)] * d, budget=n + 22, seed=seed)
        optimizer.tell(X, y)
        first = cpu_seconds(optimizer.ask)
        optimizer.tell(optimizer.pending[0], float(np.median(y)))
        return first, cpu_seconds(optimizer.ask)

    found = {}
    for n, d in ((100, 2), (1000, 2), (5000, 2), (200, 20), (200, 50), (200, 100), (5000, 20)):
        two(n, d, 0)
        seconds = [two(n, d, seed) for seed in (1, 2, 3)]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        found[f"{n} observations, {d} parameters"] = [*np.median(seconds, axis=0), peak]
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


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
