"""Google Vizier 0.1 as a method: its GP bandit designer, in an environment of its own (``make peers-vizier``).

The designer as its service starts it: a GP of warped values, UCB in a trust region, the eagle strategy; in 64 bits as there.
It starts from the initial evaluations. It has no setting for exact evaluations: it learns the noise. Trials are padded to
multiples of ten, an option of Vizier that saves compiling anew for each evaluation: the same points in a tenth of the time.
Whole numbers, logarithmic scales and choices are its own.

Deterministic for a seed. XLA's threads are those of the process (``NPROC`` in the environment of the command).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.peers.axes import Axes
from glasses_lab.campaign.peers.calls import peer_call
from glasses_lab.problems import Point


@contextmanager
def _vizier_call() -> Iterator[None]:
    import jax

    with peer_call(), jax.enable_x64(True):
        yield


class Vizier:
    """Vizier's designer, one suggestion at a time."""

    def __init__(self, start: Start) -> None:
        with _vizier_call():
            from vizier._src.algorithms.designers.gp_bandit import VizierGPBandit  # the public name needs all extras
            from vizier.pyvizier.converters import padding

            self.axes, self.count = Axes(start.problem), 0
            schedule = padding.PaddingSchedule(num_trials=padding.PaddingType.MULTIPLES_OF_10)
            self.designer = VizierGPBandit.from_problem(statement(self.axes), seed=start.seed, padding_schedule=schedule)
        for x, y in zip(start.X, start.y, strict=True):
            self.tell(x, float(y))

    def ask(self) -> Point:
        with _vizier_call():
            return self.axes.decode(self.designer.suggest(1)[0].parameters.as_dict())

    def tell(self, x: Point, y: float) -> None:
        from vizier import algorithms, pyvizier

        self.count += 1
        with _vizier_call():
            trial = pyvizier.Trial(id=self.count, parameters=self.axes.encode(x))
            trial.complete(pyvizier.Measurement(metrics={"y": y}))
            self.designer.update(algorithms.CompletedTrials([trial]), algorithms.ActiveTrials())

    def recommend(self) -> Point | None:
        return None


def statement(axes: Axes) -> Any:
    """The problem as Vizier states it."""
    from vizier import pyvizier

    problem = pyvizier.ProblemStatement()
    goal = pyvizier.ObjectiveMetricGoal.MINIMIZE
    problem.metric_information.append(pyvizier.MetricInformation("y", goal=goal))
    root = problem.search_space.root
    for name, axis in axes.by_name.items():
        if axis.kind == "label":
            root.add_categorical_param(name, axis.labels)
            continue
        scale = pyvizier.ScaleType.LOG if axis.log else pyvizier.ScaleType.LINEAR
        add = root.add_float_param if axis.kind == "real" else root.add_int_param
        add(name, axis.low, axis.high, scale_type=scale)
    return problem


PEERS: dict[str, Callable[[Start], Player]] = {"vizier": Vizier}
