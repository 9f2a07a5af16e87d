"""How close to optimal each planner is: three evaluations left on a line, where the optimum is known exactly.

Draws from a GP with a known kernel, three evaluations each, candidates on a grid. Every planner values every candidate as the
first of three evaluations. Its best candidate x is evaluated first, and what follows is optimal:

    attained = Q_3(x) / max Q_3          with Q_3 from dynamic programming, ``glasses_lab.exact``              [eq:attained]

So the loss is that of the first decision alone. The losses are the library's own, as they are by default; "fine" is the
two-stage loss without its quadrature error, and the rollout has all its futures for every candidate. EI and "EI rollout" are
exact, from ``exact`` too: the rollout without the error of its futures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.qmc import QMC
from glasses.lookahead.candidates import CandidateSet, build_candidates
from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, Marginalized, TwoStage
from glasses.lookahead.oracles import ThompsonPaths
from glasses.lookahead.rollout import Rollout
from glasses.search.decision import Problem
from glasses.search.surface import gains_at
from glasses.surrogate.kernels import SquaredExponential
from glasses.surrogate.posterior import Hyper, covariance, posterior
from glasses_lab.campaign.statistics import estimate
from glasses_lab.exact import Even, optimal_values, policy_values
from glasses_lab.reproduction.comparison import COLOURS

POINTS, EVALUATED, LEFT, LENGTHSCALE = 21, 3, 3, 0.1
RULE = Even(48)  # Q_3 within 3e-3
EXAMPLE = 0
KERNEL = SquaredExponential()
LOSSES: dict[str, Loss] = {
    "open loop": Glasses(),
    "open loop, DPP": Glasses(DeterminantalPoints()),
    "marginal, DPP": Marginalized(DeterminantalPoints(sample=True)),
    "marginal, Thompson": Marginalized(ThompsonPaths()),
    "two-stage": TwoStage(),
    "two-stage, fine": TwoStage(nodes=64, expectation=QMC(256)),
    "rollout, 256 futures": Rollout(race=(256,)),
}
PLANNERS = ("EI", *LOSSES, "EI rollout")
SHOWN = ("EI", "open loop", "two-stage", "EI rollout")  # as curves; the fine two-stage loss lies on the plain one
_STYLES = {
    "EI": (COLOURS["el"], "s"),
    "open loop": (COLOURS["glasses"], "D"),
    "open loop, DPP": (COLOURS["glasses"], "v"),
    "marginal, DPP": (COLOURS["glasses"], "<"),
    "marginal, Thompson": (COLOURS["glasses"], ">"),
    "two-stage": (COLOURS["two-stage"], "o"),
    "two-stage, fine": (COLOURS["two-stage"], "P"),
    "rollout, 256 futures": ("tab:green", "h"),
    "EI rollout": ("tab:green", "^"),
    "optimum": ("0.65", "*"),
    "any place": ("0.55", "o"),
}


@dataclass(frozen=True)
class Example:
    """One data set: the posterior at the candidates and each planner's value of them as the first of three."""

    places: np.ndarray  # (U,)
    mu: np.ndarray  # (U,)
    sd: np.ndarray  # (U,)
    x: np.ndarray  # (EVALUATED,)
    y: np.ndarray  # (EVALUATED,)
    values: dict[str, np.ndarray]  # planner, or "optimum" -> (U,)

    @property
    def attained(self) -> dict[str, float]:
        """[eq:attained] of every planner; "any place" is the mean over all candidates."""
        optimum = self.values["optimum"]
        found = {name: float(optimum[np.argmax(self.values[name])] / optimum.max()) for name in PLANNERS}
        return {"any place": float(optimum.mean() / optimum.max()), **found}


@dataclass(frozen=True)
class PlannerValues:
    """One example in full, and over many data sets the share of the optimum attained and promised."""

    example: Example
    attained: dict[str, np.ndarray]  # (data sets,)
    promised: dict[str, np.ndarray]  # a planner's largest value, as a share of the optimum
    reaction: np.ndarray  # (data sets, U): what two-stage (fine) adds to the open loop at the same point, share of the optimum


def planner_values(data_sets: int = 40) -> PlannerValues:
    """The numbers behind the figure."""
    examples = [example(seed) for seed in range(data_sets)]
    attained = {name: np.array([one.attained[name] for one in examples]) for name in ("any place", *PLANNERS)}
    promised = {name: np.array([one.values[name].max() / one.values["optimum"].max() for one in examples]) for name in PLANNERS}
    reaction = [(one.values["two-stage, fine"] - one.values["open loop"]) / one.values["optimum"] for one in examples]
    return PlannerValues(examples[min(EXAMPLE, data_sets - 1)], attained, promised, np.array(reaction))


def example(seed: int) -> Example:
    """Data set number ``seed``: a draw at random points, and the values of every planner."""
    rng = np.random.default_rng([seed, EVALUATED])
    places, x = np.linspace(0, 1, POINTS), rng.random(EVALUATED)
    with jax.enable_x64(True):
        white = jnp.asarray(rng.standard_normal(EVALUATED))
        candidates, y = _candidates(jnp.asarray(x[:, None]), white, jnp.asarray(places[:, None]))
        assert candidates.origin is not None
        post = candidates.origin.post
        problem = Problem(post=post, fitted=post, pending=np.zeros((0, 1)), remaining=LEFT)
        values = {name: gains_at(loss, KERNEL, candidates, problem, places[:, None], LEFT)[1] for name, loss in LOSSES.items()}
        mu, cov, eta = np.asarray(candidates.mu), np.asarray(candidates.cov), float(candidates.eta)
    values["EI"] = optimal_values(mu, cov, eta, 1).values
    values["EI rollout"] = policy_values(mu, cov, eta, LEFT, rule=RULE).values
    values["optimum"] = optimal_values(mu, cov, eta, LEFT, RULE).values
    return Example(places, mu, np.sqrt(np.diag(cov)), x, np.asarray(y), values)


