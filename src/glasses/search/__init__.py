"""Minimising a loss over the unit cube."""
