"""Parameters that not every trial has, or not with the same range: of an objective that decides while it runs what to ask for.

The space of a study is that of all its completed trials: the parameters that they share and those that some have, with the
widest of their ranges. Which parameters a trial has is learned from the completed ones (``space.presence``), and one model
covers them all (``space.conditional``). A trial is planned whole: which branch it takes and the parameters of that branch.

Where the objective asks for a parameter that was not planned, or with a range that the planned value does not fit, the rest of
the trial is decided then, with what it has already held. Only a parameter that no completed trial had is drawn at random.

What cannot be planned: choices that are not the same in every trial, numbers with steps whose range changes, a scale that
changes from linear to logarithmic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from glasses.optuna.distributions import Placing, external, internal, is_same_kind, parameter_of
from glasses.optuna.storage import contains
from glasses.space.conditional import ConditionalSpace


def all_parameters(completed: Iterable[FrozenTrial], shared: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """``shared``, and every other parameter of a completed trial that can be planned."""
    found: dict[str, BaseDistribution | None] = {}
    for trial in completed:
        for name, each in trial.distributions.items():
            if name not in shared:
                found[name] = _widest(found.get(name, each), each)
    more = {name: each for name, each in found.items() if each is not None and not each.single()}
    return {**shared, **{name: each for name, each in sorted(more.items()) if parameter_of(each) is not None}}


def _widest(first: BaseDistribution | None, second: BaseDistribution) -> BaseDistribution | None:
    """The range that holds both; None where there is no such range of one kind."""
    if first is None or first == second:
        return first
    if not is_same_kind(first, second) or isinstance(first, CategoricalDistribution):
        return None
    assert isinstance(first, FloatDistribution | IntDistribution)
    assert isinstance(second, FloatDistribution | IntDistribution)
    if {first.step, second.step} != {1 if isinstance(first, IntDistribution) else None}:
        return None
    return type(first)(min(first.low, second.low), max(first.high, second.high), log=first.log)  # type: ignore[arg-type]


def can_be_part(distribution: BaseDistribution, whole: BaseDistribution) -> bool:
    """Whether a range can be planned as a part of another one."""
    return distribution == whole or (_widest(whole, distribution) is not None and parameter_of(distribution) is not None)


def conditional_space(
    completed: list[FrozenTrial],
    distributions: Mapping[str, BaseDistribution],
    defaults: Mapping[str, Any],
    known: Mapping[str, Any],
    asked: Mapping[str, BaseDistribution],
) -> ConditionalSpace | None:
    """The space of these distributions; None where each completed trial has all of them and nothing is ``asked`` for.

    ``known`` are parameters of the trial to be decided, ``asked`` others of which it needs a value, with their ranges.
    """
    if not asked and all({*defaults, *each.params} >= {*distributions} for each in completed):
        return None
    placing = Placing(distributions, defaults)
    parameters = {name: parameter for name, each in distributions.items() if (parameter := parameter_of(each)) is not None}
    space = ConditionalSpace(parameters, [placing.part({**defaults, **each.params}) for each in completed])
    ranges = {name: parameter for name, each in asked.items() if (parameter := parameter_of(each)) is not None}
    return space.within(placing.part(known), ranges) if known or ranges else space


class ConditionalPlacing(Placing):
    """Places trials that lack parameters: where those that they have say that they need no others."""

    def __init__(
        self, distributions: Mapping[str, BaseDistribution], defaults: Mapping[str, Any], space: ConditionalSpace
    ) -> None:
        super().__init__(distributions, defaults)
        self._space = space

    def point(self, params: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in {**self.defaults, **params}.items() if name in self.distributions}
        point = self.part(given)
        complete = params and len(point) == len(given) and {*self._space.names_of(point)} <= {*point}
        return point if complete else {}

    def announced(self, decided: Mapping[str, float], known: Mapping[str, Any]) -> dict[str, Any]:
        inside = {n: v for n, v in decided.items() if n in self.distributions and contains(self.distributions[n], v)}
        return self.point({**external(inside, self.distributions), **known}) if inside else {}

    def can_run(self, params: Mapping[str, Any]) -> bool:
        point = self.point(params)
        return bool(point) and bool(internal(point, {name: self.distributions[name] for name in point}))
