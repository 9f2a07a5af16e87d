"""Exact values of up to three evaluations by dynamic programming over a few candidates, to measure planners against.

D stands for what is known: the law N(mu, cov) of f at the candidates and the best value eta. Evaluations are exact (no noise)
and the hyperparameters are known. The gain of n evaluations is eta minus the expected smallest value once they are done.

    V_1(D) = max_x EI(x | D)
    Q_n(x | D) = EI(x | D) + E_y[V_{n-1}(D + (x, y))],   V_n(D) = max_x Q_n(x | D)                            [eq:dp]
    two steps   Q_2(x*) = EI(x*) + E_{y*}[max_x EI(x | x*, y*)],  x* anywhere          Osborne (2010)         [eq:twostep]
    policy      as [eq:dp], but pi(D) acts instead of the maximum: rollout is pi = argmax EI                  [eq:policy]
    plan        as [eq:dp], but the next point is fixed beforehand: eta - E[min(y_1, ..., y_n, eta)]          [eq:plan]

Whatever follows x, no policy gains more than Q_n(x): not a plan fixed beforehand (open loop), not a plan made once y is known
(two-stage), not rollout. Here that is an inequality between numbers of one quadrature.

An outcome y = mu_i + s_i t moves the mean along c = cov_i / s_i and turns the covariance into cov - c c^T whatever its value,
so one matrix serves all outcomes of a candidate. The expectation over t ~ N(0, 1) is a sum with the same nodes at each of the
n - 1 levels: ``Even`` (a trapezoid rule, the default) or ``Hermite`` (Gauss-Hermite).

| name | symbol | shape | |
|---|---|---|---|
| mu, cov | mu, cov | (U,), (U, U) | law of f at the U candidates |
| State.mu, .eta | | (B, U), (B,) | B possible outcomes of the same evaluations, which share ``cov`` |
| t, w | t_q, w_q | (Q,) | nodes and weights of a standard normal |

Accuracy: what is integrated has kinks, at y = eta and wherever the best next candidate changes, so no rule converges
exponentially. Measured on Q_2 at 21 candidates in [0, 1] (squared exponential, lengthscale .1, 3 observations), worst relative
error over them, median over 12 data sets: 64 nodes 7e-4 evenly spaced and 5e-3 Gauss-Hermite, 128 nodes 2e-4 and 2e-3. A
variance below 1e-9 of the largest counts as zero: the value there is known. Cost of [eq:dp]: U (U Q)^(n-1) improvements at 30
ns: n = 3 at 21 candidates with 64 nodes takes a second or two. Plain NumPy and nothing of the engine, on purpose. Next:
``glasses.lookahead.losses`` holds the planners, ``reproduction.values`` compares them with these values (docs/method.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

MOST = 3  # evaluations ahead
_KNOWN = 1e-9
_SQRT_2PI = np.sqrt(2.0 * np.pi)
Points = tuple[np.ndarray, np.ndarray]  # nodes and weights, (Q,) each


class State(NamedTuple):
    """B outcomes of the same evaluations."""

    mu: np.ndarray  # (B, U)
    cov: np.ndarray  # (U, U)
    eta: np.ndarray  # (B,)

    @property
    def sd(self) -> np.ndarray:
        """(U,) standard deviations; 0 where the value is known."""
        return _deviations(np.diagonal(self.cov))


def _normalised(w: np.ndarray) -> np.ndarray:
    return w / w.sum()


def _check_nodes(nodes: Any) -> None:
    if not (isinstance(nodes, int) and not isinstance(nodes, bool) and 2 <= nodes <= 256):
        raise ValueError(f"nodes must be a whole number between 2 and 256, got {nodes!r}: 64 is the default.")


@dataclass(frozen=True)
class Even:
    """Evenly spaced nodes over +-5.5 standard deviations: errors of order 1 / nodes^2 whatever the kinks."""

    nodes: int = 64

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)

    def points(self) -> Points:
        """Nodes and weights."""
        t = np.linspace(-5.5, 5.5, self.nodes)
        return t, _normalised(np.exp(-0.5 * t * t))


@dataclass(frozen=True)
class Hermite:
    """Gauss-Hermite nodes, those of weight below 1e-16 left out."""

    nodes: int = 64

    def __post_init__(self) -> None:
        _check_nodes(self.nodes)

    def points(self) -> Points:
        """Nodes and weights."""
        t, w = np.polynomial.hermite_e.hermegauss(self.nodes)
        w = _normalised(w)
        return t[w > 1e-16], w[w > 1e-16]


Rule = Even | Hermite
Policy = Callable[[State], np.ndarray]  # (B,) the candidate each outcome evaluates next
_Next = Callable[[State, int], np.ndarray]  # (B,) gain of the evaluations left
_DEFAULT = Even()


class FirstPlaces(NamedTuple):
    """What starting at each candidate gains."""

    values: np.ndarray  # (U,)

    @property
    def best(self) -> int:
        return int(np.argmax(self.values))

    @property
    def value(self) -> float:
        return float(np.max(self.values))


def optimal_values(mu: Any, cov: Any, eta: float, n: int, rule: Rule = _DEFAULT) -> FirstPlaces:
    """[eq:dp]: Q_n at every candidate, n evaluations left counting this one; the value of the best is V_n."""
    state, points = _start(mu, cov, eta, n), rule.points()

    def act(state: State, left: int) -> np.ndarray:
        if left == 1:
            return _improvement(state.mu, state.sd, state.eta[:, None]).max(axis=1)
        return np.max([_gain(state, i, left, points, act) for i in range(len(state.cov))], axis=0)

    return _first(state, n, points, act)


def largest_ei(state: State) -> np.ndarray:
    """The policy of rollout: the candidate of largest EI."""
    return np.argmax(_improvement(state.mu, state.sd, state.eta[:, None]), axis=1)


def policy_values(mu: Any, cov: Any, eta: float, n: int, policy: Policy = largest_ei, rule: Rule = _DEFAULT) -> FirstPlaces:
    """[eq:policy]: the gain of starting at each candidate and following ``policy`` from then on; n as for
    ``optimal_values``."""
    state, points = _start(mu, cov, eta, n), rule.points()

    def act(state: State, left: int) -> np.ndarray:
        chosen, gain = policy(state), np.empty(len(state.eta))
        for i in np.unique(chosen):
            rows = chosen == i
            gain[rows] = _gain(State(state.mu[rows], state.cov, state.eta[rows]), int(i), left, points, act)
        return gain

    return _first(state, n, points, act)


def plan_value(mu: Any, cov: Any, eta: float, steps: Sequence[int], rule: Rule = _DEFAULT) -> float:
    """[eq:plan]: the gain of evaluating the candidates ``steps`` (one to three of them) whatever the outcomes."""
    state, points = _start(mu, cov, eta, len(steps)), rule.points()
    for i in steps:
        if not 0 <= i < len(state.cov):
            raise ValueError(f"steps must be places between 0 and {len(state.cov) - 1}, got {i}: they are rows of mu and cov.")

    def act(state: State, left: int) -> np.ndarray:
        return _gain(state, steps[-left], left, points, act)

    return float(act(state, len(steps))[0])


def two_step_values(query: tuple[Any, Any, Any], mu: Any, var: Any, eta: float, rule: Rule = _DEFAULT) -> np.ndarray:
    """[eq:twostep] at M points that need not be candidates: the second evaluation goes to the best of U candidates.

    ``query``: their means (M,), variances (M,) and covariances with the candidates (M, U); ``mu``, ``var`` (U,): the law of f
    at each candidate.
    """
    m, v, cross = (np.asarray(a, dtype=float) for a in query)
    mu, var = np.asarray(mu, dtype=float), np.asarray(var, dtype=float)
    if m.ndim != 1 or mu.ndim != 1 or v.shape != m.shape or var.shape != mu.shape or cross.shape != (len(m), len(mu)):
        raise ValueError(
            "two_step_values needs query = (M,), (M,), (M, U) and mu, var of shape (U,), got "
            f"{m.shape}, {v.shape}, {cross.shape} and {mu.shape}, {var.shape}: one row of covariances per point."
        )
    t, w = rule.points()
    now, s = np.empty(len(m)), _deviations(v, float(max(v.max(), var.max())))
    for k in range(len(m)):
        c = cross[k] / s[k] if s[k] > 0 else np.zeros(len(mu))
        y = m[k] + s[k] * t
        after = _improvement(mu + t[:, None] * c, _deviations(var - c * c, float(var.max())), np.minimum(eta, y)[:, None])
        now[k] = _improvement(m[k], s[k], eta) + w @ after.max(axis=1)
    return now


def _first(state: State, n: int, points: Points, act: _Next) -> FirstPlaces:
    return FirstPlaces(np.array([_gain(state, i, n, points, act)[0] for i in range(len(state.cov))]))


def _gain(state: State, i: int, left: int, points: Points, act: _Next) -> np.ndarray:
    """(B,): EI at candidate i plus what ``act`` gains with the other evaluations, averaged over the outcome at i."""
    s = state.sd[i]
    gain = _improvement(state.mu[:, i], s, state.eta)
    if left == 1:
        return gain
    if s == 0:  # nothing new is learnt there
        return gain + act(State(state.mu, state.cov, np.minimum(state.eta, state.mu[:, i])), left - 1)
    t, w = points
    c = state.cov[i] / s
    mu = state.mu[:, None] + t[:, None] * c
    eta = np.minimum(state.eta[:, None], mu[:, :, i])
    later = act(State(mu.reshape(-1, len(c)), state.cov - c[:, None] * c, eta.ravel()), left - 1)
    return gain + later.reshape(eta.shape) @ w


def _improvement(mu: Any, sd: Any, eta: Any) -> np.ndarray:
    """E[(eta - y)+] for y ~ N(mu, sd^2); sd may be 0."""
    gap = eta - mu
    z = gap / np.where(sd > 0, sd, 1.0)
    spread = sd * np.exp(-0.5 * z * z) / _SQRT_2PI + gap * ndtr(z)
    return np.maximum(np.where(sd > 0, spread, gap), 0.0)


def _deviations(variance: np.ndarray, largest: float | None = None) -> np.ndarray:
    least = _KNOWN * (variance.max() if largest is None else largest)
    return np.sqrt(np.where(variance > least, variance, 0.0))


def _start(mu: Any, cov: Any, eta: float, n: int) -> State:
    mu, cov = np.asarray(mu, dtype=float), np.asarray(cov, dtype=float)
    if not (isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MOST):
        raise ValueError(f"An exact value needs 1, 2 or 3 evaluations left, got {n!r}: TwoStage and Glasses plan further.")
    if mu.ndim != 1 or mu.size == 0 or cov.shape != (mu.size, mu.size):
        raise ValueError(f"mu must have shape (U,) and cov (U, U) with U >= 1, got {mu.shape} and {cov.shape}: one law of f.")
    if not (np.all(np.isfinite(mu)) and np.all(np.isfinite(cov)) and np.isfinite(eta)):
        raise ValueError("mu, cov and eta must be finite, got a value that is not: leave out places without a prediction.")
    return State(mu[None], cov, np.array([float(eta)]))
