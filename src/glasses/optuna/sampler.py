"""``GlassesSampler``: the look-ahead inside Optuna. Needs Optuna 5 (``pip install 'glasses[study]'``).

Optuna never tells a sampler how many trials are to come, so the budget is the sampler's own argument. A decision is a pure
function of (seed, the study's trials, the budget): the sampler carries no state from one trial to the next.

What each trial means to it:
    COMPLETE   an evaluation; if a constraint is violated, one that failed
    FAIL       a failed evaluation: the search keeps away from its surroundings. A lost one that was queued again is ignored
    PRUNED     costs budget, teaches nothing
    RUNNING    pending, until it is older than ``stale_after``
    WAITING    pending if its parameters are known already

Workers that decide at the same time, perhaps on different machines, take turns: Lamport's bakery, with attributes of the
running trials as its tickets, so it works with any storage of Optuna's. Each sees the points of all before it as pending, and
no two run the same configuration by accident. Who does not finish its turn within ``_LONGEST_TURN`` is passed over.
"""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import optuna
except ImportError as error:  # pragma: no cover
    raise ImportError("glasses.optuna needs Optuna 5: pip install 'glasses[study]'.", name="optuna") from error

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.checks import LARGEST, checked_seed, whole
from glasses.loop.ledger import ExhaustedError
from glasses.loop.stopping import Criterion, Target, for_maximizing, is_criterion
from glasses.space.parameters import Choice, Float, Int, Parameter
from glasses.space.space import Space

if TYPE_CHECKING:  # the numerics are loaded when a sampler is made
    from glasses.lookahead.loss import Loss
    from glasses.loop.optimizer import Optimizer
    from glasses.search.decision import Search
    from glasses.surrogate.gaussian_process import GaussianProcess

POINT = "glasses:point"  # system attribute of a running trial: its point, before the parameters are set one by one
LOST = "glasses:lost"  # system attribute of a failed trial whose worker died: it says nothing about the point
REASON = "reason"  # user attribute of an evaluation that failed by itself
LATE = "late_result_of"  # user attribute of a result that came back after its trial was taken for lost
TURN = "glasses:turn"  # system attribute of a trial that decides: its ticket, 0 while it is drawn, and the time
_LONGEST_TURN = 120.0  # seconds without a change of the ticket: compiling everything anew takes less
_REFRESHED = 10.0  # seconds after which one who waits shows that it is still there
_MOST_PENDING = 128

_logger = optuna.logging.get_logger(__name__)


