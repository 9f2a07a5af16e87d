"""Deciding, planning and forecasting: what an optimiser does with its ledger and its model.

Everything here is a pure function of (ledger, model, loss, search, seed), remembered per state by ``Inference``. ``forecast``
is the one place that says what evaluations to come are expected to bring: plans, stopping criteria, reports and pictures take
their numbers from it.
"""

from __future__ import annotations

import copy
import logging
import math
import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from glasses.lookahead.forecast import BAND, ForecastGains
from glasses.lookahead.loss import Loss
from glasses.loop.correction import CORRECTION
from glasses.loop.design import design_point
from glasses.loop.inference import SMALL, Inference, Purpose
from glasses.loop.ledger import ExhaustedError, TooFewValuesError
from glasses.loop.limits import BestPossibleWarning, beaten, in_order, limited, limited_mean
from glasses.loop.rehearsal import rehearse, wait
from glasses.loop.result import FIVE, Forecast, Plan, Recommendation
from glasses.loop.shown import point_text
from glasses.loop.trust import trust_after
from glasses.numerics.kronecker import kronecker
from glasses.runtime.padding import MAX_HORIZON
from glasses.search.decision import Decision, Search, Trust, horizon
from glasses.search.plan import forecast_after, plan_after
from glasses.search.predict import feasible_at, predict
from glasses.search.propose import candidates_for
from glasses.search.recommend import lowest_mean
from glasses.search.surface import gains_at
from glasses.surrogate.fit import Known
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE

DECISIONS = logging.getLogger("glasses.decisions")
_ROUNDING = 1e-9  # of the largest value
_NOISES = 3  # standard deviations that a noisy value may lie beyond the best possible one


class Suggestion(NamedTuple):
    """The next point, raw, and where it comes from."""

    x: np.ndarray
    given: int | None = None  # its position among the points to be tried first
    decision: Decision | None = None  # the model's, where that is used


