"""GLASSES inside BoTorch: ``GlassesAcquisition``, the look-ahead over the posterior of a BoTorch model, and
``start_generator``, where its search begins. Needs ``glasses[botorch]``."""

try:
    import botorch  # noqa: F401
except ImportError as error:
    raise ImportError("glasses.botorch needs BoTorch: pip install 'glasses[botorch]'.", name=error.name) from error

from glasses.botorch.acquisition import GlassesAcquisition
from glasses.botorch.starts import start_generator

__all__ = ["GlassesAcquisition", "start_generator"]
