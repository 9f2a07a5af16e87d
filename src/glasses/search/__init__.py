"""Minimising a loss over the unit cube."""

from glasses.search.direct import Direct
from glasses.search.multi_start import MultiStart

__all__ = ["Direct", "MultiStart"]
