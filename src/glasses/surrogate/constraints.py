"""Constraints with values: a Gaussian process each, and with them the probability that an evaluation is feasible.

A constraint is g(x) <= 0. Each g_j has a posterior of its own, fitted like the objective's, with hyperparameters of its own, to
every value that was told, those of feasible and infeasible evaluations alike:

    P(feasible at x) = P(a value at x) prod_j Phi(-mu_j(x) / s_j(x))                                        [eq:satisfied]

mu_j and s_j the mean and standard deviation of g_j; the first factor is that of failures (``feasibility``). The constraints are
independent of each other and of the objective given the data.

Values are standardised: what is zero in the user's units is ``limit`` in those of the model. Where all are the same their size
is the unit, so that multiplying a constraint by a positive number never changes anything. A value may be missing (NaN): its
constraint is then fitted to the others, and the evaluation is feasible if the values that it has are.

The objective is fitted to all values too. An infeasible one is never the incumbent. While nothing feasible is known the
incumbent is a reference value above all values told,

    eta = max z + max(max z - min z, sd of the prior)                                                      [eq:reference]

so that a feasible point at the worst value is worth at least half of one at the best: what is maximised then is mostly the
probability of feasibility.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from glasses.surrogate.feasibility import FailureClassifier
from glasses.surrogate.fit import MAP, Known
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.kernels import Kernel
from glasses.surrogate.outputs import Affine, Standardize
from glasses.surrogate.posterior import Allowed, Posterior, grow, marginals

_DIGITS = 10  # of transformed values, so that the rounding of a change of units does not alter a run


class ConstrainedFeasibility(NamedTuple):
    """[eq:satisfied]: of k constraints and of failures, in arrays of as many rows."""

    failures: FailureClassifier
    posts: Posterior  # stacked: k along a first axis
    limit: Any  # (k,)

    def log_probability(self, X: jax.Array, kernel: Kernel) -> jax.Array:
        def one(given: tuple[Posterior, jax.Array]) -> jax.Array:
            post, limit = given
            mu, sd = marginals(kernel, post, X)
            return log_ndtr((limit - mu) / sd)

        each = jax.lax.map(one, (self.posts, jnp.asarray(self.limit)))
        return self.failures.log_probability(X) + jnp.sum(each, axis=0)

    def log_value(self, X: jax.Array) -> jax.Array:
        return self.failures.log_probability(X)

    def is_infeasible(self, X: jax.Array) -> jax.Array:
        return self.failures.is_infeasible(X)

    def grown(self, size: int) -> ConstrainedFeasibility:
        """The same in arrays of ``size`` rows."""
        posts = [grow(jax.tree.map(lambda a, j=j: np.asarray(a)[j], self.posts), size) for j in range(len(self.limit))]
        return self._replace(failures=self.failures.grown(size), posts=_stacked(posts))


class ConstraintFits(NamedTuple):
    """The posteriors of the constraints, and what is zero in the units of each."""

    posts: list[Posterior]
    limits: np.ndarray

    def with_failures(self, failures: FailureClassifier) -> ConstrainedFeasibility:
        size = max(len(failures.failed), *(each.X.shape[0] for each in self.posts))
        found = [each if each.X.shape[0] == size else grow(each, size) for each in self.posts]
        failures = failures if len(failures.failed) == size else failures.grown(size)
        return ConstrainedFeasibility(failures, _stacked(found), self.limits)


def fit_constraints(model: GaussianProcess, X: np.ndarray, G: np.ndarray, choice: np.ndarray | None) -> ConstraintFits:
    """Fit each column of G (n, k) to the inputs X (n, d) of the unit cube; ``model``: that of the objective."""
    posts, limits = [], []
    own = model_of_constraints(model)
    for g in G.T:
        known = np.isfinite(g)
        outputs = units_of(g[known])
        posts.append(own.posterior(X[known], np.round(outputs.forward(g[known]), _DIGITS), outputs, choice))
        limits.append(np.round(outputs.forward(0.0), _DIGITS))
    return ConstraintFits(posts, np.array(limits))


def model_of_constraints(model: GaussianProcess) -> GaussianProcess:
    """The objective's model with hyperparameters of its own; noise is learned unless evaluations are exact."""
    return replace(
        model,
        fit=MAP() if isinstance(model.fit, Known) else model.fit,
        noise=0.0 if model.noise == 0 else None,
        outputs=Standardize(),
        hyperparameter_samples=0,
    )


def units_of(g: np.ndarray) -> Affine:
    """Standardised; values that are all the same in units of their size."""
    found = Standardize().fit(g)
    same = np.ptp(g) <= 1e-13 * np.max(np.abs(g))
    return replace(found, factor=float(np.max(np.abs(g))) or 1.0) if same else found


def is_satisfied(G: np.ndarray) -> np.ndarray:
    """Which rows of G (n, k) violate no constraint."""
    return ~np.any(G > 0.0, axis=1)


def with_allowed(post: Posterior, feasible: np.ndarray) -> Posterior:
    """The posterior of n observations that knows which of them are feasible, and [eq:reference]."""
    z = np.asarray(post.y)[: len(feasible)]
    spread = max(float(np.ptp(z)), float(np.sqrt(post.variance)))
    filled = np.zeros(post.X.shape[0], bool)
    filled[: len(feasible)] = feasible
    return post._replace(allowed=Allowed(filled, np.asarray(float(np.max(z)) + spread)))


def _stacked(posts: list[Posterior]) -> Any:
    return jax.tree.map(lambda *arrays: np.stack([np.asarray(a) for a in arrays]), *posts)
