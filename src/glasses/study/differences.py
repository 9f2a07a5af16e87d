"""What a study file says now and its stored trials do not: refused where they could not be one study, else counted and said.

Ranges, choices, steps and the budget may change at any time; a parameter may be added, with the value that older trials are
taken to have, and dropped, with the file's word for it. Kinds, logarithms and the direction may not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from glasses.optuna.distributions import internal, is_same_kind
from glasses.optuna.trials import is_lost
from glasses.study.file import StudyFile

if TYPE_CHECKING:
    from glasses.study.stored import StoredStudy

_REMEDY = "give this one another name, or use the old file."


def check_same_study(file: StudyFile, trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> None:
    """Refuse a file that cannot mean the study of these trials."""
    stored = f"stored study {file.name!r}"
    for trial in trials:
        for name, each in trial.distributions.items():
            if name not in distributions:
                if name in file.dropped:
                    continue
                raise ValueError(
                    f"The {stored} has a parameter {name!r}, the file has not: to go on without it write "
                    f'dropped = ["{name}"] at the top of the file; else {_REMEDY}'
                )
            if not is_same_kind(each, distributions[name]):
                raise ValueError(f"Parameter {name!r} of the {stored} is of another kind in the file: {_REMEDY}")
        missing = [name for name in distributions if name not in trial.params and name not in file.defaults]
        if missing and trial.state == TrialState.COMPLETE:
            raise ValueError(
                f"The {stored} has no parameter {missing[0]!r}, the file has one: give it default = ..., the value that the "
                f"stored trials had; else {_REMEDY}"
            )


def differences(stored: StoredStudy) -> list[str]:
    """What of the stored evaluations is not as the file says, and what becomes of it: a sentence for each."""
    file, placing, distributions = stored.file, stored.placing, stored.distributions
    done = [each for each in stored.trials() if each.state.is_finished() and each.params and not is_lost(each)]
    unusable: Counter[str] = Counter()
    defaulted: Counter[str] = Counter()
    beside: Counter[str] = Counter()
    outside = 0
    for trial in done:
        point = placing.point(trial.params)
        beside.update(name for name in trial.params if name not in distributions)
        if not point:
            wrong = [(name, each, placing.why_not(name, each)) for name, each in trial.params.items() if name in distributions]
            unusable.update([f"{name} = {each}, which {why}" for name, each, why in wrong if why][:1])
            continue
        defaulted.update(name for name in distributions if name not in trial.params)
        outside += not internal(point, distributions)
    said = []
    if outside:
        verb = "lies" if outside == 1 else "lie"
        words = f"{outside} of {len(done)} evaluations {verb} outside today's ranges and {_are(outside)} used by the model."
        said.append(words)
    said += [f"{_have(count)} {what}: kept, not used." for what, count in unusable.items()]
    said += [f"{_have(count)} no {name}: taken as {file.defaults[name]} (default)." for name, count in defaulted.items()]
    said += [f"{_have(count)} a parameter {name}, which was dropped: used whatever it was." for name, count in beside.items()]
    return said


def _have(count: int) -> str:
    return f"{count} has" if count == 1 else f"{count} have"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
