"""How far ahead the model is trusted: ``REACH`` evaluations, and the later ones count as far as its record allows.

A plan is worth what the model is worth that it is made with, and a fitted model is another one after a few more values. Let p
be the probability that the model is not surprised by the next value. A plan for n evaluations then survives to its end with

    tau = p^(n - 1)                                                                                          [eq:survival]

and that is the share of it which a loss with ``steps="trusted"`` believes: its gain is (1 - tau) EI + tau G (``loss``,
[eq:trust]), the myopic one for tau = 0 and the whole plan for tau = 1. A gain that can be had now counts more than one that a
plan leaves for later; without that, what is planned last is put off again with every decision until the budget ends.

p comes from the model's record: the last ``LOOK_BACK`` values told, each predicted by the fit to the values before it. With S
of m outside the 95 % interval of that prediction,

    p = (3 + m - S) / (4 + m)                                                                                [eq:surprise]

one surprise in four being assumed beforehand. Leave-one-out errors do not serve: the hyperparameters have seen the value that
is left out, and such errors look right when the predictions of new values are wrong.

Known hyperparameters do not change as values arrive: the plan is made for everything that remains and believed. With costs it
is too, since what an evaluation takes from the later ones is seen in a plan for the whole budget only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glasses.search.decision import Trust

REACH = 3
LOOK_BACK = 10
_SURPRISE = 1.959963984540054  # the central 95 % of a normal distribution


def trust_after(z: Sequence[float]) -> Trust:
    """The trust in a model with this record: standardised errors z of the last values, at most ``LOOK_BACK`` of them."""
    surprises = int(np.sum(np.abs(z) > _SURPRISE))
    return Trust(REACH, (3 + len(z) - surprises) / (4 + len(z)))