class GlassesSampler(BaseSampler):
    """Suggests each trial for the whole rest of the budget.

    ``budget``: all trials of the study, those done included; beyond it every trial is planned as the last one. ``seed``: same
    seed and same trials, same suggestions, in any process; without one a seed is drawn and kept in ``.seed``. ``n_initial``,
    ``noise``, ``count_failures``, ``loss``, ``model``, ``search``: as in ``glasses.Optimizer``. ``search_space``: if the
    parameters are known beforehand, the first trials follow a space-filling design; otherwise the first one is random.
    ``stale_after``: seconds after which a running trial is taken for lost; by default ten times the longest finished one, at
    least a minute. Parameters that not every trial has (conditional ones, changing ranges) are sampled independently.
    """

    def __init__(
        self,
        *,
        budget: int,
        seed: int | None = None,
        n_initial: int | None = None,
        noise: float | None = None,
        count_failures: bool = True,
        loss: Loss | None = None,
        model: GaussianProcess | None = None,
        search: Search | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        stale_after: float | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        self.budget = whole("budget", budget, 1)
        self.seed = checked_seed(seed)
        self._n_initial = n_initial if n_initial is None else whole("n_initial", n_initial, 1)
        if stale_after is not None and not stale_after > 0:
            raise ValueError(f"stale_after must be a number of seconds above 0, got {stale_after!r}.")
        self._stale_after = stale_after
        self._count_failures = count_failures
        self._settings: dict[str, Any] = {"noise": noise, "loss": loss, "model": model, "search": search}
        _make_optimizer([(0, 1)], budget=1, seed=0, count_failures=count_failures, **self._settings)  # refuses what it must
        self._given = None if search_space is None else dict(search_space)
        self._common = IntersectionSearchSpace()
        self._warn = warn_independent_sampling
        self._warned: set[str] = set()
        self._lock = threading.Lock()
        self.repeat_when_exhausted = True  # else ``ExhaustedError`` reaches whoever asked
        self._tickets: dict[tuple[int, int], tuple[Any, float]] = {}  # as last seen, and when that was new
        self.while_waiting: Callable[[], object] | None = None  # called now and then by a worker that waits for its turn

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        """Nothing to do: no random state is carried, and parallel workers are told apart by their trials."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._shared(study)

    def _shared(self, study: Study) -> dict[str, BaseDistribution]:
        """The parameters that can be planned: given, or those of every trial."""
        found = self._common.calculate(study) if self._given is None else self._given
        return {name: each for name, each in found.items() if not each.single() and parameter_of(each) is not None}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:  # threads of one process need no tickets to take turns, but other processes may be there as well
            self._await_turn(study, trial)
            internal: dict[str, float] = {}
            try:
                params = self._suggest(study, trial, search_space, self._running_points(study, trial, search_space))
                internal = {name: search_space[name].to_internal_repr(value) for name, value in params.items()}
            finally:
                study._storage.set_trial_system_attr(trial._trial_id, POINT, internal)  # publishes the point, ends the turn
            return params

    def _await_turn(self, study: Study, trial: FrozenTrial) -> None:
        """Draw a ticket and wait for everybody who drew an earlier one."""
        study._storage.set_trial_system_attr(trial._trial_id, TURN, [0, time.time()])
        ticket = 1 + max(self._deciding(study, trial).values(), default=0)
        study._storage.set_trial_system_attr(trial._trial_id, TURN, [ticket, time.time()])
        shown, pause = time.monotonic(), 0.01
        while any(theirs == 0 or (theirs, k) < (ticket, trial.number) for k, theirs in self._deciding(study, trial).items()):
            if self.while_waiting is not None:
                self.while_waiting()
            if time.monotonic() - shown > _REFRESHED:
                study._storage.set_trial_system_attr(trial._trial_id, TURN, [ticket, time.time()])
                shown = time.monotonic()
            time.sleep(pause)
            pause = min(1.3 * pause, 0.2)
        if time.monotonic() - shown > 1.0:
            study._storage.set_trial_system_attr(trial._trial_id, TURN, [ticket, time.time()])  # its turn begins now

    def _deciding(self, study: Study, trial: FrozenTrial) -> dict[int, int]:
        """The tickets of the other trials that are deciding, by trial number; 0 for one that is drawing it."""
        tickets = {}
        for each in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if each.number != trial.number and TURN in each.system_attrs and POINT not in each.system_attrs:
                turn = each.system_attrs[TURN]
                seen = self._tickets.get((study._study_id, each.number))
                if seen is None or seen[0] != turn:  # by this worker's own clock: those of other machines may differ
                    seen = turn, time.monotonic()
                    self._tickets[study._study_id, each.number] = seen
                abandoned = time.monotonic() - seen[1] > _LONGEST_TURN or time.time() - turn[1] > 3600.0
                if not abandoned:
                    tickets[each.number] = turn[0]
        return tickets

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        self._raise_error_if_multi_objective(study)
        done = (TrialState.COMPLETE, TrialState.PRUNED)
        if self._warn and param_name not in self._warned and study.get_trials(deepcopy=False, states=done):
            self._warned.add(param_name)
            _logger.warning(
                f"{param_name} is sampled independently: not every trial has it with the same range. "
                "warn_independent_sampling=False hides this."
            )
        u = np.random.default_rng([self.seed, trial.number, zlib.crc32(param_name.encode())]).random()
        parameter = parameter_of(param_distribution)
        if parameter is None:  # a range too wide or too narrow for the unit interval
            return _plain_sample(param_distribution, u)
        return parameter.value(float(parameter.from_unit(np.array([u]))[0]))

    def optimizer(self, study: Study, search_space: Mapping[str, BaseDistribution] | None = None) -> Optimizer:
        """Everything the study knows as a ``glasses.Optimizer``, for its ``plan()``, ``result()`` and ``predict()``.

        Values are those to be minimised: for a study that maximises, the negated ones.
        """
        space = self._shared(study) if search_space is None else search_space
        if not space:
            raise ValueError("There is no parameter that all trials share: finish a trial first, or give search_space.")
        return self._optimizer(study, None, dict(space), self._running_points(study, None, dict(space)))

    def _suggest(
        self, study: Study, trial: FrozenTrial, space: dict[str, BaseDistribution], running: dict[int, dict[str, float]]
    ) -> dict[str, Any]:
        optimizer = self._optimizer(study, trial, space, running)
        try:
            return optimizer.ask()
        except ExhaustedError:
            if not self.repeat_when_exhausted:
                raise
            _logger.warning("Every configuration of this space is evaluated or running; the best one is suggested again.")
            told = optimizer.record()  # Optuna wants its trial
            return told.x or dict([*optimizer.pending, *(each.x for each in told.failures)][0])

    def _optimizer(
        self,
        study: Study,
        trial: FrozenTrial | None,
        distributions: dict[str, BaseDistribution],
        running: dict[int, dict[str, float]],
    ) -> Optimizer:
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        trials = [each for each in study.get_trials(deepcopy=False) if trial is None or each.number != trial.number]
        again = {number for each in trials for number in each.system_attrs.get("retry_history", [])}
        again |= {each.user_attrs[LATE] for each in trials if LATE in each.user_attrs}
        running = dict(list(running.items())[-_MOST_PENDING:])
        points, values, spent, failures = [], [], len(running), 0
        for each in trials:
            if each.state not in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL):
                continue
            if each.state == TrialState.FAIL and (each.number in again or is_lost(each)):
                continue
            failed = each.state == TrialState.FAIL or any(value > 0 for value in each.constraints.values())
            failures += failed
            spent += not failed
            if each.state == TrialState.PRUNED or not _internal(each.params, distributions):
                continue
            points.append({name: each.params[name] for name in distributions})
            values.append(None if failed or each.value is None or abs(each.value) > LARGEST else sign * each.value)
        spent += max(0, failures - (0 if self._count_failures else self.budget))
        left = max(1 if trial is not None else 0, self.budget - spent)
        parameters = {name: parameter_of(each) for name, each in distributions.items()}
        initial = _usual_initial(parameters, self.budget) if self._n_initial is None else self._n_initial
        optimizer = _make_optimizer(
            parameters,
            budget=max(1, len(points) + len(running) + left),
            n_initial=min(initial, max(1, len(points) + len(running) + left)),
            seed=self.seed,
            **self._settings,
        )
        if points:
            optimizer.tell(points, values)
        if running:
            optimizer.mark_pending(
                [
                    {name: distributions[name].to_external_repr(value) for name, value in point.items()}
                    for point in running.values()
                ]
            )
        return optimizer

    def _running_points(
        self, study: Study, trial: FrozenTrial | None, distributions: dict[str, BaseDistribution]
    ) -> dict[int, dict[str, float]]:
        """The points, in Optuna's internal numbers, of the other trials that are running and not stale, or queued."""
        trials = study.get_trials(deepcopy=False)
        limit = datetime.now() - timedelta(seconds=min(self._patience(trials), 3e9))
        points = {}
        for each in trials:
            if each.state not in (TrialState.RUNNING, TrialState.WAITING) or (
                trial is not None and each.number == trial.number
            ):
                continue
            params = {**each.system_attrs.get("fixed_params", {}), **each.params}
            if each.datetime_start is not None and each.datetime_start < limit:
                continue
            point = _internal(params, distributions) or each.system_attrs.get(POINT, {})
            if point.keys() == distributions.keys() and all(distributions[n]._contains(v) for n, v in point.items()):
                points[each.number] = point
        return points

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
        if study._stop_flag or not sampler._shared(study):
            return
        upwards = study.direction == StudyDirection.MAXIMIZE
        with sampler._lock:  # threads take turns, as in deciding
            optimizer = sampler.optimizer(study)
            reason = (for_maximizing(self.criterion) if upwards else self.criterion).reason(optimizer)
        if reason is not None:
            _logger.info(f"{reason} {optimizer.remaining} of {sampler.budget} trials are saved.")
            study.stop()


def is_lost(trial: FrozenTrial) -> bool:
    """Whether a trial ended with its worker, and not by itself."""
    return trial.state == TrialState.FAIL and LOST in trial.system_attrs and REASON not in trial.user_attrs


def _make_optimizer(bounds: Any, **settings: Any) -> Optimizer:
    from glasses.loop.optimizer import Optimizer

    return Optimizer(bounds, **settings)


def _usual_initial(parameters: Any, budget: int) -> int:
    from glasses.loop.optimizer import usual_initial

    return usual_initial(Space(parameters), budget)


def parameter_of(distribution: BaseDistribution) -> Parameter | None:
    """Optuna's distribution as a parameter, or None if it cannot vary or cannot be resolved."""
    try:
        if isinstance(distribution, FloatDistribution):
            return Float(distribution.low, distribution.high, distribution.log, distribution.step)
        if isinstance(distribution, IntDistribution):
            step = None if distribution.step == 1 else distribution.step
            return Int(distribution.low, distribution.high, distribution.log, step)
        if isinstance(distribution, CategoricalDistribution):
            return Choice(distribution.choices)
    except ValueError:
        return None
    return None


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """A parameter as Optuna's distribution."""
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.top, parameter.log, parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.top, parameter.log, parameter.step or 1)
    return CategoricalDistribution(parameter.values)


def _internal(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """The parameters in Optuna's internal numbers; empty unless they are a point of this space."""
    point = {}
    for name, distribution in distributions.items():
        try:
            point[name] = distribution.to_internal_repr(params[name])
        except (KeyError, TypeError, ValueError):
            return {}
        if not distribution._contains(point[name]):
            return {}
    return point


def _plain_sample(distribution: BaseDistribution, u: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(u * len(distribution.choices))]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if isinstance(distribution, IntDistribution):
        return min(
            distribution.low + int(u * ((distribution.high - distribution.low) // distribution.step + 1)) * distribution.step,
            distribution.high,
        )
    return min(distribution.low + u * (distribution.high - distribution.low), distribution.high)
