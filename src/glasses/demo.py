"""The demonstration behind ``make run``: tuning a controller by simulation, planned to the last evaluation.

An inverted pendulum is held upright by a motor with limited force and a delay of 90 ms, after a push. Two gains are tuned;
the objective is the logarithm of the accumulated error plus effort. Gains that are too small let it fall, gains that are
too large make the delay shake it apart, and in between several compromises compete.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from glasses.loop.optimizer import Optimizer
from glasses.loop.progress import Progress
from glasses.loop.result import Forecast
from glasses.plot.files import write_run
from glasses.plot.numbers import RunData, run_data

BOUNDS = {"stiffness": (0.0, 60.0), "damping": (0.0, 16.0)}
BUDGET = 30
PLAN_AT = 10  # evaluations done when the plan is drawn


def pendulum(stiffness: float, damping: float) -> float:
    """log10 of the cost of five seconds of balancing, by a fine integration."""
    step, delay, limit = 1e-3, 90, 14.0
    angle, speed, cost = 0.25, 0.0, 0.0
    past = [0.0] * delay
    for k in range(5000):
        command = -(stiffness * angle + damping * speed)
        force = past[k % delay]
        past[k % delay] = max(-limit, min(limit, command))
        if k == 2500:
            speed += 1.0
        speed += step * (9.81 * math.sin(angle) + force * math.cos(angle) - 0.1 * speed)
        angle += step * speed
        if abs(angle) > math.pi / 2:
            angle, speed = math.copysign(math.pi / 2, angle), 0.0
        cost += step * (angle * angle + 2e-4 * force * force)
    return math.log10(cost)


def main(folder: Path = Path("glasses-run")) -> None:
    """Optimise, print a live table, and write a picture."""
    print(
        f"Tuning {' and '.join(BOUNDS)} of a balancing controller: {BUDGET} evaluations, each planned for all that are left.\n"
    )
    start = time.perf_counter()
    optimizer = Optimizer(BOUNDS, budget=BUDGET, seed=2016)
    table = Progress(optimizer)
    forecast: Forecast | None = None
    moments: list[tuple[str, RunData]] = []
    while optimizer.remaining:
        if len(optimizer.values) == PLAN_AT:
            plan, forecast = optimizer.plan(), optimizer.forecast()
            moments.append((f"The plan after {PLAN_AT} of {BUDGET} evaluations", run_data(optimizer, plan)))
        x = optimizer.ask()
        value = pendulum(**x)
        optimizer.tell(x, value)
        table.row(x, value)
    result = optimizer.result()
    moments.append((f"After all {BUDGET} evaluations", run_data(optimizer)))
    print(f"\n{result.message} {time.perf_counter() - start:.0f} s in all.")
    print(f"best observed  {_point(result.x)}  value {result.fun:.5f}")
    found = result.recommended
    assert found is not None  # there are values
    print(f"recommended    {_point(found.x)}  predicted {found.mean:.5f} +- {found.sd:.5f}")
    if forecast is not None:
        low, high = forecast.low[-1], forecast.high[-1]
        print(
            f"expected       {forecast.expected[-1]:.3f} at the end, 80 % from {low:.3f} to {high:.3f}, by the forecast after "
            f"{PLAN_AT} evaluations"
        )
    path = folder / "pendulum.png"
    write_run(moments, path)
    print(f"picture        {path}")


def _point(x: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in x.items())


if __name__ == "__main__":
    main()