@jax.jit
def _candidates(x: jax.Array, white: jax.Array, places: jax.Array) -> tuple[CandidateSet, jax.Array]:
    """A draw from the prior at x, and the candidate set given it."""
    theta = {"lengthscale": jnp.full(1, LENGTHSCALE), "variance": jnp.asarray(1.0)}
    hyper = Hyper(theta, jnp.zeros(()), jnp.zeros(()))
    n = x.shape[0]
    y = jnp.linalg.cholesky(covariance(KERNEL, hyper, x, x) + 1e-10 * jnp.eye(n)) @ white
    post = posterior(KERNEL, hyper, x, y, jnp.asarray(n))
    return build_candidates(KERNEL, post, places, jnp.zeros((0, 1)), jnp.asarray(0)), y


def table(data: PlannerValues) -> str:
    """Mean and standard error over the data sets, as Markdown; differences to EI are paired."""
    lines = ["| planner | attained | against EI | its own value / optimum |", "| --- | --- | --- | --- |"]
    for name, shares in data.attained.items():
        against = "" if name == "EI" else _percent(shares - data.attained["EI"], sign=True)
        promised = _percent(data.promised[name]) if name in data.promised else ""
        lines.append(f"| {name} | {_percent(shares)} | {against} | {promised} |")
    return "\n".join(lines)


def remark(data: PlannerValues) -> str:
    """Two-stage against the open loop at the same first point."""
    more = _percent(data.reaction.mean(axis=1))
    return (
        f"At the same first place two-stage (fine) adds {more} of the optimum to the open loop; "
        f"at {np.mean(data.reaction < 0):.1%} of the places it is below, by at most {-data.reaction.min():.1%}."
    )


def _percent(shares: np.ndarray, sign: bool = False) -> str:
    found = estimate((100 * shares).tolist())
    mean = f"{found.mean:+.2f}" if sign else f"{found.mean:.2f}"
    return f"{mean.replace('-', '−')} ± {found.error:.2f} %"


def draw_planner_values(data: PlannerValues, path: Path) -> None:
    """Left: the example, its posterior and the value of every first point. Right: the share of the optimum attained."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 6.2), constrained_layout=True)
    grid = figure.add_gridspec(2, 2, height_ratios=[1, 2.2], width_ratios=[1.25, 1])
    above = figure.add_subplot(grid[0, 0])
    below = figure.add_subplot(grid[1, 0], sharex=above)
    _draw_posterior(data.example, above)
    _draw_values(data.example, below)
    _draw_attained(data.attained, figure.add_subplot(grid[:, 1]))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _draw_posterior(one: Example, panel: Any) -> None:
    panel.fill_between(one.places, one.mu - 2 * one.sd, one.mu + 2 * one.sd, color="0.9")
    panel.plot(one.places, one.mu, color="0.4")
    panel.plot(one.x, one.y, "o", color="black", markersize=6)
    panel.axhline(one.y.min(), color="black", linewidth=0.8, linestyle=":")
    panel.set_ylabel("f")
    panel.tick_params(labelbottom=False)
    panel.set_title(f"One data set, {LEFT} evaluations left: the value of each place as the first", fontsize=11)


def _draw_values(one: Example, panel: Any) -> None:
    for name in ("optimum", *reversed(SHOWN)):
        colour, marker = _STYLES[name]
        values = one.values[name]
        best, wide = int(np.argmax(values)), name == "optimum"
        panel.plot(one.places, values, color=colour, linewidth=5 if wide else 1.6, label=name, zorder=1 if wide else 2)
        panel.plot(
            one.places[best],
            values[best],
            marker,
            color=colour,
            markersize=26 if wide else 9,
            markeredgecolor="white",
            zorder=4,
        )
    panel.set(xlabel="first place x", ylabel="expected gain", xlim=(0, 1), ylim=(0, 1.12 * one.values["optimum"].max()))
    panel.grid(alpha=0.3)
    panel.legend(frameon=False, fontsize=9, ncols=3)


def _draw_attained(attained: Mapping[str, np.ndarray], panel: Any) -> None:
    rng = np.random.default_rng(0)
    for place, (name, shares) in enumerate(attained.items()):
        colour, marker = _STYLES[name]
        found = estimate((100 * shares).tolist())
        panel.plot(100 * shares, place + rng.uniform(0.12, 0.34, len(shares)), ".", color=colour, alpha=0.35, markersize=6)
        panel.errorbar(found.mean, place, xerr=found.error, fmt=marker, color=colour, markersize=8, capsize=5, zorder=4)
    panel.set_yticks(range(len(attained)), [f"{name}\n{_percent(shares)}" for name, shares in attained.items()])
    panel.invert_yaxis()
    panel.axvline(100, color="0.65", linewidth=1)
    panel.set(xlabel="share of the optimum, %", xlim=(None, 100.4))
    count = len(next(iter(attained.values())))
    panel.set_title(f"{count} data sets: first the planner's place, then optimally\n(mean ± standard error)", fontsize=11)
    panel.grid(axis="x", alpha=0.3)
