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

Withdrawn results and cancelled trials (``changes``) mean nothing at all. An evaluation from before the study (``OUTSIDE``) is
evidence like any other, and costs nothing. A failed trial that was queued again means nothing while its repetition stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from glasses.loop.checks import LARGEST
from glasses.optuna.distributions import external, internal, is_point
from glasses.optuna.marks import CANCELLED, LATE, LOST, OUTSIDE, POINT, REASON, WITHDRAWN

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
) -> Evidence:
    """What the trials say about the space of ``distributions``; ``sign`` is -1 for a study that maximises.

    Trials outside that space cost budget and say nothing. At most ``MAX_PENDING`` points are pending: running and queued ones
    first, then the newest pruned ones.
    """
    replaced = superseded(trials)
    points, values, completed, taken = [], [], [], []
    spent, failures = 0, 0
    for trial in trials:
        if not has_result(trial) or (trial.state == TrialState.FAIL and trial.number in replaced):
            continue
        failed = trial.state == TrialState.FAIL or any(value > 0 for value in trial.constraints.values())
        costs = OUTSIDE not in trial.system_attrs
        failures += failed and costs
        spent += not failed and costs
        if not internal(trial.params, distributions):
            continue
        point = {name: trial.params[name] for name in distributions}
        value = None if failed else _value(trial)
        if trial.state == TrialState.PRUNED and not failed and value is None:
            taken.append(point)
            continue
        points.append(point)
        values.append(sign * value if value is not None and abs(value) <= LARGEST else None)
        completed.append(trial.state == TrialState.COMPLETE)
    best = min((v for v, done in zip(values, completed, strict=True) if done and v is not None), default=-math.inf)
    values = [v if done or v is None else max(v, best) for v, done in zip(values, completed, strict=True)]
    running = _running_points(trials, distributions, is_stale)[-MAX_PENDING:]
    taken = taken[max(0, len(taken) + len(running) - MAX_PENDING) :]
    spent += len(running) + max(0, failures - free_failures)
    return Evidence(points, values, taken + running, spent)


def _value(trial: FrozenTrial) -> float | None:
    """The value of a finished trial, for a pruned one the last that it reported; None if there is none."""
    if trial.state == TrialState.PRUNED and trial.last_step is not None:
        return trial.intermediate_values[trial.last_step]
    return trial.value


def _running_points(
    trials: Sequence[FrozenTrial],
    distributions: Mapping[str, BaseDistribution],
    is_stale: Callable[[FrozenTrial], bool],
) -> list[dict[str, Any]]:
    """The points of the trials that are running and not stale, queued, or lost and about to be queued again."""
    points = []
    repeated = superseded(trials, standing=False)
    for trial in trials:
        lost = is_lost(trial) and trial.number not in repeated
        if lost or (trial.state in (TrialState.RUNNING, TrialState.WAITING) and not is_stale(trial)):
            params = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
            point = internal(params, distributions) or ({} if lost else trial.system_attrs.get(POINT, {}))
            if is_point(point, distributions):
                points.append(external(point, distributions))
    return points


def superseded(trials: Iterable[FrozenTrial], *, standing: bool = True) -> set[int]:
    """The numbers of failed trials that do not count: queued again, or their result came late and is stored elsewhere.

    Repetitions that were cancelled or withdrawn replace nothing, unless all are asked for (``standing=False``).
    """
    numbers: set[int] = set()
    for trial in trials:
        if standing and is_taken_back(trial):
            continue
        numbers.update(trial.system_attrs.get("retry_history", []))
        if LATE in trial.system_attrs:
            numbers.add(trial.system_attrs[LATE])
    return numbers


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
