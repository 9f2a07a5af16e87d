"""One run of a campaign: a method on a problem with a seed, from the initial design to the last evaluation.

The initial design, the noise and the draw depend on the problem and the seed alone, so every method meets the same ones. A
method that raises is recorded with its error and everything it had evaluated; only a missing library is not a result of the
method and passes through. Nothing here writes to disk.

Nothing here sets threads either. XLA reads the environment when it starts, so a setting made later would make a run depend on
what its process did before. The engine holds BLAS to one thread and compiles its programs without multi-threaded Eigen. The
number of threads that XLA keeps (``NPROC`` in the environment of the command) changes the time of a run, not its points.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from typing import Any

import numpy as np

from glasses import __version__
from glasses_lab.campaign.methods import Start, method_of
from glasses_lab.campaign.protocols import PROTOCOLS
from glasses_lab.campaign.suite import Task
from glasses_lab.problems import Point, get, noisy


def run(task: Task) -> dict[str, Any]:
    """The record of one run, ready for JSON."""
    protocol, method = PROTOCOLS[task.protocol], method_of(task.method)
    problem = get(task.problem, seed=task.seed)
    seed = _seed(task.problem, task.seed)
    if protocol.noise_sd:
        problem = noisy(problem, protocol.noise_sd, seed=seed)
    X = [*initial_design(task)]
    y = [problem(x) for x in X]
    seconds: list[float] = []
    recommended, error = None, None
    begun = time.time()
    try:
        given = X if problem.parameters is not None else np.array(X)
        start = Start(problem, protocol, given, np.array(y), task.initial + task.evaluations, seed)
        player = method.start(start)
        for _ in range(task.evaluations):
            clock = time.process_time()
            x = problem.point(player.ask())
            seconds.append(time.process_time() - clock)
            value = problem(x)
            X.append(x)
            y.append(value)
            player.tell(x, value)
        recommended = player.recommend()
    except ImportError:
        raise
    except Exception as failure:
        place = traceback.extract_tb(failure.__traceback__)[-1]
        error = f"{type(failure).__name__}: {failure} ({os.path.basename(place.filename)}:{place.lineno})"
    return {
        "key": task.key,
        "problem": task.problem,
        "method": task.method,
        "seed": task.seed,
        "protocol": task.protocol,
        "initial": task.initial,
        "evaluations": task.evaluations,
        "minimum": problem.minimum,
        "x": [_plain(x) for x in X],
        "y": y,
        "true": [problem.true(x) for x in X] if protocol.noise_sd else None,  # None: y is the true value
        "recommended": None if recommended is None else _plain(problem.point(recommended)),
        "recommended_true": None if recommended is None else problem.true(recommended),
        "seconds": [round(s, 6) for s in seconds],  # CPU seconds of each decision
        "error": error,
        "versions": versions(method.needs),
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
    }


def initial_design(task: Task) -> Any:
    """Uniform points in the box; the same for every method and protocol.

    Where a problem has parameters, uniform in the unit cube and then decoded, no point twice: a list of dicts.
    """
    problem = get(task.problem, seed=task.seed)
    rng = np.random.default_rng([_seed(task.problem, task.seed), 0x696E6974])
    if problem.parameters is None:
        return problem.from_unit(rng.random((task.initial, problem.d)))
    if task.initial > problem.space.size:
        raise ValueError(
            f"{task.problem} has {problem.space.size:.0f} configurations and cannot start with {task.initial} different ones: "
            "lower initial."
        )
    found: dict[bytes, Point] = {}
    while len(found) < task.initial:
        raw = problem.space.from_unit(rng.random(problem.d))
        found.setdefault(raw.tobytes(), problem.space.form(raw))
    return list(found.values())


def _plain(x: Point) -> Any:
    """A point as JSON holds it."""
    return dict(x) if isinstance(x, Mapping) else x.tolist()


def _seed(problem: str, seed: int) -> int:
    """One whole number for (problem, seed), the same in every process."""
    return int.from_bytes(hashlib.sha256(f"{problem}|{seed}".encode()).digest()[:4], "big")


def versions(libraries: tuple[str, ...] = ()) -> dict[str, str]:
    """What the run was made with."""
    found = {"python": platform.python_version(), "glasses": __version__}
    for library in ("jax", "numpy", "scipy", *libraries):
        names = _distributions().get(library)
        found[library] = version(names[0]) if names else "missing"
    return found


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The package that a module is installed by: vizier comes as google-vizier."""
    return packages_distributions()
