"""Pictures of a run: numbers out of the optimiser first, drawing out of the numbers second (so that plots are tested
without pixels).

Needs matplotlib (``pip install glasses[plot]``), loaded on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glasses.loop.optimizer import Optimizer
from glasses.loop.result import Plan


@dataclass(frozen=True)
class RunData:
    """A run over two parameters, in the user's units."""

    names: list[str]
    points: np.ndarray  # (n, 2) evaluated
    values: np.ndarray  # (n,)
    best: np.ndarray  # (n,) best value so far
    axes: tuple[np.ndarray, np.ndarray]
    mean: np.ndarray  # posterior mean on the grid of the axes
    plan: np.ndarray  # (k, 2) next point first; empty when nothing was left
    recommended: np.ndarray | None


def run_data(optimizer: Optimizer, plan: Plan | None = None, resolution: int = 80) -> RunData:
    """Everything ``draw_run`` shows, for an optimiser over two parameters with at least one observation."""
    space = optimizer.space
    if space.d != 2:
        raise ValueError(f"This picture needs 2 parameters, got {space.d}: plot convergence from result().func_vals instead.")
    result = optimizer.result()
    if not len(result.func_vals):
        raise ValueError("There is nothing to draw yet: tell at least one evaluation first.")
    names = space.names or ["x[0]", "x[1]"]
    points, _ = space.read(result.x_iters)
    a, b = (np.linspace(low, high, resolution) for low, high in zip(space.lower, space.upper, strict=True))
    mean, _ = optimizer.predict(np.stack(np.meshgrid(a, b, indexing="xy"), axis=-1).reshape(-1, 2))
    ahead = space.read(plan.points)[0] if plan is not None else np.zeros((0, 2))
    return RunData(
        names=list(names),
        points=points,
        values=result.func_vals,
        best=np.minimum.accumulate(result.func_vals),
        axes=(a, b),
        mean=mean.reshape(resolution, resolution),
        plan=ahead,
        recommended=space.read(result.recommended.x)[0][0] if result.recommended else None,
    )


def draw_run(moments: list[tuple[str, RunData]], path: Path) -> None:
    """One map per moment of the run (posterior mean, evaluations, plan), and the convergence of the last."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(moments) + 1, figsize=(4.6 * (len(moments) + 1), 4.2), constrained_layout=True)
    low = min(float(data.mean.min()) for _, data in moments)
    high = max(float(data.mean.max()) for _, data in moments)
    levels = np.linspace(low, high, 25)
    for panel, (title, data) in zip(panels, moments, strict=False):
        shades = panel.contourf(*data.axes, data.mean, levels=levels, cmap="viridis_r")
        panel.plot(*data.points.T, "o", clip_on=False, color="white", markeredgecolor="black", markersize=5, label="evaluated")
        if len(data.plan):
            panel.plot(
                *data.plan[1:].T, "o", markerfacecolor="none", markeredgecolor="tab:red", markersize=9, label="predicted steps"
            )
            panel.plot(
                *data.plan[0],
                "*",
                clip_on=False,
                zorder=5,
                color="tab:red",
                markeredgecolor="white",
                markersize=16,
                label="next point",
            )
        elif data.recommended is not None:
            panel.plot(*data.recommended, "X", color="tab:orange", markeredgecolor="black", markersize=11, label="recommended")
        panel.set(title=title, xlabel=data.names[0], ylabel=data.names[1])
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=8, frameon=False)
    figure.colorbar(shades, ax=panels[len(moments) - 1], label="posterior mean")
    last = moments[-1][1]
    count = np.arange(1, len(last.values) + 1)
    panels[-1].plot(count, last.values, "o", color="0.6", markersize=4, label="evaluation")
    panels[-1].step(count, last.best, where="post", color="tab:blue", label="best so far")
    panels[-1].set(title="Convergence", xlabel="evaluation", ylabel="value")
    panels[-1].legend(fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
