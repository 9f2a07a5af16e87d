"""``GlassesSampler``: the look-ahead inside Optuna. Needs Optuna 5 (``pip install 'glasses[study]'``).

Optuna never tells a sampler how many trials are to come, so the budget is the sampler's own argument. A decision is a pure
function of (seed, the study's trials, the budget): the sampler carries no state from one trial to the next. What each trial
means to it is in ``trials``, how several workers decide one after the other in ``turns``.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.checks import amount, checked_best_possible, checked_seed, whole
from glasses.loop.cost import Cost
from glasses.loop.ledger import ExhaustedError
from glasses.loop.stopping import Criterion, Target, for_maximizing, is_criterion
from glasses.optuna.conditional import ConditionalPlacing, all_parameters, can_be_part, conditional_space
from glasses.optuna.distributions import parameter_of, sample_uniformly
from glasses.optuna.liveness import Watch
from glasses.optuna.storage import StudyStorage, contains, is_stopping
from glasses.optuna.trials import evidence
from glasses.optuna.turns import Turns
from glasses.space.space import Space

if TYPE_CHECKING:  # the numerics are loaded when a sampler is made
    from glasses.lookahead.loss import Loss
    from glasses.loop.optimizer import Optimizer
    from glasses.search.decision import Search
    from glasses.surrogate.gaussian_process import GaussianProcess

_ROUNDING = 1e-9  # of sums of costs
_logger = optuna.logging.get_logger(__name__)


class Told(NamedTuple):
    """What an optimiser of a study is told, besides the sampler's own settings."""

    space: Space
    sign: float  # -1 for a study that maximises
    budget: float  # what is told and pending included
    typical: int  # evaluations that the whole budget usually pays for
    most: int  # evaluations that ``budget`` can pay for
    points: list[dict[str, Any]]
    values: list[float | None]
    pending: list[dict[str, Any]]
    constraints: tuple[str, ...]  # names
    constrained: list[tuple[float, ...]]  # beside each value, what they were; NaN where there was none


