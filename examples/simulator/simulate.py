"""A mass on a spring that should settle quickly: prints the time-weighted error, and how far it overshot."""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--stiffness", type=float)
parser.add_argument("--damping", type=float)
parser.add_argument("--solver", choices=["euler", "midpoint"])
given = parser.parse_args()

position, speed, error, furthest, step = 1.0, 0.0, 0.0, 0.0, 0.002
for k in range(2500):
    force = -given.stiffness * position - given.damping * speed
    if given.solver == "midpoint":
        middle = position + 0.5 * step * speed
        force = -given.stiffness * middle - given.damping * (speed + 0.5 * step * force)
    speed += step * force
    position += step * speed
    error += step * (k * step) * abs(position) + 1e-6 * abs(force)
    furthest = min(furthest, position)
print("done")
print(json.dumps({"value": error, "overshoot": -furthest}))
