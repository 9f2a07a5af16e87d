"""Brew coffee: three numbers and a choice, thirteen cups. Some settings clog the filter; the search learns to avoid them."""

import math

from glasses import Choice, Float, Int, Optimizer

cups = {
    "grams": Float(10, 30, step=0.5),
    "grind": Int(1, 12),
    "temperature": (80.0, 100.0),
    "roast": Choice(["light", "medium", "dark"]),
}


def bitterness(grams, grind, temperature, roast):
    if grind <= 2 and grams > 18:
        raise RuntimeError("the filter clogged")
    best = {"light": 96.0, "medium": 93.0, "dark": 88.0}[roast]
    strength = grams / 18 * (13 - grind) / 7
    return math.log(strength) ** 2 + ((temperature - best) / 8) ** 2 + {"light": 0.1, "medium": 0.0, "dark": 0.05}[roast]


optimizer = Optimizer(cups, budget=13, noise=0.0, best_possible=0.0, seed=4)  # no cup is less bitter than 0
while optimizer.remaining:
    cup = optimizer.ask()
    try:
        optimizer.tell(cup, bitterness(**cup))
    except RuntimeError as failure:
        optimizer.tell(cup, None, reason=str(failure))
    if optimizer.remaining == 4:
        plan = optimizer.plan()
        print(f"With 4 cups left, the best is expected to come down to {plan.expected_best:.3f}. The plan:")
        for x, mean, sd in zip(plan.points, plan.mean, plan.sd, strict=True):
            print(f"  {x}  predicted {mean:.2f} ± {sd:.2f}")

result = optimizer.result()
print(f"\n{result.message}")
print(f"best cup: {result.x}, bitterness {result.fun:.3f}")
print(f"recommended: {result.recommended.x}, predicted {result.recommended.mean:.3f} ± {result.recommended.sd:.3f}")
