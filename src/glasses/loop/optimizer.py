"""Ask/tell: the optimiser as an object that holds the data, the pending points and the budget, and decides.

A decision is a pure function of (seed, data, pending points, budget, configuration): no state is carried from one decision
to the next, so the same data in another process gives the same suggestion. ``tell`` is cheap, the model is fitted in
``ask``. Input is checked whole before anything changes. Outputs are standardised and rounded to 1e-10 of their spread
before the model sees them (see ``space`` for the inputs), so that a change of units does not alter a run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glasses.lookahead.forecast import Foretold, foretell
from glasses.lookahead.loss import Loss
from glasses.loop.checks import checked_model, checked_seed, values_of, whole
from glasses.loop.correction import HINDSIGHT
from glasses.loop.cost import Cost
from glasses.loop.knowledge import SMALL, Knowledge
from glasses.loop.ledger import ExhaustedError, Ledger
from glasses.loop.result import Forecast, Plan, Recommendation, Result
from glasses.presets import DEFAULT, Preset
from glasses.runtime.padding import MAX_HORIZON, horizon_size
from glasses.search.cascade import open_scene, planned
from glasses.search.decision import Decision, Search
from glasses.search.foresee import foresee
from glasses.search.recommend import even_steps, lowest_mean, predict
from glasses.search.surface import gains_at
from glasses.search.survey import cover
from glasses.space.space import Space
from glasses.surrogate.fit import Known
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.posterior import NEGLIGIBLE_NOISE, Posterior

_ENUMERABLE = 100_000


class Optimizer:
    """Minimise an expensive function within a known number of evaluations.

    ``bounds``: (low, high) pairs, ``Float``, ``Int`` and ``Choice`` in a list or ``{name: ...}``, or a
    ``scipy.optimize.Bounds``. ``budget``: all evaluations, the initial ones and those told included. ``cost``: what an
    evaluation costs, a function called like the objective or a table (``{parameter: {value: cost}}`` or ``{parameter: cost
    per unit}``); the budget is then an amount, and what is planned is what still fits. ``n_initial``: evaluations
    before the model decides (default: 2 d, at least 3, at most half the budget). ``x0``: points to try first; with ``y0``,
    points already evaluated. ``noise``: standard deviation of an evaluation in the units of y; 0 declares them exact, None
    learns it. ``count_failures=False``: a failed evaluation costs no budget (up to ``budget`` of them). ``loss``, ``model``,
    ``search``: see ``glasses.DEFAULT``; ``preset``: all three together.
    ``seed``: same seed, same suggestions; without one a seed is drawn and kept in
    ``.seed``.
    """

    def __init__(
        self,
        bounds: Any,
        *,
        budget: float,
        cost: Any = None,
        n_initial: int | None = None,
        x0: Any = None,
        y0: Any = None,
        noise: float | None = None,
        count_failures: bool = True,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
        preset: Preset | None = None,
        seed: int | None = None,
    ) -> None:
        usual = DEFAULT if preset is None else preset
        self.space = Space(bounds)
        self.loss = usual.loss if loss is None else loss
        fitted = checked_model(model, noise) if preset is None or model is not None or noise is not None else usual.model
        self.search = usual.search if search is None else search
        for given, name, method in (
            (self.loss, "loss", "merit"),
            (fitted, "model", "posterior"),
            (self.search, "search", "decide"),
        ):
            if isinstance(given, type) or not callable(getattr(given, method, None)):
                raise ValueError(f"{name} must be an object such as {getattr(DEFAULT, name)!r}, got {given!r}.")
        self.seed = checked_seed(seed)
        if not isinstance(count_failures, bool):
            raise ValueError(f"count_failures must be True or False, got {count_failures!r}.")
        self._ledger = Ledger(self.space, budget, count_failures, None if cost is None else Cost(self.space, cost))
        self._known = Knowledge(self._ledger, fitted, self.seed)
        typical = 1 if self._ledger.cost is None else self._ledger.cost.usual
        usually = usual_initial(self.space, int(self.budget / typical))
        self.n_initial = usually if n_initial is None else whole("n_initial", n_initial, 1)
        if self.n_initial > self.remaining:
            raise ValueError(
                f"n_initial = {self.n_initial} but the budget of {self.budget:g} pays for {self.remaining} evaluations: lower "
                "it or raise the budget."
            )
        if y0 is not None and x0 is None:
            raise ValueError("y0 needs x0: give the points that these values belong to.")
        if x0 is not None:
            points, _ = self.space.read(x0, "x0")
            if y0 is not None:
                self._ledger.tell(points, values_of(y0, "y0", single=False), None, ("x0", "y0"))
            elif self._ledger.price([*points]) > self._ledger.purse:
                raise ValueError(
                    f"x0 holds {len(points)} points but the budget is {self.budget:g}: raise the budget or drop some."
                )
            else:
                self._ledger.first = list(points)

    @property
    def model(self) -> GaussianProcess:
        """What is assumed of the objective. May be changed at any time, like ``loss`` and ``search``."""
        return self._known.model

    @model.setter
    def model(self, value: GaussianProcess) -> None:
        self._known.model = value

    @property
    def budget(self) -> float:
        """All evaluations, or all that may be spent, what is already told included. May be changed at any time."""
        return self._ledger.budget

    @budget.setter
    def budget(self, value: float) -> None:
        self._ledger.budget = value

    @property
    def remaining(self) -> int:
        """Evaluations that can still be asked for (with costs: if all were as cheap as the cheapest)."""
        return self._ledger.remaining

    @property
    def pending(self) -> list[Any]:
        """Points asked for and not told yet."""
        return [self.space.form(x) for x in self._ledger.pending]

    @property
    def values(self) -> list[float]:
        """The values told so far, in order of arrival; failures have none."""
        return list(self._ledger.y)

    def ask(self, n: int | None = None) -> Any:
        """The next point, or a list of the next n points; each becomes pending until it is told."""
        count, books = 1 if n is None else whole("n", n, 1), self._ledger
        if count > self.remaining:
            raise ValueError(
                f"{count} asked but {self.remaining} {self._of_budget()} ({books.spent:g} told, "
                f"{books.price(books.pending):g} pending): tell results or raise optimizer.budget."
            )
        before = books.pending, books.first
        asked = []
        try:
            for _ in range(count):
                x = self._next()
                wanted = next((k + 1 for k, each in enumerate(books.first) if each is x), 0)
                books.pending, books.first = [*books.pending, x], books.first[wanted:]
                asked.append(self.space.form(x))
        except BaseException:
            books.pending, books.first = before  # a point that was not handed out is not pending
            raise
        return asked[0] if n is None else asked

    def tell(self, x: Any, y: Any, *, reason: str | None = None) -> None:
        """Record one evaluation or several: points asked for or not, in any order.

        None, NaN or an infinite value means that the evaluation failed, for which ``reason`` may be kept.
        """
        points, single = self.space.read(x)
        self._ledger.tell(points, values_of(y, "y", single), reason, ("x", "y"))

    def mark_pending(self, x: Any) -> None:
        """Declare points that are being evaluated somewhere else as pending."""
        points, _ = self.space.read(x)
        if self._ledger.price([*points]) > self._ledger.purse:
            raise ValueError(
                f"{len(points)} more pending points but {self.remaining} {self._of_budget()}: raise the budget first."
            )
        self._ledger.pending = [*self._ledger.pending, *points]

    def result(self) -> Result:
        """Everything known so far; ``success`` once the budget is spent."""
        result = self.record()
        if self._ledger.y:
            result.recommended = self._recommend()
        return result

    def record(self) -> Result:
        """``result()`` without the recommendation: no model is fitted."""
        books = self._ledger
        done = self.remaining == 0 and not books.pending
        words = f"{books.spent:g} of {self.budget:g} {'evaluations done' if books.cost is None else 'spent'}."
        if books.failed:
            words = f"{words[:-1]}, {len(books.failed)} failed{'' if books.count_failures else ' and not counted'}."
        best = int(np.argmin(books.y)) if books.y else None
        return Result(
            x=None if best is None else self.space.form(books.X[best]),
            fun=math.nan if best is None else books.y[best],
            success=done and best is not None,
            status=0 if done else 1,
            message="Budget spent: " + words if done else "Unfinished: " + words,
            nfev=len(books.y) + len(books.failed),
            nit=max(0, len(books.y) + len(books.failed) - self.n_initial),
            x_iters=[self.space.form(x) for x in books.X],
            func_vals=np.array(books.y),
            failures=books.failures(),
            recommended=None,
            seed=self.seed,
        )

    def predict(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the objective at one point or several, in the units of y."""
        points, _ = self.space.read(x)
        if not self._ledger.y:
            raise ValueError("There is no data to predict from: tell at least one evaluation first.")
        centre, scale = self._known.units()
        mu, sd = predict(self.posterior(), self.space.to_unit(points), kernel=self.model.kernel)
        return centre + scale * np.asarray(mu), scale * np.asarray(sd)

    def loss_at(self, x: Any, left: int | None = None) -> np.ndarray:
        """The loss at one point or several, in the units of y: the best value expected at the end if the next point is x.

        ``left`` evaluations are left, the one at x included (default: all that remain).
        """
        points, _ = self.space.read(x)
        if not self._ledger.y:
            raise ValueError("There is no data to value a point by: tell at least one evaluation first.")
        if not self.loss.is_gain:
            raise ValueError(f"{type(self.loss).__name__} is no expected value: use Glasses, TwoStage or ExpectedLoss.")
        n = self._ahead("left", left, max(1, self.remaining))
        situation, kernel = self._known.situation(), self.model.kernel
        scene = open_scene(kernel, situation, self.search.places, self._known.rng(1))
        eta, gain = gains_at(self.loss, kernel, scene, self.space.to_unit(points), n, situation.price)
        centre, scale = self._known.units()
        return centre + scale * (eta - gain)

    def plan(self) -> Plan:
        """The next point and where the rest of the budget is predicted to go. Asks for nothing."""
        if self.remaining == 0:
            raise ValueError(
                f"Nothing is left to plan: all {self.budget:g} evaluations are told or pending; raise optimizer.budget."
            )
        self._check_not_exhausted()
        if self._opening():
            used = self._ledger.evaluated
            rest: list[np.ndarray] = []
            for wanted in self._ledger.first:
                rest += [wanted] if self._ledger.affords(wanted, rest) else []
            try:
                while len(rest) < min(self.remaining, max(1, self.n_initial - used)) and not self._ledger.is_exhausted():
                    rest.append(self._design(used + len(rest), rest))
            except ExhaustedError:
                if not rest:
                    raise
            return self._predicted(rest[: self.remaining])
        decision, left, x = self._decide(), self.remaining, self._next()
        if not np.array_equal(self.space.from_unit(decision.x), x):
            return self._predicted([x])
        if planned(self.loss, left) < left:
            decision = foresee(self.model.kernel, self._known.situation(), np.asarray(decision.x), self._known.rng(2))
        centre, scale = self._known.units()
        steps = decision.steps[: left - 1]
        unit = np.concatenate([decision.x[None], steps])
        gain = math.exp(decision.merit) if self.loss.is_gain else None
        return Plan(
            points=[self.space.form(x) for x in self.space.from_unit(unit)],
            mean=centre + scale * decision.mean[: len(unit)],
            sd=scale * decision.sd[: len(unit)],
            expected_best=None if gain is None else centre + scale * (decision.eta - gain),
        )

    def forecast(self, steps: int | None = None, *, x: Any = None, raw: bool = False) -> Forecast:
        """What the next k evaluations are expected to bring, k = 1..``steps`` (default: all that remain). Asks for nothing.

        ``x``: the first of them (default: the point that ``ask`` would give). Forecasts of a fitted model are corrected by what
        those of many earlier runs got wrong (``hindsight``); ``raw=True``: as the model sees it.
        """
        if not self._ledger.y:
            raise ValueError("There is no data to forecast from: tell at least one evaluation first.")
        if self.remaining == 0:
            raise ValueError(f"Nothing is left to forecast: the budget of {self.budget:g} is used; raise optimizer.budget.")
        most = min(self.remaining, MAX_HORIZON)
        n = self._ahead("steps", steps, most)
        if n > MAX_HORIZON:
            raise ValueError(f"At most {MAX_HORIZON} evaluations can be forecast at once, got steps = {n}.")
        self._check_not_exhausted()
        new = self._ledger.new_configurations()
        if most > new and float(self.posterior().hyper.noise) < NEGLIGIBLE_NOISE:
            if steps is not None and n > new:
                raise ValueError(f"steps = {n} but only {new:.0f} configurations of this space are new: ask for no more.")
            most = int(new)
        at = self.space.to_unit(self._next() if x is None else self.space.read(x)[0][0])
        forecast = self._forecast(at, most, raw)
        if steps is not None and n > forecast.payable:
            raise ValueError(f"steps = {n} but {forecast.payable} can be paid for: look less far or raise the budget.")
        return forecast.first(min(n, forecast.payable))

    def _forecast(self, x: np.ndarray, n: int, raw: bool) -> Forecast:
        known, kernel = self._known, self.model.kernel

        def foretold() -> Foretold:
            situation = known.situation()
            scene = open_scene(kernel, situation, self.search.places, known.rng(3))
            price = None if situation.price is None else situation.price(x[None])[0]
            return foretell(scene, x, price, np.asarray(n), kernel=kernel, size=horizon_size(n))

        found = known.once("forecast", (*known.moment(), x.tobytes(), n, self.model, self.search), foretold)
        centre, scale = known.units()
        forecast = Forecast.of(found, n, centre, scale)
        believed = raw or isinstance(self.model.fit, Known)
        return forecast if believed else HINDSIGHT.applied(forecast, self._ledger.y, len(self.pending), known.under_way())

    def _opening(self) -> bool:
        """Whether the next point is an initial one: given by x0, not enough evaluations yet, or nothing told to learn from."""
        return (
            any(map(self._ledger.affords, self._ledger.first)) or self._ledger.evaluated < self.n_initial or not self._ledger.y
        )

    def _next(self) -> np.ndarray:
        for wanted in self._ledger.first:
            if self._ledger.affords(wanted):
                return wanted
        self._check_not_exhausted()
        if self._opening():
            return self._design(self._ledger.evaluated)
        decision = self._decide()
        x = self.space.from_unit(decision.x)
        sound = math.isfinite(decision.merit) or (self.space.lattice is None and self._ledger.cost is None)
        return x if sound and self._ledger.affords(x) else self._design(self._ledger.evaluated)

    def _design(self, k: int, also: list[np.ndarray] | None = None) -> np.ndarray:
        """The first point of the initial design that is not taken, after k evaluations; one Sobol sequence per seed."""
        sequence = self.space.from_unit(cover(self.space.d, k + 64, self._known.rng(0, decision=False)))
        everything = self.space.every(_ENUMERABLE)
        if everything is not None:
            shuffled = self._known.rng(4, decision=False).permutation(everything)
            sequence = np.concatenate([sequence, self.space.from_unit(shuffled)])
        if self._ledger.cost is not None:
            sequence = np.concatenate([sequence, self._ledger.cost.places])
        for x in sequence:
            if not self._ledger.is_taken(x, also) and self._ledger.affords(x, also):
                return x
        if self._ledger.cost is not None:
            raise ExhaustedError(
                f"{self._ledger.unspent:.6g} of {self.budget:g} is left and nothing new was found that it pays for: "
                "the run is complete, or raise optimizer.budget."
            )
        return sequence[k % len(sequence)]  # only in a large finite space, by a chance nobody will live to see

    def _ahead(self, name: str, given: int | None, most: int) -> int:
        n = whole(name, most if given is None else given, 1, ": leave it out to look as far as can be")
        if n > max(1, self.remaining):
            raise ValueError(f"{name} = {n} but {self.remaining} {self._of_budget()}: look less far or raise the budget.")
        return n

    def _of_budget(self) -> str:
        return (
            f"of {self.budget:g} evaluations remain"
            if self._ledger.cost is None
            else f"at most fit into the {self._ledger.unspent:.6g} left"
        )

    def _check_not_exhausted(self) -> None:
        """In a finite space there may be nothing left to learn: unless the noise makes repetitions worth something."""
        if not self._ledger.is_exhausted():
            return
        if not self._ledger.y or float(self.posterior().hyper.noise) < NEGLIGIBLE_NOISE:
            raise ExhaustedError(
                f"All {self.space.size:.0f} configurations of this space are evaluated or pending and a repetition would tell "
                "nothing new: the search is complete. If evaluations are noisy, say so with noise=."
            )

    def _decide(self) -> Decision:
        known = self._known

        def decide() -> Decision:
            return self.search.decide(self.loss, self.model.kernel, known.situation(), known.rng(1))

        return known.once("decision", (*known.moment(), self.loss, self.model, self.search), decide)

    def posterior(self) -> Posterior:
        """The fitted model given everything told, over the unit cube and standardised outputs; fitted once per state."""
        return self._known.posterior()

    def _recommend(self) -> Recommendation:
        centre, scale = self._known.units()
        post = self.posterior()
        every = self.space.every(SMALL)
        spread = even_steps(self.space.d, 256) if every is None else np.resize(every, (256, self.space.d))
        found = lowest_mean(post, spread, self.space.lattice, self._known.success(), kernel=self.model.kernel)
        x = self.space.from_unit(np.asarray(found.x))
        return Recommendation(self.space.form(x), centre + scale * float(found.mean), scale * float(found.sd))

    def _predicted(self, points: list[np.ndarray]) -> Plan:
        unknown = np.full(len(points), math.nan)
        formed = [self.space.form(x) for x in points]
        mean, sd = self.predict(formed) if self._ledger.y else (unknown, unknown)
        return Plan(formed, mean, sd, None)


def usual_initial(space: Space, budget: int) -> int:
    """Evaluations before the model decides: 2 d, at least 3, at most half the budget or half of a finite space."""
    return int(max(1, min(max(3, 2 * space.d), budget // 2, space.size / 2)))
