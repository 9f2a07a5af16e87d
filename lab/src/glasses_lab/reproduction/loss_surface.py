"""The look-ahead loss 1, 2, 3, 5, 10 and 20 steps ahead, on one scale: its minimum falls and it flattens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glasses_lab.reproduction.camel import camel, grid

STEPS = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class LossSurfaces:
    """One surface per number of steps ahead, in the units of the function."""

    axes: tuple[np.ndarray, np.ndarray]
    steps: tuple[int, ...]
    losses: np.ndarray  # (len(steps), resolution, resolution)
    chosen: np.ndarray  # (len(steps), 2): the next point
    points: np.ndarray  # (10, 2) evaluated
    best: float  # best value evaluated

    @property
    def lowest(self) -> np.ndarray:
        return self.losses.min(axis=(1, 2))

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of each surface: how much the choice of the next point matters."""
        return self.losses.std(axis=(1, 2))


def loss_surfaces(resolution: int = 48, steps: tuple[int, ...] = STEPS) -> LossSurfaces:
    """The numbers behind the figure."""
    losses, chosen = [], []
    for n in steps:
        optimizer = camel(left=n)
        a, b, points = grid(optimizer, resolution)
        losses.append(optimizer.loss_at(points).reshape(resolution, resolution))
        chosen.append(optimizer.space.read(optimizer.ask())[0][0])
    told = optimizer.record()
    evaluated = optimizer.space.read(told.x_iters)[0]
    return LossSurfaces((a, b), steps, np.array(losses), np.array(chosen), evaluated, float(told.fun))


def draw_loss_surfaces(data: LossSurfaces, path: Path) -> None:
    """Six maps with one scale of colours."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(12, 7), sharex=True, sharey=True, constrained_layout=True)
    levels = np.linspace(data.losses.min(), data.losses.max(), 41)
    for k, (panel, n) in enumerate(zip(panels.flat, data.steps, strict=True)):
        shades = panel.contourf(*data.axes, data.losses[k], levels=levels, cmap="viridis")
        panel.contour(*data.axes, data.losses[k], levels=levels[::4], colors="white", linewidths=0.4, alpha=0.5)
        panel.plot(*data.points.T, "o", color="white", markeredgecolor="black", markersize=5, clip_on=False)
        panel.plot(*data.chosen[k], "*", color="tab:red", markeredgecolor="white", markersize=18, clip_on=False, zorder=5)
        ahead = "1 step ahead (EL)" if n == 1 else f"{n} steps ahead"
        panel.set_title(f"{ahead}\nminimum {data.lowest[k]:.3f}, spread {data.spread[k]:.4f}", fontsize=11)
    for panel in panels[-1]:
        panel.set_xlabel("$x_1$")
    for panel in panels[:, 0]:
        panel.set_ylabel("$x_2$")
    figure.colorbar(shades, ax=panels, label="expected best value at the end", shrink=0.9)
    figure.suptitle("Six-hump camel after 10 evaluations (dots): the loss, and the next point (query)", fontsize=13)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)
