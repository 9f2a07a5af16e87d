"""Where the oracle predicts the next evaluations for two putative points, and the penalisation behind it, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from glasses.lookahead.candidates import build_candidates, query_point
from glasses.lookahead.oracles import Belief, KrigingBeliever
from glasses_lab.reproduction.camel import ORACLE, camel, grid

QUERIES = ((0.0, 0.05), (1.85, -0.8))
AHEAD = 8  # evaluations left, the putative one included
SHOWN = 4  # stages of the penalisation


@dataclass(frozen=True)
class StepsAhead:
    """In the units of the function; the acquisition is relative to its largest value before any penalty."""

    axes: tuple[np.ndarray, np.ndarray]
    loss: np.ndarray  # (r, r) the myopic loss
    points: np.ndarray  # evaluated
    queries: np.ndarray  # (2, 2) putative next points
    steps: np.ndarray  # (2, AHEAD - 1, 2): by local penalisation
    believed: np.ndarray  # (2, AHEAD - 1, 2): by the kriging believer
    stages: np.ndarray  # (SHOWN, r, r): the penalised acquisition that step 2, 3, ... maximises, for the first query


def steps_ahead(resolution: int = 41, queries: tuple[tuple[float, float], ...] = QUERIES) -> StepsAhead:
    """The numbers behind the figure. The steps are predicted over the points of the grid."""
    optimizer = camel(left=AHEAD)
    a, b, points = grid(optimizer, resolution)
    post, kernel = optimizer.posterior(), optimizer.model.kernel
    steps: list[np.ndarray] = []
    believed: list[np.ndarray] = []
    stages: list[np.ndarray] = []
    with jax.enable_x64(True):
        unit = jnp.asarray(optimizer.space.to_unit(points))
        candidates = jax.jit(build_candidates, static_argnums=0)(kernel, post, unit, jnp.zeros((0, 2)), jnp.asarray(0))
        penalize, believe = (jax.jit(oracle.predict, static_argnums=3) for oracle in (ORACLE, KrigingBeliever()))
        for query in queries:
            seen = query_point(kernel, candidates, jnp.asarray(optimizer.space.to_unit(np.array([query]))[0]))
            belief = Belief(seen, candidates.mu, candidates.eta, jnp.asarray(False))
            found = np.asarray(penalize(candidates, belief, jnp.asarray(AHEAD), AHEAD))
            steps.append(points[found])
            believed.append(points[np.asarray(believe(candidates, belief, jnp.asarray(AHEAD), AHEAD))])
            if not stages:
                score = ORACLE.first_score(candidates, belief)
                free = float(jnp.max(score - ORACLE.penalty(candidates, belief, seen.apart, seen.mu, jnp.sqrt(seen.var))))
                for i in found[:SHOWN]:
                    stages.append(np.exp(np.asarray(score) - free).reshape(resolution, resolution))
                    apart, mu, sd = candidates.apart[i], candidates.mu[i], jnp.sqrt(candidates.cov[i, i])
                    score = score + ORACLE.penalty(candidates, belief, apart, mu, sd)
    loss = optimizer.loss_at(points, left=1).reshape(resolution, resolution)
    evaluated = optimizer.space.read(optimizer.record().x_iters)[0]
    return StepsAhead((a, b), loss, evaluated, np.array(queries), np.array(steps), np.array(believed), np.array(stages))


def draw_steps_ahead(data: StepsAhead, path: Path) -> None:
    """Above: two putative points and their predicted steps. Below: what each step maximises."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 8), constrained_layout=True)
    rows = figure.add_gridspec(2, 4, height_ratios=[1.45, 1])
    for k, (query, steps, believed) in enumerate(zip(data.queries, data.steps, data.believed, strict=True)):
        panel = figure.add_subplot(rows[0, 2 * k : 2 * k + 2])
        shades = panel.contourf(*data.axes, data.loss, levels=30, cmap="viridis")
        panel.plot(*data.points.T, "o", color="white", markeredgecolor="black", markersize=5, clip_on=False, label="evaluated")
        for number, (step, other) in enumerate(zip(steps, believed, strict=True), start=2):
            for place, shape, colour in ((step, "o", "tab:red"), (other, "s", "tab:purple")):
                panel.plot(*place, shape, color="white", markeredgecolor=colour, markersize=14, clip_on=False, zorder=4)
                panel.annotate(str(number), place, color=colour, ha="center", va="center", fontsize=9, zorder=5)
        panel.plot(*query, "*", color="tab:red", markeredgecolor="white", markersize=20, label="putative point", zorder=6)
        panel.plot([], [], "o", color="white", markeredgecolor="tab:red", label="steps by local penalisation (the paper)")
        panel.plot([], [], "s", color="white", markeredgecolor="tab:purple", label="steps by the kriging believer")
        panel.set_title(f"If the next point is the star: predicted steps 2 to {len(steps) + 1}", pad=14)
        panel.set(xlabel="$x_1$", ylabel="$x_2$")
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.colorbar(shades, ax=panel, label="myopic loss")
    for k, stage in enumerate(data.stages):
        panel = figure.add_subplot(rows[1, k])
        shades = panel.contourf(*data.axes, stage, levels=np.linspace(0, 1, 31), cmap="magma")
        panel.plot(*data.queries[0], "*", color="tab:red", markeredgecolor="white", markersize=14)
        panel.plot(*data.steps[0][:k].T, "o", markerfacecolor="none", markeredgecolor="white", markersize=8)
        panel.plot(*data.steps[0][k], "X", color="tab:cyan", markeredgecolor="black", markersize=11)
        panel.set_title(f"Local penalisation: step {k + 2}", fontsize=10)
        panel.set_xlabel("$x_1$")
    figure.colorbar(shades, ax=panel, label="penalised acquisition")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)
