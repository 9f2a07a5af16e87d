"""Looking ahead: the candidate set of a decision, oracles that predict the evaluations to come, and losses that value them."""

from glasses.lookahead.determinantal import DeterminantalPoints
from glasses.lookahead.loss import Loss
from glasses.lookahead.losses import Glasses, Marginalized, TwoStage
from glasses.lookahead.myopic import ExpectedLoss, LowerConfidenceBound, ProbabilityOfImprovement
from glasses.lookahead.oracles import KrigingBeliever, LocalPenalization, Oracle, ThompsonPaths
from glasses.lookahead.rollout import Rollout

__all__ = [
    "DeterminantalPoints",
    "ExpectedLoss",
    "Glasses",
    "KrigingBeliever",
    "LocalPenalization",
    "Loss",
    "LowerConfidenceBound",
    "Marginalized",
    "Oracle",
    "ProbabilityOfImprovement",
    "Rollout",
    "ThompsonPaths",
    "TwoStage",
]
