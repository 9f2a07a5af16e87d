"""Ask/tell: the optimiser as an object that holds the data, the pending points and the budget, and decides.

A decision is a pure function of (seed, data, pending points, budget, configuration): no state is carried from one decision
to the next, so the same data in another process gives the same suggestion. ``tell`` is cheap, the model is fitted in
``ask``. Input is checked whole before anything changes. Outputs are transformed (``surrogate.outputs``) and rounded to 1e-10 of
their spread before the model sees them (see ``space`` for the inputs), so that a change of units does not alter a run.

Threads: every method may be called from any thread; calls wait for each other. Pickling keeps what was told and drops what can
be computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Unpack, overload

import jax
import numpy as np

from glasses.lookahead.loss import Loss
from glasses.loop.checks import checked_best_possible, checked_levels, checked_part, checked_seed, flag, values_of, whole, words
from glasses.loop.constraints import constraint_names, constraint_values
from glasses.loop.cost import Cost
from glasses.loop.design import usual_initial
from glasses.loop.forms import Floats, Mixed, Named, Settings, X
from glasses.loop.history import Change, History
from glasses.loop.inference import Inference
from glasses.loop.ledger import Ledger
from glasses.loop.parts import chosen
from glasses.loop.planner import Planner
from glasses.loop.result import Forecast, Plan, Result, record_of
from glasses.loop.saved import Saved
from glasses.loop.turns import in_turn
from glasses.presets import DEFAULT, Preset
from glasses.search.decision import Search
from glasses.space.space import Space
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.posterior import Posterior


class Optimizer(Saved[X]):
    """Minimise an expensive function within a known number of evaluations.

    Parameters
    ----------
    bounds : list, dict or scipy.optimize.Bounds
        What is varied: (low, high) pairs, ``Float``, ``Int`` and ``Choice``, in a list or by name.
    budget : int or float
        All evaluations, the initial ones and those told included; with ``cost``, the amount that may be spent.
    cost : callable or dict, optional
        What an evaluation costs: a function called like the objective, or a table (``{parameter: {value: cost}}`` or
        ``{parameter: cost per unit}``).
    constraints : int or list of str, optional
        How many constraints there are, or their names. Each value is told with theirs, and feasible if none is above 0.
    n_initial : int, optional
        Evaluations before the model decides (default: 2 d, at least 3, at most half the budget).
    x0, y0 : optional
        Points to try first; with ``y0``, points already evaluated and their values.
    noise : float, optional
        Standard deviation of an evaluation in the units of y; 0 declares them exact, None learns it.
    count_failures : bool
        False: a failed evaluation costs no budget (up to ``budget`` of them).
    best_possible : float, optional
        A value that none can beat, such as 0 for an error: forecasts, plans and stopping criteria expect nothing beyond it.
    loss, model, search : optional
        The parts of a decision; see ``glasses.lookahead``, ``glasses.surrogate`` and ``glasses.search``.
    preset : Preset, optional
        All three together (default: ``glasses.DEFAULT``); parts given beside it replace its own.
    seed : int, optional
        Same seed, same suggestions; without one a seed is drawn and kept in ``.seed``.

    Examples
    --------
    >>> from glasses import Optimizer
    >>> optimizer = Optimizer({"x": (0, 1)}, budget=6, seed=1)
    >>> optimizer.tell(optimizer.ask(), 0.25)
    >>> optimizer.remaining
    5
    """

    @overload
    def __init__(self: Optimizer[dict[str, Any]], bounds: Named, **settings: Unpack[Settings]) -> None: ...
    @overload
    def __init__(self: Optimizer[np.ndarray], bounds: Floats, **settings: Unpack[Settings]) -> None: ...
    @overload
    def __init__(self: Optimizer[list[Any]], bounds: Mixed, **settings: Unpack[Settings]) -> None: ...
    def __init__(
        self,
        bounds: Any,
        *,
        budget: float,
        cost: Any = None,
        constraints: int | Sequence[str | int] | None = None,
        n_initial: int | None = None,
        x0: Any = None,
        y0: Any = None,
        noise: float | None = None,
        count_failures: bool = True,
        best_possible: float | None = None,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
        preset: Preset | None = None,
        seed: int | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self.space = bounds if isinstance(bounds, Space) else Space(bounds)
        parts = chosen(preset, loss, model, search, noise)
        self.seed = checked_seed(seed)
        if not isinstance(count_failures, bool):
            raise ValueError(f"count_failures must be True or False, got {count_failures!r}.")
        price, names = None if cost is None else Cost(self.space, cost), constraint_names(constraints)
        self._ledger = Ledger(self.space, budget, count_failures, price, names)
        self._planner = Planner(Inference(self._ledger, parts.model, self.seed), parts.loss, parts.search)
        self.best_possible = best_possible
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
            self._begin(x0, y0)
        self._planner.n_initial = self.n_initial
        self._history = History(self._ledger)

    def _begin(self, x0: Any, y0: Any) -> None:
        points, _ = self.space.read(x0, "x0")
        if y0 is not None and self._ledger.constraints:
            raise ValueError("y0 lacks the values of the constraints: leave it out and tell(x, y, constraints=...).")
        if y0 is not None:
            self._ledger.tell(points, values_of(y0, "y0", single=False), None, ("x0", "y0"))
        elif self._ledger.cost_of([*points]) > self._ledger.spendable:
            raise ValueError(f"x0 holds {len(points)} points but the budget is {self.budget:g}: raise the budget or drop some.")
        else:
            self._ledger.first = list(points)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def loss(self) -> Loss:
        """What a decision minimises. May be changed at any time, like ``model`` and ``search``."""
        return self._planner.loss

    @loss.setter
    def loss(self, value: Loss) -> None:
        self._planner.loss = checked_part("loss", value, DEFAULT.loss)

    @property
    def model(self) -> GaussianProcess:
        """What is assumed of the objective."""
        return self._planner.inference.model

    @model.setter
    def model(self, value: GaussianProcess) -> None:
        self._planner.inference.model = checked_part("model", value, DEFAULT.model)

    @property
    def search(self) -> Search:
        """How the loss is minimised."""
        return self._planner.search

    @search.setter
    def search(self, value: Search) -> None:
        self._planner.search = checked_part("search", value, DEFAULT.search)

    @property
    def best_possible(self) -> float | None:
        """A value that none can beat, if one is known. May be changed at any time; decisions do not depend on it."""
        return self._planner.best_possible

    @best_possible.setter
    def best_possible(self, value: float | None) -> None:
        self._planner.best_possible = checked_best_possible(value)

    @property
    def budget(self) -> float:
        """All evaluations, or all that may be spent, what is already told included. May be changed at any time."""
        return self._ledger.budget

    @budget.setter
    def budget(self, value: float) -> None:
        with self._lock:
            self._ledger.budget = value

    @property
    def remaining(self) -> int:
        """Evaluations that can still be asked for (with costs: if all were as cheap as the cheapest)."""
        with self._lock:
            return self._ledger.remaining

    @property
    def pending(self) -> list[X]:
        """Points asked for and not told yet."""
        return [self.space.form(x) for x in self._ledger.pending]

    @property
    def values(self) -> list[float]:
        """The values told so far, in order of arrival; failures have none."""
        return list(self._ledger.y)

    @property
    def history(self) -> list[Change]:
        """What was corrected, withdrawn and cancelled, with what was there before."""
        return list(self._history.changes)

    @overload
    def ask(self, n: None = None) -> X: ...
    @overload
    def ask(self, n: int) -> list[X]: ...
    @in_turn
    def ask(self, n: int | None = None) -> Any:
        """The next point, or a list of the next n points; each becomes pending until it is told.

        Parameters
        ----------
        n : int, optional
            How many; None gives one point instead of a list.

        Returns
        -------
        A point in the form the objective takes: an array, a list if some parameters are not floats, or a dict for named bounds.
        """
        count, ledger = 1 if n is None else whole("n", n, 1), self._ledger
        if count > self.remaining:
            raise ValueError(
                f"{count} asked but {self.remaining} {self._ledger.of_budget()} ({ledger.spent:g} told, "
                f"{ledger.cost_of(ledger.pending):g} pending): tell results or raise optimizer.budget."
            )
        before = ledger.pending, ledger.first
        self._planner.parallel = max(self._planner.parallel, len(ledger.pending) + count)
        asked = []
        try:
            for _ in range(count):
                found = self._planner.next()
                if found.given is not None:
                    ledger.first = ledger.first[found.given + 1 :]
                ledger.pending = [*ledger.pending, found.x]
                asked.append(self.space.form(found.x))
        except BaseException:
            ledger.pending, ledger.first = before  # a point that was not handed out is not pending
            raise
        return asked[0] if n is None else asked

    @in_turn
    def tell(self, x: Any, y: Any, *, constraints: Any = None, reason: str | None = None, outside: bool = False) -> None:
        """Record one evaluation or several: points asked for or not, in any order.

        Parameters
        ----------
        x : point or list of points
        y : float or list of floats
            None, NaN or an infinite value means that the evaluation failed.
        constraints : list of float or dict, optional
            The values of the constraints; of several points a list of those. Those of a failed evaluation are not kept.
        reason : str, optional
            Why it failed.
        outside : bool
            Accept points outside the bounds too: data for the model, never the incumbent.
        """
        points, single = self.space.read(x, outside=flag("outside", outside))
        values, names = values_of(y, "y", single), self._ledger.constraints
        rows = constraint_values(constraints, names, values, single=single) if len(values) == len(points) else None
        self._ledger.tell(points, values, words("reason", reason), ("x", "y"), rows)

    @in_turn
    def correct(self, x: Any, y: Any = ..., *, at: Any = None, constraints: Any = ..., reason: str | None = None) -> None:
        """Correct a result that was told: its value, its point, its constraints. What was stays in ``history``.

        From then on everything is as if the corrected results had been told, in the same order.

        Parameters
        ----------
        x : point or int
            Which result: its point, or its number in order of telling, from 0 (failures and withdrawn results are counted too,
            so no number ever changes). An int is always a number: in one dimension write ``[3]`` for the point 3.
        y : float, optional
            The value; None, NaN or an infinite one means that the evaluation failed. Left out: the value stays.
        at : point, optional
            Where it really was evaluated.
        constraints : list of float or dict, optional
            The values of the constraints. Left out: they stay.
        reason : str, optional
            Why; of a failure, why it failed.
        """
        self._history.correct(x, y, at, words("reason", reason), constraints)

    @in_turn
    def withdraw(self, x: Any, reason: str | None = None) -> None:
        """Take a result out that was told, as if it never had been: it costs nothing, and its point may be suggested again.

        ``x``: its point or its number, as for ``correct``. What was stays in ``history``.
        """
        self._history.withdraw(x, words("reason", reason))

    @in_turn
    def cancel(self, x: Any, reason: str | None = None) -> None:
        """Take a pending point back that will not be evaluated: no cost, no effect. A result may still be told for it."""
        self._history.cancel(x, words("reason", reason))

    @in_turn
    def mark_pending(self, x: Any, *, outside: bool = False) -> None:
        """Declare points that are being evaluated somewhere else as pending; ``outside``: also points outside the bounds."""
        points, _ = self.space.read(x, outside=flag("outside", outside))
        if self._ledger.cost_of([*points]) > self._ledger.spendable:
            raise ValueError(
                f"{len(points)} more pending points but {self.remaining} {self._ledger.of_budget()}: raise the budget first."
            )
        self._ledger.pending = [*self._ledger.pending, *points]
        self._planner.parallel = max(self._planner.parallel, len(self._ledger.pending) + 1)

    @in_turn
    def result(self) -> Result[X]:
        """Everything known so far; ``success`` once the budget is spent and something feasible is known."""
        result = self.record()
        if self._ledger.y:
            result.recommended = self._planner.recommend()
        return result

    @in_turn
    def record(self) -> Result[X]:
        """``result()`` without the recommendation: no model is fitted."""
        return record_of(self._ledger, self.n_initial, self.seed)

    @in_turn
    def predict(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the objective at one point or several, in the units of y."""
        return self._planner.predict(self._predictable(x))

    @in_turn
    def quantiles(self, x: Any, levels: Sequence[float] = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of what the model predicts at one point or several, in the units of y: a row per point.

        They keep their meaning where outputs are transformed: half of the predictions lie below the median, whatever bends.
        """
        return self._planner.quantiles(self._predictable(x), checked_levels(levels))

    @in_turn
    def feasibility(self, x: Any) -> np.ndarray:
        """The probability that an evaluation at one point or several is feasible: gives a value and violates no constraint."""
        return self._planner.feasibility(self._predictable(x))

    def _predictable(self, x: Any) -> np.ndarray:
        """Points to predict at, once there is something to predict from."""
        points, _ = self.space.read(x)
        if not self._ledger.y:
            raise ValueError("There is no data to predict from: tell at least one evaluation first.")
        return points

    @in_turn
    def loss_at(self, x: Any, left: int | None = None) -> np.ndarray:
        """The loss at one point or several, in the units of y: the best value expected at the end if the next point is x.

        ``left`` evaluations are left, the one at x included (default: all that remain).
        """
        points, _ = self.space.read(x)
        if not self._ledger.y:
            raise ValueError("There is no data to value a point by: tell at least one evaluation first.")
        if not self.loss.is_gain:
            raise ValueError(f"{type(self.loss).__name__} is no expected value: use Glasses, TwoStage or ExpectedLoss.")
        return self._planner.loss_at(points, self._ledger.ahead("left", left, max(1, self.remaining)))

    @in_turn
    def plan(self) -> Plan[X]:
        """The next point and where the rest of the budget is predicted to go. Asks for nothing."""
        if self.remaining == 0:
            raise ValueError(
                f"Nothing is left to plan: all {self.budget:g} evaluations are told or pending; raise optimizer.budget."
            )
        return self._planner.plan()

    @in_turn
    def forecast(self, steps: int | None = None, *, x: Any = None, raw: bool = False) -> Forecast:
        """What the next k evaluations are expected to bring, k = 1..``steps``. Asks for nothing.

        ``steps``: default all that remain, or five where nothing does. More than remain: also what is beyond the budget (not
        with costs). ``x``: the first of them (default: the point that ``ask`` would give). Forecasts of a fitted model are
        corrected by what those of many earlier runs got wrong (``correction``) and kept within their bounds (``limits``);
        ``raw=True``: as the model sees it. Needs d + 2 values.
        """
        if self._ledger.cost is not None:
            if self.remaining == 0:
                raise ValueError(f"Nothing is left to forecast: the budget of {self.budget:g} is used; raise optimizer.budget.")
            self._ledger.ahead("steps", steps, 1)
        n = None if steps is None else whole("steps", steps, 1, ": leave it out to look as far as can be")
        return self._planner.forecast(n, None if x is None else self.space.read(x)[0][0], raw=raw)

    @in_turn
    def posterior(self) -> Posterior:
        """The fitted model given everything told, over the unit cube and transformed outputs, as NumPy arrays."""
        return jax.tree.map(np.asarray, self._planner.inference.posterior())
