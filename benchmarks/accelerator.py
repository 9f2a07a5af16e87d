"""``python -m benchmarks.accelerator [FILE.json [SECONDS]]``: time to value many candidates, on whatever JAX runs on.

25 observations in 2 dimensions, 256 candidates, each valued with its own predicted steps: open loop, two-stage and
rollout with all 256 futures. Wall-clock seconds of one decision, the best of two after a warm-up. A measurement that would take
longer than a minute (judged by the one before, in proportion to candidates and horizon) is left out and said.
``JAX_PLATFORMS=cpu`` or ``cuda`` chooses; what is measured is added to the file (docs/accelerator.json) under the name of the
platform.
"""

import json
import sys
import time
from pathlib import Path

CANDIDATES = (512, 2048, 8192)
HORIZONS = (10, 30, 100)


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "accelerator.json"
    patience = float(sys.argv[2]) if len(sys.argv) > 2 else 3600.0
    begun = time.perf_counter()
    import jax
    import numpy as np

    from benchmarks.setting import data
    from glasses import GaussianProcess, Glasses, TwoStage
    from glasses.lookahead import Rollout
    from glasses.search.decision import Problem
    from glasses.search.propose import candidates_for
    from glasses.search.surface import gains_at
    from glasses.surrogate.outputs import Affine

    device = jax.devices()[0]
    model = GaussianProcess(noise=0.0)
    X, y = data(25, 2, 0)
    post = model.posterior(X, (y - y.mean()) / y.std(), Affine(0.0, 1.0))
    problem = Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=100)
    candidates = candidates_for(model.kernel, problem, 256, np.random.default_rng(0))
    points = np.random.default_rng(1).random((max(CANDIDATES), 2))
    every = json.loads(out.read_text()) if out.exists() else {}
    found = {"device": device.device_kind, "jax": jax.__version__, "seconds": {}, "left out": []}
    every[device.platform] = found

    def value(loss, count, horizon):
        start = time.perf_counter()
        gains = gains_at(loss, model.kernel, candidates, problem, points[:count], horizon)[1]
        assert np.all(gains > 0)
        return time.perf_counter() - start

    pace: dict[str, float] = {}  # seconds per candidate and step, as last measured
    for horizon in HORIZONS:
        for name, loss in (("open loop", Glasses()), ("two-stage", TwoStage(steps=None)), ("rollout", Rollout(race=(256,)))):
            value(loss, 512 if device.platform != "cpu" else 16, horizon)  # compile
            for count in CANDIDATES:
                key = f"{name}, horizon {horizon}, {count} candidates"
                expected = pace.get(name, 0.0) * horizon * count
                if time.perf_counter() - begun > patience or expected > 60.0:
                    found["left out"].append(key)
                else:
                    seconds = min(value(loss, count, horizon) for _ in range(2 if expected < 10.0 else 1))
                    pace[name] = seconds / (count * horizon)
                    found["seconds"][key] = seconds
                    print(f"{time.perf_counter() - begun:6.0f} s  {key}: {seconds:.3g} s", flush=True)
                out.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
