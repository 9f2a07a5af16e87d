"""The paper's method in NumPy, small enough to read in one sitting: plain loops, no tricks, no speed.

Nothing here is used by the library and nothing of the library is used here: the tests compare the two. Read from the
bottom: ``minimize`` is Algorithm 1 (with the horizon counted right), ``look_ahead_loss`` its loss, ``steps_ahead`` the
local penalisation that predicts the steps, ``expected_min`` the expectation by EP, ``fit`` the Gaussian process.

    Lambda_n(x*) = E[min(y*, y_2, ..., y_n, eta)]    with (x*, x_2, ..., x_n) = F_n(x*), y jointly Gaussian
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

Array = np.ndarray


class Model(NamedTuple):
    """A Gaussian process with squared-exponential plus bias kernel, given data."""

    X: Array
    y: Array
    lengthscale: float
    signal: float
    noise: float
    bias: float


def kernel(model: Model, A: Array, B: Array) -> Array:
    r2 = ((A[:, None, :] - B[None, :, :]) ** 2).sum(-1) / model.lengthscale**2
    return model.signal * np.exp(-0.5 * r2) + model.bias


def posterior(model: Model, A: Array) -> tuple[Array, Array]:
    """Mean and covariance of the latent function at the rows of A."""
    K = kernel(model, model.X, model.X) + (model.noise + 1e-10 * model.signal) * np.eye(len(model.X))
    weights = np.linalg.solve(K, kernel(model, model.X, A))
    return weights.T @ model.y, kernel(model, A, A) - kernel(model, A, model.X) @ weights


def fit(X: Array, y: Array, rng: np.random.Generator, starts: int = 5) -> Model:
    """Maximum likelihood, the best of several L-BFGS runs."""

    def negative_log_likelihood(theta: Array) -> float:
        model = Model(X, y, *np.exp(theta))
        K = kernel(model, X, X) + (model.noise + 1e-10 * model.signal) * np.eye(len(X))
        return float(0.5 * y @ np.linalg.solve(K, y) + 0.5 * np.linalg.slogdet(K)[1])

    box = [(np.log(0.02), np.log(5)), (np.log(0.01), np.log(100)), (np.log(1e-8), np.log(1)), (np.log(1e-4), np.log(10))]
    guesses = [[np.log(0.3), 0.0, np.log(1e-4), np.log(0.1)]] + [[rng.uniform(*b) for b in box] for _ in range(starts - 1)]
    runs = [optimize.minimize(negative_log_likelihood, guess, bounds=box) for guess in guesses]
    return Model(X, y, *np.exp(min(runs, key=lambda run: run.fun).x))


def expected_improvement(mu: Array, sd: Array, eta: float) -> Array:
    z = (eta - mu) / sd
    return sd * (np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * special.ndtr(z))


def orthant(mu: Array, C: Array) -> tuple[float, Array]:
    """Probability that w ~ N(mu, C) is positive in every coordinate, and the mean of w given that: EP, site by site."""
    n = len(mu)
    tau, nu = np.zeros(n), np.zeros(n)
    Sigma, w = C.copy(), mu.copy()
    for _ in range(100):
        before = w.copy()
        for i in range(n):
            t = 1 / Sigma[i, i] - tau[i]  # cavity: precision, precision times mean
            v = w[i] / Sigma[i, i] - nu[i]
            z = v / np.sqrt(t)
            r = np.exp(-0.5 * z * z - 0.5 * np.log(2 * np.pi) - special.log_ndtr(z))
            mean, variance = v / t + r / np.sqrt(t), (1 - r * (z + r)) / t
            tau[i], nu[i] = 1 / variance - t, mean / variance - v
            Sigma = np.linalg.inv(np.linalg.inv(C) + np.diag(tau))
            w = Sigma @ (np.linalg.solve(C, mu) + nu)
        if np.max(np.abs(w - before)) < 1e-10:
            break
    t, v = 1 / np.diag(Sigma) - tau, w / np.diag(Sigma) - nu
    log_site = special.log_ndtr(v / np.sqrt(t)) + 0.5 * np.log1p(tau / t) + 0.5 * v**2 / t - 0.5 * (v + nu) ** 2 / (t + tau)
    h = np.linalg.solve(C, mu) + nu
    log_integral = -0.5 * np.linalg.slogdet(np.eye(n) + C * tau)[1] + 0.5 * h @ Sigma @ h - 0.5 * mu @ np.linalg.solve(C, mu)
    return float(np.exp(log_site.sum() + log_integral)), w


def expected_min(m: Array, S: Array, eta: float) -> tuple[float, Array]:
    """E[min(y, eta)], centred and normalised, and the masses of the n + 1 regions."""
    n = len(m)
    masses, total = [orthant(m - eta, S)[0]], 0.0  # no y below eta
    for j in range(n):  # y_j is the smallest and below eta: w = A y + b is positive
        A = np.eye(n)
        A[:, j] = -1.0
        b = np.where(np.arange(n) == j, eta, 0.0)
        mass, w = orthant(A @ m + b, A @ S @ A.T)
        masses.append(mass)
        total += mass * w[j]
    return eta - total / sum(masses), np.array(masses)


def steps_ahead(model: Model, x: Array, n: int, grid: Array, eta: float) -> Array:
    """F_n(x): x first, then the maxima of the penalised soft-plus loss over the grid."""
    mu, cov = posterior(model, grid)
    sd = np.sqrt(np.maximum(np.diag(cov), 0) + 1e-10 * model.signal)
    slope = np.zeros(len(grid))
    for i in range(grid.shape[1]):
        step = np.zeros(grid.shape[1])
        step[i] = 1e-5
        slope += ((posterior(model, grid + step)[0] - posterior(model, grid - step)[0]) / 2e-5) ** 2
    mean, variance = posterior(model, x[None])
    L, M = max(np.sqrt(slope.max()), 1e-3 * np.sqrt(model.signal)), min(mu.min(), mean[0], eta)  # M <= every mean
    gain = np.log(np.log1p(np.exp(expected_improvement(mu, sd, eta) - eta)))  # log g(-Lambda_1)

    centres = [(x, mean[0], np.sqrt(max(variance[0, 0], 0) + 1e-10 * model.signal))]
    free = np.max(np.abs(grid - x), axis=1) >= 1e-6
    for _ in range(n - 1):
        score = gain.copy()
        for point, centre, spread in centres:
            distance = np.sqrt(((grid - point) ** 2).sum(1))
            score += special.log_ndtr((L * distance - centre + M) / spread)
        best = int(np.argmax(np.where(free, score, -np.inf)))
        free[best] = False
        centres.append((grid[best], mu[best], sd[best]))
    return np.array([point for point, _, _ in centres])


def look_ahead_loss(model: Model, x: Array, n: int, grid: Array, eta: float) -> float:
    """Lambda_n(x): the expected best value once the n evaluations left, x first, are done."""
    m, S = posterior(model, steps_ahead(model, x, n, grid, eta))
    return expected_min(m, S + 1e-9 * model.signal * np.eye(n), eta)[0]


def minimize(f: Callable[[Array], float], bounds: Array, budget: int, seed: int = 0, initial: int = 5) -> tuple[Array, Array]:
    """Algorithm 1: all points evaluated and their values. The loss is minimised with DIRECT on the unit cube."""
    rng = np.random.default_rng(seed)
    low, high = np.asarray(bounds, float).T
    X = rng.random((initial, len(low)))
    values = [f(low + x * (high - low)) for x in X]
    grid = rng.random((200, len(low)))
    for left in range(budget - initial, 0, -1):
        y = (np.array(values) - np.mean(values)) / (np.std(values) or 1.0)
        model = fit(X, y, rng)
        eta = float(y.min())
        box = [(0.0, 1.0)] * len(low)
        found = optimize.direct(look_ahead_loss_of_x(model, left, grid, eta), box, maxfun=60, locally_biased=False)
        X = np.vstack([X, found.x])
        values.append(f(low + found.x * (high - low)))
    return low + X * (high - low), np.array(values)


def look_ahead_loss_of_x(model: Model, left: int, grid: Array, eta: float) -> Callable[[Array], float]:
    return lambda x: look_ahead_loss(model, np.asarray(x), left, grid, eta)
