"""Minimising a loss over the unit cube."""

from glasses.search.cascade import Cascade
from glasses.search.direct import Direct

__all__ = ["Cascade", "Direct"]
