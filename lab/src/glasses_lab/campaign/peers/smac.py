"""SMAC3 2.4 as a method: its black-box facade, a GP with EI, in an environment of its own (``make peers-smac``).

The facade as it comes (one configuration in twelve is drawn at random), without its own initial design: the initial evaluations
are told as trials. Exact evaluations are its ``deterministic``; otherwise it may ask for the same point again. Its GP always
learns a noise, from 1.4e-11 of the variance. Whole numbers, logarithmic scales and choices are those of ConfigSpace, which
keeps 13 decimal places of a real number.

Deterministic for a seed, with the starting points of its local search put in order (``ordered``). The files that SMAC writes
when it is set up go to a temporary folder; later it writes none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.peers.axes import Axes, Axis
from glasses_lab.campaign.peers.calls import peer_call
from glasses_lab.problems import Point


class Smac:
    """SMAC's black-box facade by ask and tell."""

    def __init__(self, start: Start) -> None:
        with peer_call(), TemporaryDirectory() as folder:
            from ConfigSpace import Configuration, ConfigurationSpace
            from smac import BlackBoxFacade, Scenario
            from smac.runhistory.dataclasses import TrialInfo, TrialValue

            logging.getLogger("smac").setLevel(logging.ERROR)
            self.value, self.exact, self.axes = TrialValue, start.exact, Axes(start.problem)
            space = ConfigurationSpace(seed=start.seed)
            space.add([hyperparameter(name, each) for name, each in self.axes.by_name.items()])
            scenario = Scenario(
                space,
                output_directory=Path(folder),
                deterministic=start.exact,
                n_trials=start.budget,
                seed=start.seed,
            )
            self.facade = BlackBoxFacade(
                scenario,
                target_function=None,
                initial_design=BlackBoxFacade.get_initial_design(scenario, n_configs=0),
                acquisition_maximizer=ordered(BlackBoxFacade.get_acquisition_maximizer(scenario)),
                logging_level=False,
            )
            for x, y in zip(start.X, start.y, strict=True):
                trial = TrialInfo(Configuration(space, values=self.axes.encode(x)), seed=0)
                self.facade.tell(trial, TrialValue(cost=float(y)), save=False)

    def ask(self) -> Point:
        with peer_call():
            self.trial = self.facade.ask()
        return self.axes.decode(dict(self.trial.config))

    def tell(self, x: Point, y: float) -> None:
        with peer_call():
            self.facade.tell(self.trial, self.value(cost=y), save=False)

    def recommend(self) -> Point | None:
        """Under noise the incumbent, the best by its mean cost; None is the best observation."""
        return None if self.exact else self.axes.decode(dict(self.facade.intensifier.get_incumbent()))


def ordered(maximizer: Any) -> Any:
    """The same search, from the same starting points in an order that is the same in every process.

    SMAC takes them out of a set of configurations, whose order Python draws anew for each process.
    """
    local = maximizer._local_search
    unordered = local._get_init_points_from_previous_configs

    def starting_points(*given: Any) -> list[Any]:
        return sorted(unordered(*given), key=lambda configuration: tuple(configuration.get_array()))

    local._get_init_points_from_previous_configs = starting_points
    return maximizer


def hyperparameter(name: str, axis: Axis) -> Any:
    """ConfigSpace's parameter."""
    from ConfigSpace import CategoricalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter

    if axis.kind == "label":
        return CategoricalHyperparameter(name, axis.labels)
    kind = UniformFloatHyperparameter if axis.kind == "real" else UniformIntegerHyperparameter
    return kind(name, axis.low, axis.high, log=axis.log)


PEERS: dict[str, Callable[[Start], Player]] = {"smac": Smac}
