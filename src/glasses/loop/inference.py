"""What the model says at a moment of a run: fitted outputs and posterior, hyperparameter samples, feasibility, the problem.

Everything is a function of the ledger, the model and the seed, computed once per state.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import jax
import numpy as np

from glasses.loop.ledger import Ledger
from glasses.loop.trust import LOOK_BACK
from glasses.runtime.padding import data_size, pad_rows
from glasses.search.decision import Problem
from glasses.search.pending import pending_gain
from glasses.search.predict import predict
from glasses.space.space import in_cube
from glasses.surrogate.constraints import ConstrainedFeasibility, ConstraintFits, fit_constraints, with_allowed
from glasses.surrogate.feasibility import FailureClassifier, fit_failures, nothing_failed, told_failures
from glasses.surrogate.fit import LARGEST_FIT, conditioned
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.outputs import Outputs, Standardize, fitted_outputs
from glasses.surrogate.posterior import Posterior, grow

FITS = logging.getLogger("glasses.fits")
SMALL = 256  # configurations: a space of no more is looked at as a whole
_ERRORS: dict[tuple[GaussianProcess, bytes], float] = {}  # of every run in this process: studies make optimisers anew
_MOST_ERRORS = 10_000
_BETWEEN_FITS = 5  # values that one set of hyperparameters predicts for the record
_DIGITS = 10  # of transformed outputs, so that the rounding of a change of units does not alter a run


class Purpose(IntEnum):
    """What random numbers are for: each has a stream of its own."""

    INITIAL_DESIGN = 0
    DECISION = 1
    PLAN = 2
    FORECAST = 3
    ENUMERATION = 4


class Inference:
    """The ledger of a run seen through a model."""

    def __init__(self, ledger: Ledger, model: GaussianProcess, seed: int) -> None:
        self.ledger, self.space, self.model, self.seed = ledger, ledger.space, model, seed
        self._known: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}  # computed again where it is needed, in the same precision

    def snapshot(self) -> Inference:
        """The same at this moment: nothing told later changes it, and what is known already is not computed again."""
        found = Inference(self.ledger.snapshot(), self.model, self.seed)
        found._known = dict(self._known)
        return found

    def rng(self, purpose: Purpose) -> np.random.Generator:
        """Random numbers that depend on the purpose and on how much has been evaluated."""
        return np.random.default_rng([self.seed, int(purpose), self.ledger.evaluated])

    def run_rng(self, purpose: Purpose) -> np.random.Generator:
        """Random numbers that are the same during the whole run."""
        return np.random.default_rng([self.seed, int(purpose), 0])

    def once(self, what: str, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """``make()``, remembered until the key or what was told before changes."""
        key = (what, self.ledger.revision, *key)
        if key not in self._known:
            made = make()  # before anything is dropped: it may remember things of its own
            self._known = {k: v for k, v in self._known.items() if k[0] != what} | {key: made}
        return self._known[key]

    def moment(self) -> tuple[Any, ...]:
        """What a decision depends on besides its configuration."""
        ledger = self.ledger
        return len(ledger.y), len(ledger.failed), tuple(x.tobytes() for x in ledger.pending), ledger.budget

    def outputs(self) -> Outputs:
        """The output transform fitted to everything told."""
        told = len(self.ledger.y)
        return self.once("outputs", (told, self.model.outputs), lambda: self._outputs(told))

    def _outputs(self, n: int) -> Outputs:
        """The output transform of the first n values told.

        It must be affine at and below the incumbent. Where data outside the space or infeasible data are better than that, they
        may bend it there: then outputs are standardised only.
        """
        values, inside = np.array(self.ledger.y[:n]), self.space.is_inside(np.array(self.ledger.X[:n]))
        inside = inside & self.ledger.feasible[:n]
        found = fitted_outputs(self.model.outputs, values)
        lowest, best = float(np.min(values)), float(np.min(values, where=inside, initial=np.inf))
        if not lowest < best < np.inf:
            return found
        straight = found.gain(float(found.forward(best)) - float(found.forward(lowest)))
        return found if math.isclose(straight, best - lowest, rel_tol=1e-9) else fitted_outputs(Standardize(), values)

    def posterior(self) -> Posterior:
        """The fitted model given everything told, over the unit cube and transformed outputs."""
        if not self.ledger.y:
            raise ValueError("There is no data to fit a model to: tell at least one evaluation first.")
        return self._fit(len(self.ledger.y))[1]

    def record(self, first: int) -> list[float]:
        """Standardised errors of the last values told, from number ``first`` on, each predicted from those before it."""
        told = len(self.ledger.y)
        return [self._error(i) for i in range(max(first, told - LOOK_BACK), told)]

    def feasibility(self) -> FailureClassifier | ConstrainedFeasibility | None:
        """The model of failures, once there is one; with constraints, that of both."""
        ledger, failures = self.ledger, self._failures()
        if not ledger.constraints:
            return failures
        fits = self.once("constraints", (len(ledger.y), self.model), self._constraints)
        return fits.with_failures(failures or nothing_failed((data_size(1), self.space.d), self.space.lattice))

    def _constraints(self) -> ConstraintFits:
        return fit_constraints(
            self.model, self.space.to_unit(np.array(self.ledger.X)), np.array(self.ledger.G), self.space.choice
        )

    def masked(self, post: Posterior) -> Posterior:
        """The posterior that knows which of its observations violate a constraint."""
        feasible = self.ledger.feasible
        if not self.ledger.constraints:
            return post
        if int(post.n) != len(feasible):  # some stand for all (``surrogate.inducing``)
            X = self.space.to_unit(np.array(self.ledger.X))
            good = {x.tobytes() for x, each in zip(X, feasible, strict=True) if each}
            feasible = np.array([x.tobytes() in good for x in np.asarray(post.X)[: int(post.n)]])
        return with_allowed(post, feasible)

    def _failures(self) -> FailureClassifier | None:
        ledger = self.ledger
        if not ledger.failed:
            return None

        def fit() -> FailureClassifier:
            X = self.space.to_unit(np.array(ledger.X + ledger.failed))
            return fit_failures(X, np.arange(len(X)) >= len(ledger.X), self.space.lattice)

        return self.once("feasibility", (len(ledger.y), len(ledger.failed)), fit)

    def problem(self) -> Problem:
        """What a search is given."""
        space, ledger, feasibility = self.space, self.ledger, self.feasibility()
        post = self._told_failures(self.posterior())
        pending = space.to_unit(np.array(ledger.pending)) if ledger.pending else np.zeros((0, space.d))
        return Problem(
            post=post,
            fitted=self.posterior(),
            pending=pending[in_cube(pending)],  # what is under way outside can be no incumbent
            remaining=ledger.remaining,
            lattice=space.lattice,
            feasibility=None if feasibility is None else feasibility.grown(post.X.shape[0]),
            configurations=space.every(SMALL),
            cost=None if ledger.cost is None else ledger.cost.at,
            budget=ledger.spendable,
            samples=self.once("samples", (*self.moment(), self.model), self._samples),
        )

    def pending_gain(self) -> float:
        """[eq:pending]: what the pending evaluations are expected to gain by themselves, in the units of y."""
        if not self.ledger.pending:
            return 0.0
        key = (*self.moment(), self.model)
        gain = self.once("pending gain", key, lambda: pending_gain(self.model.kernel, self.problem()))
        return self.outputs().gain(gain)

    def _error(self, i: int) -> float:
        """z of value number i, counted from 0."""
        key = self._key_of_error(i)
        if key not in _ERRORS:
            if len(_ERRORS) >= _MOST_ERRORS:
                _ERRORS.clear()
            _ERRORS.update(self._errors_from(i))
        return _ERRORS[key]

    def _key_of_error(self, i: int) -> tuple[GaussianProcess, bytes]:
        X, y = self.space.to_unit(np.array(self.ledger.X[: i + 1])), np.array(self.ledger.y[: i + 1])
        choice = b"" if self.space.choice is None else np.asarray(self.space.choice).tobytes()
        infeasible = (~self.ledger.feasible[: i + 1]).tobytes() if self.ledger.constraints else b""
        return self.model, hashlib.sha256(X.tobytes() + y.tobytes() + choice + infeasible).digest()

    def _errors_from(self, i: int) -> dict[tuple[GaussianProcess, bytes], float]:
        """z of value number i, predicted from all before it with the transform and the hyperparameters of an earlier fit.

        With L L^T the covariance of the first i + 1 observations, the last element of L^-1 r is that error over its standard
        deviation, and it is L_ii alpha_i [eq:innovation]. Of many observations a few more or less do not matter: values are
        predicted from the earlier fit alone, all that follow it at once.
        """
        earlier = self._fit_before(i)
        fit = self._fit if earlier == len(self.ledger.y) - 1 else self._fitted  # that of the last decision is still there
        outputs, post = self.once("record", (earlier, self.model), lambda: fit(earlier))
        kernel, X, y = self.model.kernel, self.space.to_unit(np.array(self.ledger.X)), np.array(self.ledger.y)
        if i <= LARGEST_FIT:
            z = np.round(outputs.forward(y[: i + 1]), _DIGITS)
            now = conditioned(kernel, post.hyper, X[: i + 1], z)
            return {self._key_of_error(i): float(np.asarray(now.L)[i, i] * np.asarray(now.alpha)[i])}
        rows = [k for k in range(i, len(y)) if self._fit_before(k) == earlier]
        mu, sd = predict(kernel, post, X[rows])
        errors = (outputs.forward(y[rows]) - mu) / np.sqrt(sd**2 + np.asarray(post.noise))
        return {self._key_of_error(k): float(z) for k, z in zip(rows, errors, strict=True)}

    def _fit_before(self, n: int) -> int:
        """How many values the fit has that predicts value number n: a run makes it anyway, and a record that is made at once
        needs few."""
        return max(self.space.d + 2, n - n % max(_BETWEEN_FITS, n // 10))

    def _fit(self, n: int) -> tuple[Outputs, Posterior]:
        """The output transform and the posterior given the first n values told; the last and the one before it are kept."""
        return self.once(f"fit {n % 2}", (n, self.model), lambda: self._fitted(n))

    def _fitted(self, n: int) -> tuple[Outputs, Posterior]:
        values, outputs = np.array(self.ledger.y[:n]), self._outputs(n)
        z = np.round(outputs.forward(values), _DIGITS)
        X, began = self.space.to_unit(np.array(self.ledger.X[:n])), time.perf_counter()
        post = self.model.posterior(X, z, outputs, self.space.choice)
        if FITS.isEnabledFor(logging.INFO):
            noise = outputs.gain(math.sqrt(float(post.noise)))
            said = "fitted %s to %d values: %s, noise sd %.3g in the units of y; %.2f s"
            FITS.info(said, type(self.model.kernel).__name__, n, _words(post.hyper.theta), noise, time.perf_counter() - began)
        return outputs, post

    def _samples(self) -> Posterior | None:
        """Other hyperparameters that the values allow, each told of the failures."""
        stacked = self.model.samples(self.posterior(), self.outputs())
        if stacked is None:
            return None
        plain = jax.tree.map(np.asarray, stacked)
        count = self.model.hyperparameter_samples
        each = [self._told_failures(jax.tree.map(lambda a, m=m: a[m], plain)) for m in range(count)]
        return jax.tree.map(lambda *arrays: np.stack([np.asarray(a) for a in arrays]), *each)

    def _told_failures(self, post: Posterior) -> Posterior:
        """With room for what is pending, and each failed point as having brought nothing."""
        ledger, post = self.ledger, self.masked(post)
        post = _with_room(post, len(ledger.failed) + len(ledger.pending))
        if not ledger.failed:
            return post
        failed = self.space.to_unit(np.array(ledger.failed))
        padded = pad_rows(failed, data_size(len(failed)))
        return told_failures(post, padded, np.asarray(len(failed)), kernel=self.model.kernel)


def _with_room(post: Posterior, extra: int) -> Posterior:
    """The posterior in arrays large enough for ``extra`` more observations."""
    have, need = post.X.shape[0], data_size(int(post.n) + extra)
    return post if need <= have else grow(post, need)


def _words(theta: Any) -> str:
    """The hyperparameters of a kernel by name, in the units of the unit cube and of transformed outputs."""
    found, _ = jax.tree_util.tree_flatten_with_path(theta)
    return ", ".join(f"{jax.tree_util.keystr(path)[2:-2]} = {np.array2string(np.asarray(a), precision=3)}" for path, a in found)
