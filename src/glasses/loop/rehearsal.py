"""Rehearsing decisions that come later, so that nobody waits for their programs (``runtime.ahead``).

Three things change which programs a decision needs: the record grows long enough to plan on (``trust``), the data outgrow
their padded size, and more evaluations are pending than there is room for. Each is seen coming. The rehearsal is that decision
itself, made with what is known now: a longer record, the data repeated up to the next size, some more pending points than
there have been.

With an objective that takes no time there is no time to rehearse in. A decision then waits for a part of a rehearsal that is
under way, at most ``PATIENCE``, so that the wait is spread over the decisions before it is needed and none takes long.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from glasses.loop.trust import FEWEST, REACH
from glasses.runtime.ahead import AHEAD
from glasses.runtime.padding import MAX_PENDING, data_size, pending_size
from glasses.search.decision import Problem, Trust
from glasses.surrogate.constraints import ConstrainedFeasibility
from glasses.surrogate.fit import conditioned
from glasses.surrogate.posterior import grow

if TYPE_CHECKING:
    from glasses.loop.planner import Planner

PATIENCE = 0.6  # seconds
_NEAR = 8  # values before the data outgrow their size
_MORE = 3  # pending points before there is no more room: who asks for four in a row is likely to ask for more
_SHARE = 0.3  # of a plan that a rehearsal believes: any number would do


def rehearse(planner: Planner, problem: Problem, trust: Trust | None) -> None:
    """Begin what a later decision of this run will need, as seen after a decision."""
    if not AHEAD.is_on():
        return
    ledger, told = planner.ledger, len(planner.ledger.y)
    rest = max(0, ledger.remaining - 1)  # decisions to come
    planning = trust is not None and trust.steps == 1
    if trust is not None:
        trust = Trust(REACH, _SHARE)
    if planning and told + rest >= planner.first_recorded() + FEWEST:
        _begin(planner, replace(problem, trust=trust), ("plan",))
    most, pending = _pending(planner), len(ledger.pending)
    if rest and pending_size(most) > pending_size(pending):
        more = np.concatenate([problem.pending, np.full((most - len(problem.pending), problem.d), 0.5)])
        _begin(planner, replace(problem, pending=more, trust=trust), ("pending", pending_size(most)))
    size = data_size(told)
    if told + pending >= size - size // 4 and told + pending + rest > size:
        _begin(planner, replace(problem, trust=trust), ("data", size, pending_size(pending)), outgrown=size)


def wait(planner: Planner) -> None:
    """Before a decision: a part of the rehearsals of this run that are under way."""
    told, pending = len(planner.ledger.y), len(planner.ledger.pending)
    size = data_size(told)
    near: list[tuple[Hashable, ...]] = [("plan",), ("pending", pending_size(_pending(planner)))]
    near += [("data", size, pending_size(pending))] if told + pending >= size - _NEAR else []
    AHEAD.wait([_key(planner, what) for what in near], PATIENCE)


def _pending(planner: Planner) -> int:
    """Evaluations that may soon be pending when another is asked for."""
    return min(planner.parallel - 1 + _MORE, MAX_PENDING)


def _key(planner: Planner, what: tuple[Hashable, ...]) -> Hashable:
    space, model = planner.space, planner.inference.model
    ledger = planner.ledger
    counts = space.d, len(ledger.constraints)
    return what, *counts, space.lattice is None, ledger.cost is None, model, planner.loss, planner.search


def _begin(planner: Planner, problem: Problem, what: tuple[Hashable, ...], outgrown: int = 0) -> None:
    search, loss, model = planner.search, planner.loss, planner.inference.model
    outputs, choice = planner.inference.outputs(), planner.space.choice

    def decide() -> None:
        rehearsed = problem
        if outgrown:
            n = int(problem.fitted.n)
            again = np.arange(outgrown + 1) % n
            X, z = np.asarray(problem.fitted.X)[again], np.asarray(problem.fitted.y)[again]
            post = model.posterior(X, z, outputs, choice)
            allowed = grow(problem.post, post.X.shape[0]).allowed
            rehearsed = replace(problem, post=post._replace(allowed=allowed), fitted=post, feasibility=None, samples=None)
        elif len(problem.pending):
            need = data_size(int(problem.post.n) + len(problem.pending))
            if need > problem.post.X.shape[0]:
                rehearsed = replace(problem, post=grow(problem.post, need), feasibility=None, samples=None)
        if isinstance(problem.feasibility, ConstrainedFeasibility):  # part of the programs from the start
            rehearsed = replace(rehearsed, feasibility=problem.feasibility.grown(rehearsed.post.X.shape[0]))
        fitted, n = rehearsed.fitted, int(rehearsed.fitted.n)
        conditioned(model.kernel, fitted.hyper, np.asarray(fitted.X)[:n], np.asarray(fitted.y)[:n])  # as the record does
        search.decide(loss, model.kernel, rehearsed, np.random.default_rng(0))

    AHEAD.begin(_key(planner, what), decide)
