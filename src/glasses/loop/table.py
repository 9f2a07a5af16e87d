"""What a run prints: one line per evaluation."""

from __future__ import annotations

import math
import time
from typing import Any

from glasses.loop.optimizer import Optimizer


class Table:
    """One printed line per evaluation: * the best so far, ! one that violates a constraint."""

    def __init__(self, optimizer: Optimizer, *, upwards: bool = False) -> None:
        self.optimizer, self.sign = optimizer, -1.0 if upwards else 1.0
        self.start = time.perf_counter()
        print(f"{'eval':>5} {'left':>5} {'value':>13} {'best':>13} {'seconds':>8}  point", flush=True)

    def row(self, x: Any, failure: str | None = None) -> None:
        values, lowest = self.optimizer.values, self.optimizer._ledger.best_value
        done = self.optimizer.record().nfev
        best = f"{self.sign * lowest:13.6g}" if math.isfinite(lowest) else f"{'-':>13}"
        infeasible = not failure and not self.optimizer._ledger.feasible[-1]
        mark = "!" if infeasible else "*" if values and values[-1] == lowest else " "
        shown = f"{'failed':>13} " if failure else f"{self.sign * values[-1]:13.6g}{mark}"
        pairs = x.items() if isinstance(x, dict) else ((None, value) for value in x)
        point = ", ".join(f"{name}={_short(value)}" if name else _short(value) for name, value in pairs)
        seconds = time.perf_counter() - self.start
        print(f"{done:5d} {self.optimizer.remaining:5d} {shown}{best} {seconds:8.1f}  {point}", flush=True)
        if failure:
            print(f"{'':12}{failure}", flush=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
