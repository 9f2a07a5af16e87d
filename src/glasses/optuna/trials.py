"""What each trial of a study means to the optimiser.

    COMPLETE   an evaluation, with the values of its constraints (``Trial.set_constraint``). One that violates a constraint is
               never the incumbent. A constraint that it does not have counts as met; an infinite one, which says no size,
               makes it a failed evaluation
    PRUNED     an evaluation with what its last intermediate value would have come to (``pruned``); NaN or an infinite one:
               failed. It is never the incumbent: its value is taken as no better than the best completed one. Optuna's TPE,
               too, ranks pruned trials behind completed ones. Without intermediate values it costs budget and says nothing
               about the objective, but its point is taken: it stays pending
    FAIL       a failed evaluation: the search keeps away from its surroundings. A lost one is ignored, but pending until its
               repetition is stored, so that nobody else is given its point meanwhile
    RUNNING    pending, until it is stale
    WAITING    pending, if its parameters are known already

Withdrawn results and cancelled trials (``changes``) mean nothing at all. An evaluation from before the study (``OUTSIDE``) is
evidence like any other, and costs nothing. A failed trial that was queued again means nothing while its repetition stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.broken import is_broken
from glasses.loop.checks import LARGEST
from glasses.optuna.distributions import Placing
from glasses.optuna.marks import BROKEN, CANCELLED, LATE, LOST, OUTSIDE, POINT, REASON, SIGN, UNPAID, WITHDRAWN
from glasses.optuna.pruned import Continuation

MAX_PENDING = 128


@dataclass(frozen=True)
class Evidence:
    """What an optimiser is told: points and their values to be minimised (None: failed), pending points, the budget used.

    ``constraints``: a tuple beside each value, in the order of ``names``; NaN where a trial does not have one.
    """

    points: list[dict[str, Any]]
    values: list[float | None]
    pending: list[dict[str, Any]]
    spent: float  # trials, or what they cost
    names: tuple[str, ...] = ()
    constraints: list[tuple[float, ...]] = field(default_factory=list)


def evidence(
    trials: Sequence[FrozenTrial],
    distributions: Mapping[str, BaseDistribution],
    *,
    sign: float,
    free_failures: float,
    is_stale: Callable[[FrozenTrial], bool],
    defaults: Mapping[str, Any] | None = None,
    cost_of: Callable[[Mapping[str, Any]], float] | None = None,
    budget: float = math.inf,
    placing: Placing | None = None,
) -> Evidence:
    """What the trials say about the space of ``distributions``; ``sign`` is -1 for a study that maximises.

    ``defaults``: values of parameters that older trials do not have. Trials with numbers outside today's ranges are data like
    others; those that have no place beside them (``Placing``) cost budget and say nothing. At most ``MAX_PENDING`` points are
    pending: running and queued ones first, then the newest pruned ones. ``cost_of``: what a trial costs at this point, or at an
    empty one where it has no place; without it each costs 1. What is queued and does not fit into ``budget`` costs nothing yet.
    ``placing``: what places the trials, if not ``Placing``.
    """
    price = cost_of or (lambda point: 1)
    replaced, placing = superseded(trials), placing or Placing(distributions, defaults)
    onwards = Continuation(trials)
    points, values, completed, taken = [], [], [], []
    constrained: list[dict[str, float]] = []
    counting: list[bool] = []  # those that are complete and feasible
    spent: list[float] = []
    for trial in trials:
        if not has_result(trial) or (trial.state == TrialState.FAIL and trial.number in replaced):
            continue
        failed = trial.state == TrialState.FAIL or any(value > LARGEST for value in trial.constraints.values())
        costs = OUTSIDE not in trial.system_attrs
        point = placing.point(trial.params)
        if costs and failed and price(point) <= free_failures:
            free_failures -= price(point)
        elif costs:
            spent.append(price(point))
        if not point:
            continue
        value = None if failed else onwards.value(trial) if trial.state == TrialState.PRUNED else trial.value
        if trial.state == TrialState.PRUNED and not failed and value is None:
            taken.append(point)
            continue
        points.append(point)
        values.append(sign * value if value is not None and abs(value) <= LARGEST else None)
        constrained.append({name: value for name, value in trial.constraints.items() if value >= -LARGEST})
        counts = all(value <= 0 for value in trial.constraints.values())
        completed.append(trial.state == TrialState.COMPLETE)
        counting.append(counts and completed[-1])
    best = min((v for v, counts in zip(values, counting, strict=True) if counts and v is not None), default=-math.inf)
    values = [v if done or v is None else max(v, best) for v, done in zip(values, completed, strict=True)]
    pending = _running_points(trials, placing, is_stale)[-MAX_PENDING:]
    running = [point for point, _ in pending]
    taken = taken[max(0, len(taken) + len(running) - MAX_PENDING) :]
    spent += [price(point) for point, waits in pending if not waits]
    for point in (point for point, waits in pending if waits):
        if cost_of is None or math.fsum([*spent, price(point)]) <= budget:
            spent.append(price(point))
    known = (each for each, value in zip(constrained, values, strict=True) if value is not None)
    names = tuple(sorted({name for each in known for name in each}))
    rows = [
        () if v is None else tuple(each.get(name, math.nan) for name in names)
        for each, v in zip(constrained, values, strict=True)
    ]
    total = math.fsum(spent) if cost_of else len(spent)
    return Evidence(points, values, taken + running, total, names, rows)


def _running_points(
    trials: Sequence[FrozenTrial], placing: Placing, is_stale: Callable[[FrozenTrial], bool]
) -> list[tuple[dict[str, Any], bool]]:
    """The points of the trials that are running and not stale, queued (True), or lost and about to be queued again."""
    points = []
    repeated = superseded(trials, standing=False)
    for trial in trials:
        lost = is_lost(trial) and trial.number not in repeated and UNPAID not in trial.system_attrs
        if lost or (trial.state in (TrialState.RUNNING, TrialState.WAITING) and not is_stale(trial)):
            params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            if trial.state != TrialState.RUNNING and not placing.can_run(params):
                continue  # it will not be run, nor queued again
            if point := known_point(trial, placing):
                points.append((point, trial.state == TrialState.WAITING))
    return points


def known_point(trial: FrozenTrial, placing: Placing) -> dict[str, Any]:
    """Where a trial is evaluated, also if not all of it is stored yet; empty if it is not known or has no place."""
    decided = trial.system_attrs.get(POINT, {})
    known = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    announced = {} if trial.state.is_finished() or is_complete(trial) else placing.announced(decided, known)
    return announced or placing.point(known)


def is_complete(trial: FrozenTrial) -> bool:
    """Whether all parameters that were decided for a trial are stored: they are set one by one."""
    return bool(trial.params) and trial.system_attrs.get(POINT, {}).keys() <= trial.params.keys()


def superseded(trials: Iterable[FrozenTrial], *, standing: bool = True) -> set[int]:
    """The numbers of failed trials that do not count: queued again, or their result came late and is stored elsewhere, or the
    objective was broken.

    Repetitions that were cancelled or withdrawn replace nothing, unless all are asked for (``standing=False``).
    """
    numbers: set[int] = set()
    for trial in trials:
        if standing and is_taken_back(trial):
            continue
        numbers.update(trial.system_attrs.get("retry_history", []))
        numbers.update(trial.system_attrs.get(BROKEN, []))
        if LATE in trial.system_attrs:
            numbers.add(trial.system_attrs[LATE])
    return numbers


def broken_by(trials: Sequence[FrozenTrial], number: int, sign: str | None) -> list[int]:
    """What failed of a broken objective, if one more in this way shows that it is: all that count, and trial ``number``."""
    replaced = superseded(trials)
    ended = [each for each in trials if has_result(each) and each.number not in replaced and each.number != number]
    succeeded = any(each.state != TrialState.FAIL for each in trials if each.state.is_finished())
    signs = [*(each.system_attrs.get(SIGN) for each in ended), sign]
    return [*(each.number for each in ended), number] if is_broken(signs) and not succeeded else []


def is_lost(trial: FrozenTrial) -> bool:
    """Whether a trial ended with its worker, and not by itself."""
    lost = trial.state == TrialState.FAIL and LOST in trial.system_attrs and REASON not in trial.system_attrs
    return lost and not is_taken_back(trial)


def is_taken_back(trial: FrozenTrial) -> bool:
    """Whether a person withdrew the result of a trial, or cancelled it."""
    return WITHDRAWN in trial.system_attrs or CANCELLED in trial.system_attrs


def has_result(trial: FrozenTrial) -> bool:
    """Whether a trial ended with a result that stands, a failure included."""
    return trial.state.is_finished() and not is_lost(trial) and not is_taken_back(trial)


def state_of(trial: FrozenTrial) -> str:
    """complete, failed, lost, withdrawn, cancelled, running, waiting or pruned."""
    if WITHDRAWN in trial.system_attrs:
        return "withdrawn"
    if CANCELLED in trial.system_attrs:
        return "cancelled"
    if trial.state == TrialState.FAIL:
        return "lost" if is_lost(trial) else "failed"
    return trial.state.name.lower()
