"""What each trial of a study means to the optimiser.

    COMPLETE   an evaluation; a failed one if a constraint is violated
    PRUNED     an evaluation with its last intermediate value; NaN or an infinite one: failed. It is never the incumbent: its
               value is taken as no better than the best completed one. Optuna's TPE, too, ranks pruned trials behind completed
               ones. Without intermediate values it costs budget and says nothing about the objective, but its point is taken:
               it stays pending
    FAIL       a failed evaluation: the search keeps away from its surroundings. A lost one is ignored, but pending until its
               repetition is stored, so that nobody else is given its point meanwhile
    RUNNING    pending, until it is stale
    WAITING    pending, if its parameters are known already

An intermediate value should estimate the final one; if it is much better early on, report something else to the pruner.

Marks of this package are system attributes of the trials, so that no user attribute can be mistaken for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.broken import is_broken
from glasses.loop.checks import LARGEST
from glasses.optuna.distributions import Placing, external, internal, is_point

POINT = "glasses:point"  # of a running trial: its point in internal numbers, before the parameters are set one by one
LOST = "glasses:lost"  # of a failed trial whose worker died: it says nothing about the point
REASON = "glasses:reason"  # of an evaluation that failed by itself: why
SIGN = "glasses:sign"  # of an evaluation that failed by itself: in which way (``loop.broken``)
DETAILS = "glasses:details"  # of such an evaluation: its traceback, or the last errors of its command
BROKEN = "glasses:broken_objective"  # of the last of some failures of a broken objective: the numbers of all of them
LATE = "glasses:late_result_of"  # of a result that came back after its trial was taken for lost: the number of that trial
MAX_PENDING = 128


@dataclass(frozen=True)
class Evidence:
    """What an optimiser is told: points and their values to be minimised (None: failed), pending points, the budget used."""

    points: list[dict[str, Any]]
    values: list[float | None]
    pending: list[dict[str, Any]]
    spent: int


def evidence(
    trials: Sequence[FrozenTrial],
    distributions: Mapping[str, BaseDistribution],
    *,
    sign: float,
    free_failures: int,
    is_stale: Callable[[FrozenTrial], bool],
    defaults: Mapping[str, Any] | None = None,
) -> Evidence:
    """What the trials say about the space of ``distributions``; ``sign`` is -1 for a study that maximises.

    ``defaults``: values of parameters that older trials do not have. Trials with numbers outside today's ranges are data like
    others; those that have no place beside them (``Placing``) cost budget and say nothing. At most ``MAX_PENDING`` points are
    pending: running and queued ones first, then the newest pruned ones.
    """
    replaced, placing = superseded(trials), Placing(distributions, defaults)
    points, values, completed, taken = [], [], [], []
    spent, failures = 0, 0
    for trial in trials:
        if not trial.state.is_finished() or (trial.state == TrialState.FAIL and (trial.number in replaced or is_lost(trial))):
            continue
        failed = trial.state == TrialState.FAIL or any(value > 0 for value in trial.constraints.values())
        failures += failed
        spent += not failed
        point = placing.point(trial.params)
        if not point:
            continue
        value = None if failed else _value(trial)
        if trial.state == TrialState.PRUNED and not failed and value is None:
            taken.append(point)
            continue
        points.append(point)
        values.append(sign * value if value is not None and abs(value) <= LARGEST else None)
        completed.append(trial.state == TrialState.COMPLETE)
    best = min((v for v, done in zip(values, completed, strict=True) if done and v is not None), default=-math.inf)
    values = [v if done or v is None else max(v, best) for v, done in zip(values, completed, strict=True)]
    running = _running_points(trials, placing, replaced, is_stale)[-MAX_PENDING:]
    taken = taken[max(0, len(taken) + len(running) - MAX_PENDING) :]
    spent += len(running) + max(0, failures - free_failures)
    return Evidence(points, values, taken + running, spent)


def _value(trial: FrozenTrial) -> float | None:
    """The value of a finished trial, for a pruned one the last that it reported; None if there is none."""
    if trial.state == TrialState.PRUNED and trial.last_step is not None:
        return trial.intermediate_values[trial.last_step]
    return trial.value


def _running_points(
    trials: Iterable[FrozenTrial],
    placing: Placing,
    replaced: set[int],
    is_stale: Callable[[FrozenTrial], bool],
) -> list[dict[str, Any]]:
    """The points of the trials that are running and not stale, queued, or lost and about to be queued again."""
    points, distributions = [], placing.distributions
    for trial in trials:
        lost = is_lost(trial) and trial.number not in replaced
        if lost or (trial.state in (TrialState.RUNNING, TrialState.WAITING) and not is_stale(trial)):
            params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            decided = trial.system_attrs.get(POINT, {})
            if trial.state != TrialState.RUNNING and not internal(params, distributions):
                continue  # it will not be run, nor queued again
            if not is_complete(trial) and not lost and is_point(decided, distributions):
                points.append(external(decided, distributions))
            elif point := placing.point(params):
                points.append(point)
    return points


def is_complete(trial: FrozenTrial) -> bool:
    """Whether all parameters that were decided for a trial are stored: they are set one by one."""
    return bool(trial.params) and trial.system_attrs.get(POINT, {}).keys() <= trial.params.keys()


def superseded(trials: Iterable[FrozenTrial]) -> set[int]:
    """The numbers of failed trials that do not count: queued again, or their result came late and is stored elsewhere, or the
    objective was broken."""
    numbers: set[int] = set()
    for trial in trials:
        numbers.update(trial.system_attrs.get("retry_history", []))
        numbers.update(trial.system_attrs.get(BROKEN, []))
        if LATE in trial.system_attrs:
            numbers.add(trial.system_attrs[LATE])
    return numbers


def broken_by(trials: Sequence[FrozenTrial], number: int, sign: str | None) -> list[int]:
    """What failed of a broken objective, if one more in this way shows that it is: all that count, and trial ``number``."""
    replaced = superseded(trials)
    ended = [
        each
        for each in trials
        if each.state.is_finished() and not is_lost(each) and each.number not in replaced and each.number != number
    ]
    succeeded = any(each.state != TrialState.FAIL for each in trials if each.state.is_finished())
    signs = [*(each.system_attrs.get(SIGN) for each in ended), sign]
    return [*(each.number for each in ended), number] if is_broken(signs) and not succeeded else []


def is_lost(trial: FrozenTrial) -> bool:
    """Whether a trial ended with its worker, and not by itself."""
    return trial.state == TrialState.FAIL and LOST in trial.system_attrs and REASON not in trial.system_attrs
