"""Measurements of what serves many: optimisers in one process, workers on one database, commands from the shell.

Each prints JSON; ``__main__`` runs each in a process of its own.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.setting import data, decide

TRIALS = 120


def resident():
    """Resident memory of this process now, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def many(optimizers=100, asks=1000):
    """100 optimisers in one process, asked and told in turn, as a server would: memory and CPU seconds per decision.

    They are asked ``asks`` times in all with the model in charge, after a warm-up of one that goes as far.
    """
    import numpy as np

    import glasses

    def objective(x, shift):
        return float(np.sum((x - shift) ** 2) + np.sin(5 * x[0]))

    def make(seed):
        return glasses.Optimizer([(0.0, 1.0)] * 2, budget=30, seed=seed)

    def step(optimizer, shift):
        x = optimizer.ask()
        optimizer.tell(x, objective(x, shift))

    warm = make(10**6)
    for _ in range(30):
        step(warm, 0.3)
    start = resident()
    served = [make(seed) for seed in range(optimizers)]
    for seed, optimizer in enumerate(served):
        for _ in range(optimizer.n_initial):
            step(optimizer, seed / optimizers)
    made, used, memory = resident(), time.process_time(), []
    for count in range(asks):
        step(served[count % optimizers], (count % optimizers) / optimizers)
        if (count + 1) % (asks // 5) == 0:
            memory.append([count + 1, resident()])
    used = time.process_time() - used
    return {
        "before": start,
        "per optimiser": (made - start) / optimizers,
        "memory": memory,
        "CPU seconds per decision": used / asks,
    }


def workers(counts=(1, 4, 16)):
    """Workers on one PostgreSQL study with an objective that takes no time: trials per second and what they wait for.

    From the first trial that the model decided to the last one, as the database has them.
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "study"))
    from postgres import start_server

    server = start_server()
    try:
        return {str(count): _served(server.database(f"workers{count}"), count) for count in counts}
    finally:
        server.close()


def _served(address, count):
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        (Path(folder) / "square.py").write_text("def square(x, y):\n    return (x - 0.3) ** 2 + (y - 0.6) ** 2\n")
        path.write_text(
            f'budget = {TRIALS}\nstorage = "{address}"\nseed = 1\n[objective]\npython = "square:square"\n'
            "[parameters]\nx = [0.0, 1.0]\ny = [0.0, 1.0]\n"
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "glasses", "worker", str(path)]
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(count)]
        failed = [process for process in running if process.wait()]
        if failed:
            raise SystemExit("a worker failed")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with StoredStudy(read_study(path), writing=False) as stored:
            trials = sorted(stored.trials(), key=lambda trial: trial.datetime_complete)[30:]
    assert len(trials) == TRIALS - 30
    wall = (trials[-1].datetime_complete - trials[0].datetime_start).total_seconds()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"trials per second": len(trials) / wall, "CPU seconds per trial, starts included": used / TRIALS}


def study(repeats=7):
    """A trial through Optuna against the engine's own decision, in wall seconds; commands from the shell, in CPU seconds."""
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

    def shell(*arguments):
        command = [sys.executable, "-m", "glasses", *map(str, arguments)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    engine = {"engine": [], "in memory": [], "SQLite": []}
    decide(None, *data(25, 2, 99), 20, 0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(repeats):
            X, y = data(25, 2, seed)
            engine["engine"].append(wall(partial(decide, None, X, y, 20, seed)))
            engine["in memory"].append(trial(None, X, y, seed))
            engine["SQLite"].append(trial(f"sqlite:///{folder}/{seed}.db", X, y, seed))
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
        small = Path(folder) / "small.toml"
        small.write_text("budget = 50\n[parameters]\nx = [0.0, 1.0]\ny = [0.0, 1.0]\n")
        with StoredStudy(read_study(small)) as stored:
            for (a, b), value in zip(*data(30, 2, 0), strict=True):
                stored.add({"x": float(a), "y": float(b)}, Evaluation(float(value)))
        commands = {}
        for k in range(8):
            value = 0.5 + 0.1 * k
            steps = {  # what is asked first in a state of the study, and what was computed in it before
                "ask": ("ask", small),
                "forecast": ("forecast", small),
                "forecast, nothing told since the last": ("forecast", small),
                "tell": ("tell", small, value),
                "show, something told since": ("show", small),
                "show": ("show", small),
                "ask, after show": ("ask", small),
                "help": ("--help",),
            }
            for name, arguments in steps.items():
                seconds = shell(*arguments)
                commands.setdefault(name, []).extend([seconds] if k else [])  # the first one compiles
            shell("tell", small, value + 0.05)
        large = {"show, 1,000 trials, something told": [], "show, 1,000 trials, unchanged": []}
        shell("show", path)
        for k in range(3):
            with StoredStudy(read_study(path)) as stored:
                stored.add({"a": 0.5, "b": 0.5, "c": 1, "d": "u"}, Evaluation(1.0 + k))
            for name in large:
                large[name].append(shell("show", path))
    found = {"engine": engine, "commands": commands | large}
    return {part: {name: statistics.median(times) for name, times in rows.items()} for part, rows in found.items()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