class GlassesSampler(BaseSampler):
    """Suggests each trial for the whole rest of the budget.

    ``budget``: all trials of the study, those done included; beyond it every trial is planned as the last one. ``cost``: what a
    trial costs, as in ``glasses.Optimizer``; the budget is then an amount. ``seed``: same
    seed and same trials, same suggestions, in any process; without one a seed is drawn and kept in ``.seed``. ``n_initial``,
    ``noise``, ``count_failures``, ``loss``, ``model``, ``search``: as in ``glasses.Optimizer``; ``best_possible`` too, in the
    study's own sense: a floor where it minimises, a ceiling where it maximises. ``search_space``: if the parameters are known
    beforehand, the first trials follow a space-filling design; otherwise the first one is random. ``stale_after``: seconds
    after which a running trial is taken for lost; by default ten times the longest finished one, at least a minute.

    Parameters that not every trial has (conditional ones), and ranges that change, are planned with the rest once a completed
    trial had them (``glasses.optuna.conditional``). A ``cost`` is then asked for with the parameters that a trial has.
    Constraints (``Trial.set_constraint``) are modelled with their values; an infeasible trial is never the incumbent.

    Examples
    --------
    >>> import optuna
    >>> from glasses.optuna import GlassesSampler
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study(sampler=GlassesSampler(budget=6, seed=1))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=6)
    >>> len(study.trials)
    6
    """

    def __init__(
        self,
        *,
        budget: float,
        cost: Any = None,
        seed: int | None = None,
        n_initial: int | None = None,
        noise: float | None = None,
        count_failures: bool = True,
        best_possible: float | None = None,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        stale_after: float | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        self.budget: float = whole("budget", budget, 1) if cost is None else amount("budget", budget)
        self.cost = cost
        self.seed = checked_seed(seed)
        self._n_initial = n_initial if n_initial is None else whole("n_initial", n_initial, 1)
        if stale_after is not None and not stale_after > 0:
            raise ValueError(f"stale_after must be a number of seconds above 0, got {stale_after!r}.")
        self._stale_after = stale_after
        self._count_failures = count_failures
        self._best_possible = checked_best_possible(best_possible)
        self._settings: dict[str, Any] = {"noise": noise, "loss": loss, "model": model, "search": search}
        self._check_settings()
        self._given = None if search_space is None else dict(search_space)
        self._common = IntersectionSearchSpace()
        self._warn = warn_independent_sampling
        self._warned: set[str] = set()
        self._lock = threading.Lock()
        self._turns = Turns()
        self._ages = Watch()
        self.defaults: dict[str, Any] = {}  # of parameters that older trials do not have
        self.conditional = True  # whether parameters that not every trial has are planned
        self.repeat_when_exhausted = True  # else ``ExhaustedError`` reaches the caller

    def _check_settings(self) -> None:
        """Refuse what an optimiser refuses."""
        _make_optimizer([(0, 1)], budget=1, seed=0, count_failures=self._count_failures, **self._settings)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    @property
    def while_waiting(self) -> Callable[[], object] | None:
        """Called now and then while this process waits for its turn to decide."""
        return self._turns.while_waiting

    @while_waiting.setter
    def while_waiting(self, called: Callable[[], object] | None) -> None:
        self._turns.while_waiting = called

    def reseed_rng(self) -> None:
        """Nothing to do: no random state is carried, and parallel workers are told apart by their trials."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._planned(study)

    def _planned(self, study: Study) -> dict[str, BaseDistribution]:
        """The parameters that can be planned, those that only some trials have included."""
        shared = self._shared(study)
        return all_parameters(StudyStorage(study).trials(TrialState.COMPLETE), shared) if self.conditional else shared

    def _shared(self, study: Study) -> dict[str, BaseDistribution]:
        """The parameters that every trial has: given, or those of every completed trial."""
        found = self._common.calculate(study) if self._given is None else self._given
        return {name: each for name, each in found.items() if not each.single() and parameter_of(each) is not None}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        _check_single_objective(study)
        if not search_space:
            return {}
        storage = StudyStorage(study)
        with self._lock:  # threads of one process need no tickets to take turns, but other processes may be there as well
            self._turns.wait(storage, trial)
            point: dict[str, float] = {}
            try:
                params = self._suggest(study, trial, search_space)
                point = {name: search_space[name].to_internal_repr(value) for name, value in params.items()}
            finally:
                self._turns.end(storage, trial, point)
            return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        _check_single_objective(study)
        if param_name in (rest := self._rest_of(study, trial, param_name, param_distribution)):
            return rest[param_name]
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        known = done if not self.conditional else [each for each in done if param_name in each.params]
        if self._warn and param_name not in self._warned and known:
            self._warned.add(param_name)
            _logger.warning(
                f"{param_name} is sampled independently: not every trial has it with the same range. "
                "warn_independent_sampling=False hides this."
            )
        u = np.random.default_rng([self.seed, trial.number, zlib.crc32(param_name.encode())]).random()
        parameter = parameter_of(param_distribution)
        if parameter is None:  # a range too wide or too narrow for the unit interval
            return sample_uniformly(param_distribution, u)
        return parameter.value(float(parameter.from_unit(np.array([u]))[0]))

    def _rest_of(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> dict[str, Any]:
        """What is decided for the rest of a trial that asks for a parameter; without it where that cannot be planned."""
        if not self.conditional:
            return {}
        space = self._planned(study)
        if name not in space or not can_be_part(distribution, space[name]):
            return {}
        with self._lock:
            rest = self._suggest(study, trial, space, {name: distribution})
        fits = name in rest and contains(distribution, distribution.to_internal_repr(rest[name]))
        return rest if fits else {}

    def optimizer(self, study: Study, search_space: Mapping[str, BaseDistribution] | None = None) -> Optimizer:
        """The study as a ``glasses.Optimizer``, for its ``plan()``, ``result()`` and ``predict()``.

        Values are those to be minimised: for a study that maximises, the negated ones.
        """
        space = self._planned(study) if search_space is None else search_space
        if not space:
            raise ValueError("There is no parameter that all trials share: finish a trial first, or give search_space.")
        return self._optimizer(study, None, dict(space))

    def reason_to_stop(self, study: Study, criterion: Criterion) -> str | None:
        """Why a criterion says to end the study, and what that saves; None to go on or if no trial is complete."""
        if not StudyStorage(study).trials(TrialState.COMPLETE) or not self._planned(study):
            return None
        with self._lock:  # threads take turns, as in deciding
            optimizer = self.optimizer(study)
            upwards = study.direction == StudyDirection.MAXIMIZE
            reason = (for_maximizing(criterion) if upwards else criterion).reason(optimizer)
        if reason is None or self.cost is None:
            return reason and f"{reason} {optimizer.remaining} of {self.budget} trials are saved."
        return f"{reason} {optimizer._ledger.unspent:.6g} of {self.budget:g} are saved."

    def _suggest(
        self,
        study: Study,
        trial: FrozenTrial,
        space: dict[str, BaseDistribution],
        asked: Mapping[str, BaseDistribution] | None = None,
    ) -> dict[str, Any]:
        """What is decided for a trial; ``asked``: a parameter that it needs now, whatever it is thought to have."""
        return self._decided(self._told(study, trial, space, asked), space)

    def _decided(self, told: Told, space: dict[str, BaseDistribution]) -> dict[str, Any]:
        optimizer = self._made(told)
        try:
            return optimizer.ask()
        except ExhaustedError:
            if not self.repeat_when_exhausted:
                raise
            _logger.warning("Every configuration of this space is evaluated or running; the best one is suggested again.")
            record = optimizer.record()  # Optuna wants its trial
            taken = [*optimizer.pending, *(each.x for each in record.failures), *record.x_iters]
            inside = optimizer.space.is_inside
            return record.x or next(dict(x) for x in taken if inside(optimizer.space.read(x, outside=True)[0])[0])

    def _optimizer(self, study: Study, trial: FrozenTrial | None, distributions: dict[str, BaseDistribution]) -> Optimizer:
        return self._made(self._told(study, trial, distributions))

    def _told(
        self,
        study: Study,
        trial: FrozenTrial | None,
        distributions: dict[str, BaseDistribution],
        asked: Mapping[str, BaseDistribution] | None = None,
    ) -> Told:
        """What the optimiser is told when this trial is decided, or at this moment without one. Loads no numerics."""
        trials = [each for each in StudyStorage(study).trials() if trial is None or each.number != trial.number]
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        space = Space({name: parameter_of(each) for name, each in distributions.items()})
        placing = None
        if self.conditional:
            given = {} if trial is None else {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            completed = [each for each in trials if each.state == TrialState.COMPLETE]
            found = conditional_space(completed, distributions, self.defaults, given, asked or {})
            if found is not None:
                space, placing = found, ConditionalPlacing(distributions, self.defaults, found)
        cost = None if self.cost is None else Cost(space, self.cost)
        cost_of = None if cost is None else _pricing(space, cost)
        known = evidence(
            trials,
            distributions,
            sign=sign,
            free_failures=0 if self._count_failures else self.budget,
            is_stale=self._stale(study, trials),
            defaults=self.defaults,
            cost_of=cost_of,
            budget=self.budget * (1 + _ROUNDING),
            placing=placing,
        )
        least = 1 if cost is None else cost.cheapest
        left = max(0, self.budget - known.spent)
        if trial is not None and left < least:
            short = left + _ROUNDING * self.budget < least
            if short and not self.repeat_when_exhausted and cost is not None:
                raise ExhaustedError(f"{left:.6g} of {self.budget:g} is left, and nothing can be paid for with that.")
            left = least
        used = map(cost_of or (lambda point: 1), [*known.points, *known.pending])
        budget = max(least, (sum if cost is None else math.fsum)([*used, left]))
        typical = int(self.budget / (1 if cost is None else cost.usual))
        told = (known.points, known.values, known.pending, known.names, known.constraints)
        return Told(space, sign, budget, typical, int(budget / least), *told)

    def _made(self, told: Told) -> Optimizer:
        """The optimiser that is told so."""
        initial = self._n_initial or _usual_initial(told.space, told.typical)
        optimizer = _make_optimizer(
            told.space,
            budget=told.budget,
            cost=self.cost,
            constraints=told.constraints or None,
            n_initial=min(initial, max(1, told.most)),
            seed=self.seed,
            **self._settings,
        )
        optimizer._planner.sign = told.sign
        if self._best_possible is not None:
            optimizer.best_possible = told.sign * self._best_possible
        if told.points:  # not by ``tell``, which takes no values of constraints that are not known
            points = optimizer.space.read(told.points, outside=True)[0]
            optimizer._ledger.tell(points, told.values, None, ("x", "y"), told.constrained)
        if told.pending:
            optimizer.mark_pending(told.pending, outside=True)
        return optimizer

    def _stale(self, study: Study, trials: Iterable[FrozenTrial]) -> Callable[[FrozenTrial], bool]:
        """Whether a trial has been running for too long.

        Its start is compared with this machine's calendar once, when it is first seen; from then on the process's own clock
        counts. So a clock that is set later changes nothing, and a start in the future ages like any other.
        """
        patience, key = self._patience(trials), StudyStorage(study).key

        def is_stale(trial: FrozenTrial) -> bool:
            began = trial.datetime_start
            if began is None:
                return False
            already = max(0.0, (datetime.now() - began).total_seconds())
            return self._ages.unchanged((key, trial.number), began, already) > patience

        return is_stale

    def _patience(self, trials: Iterable[FrozenTrial]) -> float:
        if self._stale_after is not None:
            return self._stale_after
        longest = max((each.duration.total_seconds() for each in trials if each.duration is not None), default=math.inf)
        return max(60.0, 10.0 * longest)


class StopWhen:
    """A callback that ends ``study.optimize`` when a criterion is met, for studies with a ``GlassesSampler``.

    ``study.optimize(objective, n_trials=50, callbacks=[StopWhen(Price(0.01) | Target(0.5))])``: prices and targets in the units
    of the study's values; the target of a study that maximises is reached from below. The reason is logged. Trials that run
    beside it are finished.
    """

    def __init__(self, criterion: Criterion) -> None:
        if not is_criterion(criterion):
            raise ValueError(f"StopWhen needs a criterion such as {Target(0.5)!r}, got {criterion!r}.")
        self.criterion = criterion

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        sampler = study.sampler
        if not isinstance(sampler, GlassesSampler):
            raise ValueError(
                f"StopWhen needs a study with a GlassesSampler, got {type(sampler).__name__}: "
                "optuna.create_study(sampler=GlassesSampler(budget=...))."
            )
        if is_stopping(study):
            return
        reason = sampler.reason_to_stop(study, self.criterion)
        if reason is not None:
            _logger.info(reason)
            study.stop()


def _check_single_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"GlassesSampler cannot be used for multi-objective optimization: one objective expected, "
            f"{len(study.directions)} received; use NSGAIISampler or combine them."
        )


def _make_optimizer(bounds: Any, **settings: Any) -> Optimizer:
    from glasses.loop.optimizer import Optimizer

    return Optimizer(bounds, **settings)


def _pricing(space: Space, cost: Cost) -> Callable[[Mapping[str, Any]], float]:
    """What a trial costs at a point; at an empty one, that of a trial without a place in this space, what is usual."""
    return lambda point: cost.of(space.read(point, outside=True)[0][0]) if point else cost.usual


def _usual_initial(space: Space, budget: int) -> int:
    from glasses.loop.design import usual_initial

    return usual_initial(space, budget)
