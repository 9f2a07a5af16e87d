"""GLASSES inside Optuna 5: ``GlassesSampler`` and ``StopWhen``. Needs ``pip install 'glasses[study]'``."""

from glasses.optuna.sampler import GlassesSampler, StopWhen

__all__ = ["GlassesSampler", "StopWhen"]