class Planner:
    """What comes next in a run. ``loss``, ``search`` and ``best_possible`` may be changed at any time.

    ``sign``: -1 where the values told are the negated ones of the user; sentences are about the user's.
    """

    def __init__(self, inference: Inference, loss: Loss, search: Search) -> None:
        self.inference, self.ledger, self.space = inference, inference.ledger, inference.space
        self.loss, self.search = loss, search
        self.n_initial = 1
        self.best_possible: float | None = None
        self.sign = 1.0
        self.parallel = 1  # the most evaluations that were asked for at once, so far

    def snapshot(self) -> Planner:
        """The planner at this moment, whatever is told or asked later."""
        found = copy.copy(self)
        found.inference = self.inference.snapshot()
        found.ledger = found.inference.ledger
        return found

    def is_initial(self) -> bool:
        """Whether the next point is an initial one: given by x0, not enough evaluations yet, or no value inside the ranges."""
        ledger = self.ledger
        return ledger.next_given() is not None or ledger.evaluated < self.n_initial or not ledger.has_value_inside

    def next(self) -> Suggestion:
        """The next point."""
        ledger = self.ledger
        given = ledger.next_given()
        if given is not None:
            return Suggestion(ledger.first[given], given=given)
        self.check_not_exhausted()
        if self.is_initial():
            return Suggestion(design_point(self.inference, ledger.evaluated))
        decision = self._decide()
        x = self.space.from_unit(decision.x)
        sound = math.isfinite(decision.value) or (self.space.lattice is None and ledger.cost is None)
        if sound and ledger.affords(x):
            return Suggestion(x, decision=decision)
        return Suggestion(design_point(self.inference, ledger.evaluated))

    def plan(self) -> Plan:
        """The next point and where the rest of the budget is predicted to go."""
        self.check_not_exhausted()
        if self.is_initial():
            return self._predicted(self._rest_of_design())
        found, remaining = self.next(), self.ledger.remaining
        decision = found.decision
        if decision is None:
            return self._predicted([found.x])
        known = self.inference
        if horizon(self.loss, remaining, self._trust()) < remaining:
            decision = plan_after(known.model.kernel, known.problem(), np.asarray(decision.x), known.rng(Purpose.PLAN))
        unit = np.concatenate([decision.x[None], decision.steps[: remaining - 1]])
        mean, sd = known.outputs().moments(decision.mean[: len(unit)], decision.sd[: len(unit)])
        return self._plan(list(self.space.from_unit(unit)), mean, sd)

    def _plan(self, points: list[np.ndarray], mean: np.ndarray, sd: np.ndarray) -> Plan:
        floor, now = self._floor(), self.snapshot()
        return Plan(
            [self.space.form(x) for x in points], mean if floor is None else np.maximum(mean, floor), sd, now._at_the_end
        )

    def _at_the_end(self) -> float | None:
        """The best value expected once the budget is spent; None where there is no forecast."""
        try:
            return float(self.forecast().expected[-1])
        except (TooFewValuesError, ExhaustedError):
            return None

    def forecast(self, steps: int | None = None, x: np.ndarray | None = None, *, raw: bool = False) -> Forecast:
        """What the next evaluations are expected to bring, the first at the raw point x: see ``Optimizer.forecast``."""
        ledger, needed = self.ledger, self.space.d + 2
        if len(ledger.y) < needed:
            raise TooFewValuesError(
                f"A forecast needs {needed} values, two more than there are parameters, got {len(ledger.y)}: "
                f"tell {needed - len(ledger.y)} more first."
            )
        if ledger.best is None:
            if ledger.has_value_inside:
                raise TooFewValuesError("A forecast needs a feasible value, got none: it says what comes after the first one.")
            raise TooFewValuesError("A forecast needs a value inside today's ranges, got none: evaluate there first.")
        self.check_not_exhausted()
        left = ledger.remaining
        far = min(left, MAX_HORIZON) or FIVE
        n = far if steps is None else steps
        if n > MAX_HORIZON:
            raise ValueError(f"At most {MAX_HORIZON} evaluations can be forecast at once, got steps = {n}.")
        far, new = max(far, n), ledger.new_configurations()
        if far > new and self.is_exact():
            if steps is not None and n > new:
                raise ValueError(f"steps = {n} but only {new:.0f} configurations of this space are new: ask for no more.")
            far = int(new)
        first = (self if left else self._with_more(far)).next().x if x is None else x
        found = self._simulated(first, far, raw=raw)
        if steps is not None and n > found.payable:
            raise ValueError(f"steps = {n} but {found.payable} can be paid for: look less far or raise the budget.")
        return found.first(min(n, found.payable))

    def _with_more(self, count: int) -> Planner:
        """The planner as if so many evaluations were added to the budget."""
        found = self.snapshot()
        found.ledger.budget = found.ledger.budget + count
        return found

    def _simulated(self, x: np.ndarray, n: int, *, raw: bool) -> Forecast:
        """The forecast for n evaluations, corrected and within its limits unless ``raw``."""
        known, kernel, unit = self.inference, self.inference.model.kernel, self.space.to_unit(x)

        def gains() -> ForecastGains:
            problem = known.problem()
            return forecast_after(kernel, problem, unit, n, self.search.candidates, known.rng(Purpose.FORECAST))

        found = known.once("forecast", (*known.moment(), unit.tobytes(), n, known.model, self.search), gains)
        forecast = Forecast.of(found, n, known.outputs(), self.ledger.remaining)
        if raw:
            return forecast
        if not isinstance(known.model.fit, Known):
            values = self.ledger.feasible_values
            forecast = CORRECTION.applied(forecast, values, len(self.ledger.pending), known.pending_gain())
        floor = self._floor(warn=True)
        return in_order(forecast if floor is None else limited(forecast, floor))

    def pending_gain(self) -> float:
        """What the pending evaluations are expected to gain by themselves, within what is possible."""
        gain, floor = self.inference.pending_gain(), self._floor()
        return gain if floor is None or not gain else float(limited_mean(gain, max(0.0, self.ledger.best_value - floor)))

    def _floor(self, *, warn: bool = False) -> float | None:
        """The best possible value, if one is given and no value told beats it by more than its noise explains."""
        floor, values = self.best_possible, self.ledger.feasible_values
        if floor is None or not values or min(values) >= floor:
            return floor
        known = self.inference
        noise = 0.0 if self.is_exact() else known.outputs().gain(math.sqrt(float(known.posterior().noise)))
        if min(values) >= floor - _NOISES * noise - _ROUNDING * float(np.max(np.abs(values))):
            return floor
        if warn:
            words = beaten(self.sign * floor, self.sign * min(values))
            warnings.warn(words, BestPossibleWarning, stacklevel=5)
        return None

    def loss_at(self, points: np.ndarray, n: int) -> np.ndarray:
        """The loss at raw points with n evaluations remaining, in the units of y."""
        known, kernel = self.inference, self.inference.model.kernel
        if self.ledger.best is None and self.ledger.has_value_inside:
            raise ValueError("The loss is a feasible value, and none is known yet: ask says where to look for one.")
        problem = known.problem()
        candidates = candidates_for(kernel, problem, self.search.candidates, known.rng(Purpose.DECISION))
        eta, gain = gains_at(self.loss, kernel, candidates, problem, self.space.to_unit(points), n)
        return known.outputs().inverse(eta - gain)

    def predict(self, points: np.ndarray) -> tuple[Any, Any]:
        """Posterior mean and standard deviation at raw points, in the units of y."""
        return self.inference.outputs().moments(*self._normal(points))

    def quantiles(self, points: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Quantiles of the posterior at raw points in the units of y, (n, levels)."""
        mu, sd = self._normal(points)
        return self.inference.outputs().quantile(mu[:, None], sd[:, None], levels)

    def _normal(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation at raw points in the units of the model."""
        known = self.inference
        return predict(known.model.kernel, known.posterior(), self.space.to_unit(points))

    def feasibility(self, points: np.ndarray) -> np.ndarray:
        """The probability that an evaluation is feasible, at raw points."""
        known = self.inference
        model = known.feasibility()
        if model is None:
            return np.ones(len(points))
        return np.exp(feasible_at(model, self.space.to_unit(points), known.model.kernel)[0])

    def recommend(self) -> Recommendation:
        """The minimum of the posterior mean, over what is likely to be feasible."""
        known, d = self.inference, self.space.d
        every = self.space.every(SMALL)
        spread = kronecker(d, SMALL) if every is None else np.resize(every, (SMALL, d))
        lattice, kernel = self.space.lattice, known.model.kernel
        found = lowest_mean(kernel, known.masked(known.posterior()), spread, lattice, known.feasibility())
        x = self.space.from_unit(found.x)
        outputs, mean, sd = known.outputs(), found.mean, found.sd
        low, high = (float(outputs.quantile(mean, sd, 0.5 + side * BAND / 2)) for side in (-1, 1))
        mean, sd = outputs.moments(mean, sd)
        return Recommendation(self.space.form(x), float(mean), float(sd), low, high, found.feasibility)

    def is_exact(self) -> bool:
        """Whether the fitted model takes evaluations to be without noise."""
        return float(self.inference.posterior().noise) < NEGLIGIBLE_NOISE

    def check_not_exhausted(self) -> None:
        """Raise ``ExhaustedError`` if every configuration of a finite space is done or pending and evaluations are exact."""
        if self.ledger.is_exhausted() and (not self.ledger.y or self.is_exact()):
            raise ExhaustedError(
                f"All {self.space.size:.0f} configurations of this space are evaluated or pending and a repetition would tell "
                "nothing new: the search is complete. If evaluations are noisy, say so with noise=."
            )

    def _decide(self) -> Decision:
        known = self.inference

        def decide() -> Decision:
            wait(self)
            began = time.perf_counter()
            problem = replace(known.problem(), trust=self._trust())
            decision = self.search.decide(self.loss, known.model.kernel, problem, known.rng(Purpose.DECISION))
            self._log(decision, horizon(self.loss, problem.remaining, problem.trust), time.perf_counter() - began)
            rehearse(self, problem, problem.trust)
            return decision

        return known.once("decision", (*known.moment(), self.loss, known.model, self.search), decide)

    def _log(self, decision: Decision, ahead: int, seconds: float) -> None:
        if not DECISIONS.isEnabledFor(logging.INFO):
            return
        outputs, sign, ledger = self.inference.outputs(), self.sign, self.ledger
        mean, sd = outputs.moments(decision.mean[:1], decision.sd[:1])
        DECISIONS.info(
            "decided on %s after %d values, %d left, planning %d: the model expects %.6g +- %.2g there; %.2f s",
            point_text(self.space.form(self.space.from_unit(decision.x))),
            *(len(ledger.y), ledger.remaining, ahead, sign * float(mean[0]), float(sd[0]), seconds),
        )

    def _trust(self) -> Trust | None:
        """How far ahead the model is trusted; None: to the end of the budget."""
        known = isinstance(self.inference.model.fit, Known)
        if self.loss.steps != "trusted" or known or self.ledger.cost is not None:
            return None
        return trust_after(self.inference.record(self.first_recorded()))

    def first_recorded(self) -> int:
        """The number of the first value that the model's record holds: chosen by the model, and d + 2 known before it."""
        return max(self.space.d + 2, self.n_initial)

    def _rest_of_design(self) -> list[np.ndarray]:
        """The initial points to come."""
        ledger, used, remaining = self.ledger, self.ledger.evaluated, self.ledger.remaining
        rest: list[np.ndarray] = []
        for wanted in ledger.first:
            rest += [wanted] if ledger.affords(wanted, rest) else []
        try:
            while len(rest) < min(remaining, max(1, self.n_initial - used)) and not ledger.is_exhausted():
                rest.append(design_point(self.inference, used + len(rest), rest))
        except ExhaustedError:
            if not rest:
                raise
        return rest[:remaining]

    def _predicted(self, points: list[np.ndarray]) -> Plan:
        unknown = np.full(len(points), math.nan)
        mean, sd = self.predict(np.array(points)) if self.ledger.y else (unknown, unknown)
        return self._plan(points, mean, sd)
