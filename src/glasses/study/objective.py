"""What a study measures: a Python function, or any command line. The only module that runs the user's code.

A command is started without a shell: placeholders are replaced inside its arguments, so a value can never become a command.
The last line that it prints is the result, a number or a JSON object with ``value`` (other entries are kept with the
evaluation). It runs in the folder of the study file and in a process group of its own, which ends with it; ``process`` says
what that does not reach.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import numbers
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol

from glasses.loop.broken import sign_of
from glasses.study import process

_DETAILS = 8000  # characters of a traceback that are kept, the last ones
_LINES = 20  # of a command's errors
_AT_ONCE = 1.0  # seconds: a command that fails sooner has hardly begun
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


@dataclass(frozen=True)
class Evaluation:
    """What came out: a value, or None and the reason; and whatever else the objective said."""

    value: float | None
    reason: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    sign: str | None = field(default=None, compare=False)  # of a failure: those of a broken objective have one sign
    details: str | None = field(default=None, compare=False)  # of a failure: its traceback, or the command's last errors


class Objective(Protocol):
    """Measures a configuration. ``prepare`` refuses, before anything is spent, what could never run."""

    def prepare(self, names: list[str]) -> Callable[[Mapping[str, Any], int], Evaluation]: ...


@dataclass(frozen=True)
class PythonFunction:
    """``module:function``, looked for beside the study file first; called with the parameters as keywords.

    It may fork. A child that comes back from the function, in whatever way, leaves at once and stores nothing.
    """

    target: str
    folder: Path

    def prepare(self, names: list[str]) -> Callable[[Mapping[str, Any], int], Evaluation]:
        module, name = self.target.split(":")
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        try:
            function = getattr(importlib.import_module(module), name)
        except (Exception, SystemExit) as error:
            raise ValueError(f"The objective {self.target} cannot be loaded: {type(error).__name__}: {error}.") from error
        if not callable(function):
            raise ValueError(f"The objective {self.target} is not a function but {function!r}.")
        _check_signature(self.target, function, names)

        def evaluate(params: Mapping[str, Any], trial: int) -> Evaluation:
            try:
                return understood(_called(function, params))
            except (Exception, SystemExit) as error:
                frames = error.__traceback__
                while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
                    frames = frames.tb_next  # the user's own alone
                lines = traceback.format_exception(type(error), error, frames)
                words = f"{type(error).__name__}: {error}"
                return Evaluation(None, words, sign=sign_of(error), details="".join(lines)[-_DETAILS:])

        return evaluate


@dataclass(frozen=True)
class Command:
    """A command line with ``{placeholders}``; ``{trial}`` is the number of the evaluation, ``{{`` a brace."""

    arguments: tuple[str, ...]
    folder: Path
    timeout: float | None = None

    def prepare(self, names: list[str]) -> Callable[[Mapping[str, Any], int], Evaluation]:
        program = self.arguments[0]
        beside = self.folder / program
        found = str(beside) if os.sep in program and os.access(beside, os.X_OK) else shutil.which(program)
        if found is None:
            raise ValueError(f"The objective's program {program!r} is not found or not executable: check its name and path.")

        def evaluate(params: Mapping[str, Any], trial: int) -> Evaluation:
            values = {**params, "trial": trial}
            return self._run([found, *(fill(argument, values) for argument in self.arguments[1:])])

        return evaluate

    def _run(self, arguments: list[str]) -> Evaluation:
        start = time.monotonic()
        try:
            ended = process.run(arguments, self.folder, self.timeout)
        except OSError as error:
            return Evaluation(None, f"the command did not start: {error.strerror}", sign="no start")
        at_once = time.monotonic() - start < _AT_ONCE
        if ended.status is None:
            return Evaluation(None, f"took longer than {self.timeout:g} s")
        lines = ended.output.lines()
        if ended.status != 0:
            last = (ended.errors.lines() or lines or [""])[-1].strip()
            how = f"signal {-ended.status}" if ended.status < 0 else f"status {ended.status}"
            said = "\n".join((ended.errors.lines() or lines)[-_LINES:])[-_DETAILS:]
            words = f"ended with {how}{': ' if last else ''}{printable(last)[:300]}"
            return Evaluation(None, words, sign="an error within a second" if at_once else None, details=said or None)
        if ended.output.cut and len(lines) < 2:
            return Evaluation(
                None,
                f"printed no whole line in its last {process.KEPT // 2**20} MiB: the last line must be a number or a JSON "
                "object, and shorter than that",
            )
        if not lines:
            return Evaluation(None, "printed nothing: its last line must be a number or a JSON object")
        return understood(_parsed(lines[-1].strip()))


def placeholders(arguments: Sequence[str]) -> list[str]:
    """The names in braces, in order."""
    return [match[1] for argument in arguments for match in _PLACEHOLDER.finditer(argument) if match[1]]


def fill(argument: str, values: Mapping[str, Any]) -> str:
    """One argument with its placeholders replaced, once: braces inside a value stay as they are."""
    return _PLACEHOLDER.sub(lambda match: _text(values[match[1]]) if match[1] else match[0][0], argument)


def understood(result: Any) -> Evaluation:
    """A result as an evaluation: a number, or a mapping with ``value``."""
    extras: dict[str, Any] = {}
    if isinstance(result, Mapping):
        extras = {str(key): each for key, each in result.items() if key != "value"}
        if "value" not in result:
            return Evaluation(None, f"gave no value, only {', '.join(extras) or 'nothing'}", _storable(extras))
        result = result["value"]
    shape = getattr(result, "shape", None)
    if shape is not None and math.prod(shape) == 1:
        result = result.item()
    if isinstance(result, bool) or not isinstance(result, numbers.Real):
        return Evaluation(None, f"gave {printable(repr(result))[:100]}, not a number", _storable(extras))
    try:
        value = float(result)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value) or abs(value) > 1e100:
        return Evaluation(None, f"gave {value}", _storable(extras))
    return Evaluation(value, None, _storable(extras))


def printable(text: str) -> str:
    """Text from outside without control characters."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _parsed(line: str) -> Any:
    try:
        return float(line)
    except ValueError:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return line


def _storable(extras: dict[str, Any]) -> dict[str, Any]:
    """What a database can keep as JSON; the rest as text."""
    kept = {}
    for key, each in extras.items():
        name = key.encode("utf-8", "replace").decode()[:200]
        try:
            json.dumps(each, allow_nan=False)
            kept[name] = each
        except (TypeError, ValueError, RecursionError):
            kept[name] = str(each)[:1000]
    return kept


def _check_signature(target: str, function: Callable[..., Any], names: list[str]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a callable without a signature
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        raise ValueError(
            f"The objective {target}{signature} does not take the parameters {', '.join(names)}: {error}."
        ) from None


def _called(function: Callable[..., Any], params: Mapping[str, Any]) -> Any:
    """What the function returns or raises; in a child that it forked, nothing: the evaluation is the worker's."""
    worker = os.getpid()
    try:
        result = function(**params)
    except BaseException as error:
        if os.getpid() != worker:
            _leave(error)
        raise
    if os.getpid() != worker:
        _leave(None)
    return result


def _leave(error: BaseException | None) -> NoReturn:
    """End a forked child as an uncaught exception ends a program: with its status, its traceback on standard error.

    Nothing is flushed: the child has a copy of what the worker has not written yet. A child that prints must flush itself.
    """
    status = 0 if error is None else 1
    try:
        if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
            status = (error.code or 0) & 0xFF
        elif error is not None:
            lines = [f"{error.code}\n"] if isinstance(error, SystemExit) else traceback.format_exception(error)
            os.write(2, "".join(lines).encode(errors="replace"))
    finally:
        os._exit(status)


def _text(value: Any) -> str:
    return (
        repr(value) if isinstance(value, float) else ("true" if value else "false") if isinstance(value, bool) else str(value)
    )
