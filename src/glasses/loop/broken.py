"""A broken objective: one whose first evaluations all fail in the same way, so that nothing can be learnt from the others.

The same way: an exception of the same type raised at the same line of the same file, or whatever else the sign of a failure
says (``study.objective``: a command that ends with an error within a second). A failure without a sign is like no other. One
success, ever, and the objective is not broken: it fails in places.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence

FIRST = 3  # evaluations


def sign_of(error: BaseException) -> str:
    """What an exception is and where it was raised; also of one that comes from another process with its traceback as text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "an unknown place"
    remote = re.findall(r'File "(.+)", line (\d+)', str(error.__cause__)) if error.__cause__ is not None else []
    if type(error.__cause__).__name__ == "_RemoteTraceback" and remote:
        place = f"{remote[-1][0]}, line {remote[-1][1]}"
    return f"{type(error).__name__} in {place}"


def is_broken(signs: Sequence[str | None]) -> bool:
    """Whether these, the signs of all evaluations so far, are those of a broken objective; a success has the sign None."""
    return len(signs) >= FIRST and signs[0] is not None and len(set(signs)) == 1
