"""How far ahead the model is trusted: ``REACH`` evaluations, the later ones as far as its record allows.

A plan is worth what the model is worth that it is made with, and a fitted model is another one after a few more values. Let p
be the probability that the model is not surprised by the next value. What a plan says that the later evaluations bring is
believed in the share

    tau = p^3                                                                                                [eq:survival]

the probability that none of the next three values surprises the model. The gain of a loss with ``steps="trusted"`` is
(1 - tau) EI + tau G (``loss``, [eq:trust]), the myopic one for p = 0 and that of the whole plan for p = 1. A gain that can be
had now counts more than one that a plan leaves for later; without that, what is planned last is put off again with every
decision until the budget ends. Eight and three come from runs (docs/how_to_choose.md): shares of a third to a half did best,
and tau is about a third where the model is surprised by every fourth value.

p comes from the model's record: the last ``LOOK_BACK`` values told after the initial ones, each predicted from the values
before it, with the hyperparameters fitted when their number was last a multiple of five. With S of m outside the 95 % interval
of that prediction,

    p = (1 + m - S) / (2 + m)                                                                                [eq:surprise]

the rule of succession. Leave-one-out errors do not serve: the hyperparameters have seen the value that is left out, and such
errors look right when the predictions of new values are wrong.

Before ``FEWEST`` values have been predicted there is no record to speak of, and nothing is planned: the first decisions of a
run are myopic.

Known hyperparameters do not change as values arrive: the plan is made for everything that remains and believed. With costs it
is too, since what an evaluation takes from the later ones is seen in a plan for the whole budget only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glasses.search.decision import Trust

REACH = 8
LOOK_BACK = 10
FEWEST = 5
_LASTING = 3  # values
_SURPRISE = 1.959963984540054  # the central 95 % of a normal distribution


def trust_after(z: Sequence[float]) -> Trust:
    """The trust in a model with this record: standardised errors z of the last values, at most ``LOOK_BACK`` of them."""
    if len(z) < FEWEST:
        return Trust(1, 0.0)
    surprises = int(np.sum(np.abs(z) > _SURPRISE))
    return Trust(REACH, ((1 + len(z) - surprises) / (2 + len(z))) ** _LASTING)
