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

from glasses import presets
from glasses.lookahead.loss import Loss
from glasses.loop.result import Plan, Recommendation, Result
from glasses.padding import data_size
from glasses.search.cascade import open_scene, planned
from glasses.search.decision import Decision, Search
from glasses.search.foresee import foresee
from glasses.search.recommend import lowest_mean, predict
from glasses.search.surface import gains_at
from glasses.search.survey import cover
from glasses.space import Space
from glasses.surrogate.fit import GaussianProcess
from glasses.surrogate.posterior import Posterior, grow

LARGEST = 1e100


class Optimizer:
    """Minimise an expensive function within a known number of evaluations.

    ``bounds``: pairs, a ``scipy.optimize.Bounds`` or ``{name: pair}``. ``budget``: all evaluations, the initial ones and
    those told included. ``n_initial``: evaluations before the model decides (default: 2 d, at least 3, at most half the
    budget). ``x0``: points to try first; with ``y0``, points already evaluated. ``loss``, ``model``, ``search``: see
    ``glasses.default()``. ``seed``: same seed, same suggestions; without one a seed is drawn and kept in ``.seed``.
    """

    def __init__(
        self,
        bounds: Any,
        *,
        budget: int,
        n_initial: int | None = None,
        x0: Any = None,
        y0: Any = None,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
        seed: int | None = None,
    ) -> None:
        usual = presets.default()
        self.space = Space(bounds)
        self.loss = usual["loss"] if loss is None else loss
        self.model = usual["model"] if model is None else model
        self.search = usual["search"] if search is None else search
        for given, name, method in (
            (self.loss, "loss", "merit"),
            (self.model, "model", "posterior"),
            (self.search, "search", "decide"),
        ):
            if isinstance(given, type) or not callable(getattr(given, method, None)):
                raise ValueError(f"{name} must be an object such as {usual[name]!r}, got {given!r}.")
        self.seed = _checked_seed(seed)
        self._X: list[np.ndarray] = []
        self._y: list[float] = []
        self._pending: list[np.ndarray] = []
        self._budget = _whole("budget", budget, 1)
        d = self.space.d
        usual_initial = max(1, min(max(3, 2 * d), self._budget // 2))
        self.n_initial = usual_initial if n_initial is None else _whole("n_initial", n_initial, 1)
        if self.n_initial > self._budget:
            raise ValueError(
                f"n_initial = {self.n_initial} exceeds the budget of {self._budget}: lower it or raise the budget."
            )
        self._first: list[np.ndarray] = []
        self._cache: dict[Any, Any] = {}
        if y0 is not None and x0 is None:
            raise ValueError("y0 needs x0: give the points that these values belong to.")
        if x0 is not None:
            points, _ = self.space.read(x0, "x0")
            if y0 is not None:
                self._tell(points, [_checked_value(v, f"y0[{i}]") for i, v in enumerate(_as_list(y0, "y0"))], "x0", "y0")
            elif len(points) > self._budget:
                raise ValueError(
                    f"x0 holds {len(points)} points but the budget is {self._budget}: raise the budget or drop some."
                )
            else:
                self._first = list(points)

    @property
    def budget(self) -> int:
        """All evaluations, those already told included. May be changed at any time."""
        return self._budget

    @budget.setter
    def budget(self, value: int) -> None:
        value = _whole("budget", value, 1)
        used = len(self._y) + len(self._pending)
        if value < used:
            raise ValueError(
                f"budget = {value} is below what is already used ({len(self._y)} told, "
                f"{len(self._pending)} pending): the least possible is {used}."
            )
        self._budget = value

    @property
    def remaining(self) -> int:
        """Evaluations that can still be asked for."""
        return self._budget - len(self._y) - len(self._pending)

    @property
    def pending(self) -> list[Any]:
        """Points asked for and not told yet."""
        return [self.space.form(x) for x in self._pending]

    @property
    def values(self) -> list[float]:
        """The values told so far, in order of arrival."""
        return list(self._y)

    def ask(self, n: int | None = None) -> Any:
        """The next point, or a list of the next n points; each becomes pending until it is told."""
        count = 1 if n is None else _whole("n", n, 1)
        if count > self.remaining:
            raise ValueError(
                f"{count} asked but {self.remaining} of {self._budget} evaluations remain "
                f"({len(self._y)} told, {len(self._pending)} pending): "
                "tell results or raise optimizer.budget."
            )
        before = self._pending, self._first
        asked = []
        try:
            for _ in range(count):
                x = self._next()
                self._pending, self._first = [*self._pending, x], self._first[1:]
                asked.append(self.space.form(x))
        except BaseException:
            self._pending, self._first = before  # a point that was not handed out is not pending
            raise
        return asked[0] if n is None else asked

    def tell(self, x: Any, y: Any) -> None:
        """Record one evaluation or several: points asked for or not, in any order."""
        points, single = self.space.read(x)
        given = [y] if single and not _holds_one(y) else _as_list(y, "y")
        self._tell(points, [_checked_value(v, "y" if single else f"y[{i}]") for i, v in enumerate(given)], "x", "y")

    def _tell(self, points: np.ndarray, numbers: list[float], name_x: str, name_y: str) -> None:
        if len(numbers) != len(points):
            raise ValueError(
                f"{name_x} holds {len(points)} points and {name_y} {len(numbers)} values: give one value per point."
            )
        pending, first = list(self._pending), list(self._first)
        for point in points:
            for waiting in (pending, first):
                match = _index_of(self.space.to_unit(point), [self.space.to_unit(p) for p in waiting])
                if match is not None:
                    del waiting[match]
                    break
        used = len(self._y) + len(points) + len(pending)
        if used > self._budget:
            raise ValueError(
                f"budget = {self._budget} is below the {used} evaluations this would make "
                f"({len(self._y)} told, {len(points)} new, "
                f"{len(pending)} pending): raise the budget first."
            )
        self._pending, self._first = pending, first
        self._X.extend(points)
        self._y.extend(numbers)

    def result(self) -> Result:
        """Everything known so far; ``success`` once the budget is spent."""
        result = self.record()
        if self._y:
            result.recommended = self._recommend()
        return result

    def record(self) -> Result:
        """``result()`` without the recommendation: no model is fitted."""
        told, done = len(self._y), len(self._y) >= self._budget
        words = f"{told} of {self._budget} evaluations done."
        best = int(np.argmin(self._y)) if told else None
        return Result(
            x=None if best is None else self.space.form(self._X[best]),
            fun=math.nan if best is None else self._y[best],
            success=done,
            status=0 if done else 1,
            message="Budget spent: " + words if done else "Unfinished: " + words,
            nfev=told,
            nit=max(0, told - self.n_initial),
            x_iters=[self.space.form(x) for x in self._X],
            func_vals=np.array(self._y),
            recommended=None,
            seed=self.seed,
        )

    def predict(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of the objective at one point or several, in the units of y."""
        points, _ = self.space.read(x)
        if not self._y:
            raise ValueError("There is no data to predict from: tell at least one evaluation first.")
        centre, scale = self._units()
        mu, sd = predict(self.posterior(), self.space.to_unit(points), kernel=self.model.kernel)
        return centre + scale * np.asarray(mu), scale * np.asarray(sd)

    def loss_at(self, x: Any, left: int | None = None) -> np.ndarray:
        """The loss at one point or several, in the units of y: the best value expected at the end if the next point is x.

        ``left`` evaluations are left, the one at x included (default: all that remain).
        """
        points, _ = self.space.read(x)
        if not self._y:
            raise ValueError("There is no data to value a point by: tell at least one evaluation first.")
        if not self.loss.is_gain:
            raise ValueError(f"{type(self.loss).__name__} is no expected value: use Glasses, TwoStage or ExpectedLoss.")
        n = _whole("left", max(1, self.remaining) if left is None else left, 1)
        scene = open_scene(self.model.kernel, self.posterior(), self._pending_unit(), self.search.places, self._rng(1))
        eta, gain = gains_at(self.loss, self.model.kernel, scene, self.space.to_unit(points), n)
        centre, scale = self._units()
        return centre + scale * (eta - gain)

    def plan(self) -> Plan:
        """The next point and where the rest of the budget is predicted to go. Asks for nothing."""
        if self.remaining == 0:
            raise ValueError(
                f"Nothing is left to plan: all {self._budget} evaluations are told or pending; raise optimizer.budget."
            )
        if self._opening():
            used = len(self._y) + len(self._pending)
            rest = self._first + [self._design(used + k) for k in range(len(self._first), max(1, self.n_initial - used))]
            return self._predicted(rest[: self.remaining])
        decision, left = self._decide(), self.remaining
        if planned(self.loss, left) < left:
            decision = foresee(
                self.model.kernel, self.posterior(), np.asarray(decision.x), self._pending_unit(), left, self._rng(2)
            )
        centre, scale = self._units()
        steps = decision.steps[: left - 1]
        unit = np.concatenate([decision.x[None], steps])
        gain = math.exp(decision.merit) if self.loss.is_gain else None
        return Plan(
            points=[self.space.form(x) for x in self.space.from_unit(self.space.snap(unit))],
            mean=centre + scale * decision.mean[: len(unit)],
            sd=scale * decision.sd[: len(unit)],
            expected_best=None if gain is None else centre + scale * (decision.eta - gain),
        )

    def _opening(self) -> bool:
        """Whether the next point is an initial one: given by x0, not enough evaluations yet, or nothing told to learn from."""
        return bool(self._first) or len(self._y) + len(self._pending) < self.n_initial or not self._y

    def _next(self) -> np.ndarray:
        if self._first:
            return self._first[0]
        if self._opening():
            return self._design(len(self._y) + len(self._pending))
        return self.space.from_unit(self.space.snap(self._decide().x))

    def _design(self, k: int) -> np.ndarray:
        """Point k of the initial design: one Sobol sequence per seed."""
        return self.space.from_unit(self.space.snap(cover(self.space.d, k + 1, self._rng(0, decision=False))[k]))

    def _rng(self, purpose: int, *, decision: bool = True) -> np.random.Generator:
        moment = len(self._y) + len(self._pending) if decision else 0
        return np.random.default_rng([self.seed, purpose, moment])

    def _decide(self) -> Decision:
        key = ("decision", *self._moment(), self._budget, self.loss, self.model, self.search)
        if key not in self._cache:
            decision = self.search.decide(
                self.loss, self.model.kernel, self.posterior(), self._pending_unit(), self.remaining, self._rng(1)
            )
            self._remember(key, decision)
        return self._cache[key]

    def posterior(self) -> Posterior:
        """The fitted model given everything told, over the unit cube and standardised outputs; fitted once per state."""
        if not self._y:
            raise ValueError("There is no data to fit a model to: tell at least one evaluation first.")
        key = ("posterior", len(self._y), self.model)
        if key not in self._cache:
            centre, scale = self._units()
            X = self.space.to_unit(np.array(self._X))
            y = np.round((np.array(self._y) - centre) / scale, 10)
            self._remember(key, self.model.posterior(X, y, y_centre=centre, y_scale=scale))
        return _with_room(self._cache[key], len(self._pending))

    def _remember(self, key: Any, value: Any) -> None:
        self._cache = {k: v for k, v in self._cache.items() if k[0] != key[0]} | {key: value}

    def _moment(self) -> tuple[int, tuple[bytes, ...]]:
        return len(self._y), tuple(x.tobytes() for x in self._pending)

    def _units(self) -> tuple[float, float]:
        """Centre and scale of the outputs; a constant has scale 1."""
        y = np.array(self._y)
        centre = float(np.mean(y))
        size = float(np.max(np.abs(y)))
        spread = float(np.std(y / size)) if size > 0 else 0.0  # relative first: squares of tiny values vanish
        return centre, size * spread if spread > 1e-13 else 1.0

    def _pending_unit(self) -> np.ndarray:
        return self.space.to_unit(np.array(self._pending)) if self._pending else np.zeros((0, self.space.d))

    def _recommend(self) -> Recommendation:
        centre, scale = self._units()
        post = _with_room(self.posterior(), 0)
        found = lowest_mean(post, cover(self.space.d, 256, self._rng(3, decision=False)), kernel=self.model.kernel)
        x = self.space.from_unit(self.space.snap(np.asarray(found.x)))
        return Recommendation(self.space.form(x), centre + scale * float(found.mean), scale * float(found.sd))

    def _predicted(self, points: list[np.ndarray]) -> Plan:
        unknown = np.full(len(points), math.nan)
        mean, sd = self.predict(points) if self._y else (unknown, unknown)
        return Plan([self.space.form(x) for x in points], mean, sd, None)


def _with_room(post: Posterior, extra: int) -> Posterior:
    """The posterior in arrays large enough for ``extra`` more observations."""
    have, need = post.X.shape[0], data_size(int(post.observed) + extra)
    return post if need <= have else grow(post, need)


def _index_of(x: np.ndarray, among: list[np.ndarray]) -> int | None:
    for i, other in enumerate(among):
        if np.max(np.abs(x - other)) < 1e-8:
            return i
    return None


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def _checked_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return _whole("seed", seed, 0)


def _holds_one(y: Any) -> bool:
    return isinstance(y, list | tuple | np.ndarray) and np.ndim(y) == 1 and len(y) == 1


def _as_list(y: Any, what: str) -> list[Any]:
    if isinstance(y, str | bytes):
        raise ValueError(f"{what} must be a number, got the text {y!r}.")
    try:
        return list(y)
    except TypeError:
        return [y]


def _checked_value(value: Any, what: str) -> float:
    if isinstance(value, str | bytes | bool | np.bool_ | None) or np.iscomplexobj(value):
        raise ValueError(f"{what} must be a number, got {value!r}.")
    try:
        number = float(np.asarray(value, dtype=float).reshape(()))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be one number per point, got {value!r}.") from None
    if not math.isfinite(number):
        raise ValueError(
            f"{what} is {number}: values must be finite; leave the point out or give it a value at the "
            f"bad end of what you measured."
        )
    if abs(number) > LARGEST:
        raise ValueError(
            f"{what} = {number:g} is beyond {LARGEST:g} in size and would hide every other value: "
            f"rescale or clip the objective."
        )
    return number
