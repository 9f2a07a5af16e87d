"""The peers as methods, one file for each library; none is imported before one of its methods starts."""

from collections.abc import Callable

from glasses_lab.campaign.methods import Player, Start
from glasses_lab.campaign.peers import botorch, hebo, optuna, smac, vizier

PEERS: dict[str, Callable[[Start], Player]] = {
    **botorch.PEERS,
    **optuna.PEERS,
    **hebo.PEERS,
    **smac.PEERS,
    **vizier.PEERS,
}
