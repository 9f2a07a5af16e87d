"""Deciding, planning and forecasting: what an optimiser does with its ledger and its model.

Everything here is a pure function of (ledger, model, loss, search, seed), remembered per state by ``Inference``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from glasses.lookahead.forecast import ForecastGains, forecast_gains
from glasses.lookahead.loss import Loss
from glasses.loop.correction import CORRECTION
from glasses.loop.design import design_point
from glasses.loop.inference import SMALL, Inference, Purpose
from glasses.loop.ledger import ExhaustedError
from glasses.loop.result import Forecast, Plan, Recommendation
from glasses.loop.trust import trust_after
from glasses.numerics.kronecker import kronecker
from glasses.runtime.padding import horizon_size
from glasses.search.decision import Decision, Search, Trust, horizon
from glasses.search.plan import plan_after
from glasses.search.propose import candidates_for
from glasses.search.recommend import lowest_mean, predict
from glasses.search.surface import gains_at
from glasses.surrogate.fit import Known
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE


class Suggestion(NamedTuple):
    """The next point, raw, and where it comes from."""

    x: np.ndarray
    given: int | None = None  # its position among the points to be tried first
    decision: Decision | None = None  # the model's, where that is used


class Planner:
    """What comes next in a run. ``loss`` and ``search`` may be changed at any time."""

    def __init__(self, inference: Inference, loss: Loss, search: Search) -> None:
        self.inference, self.ledger, self.space = inference, inference.ledger, inference.space
        self.loss, self.search = loss, search
        self.n_initial = 1

    def is_initial(self) -> bool:
        """Whether the next point is an initial one: given by x0, not enough evaluations yet, or nothing told to learn from."""
        ledger = self.ledger
        return ledger.next_given() is not None or ledger.evaluated < self.n_initial or not ledger.y

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
        gain = math.exp(decision.value) if self.loss.is_gain else None
        return Plan(
            points=[self.space.form(x) for x in self.space.from_unit(unit)],
            mean=mean,
            sd=sd,
            expected_best=None if gain is None else float(known.outputs().inverse(decision.eta - gain)),
        )

    def forecast(self, x: np.ndarray, n: int, *, raw: bool) -> Forecast:
        """What n evaluations are expected to bring when the first is at the raw point x."""
        known, kernel, unit = self.inference, self.inference.model.kernel, self.space.to_unit(x)

        def gains() -> ForecastGains:
            problem = known.problem()
            candidates = candidates_for(kernel, problem, self.search.candidates, known.rng(Purpose.FORECAST))
            cost = problem.cost_at(unit[None])
            first = None if cost is None else cost[0]
            return forecast_gains(candidates, unit, first, np.asarray(n), kernel=kernel, size=horizon_size(n))

        found = known.once("forecast", (*known.moment(), unit.tobytes(), n, known.model, self.search), gains)
        forecast = Forecast.of(found, n, known.outputs())
        if raw or isinstance(known.model.fit, Known):
            return forecast
        return CORRECTION.applied(forecast, self.ledger.y, len(self.ledger.pending), known.pending_gain())

    def loss_at(self, points: np.ndarray, n: int) -> np.ndarray:
        """The loss at raw points with n evaluations remaining, in the units of y."""
        known, kernel = self.inference, self.inference.model.kernel
        problem = known.problem()
        candidates = candidates_for(kernel, problem, self.search.candidates, known.rng(Purpose.DECISION))
        eta, gain = gains_at(self.loss, kernel, candidates, problem, self.space.to_unit(points), n)
        return known.outputs().inverse(eta - gain)

    def predict(self, points: np.ndarray) -> tuple[Any, Any]:
        """Posterior mean and standard deviation at raw points, in the units of y."""
        known = self.inference
        mu, sd = predict(known.posterior(), self.space.to_unit(points), kernel=known.model.kernel)
        return known.outputs().moments(np.asarray(mu), np.asarray(sd))

    def recommend(self) -> Recommendation:
        """The minimum of the posterior mean."""
        known, d = self.inference, self.space.d
        every = self.space.every(SMALL)
        spread = kronecker(d, SMALL) if every is None else np.resize(every, (SMALL, d))
        lattice, kernel = self.space.lattice, known.model.kernel
        found = lowest_mean(known.posterior(), spread, lattice, known.feasibility(), kernel=kernel)
        x = self.space.from_unit(np.asarray(found.x))
        mean, sd = known.outputs().moments(float(found.mean), float(found.sd))
        return Recommendation(self.space.form(x), float(mean), float(sd))

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
            problem = replace(known.problem(), trust=self._trust())
            return self.search.decide(self.loss, known.model.kernel, problem, known.rng(Purpose.DECISION))

        return known.once("decision", (*known.moment(), self.loss, known.model, self.search), decide)

    def _trust(self) -> Trust | None:
        """How far ahead the model is trusted; None: to the end of the budget."""
        known = isinstance(self.inference.model.fit, Known)
        if self.loss.steps != "trusted" or known or self.ledger.cost is not None:
            return None
        return trust_after(self.inference.record())

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
        return Plan([self.space.form(x) for x in points], mean, sd, None)
