"""Where things that can be made again are kept: compiled programs, summaries of studies.

``GLASSES_CACHE_DIR`` moves the folder (default: in the user's own cache folder); ``GLASSES_CACHE_DIR=off`` turns it off.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The folder, or None when nothing is to be kept."""
    chosen = os.environ.get("GLASSES_CACHE_DIR")
    if chosen is not None and chosen.lower() in ("off", "0", "none", ""):
        return None
    if chosen is not None:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "glasses" / "programs"
