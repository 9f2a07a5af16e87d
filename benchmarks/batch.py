"""``python -m benchmarks.batch [FILE.json]``: the default's decisions on an accelerator, one at a time and many side by side.

One at a time: the search of a decision (25 observations in 2 dimensions, 20 evaluations left; the fit is apart) with 256 and
8,192 candidates. Side by side: that of many runs at once, each with data of its own, as a campaign on one card would make it:
the same programs, mapped over the runs. Wall-clock, the best of five after a warm-up. What is measured is added to the file
(docs/accelerator.json) under the name of the platform; ``JAX_PLATFORMS=cpu`` or ``cuda`` chooses.
"""

import json
import sys
import time
from functools import partial
from pathlib import Path

BATCHES = (1, 16, 64, 256)


def best_of(action, times=5):
    action()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    import jax
    import jax.numpy as jnp
    import numpy as np

    from benchmarks.setting import data
    from glasses import GaussianProcess, TwoStage
    from glasses.search import MultiStart
    from glasses.search.decision import Problem, Trust
    from glasses.search.look import _look
    from glasses.search.propose import _build, _climb, cover
    from glasses.search.screen import _survey
    from glasses.search.value import _value
    from glasses.surrogate.feasibility import nothing_failed
    from glasses.surrogate.fit import FreeModel, _fit
    from glasses.surrogate.outputs import Affine

    device = jax.devices()[0]
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "accelerator.json"
    every = json.loads(out.read_text()) if out.exists() else {}
    found = {"device": device.device_kind, "jax": jax.__version__}
    model, loss = GaussianProcess(noise=0.0), TwoStage()

    def standardized(seed):
        X, y = data(25, 2, seed)
        return X, (y - y.mean()) / y.std()

    X, z = standardized(0)
    plain = Affine(0.0, 1.0)
    post = model.posterior(X, z, plain)
    found["fit, seconds"] = best_of(lambda: jax.block_until_ready(model.posterior(X, z, plain)))
    problem = Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=20, trust=Trust(8, 0.3))
    for count in (256, 8192):
        search = MultiStart(candidates=count)
        key = f"decision, {count} candidates, seconds"
        found[key] = best_of(lambda s=search: s.decide(loss, model.kernel, problem, np.random.default_rng(0)))
        print(key, found[key], flush=True)

    kernel, free = model.kernel, FreeModel(model.kernel, True, True)

    def one(X, y, spread, starts):
        """A decision without the parts that only small spaces, failures and pending points need."""
        post = _fit.function(X, y, jnp.asarray(25), starts, jnp.asarray(0.0), None, model=free, passes=60)[1]
        feasible = nothing_failed((32, 2))
        tops = _climb.function(post, spread[:16], feasible, jnp.min(y[:25]), kernel=kernel)[0]
        points = jnp.concatenate([spread, tops])
        candidates = _build.function(post, points, jnp.zeros((1, 2)), jnp.asarray(0), None, feasible, kernel=kernel)
        candidates = candidates._replace(trust=jnp.asarray(0.3))
        log_ei, value, _ = _survey.function(candidates.alone(), jnp.asarray(8), size=8)
        few = points[jnp.argsort(-jnp.maximum(value, -900.0) - 1e3 * (log_ei >= jnp.sort(log_ei)[-16]))[:48]]
        queries = _look.function(candidates, few, kernel=kernel)
        values, _ = _value.function(candidates.alone(), queries, jnp.asarray(48), jnp.asarray(8), loss=loss, size=8)
        return few[jnp.argmax(values)]

    with jax.enable_x64(True):
        starts = jnp.asarray(free.starts(2, 4))
        spread = jnp.asarray(cover(2, 256, np.random.default_rng(0)))
        for batch in BATCHES:
            sets = [standardized(seed) for seed in range(batch)]
            X = jnp.asarray(np.stack([np.concatenate([X, np.zeros((7, 2))]) for X, _ in sets]))
            y = jnp.asarray(np.stack([np.concatenate([y, np.zeros(7)]) for _, y in sets]))
            go = jax.jit(jax.vmap(partial(one, spread=spread, starts=starts)))
            seconds = best_of(lambda: jax.block_until_ready(go(X, y)), 3)  # noqa: B023
            key = f"{batch} runs side by side, decisions per second"
            found[key] = batch / seconds
            print(key, found[key], flush=True)
    every[f"decisions, {device.platform}"] = found
    out.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
