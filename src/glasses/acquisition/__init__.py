"""Myopic losses: what one evaluation is worth."""
