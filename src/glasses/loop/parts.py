"""The parts of a decision that a run was given: a preset, and what replaces its parts."""

from __future__ import annotations

from typing import Any

from glasses.loop.checks import checked_noise, checked_part
from glasses.presets import DEFAULT, Preset


def chosen(preset: Any, loss: Any, model: Any, search: Any, noise: float | None) -> Preset:
    """The preset with the parts given beside it, all checked."""
    if preset is not None and not isinstance(preset, Preset):
        raise ValueError(f"preset must be glasses.DEFAULT, glasses.PAPER or a Preset of your own, got {preset!r}.")
    if model is not None and noise is not None:
        raise ValueError(f"noise = {noise!r} is given twice: put it into the model, GaussianProcess(noise=...).")
    checked_noise(noise)
    whole = (preset or DEFAULT).with_parts(loss=loss, model=model, search=search)
    for name in ("loss", "model", "search"):
        checked_part(name, getattr(whole, name), getattr(DEFAULT, name))
    return whole if noise is None else whole.with_noise(noise)
