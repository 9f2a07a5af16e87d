"""Looking ahead: the scene of a decision, oracles that predict the remaining evaluations, and losses that value them."""
