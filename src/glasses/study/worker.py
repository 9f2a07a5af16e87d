"""One worker of a study: claims an evaluation, does it, stores it, until the budget is spent or the study's criterion says to
stop. ``glasses run`` is one of them. A worker that would stop waits for the evaluations of the others: their results may be a
reason to go on.

Ctrl-C finishes the running evaluation and stops; a second Ctrl-C, or SIGTERM, abandons it and queues it again. A
worker that is killed is noticed by the others (no sign of life for three heartbeats), or by the next one that is started.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from glasses.loop.ledger import ExhaustedError
from glasses.loop.progress import log_evaluation
from glasses.optuna.marks import OUTSIDE
from glasses.optuna.trials import broken_by, has_result, superseded
from glasses.study.file import StudyFile
from glasses.study.objective import Evaluation, printable
from glasses.study.storage import UnreachableError
from glasses.study.stored import ASKED, StoredStudy

_POLL = 0.5  # seconds
_SAID_EVERY = 60.0  # seconds between two lines about the time left, where nobody watches

Evaluate = Callable[[Mapping[str, Any], int], Evaluation]


def prepared(file: StudyFile) -> Evaluate:
    """The objective of a study, ready to be called; refused here, before anything is opened or spent."""
    if file.objective is None:
        raise ValueError(f"{file.path} has no [objective] to run: add one, or use `glasses ask {file.path}`.")
    return file.objective.prepare(list(file.parameters))


def work(stored: StoredStudy, evaluate: Evaluate, *, again: str, most: int | None = None, keep_going: bool = False) -> int:
    """Evaluate until the budget is spent (or ``most`` evaluations are done here); an exit status, 1 if nothing ever succeeded.

    ``keep_going``: also with an objective that seems to be broken (``loop.broken``), whose failures then cost budget.
    """
    with _Stop() as stop:
        stored.give_up_waiting = stop.wants_out
        try:
            return _work(stored, evaluate, stop, again, most, keep_going)
        except _BrokenError as error:
            print(error, flush=True)
            return 1
        except _AbandonedError:
            print(f"Stopped; the evaluation under way is queued again. Go on with: {again}", flush=True)
        except UnreachableError as error:
            if not stop.asked:
                raise
            print(f"{error} Go on with: {again}", flush=True)
        return 143 if stop.terminated else 130


def _work(stored: StoredStudy, evaluate: Evaluate, stop: _Stop, again: str, most: int | None, keep_going: bool) -> int:
    progress = Progress(stored, most)
    done, waiting_said = 0, False
    while not stop.asked and (most is None or done < most):
        for number in stored.requeue_lost_if_due():
            progress.say(f"the worker of evaluation {number} is gone.")
        reason = stored.reason_to_stop()
        trial = stored.claim() if reason is None else None
        if trial is not None:
            try:
                done += _evaluate(stored, trial, evaluate, stop, progress, None if keep_going else again)
            except ExhaustedError as error:
                if stored.budget.cost is not None and stored.remaining() == 0:
                    continue  # others have spent the rest meanwhile: wait for them as at the end of any budget
                print(error, flush=True)
                return progress.end()
        elif others := sum(each.state == TrialState.RUNNING and ASKED not in each.system_attrs for each in stored.trials()):
            if not waiting_said:
                why = "nothing left to begin" if reason is None else "nothing more is to begin"
                progress.say(f"{why}; waiting for {others} evaluations of other workers ...")
                waiting_said = True
            stop.wait(_POLL)
        elif reason is not None:
            return progress.stopped(reason)
        elif stored.remaining() == 0:
            return progress.end()
        # otherwise another worker is just giving an evaluation back
    if stop.asked:
        left = stored.budget.words(stored.left())
        print(f"Stopped after {done} evaluations here, {left} left. Go on with: {again}", flush=True)
        return 130
    return progress.status()


def _evaluate(
    stored: StoredStudy, trial: FrozenTrial, evaluate: Evaluate, stop: _Stop, progress: Progress, again: str | None
) -> bool:
    """Decide, evaluate and store a claimed trial; False if it was lost before it began.

    ``again``: the command that goes on once a broken objective is mended; None: go on in any case.
    """
    outcome: Evaluation | None = None
    with Alive(stored, trial):
        try:
            with stop.at_once():
                params = stored.point(trial)
                if params is None:
                    return False
                if stop.asked:  # before it has begun
                    raise _AbandonedError
                started = time.monotonic()
                with progress.running(trial, params):
                    outcome = evaluate(params, trial.number)
        except _AbandonedError:
            if outcome is None:
                stored.give_back(trial)
                raise
        assert params is not None
        assert outcome is not None
        seconds = time.monotonic() - started
        stop.in_hand = True
        broken = _store(stored, trial, outcome, params, free=again is not None)
        stop.in_hand = False
    progress.row(trial, params, outcome, seconds)
    if broken:
        raise _BrokenError(
            f"Stopped: the first {len(broken)} evaluations failed in the same way, so the objective seems to be broken. They "
            f"cost nothing: {stored.budget.words(stored.left(), 'evaluations')} are left.\n\n{_shown(outcome)}\n\n"
            f"Once it is mended: {again}     (to go on as it is: {again} --keep-going)"
        )
    return True


def _shown(outcome: Evaluation) -> str:
    """The traceback of a failure, or what its command said."""
    lines = (outcome.details or outcome.reason or "").rstrip().splitlines()
    return "\n".join(f"    {printable(line)}" for line in lines)


def _store(stored: StoredStudy, trial: FrozenTrial, outcome: Evaluation, params: Mapping[str, Any], *, free: bool) -> list[int]:
    """Store a result; which failures are free, if the objective turns out to be broken."""
    try:
        broken = broken_by(stored.trials(), trial.number, outcome.sign) if free and outcome.value is None else []
        stored.finish(trial, outcome, params, broken)
    except BaseException as error:  # the result is printed, so that a person can still tell it
        result = "--failed" if outcome.value is None else repr(outcome.value)
        command = f"glasses tell {shlex.quote(str(stored.file.path))} --trial {trial.number} {result}"
        print(f"glasses: a result could not be stored; once the database is back: {command}", file=sys.stderr, flush=True)
        raise UnreachableError(str(error)) if isinstance(error, Exception) else error from error
    return broken


class _BrokenError(Exception):
    """The objective seems to be broken; what is to be said about it."""


class _AbandonedError(BaseException):
    """The running evaluation is to be dropped at once; nothing that catches errors of an objective may catch it."""


class _Stop:
    """Ctrl-C and SIGTERM while a worker works."""

    def __init__(self) -> None:
        self.asked = False
        self.terminated = False
        self.in_hand = False  # a result that is not stored yet
        self._interrupts = 0
        self._interruptible = False
        self._event = threading.Event()

    def __enter__(self) -> _Stop:
        heard = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        heard = [each for each in heard if signal.getsignal(each) != signal.SIG_IGN]  # nohup, or a job in the background
        self._before = {each: signal.signal(each, self._heard) for each in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        first = not self.asked
        self.asked = True
        self._event.set()
        if number != signal.SIGINT:
            self.terminated = True
        self._interrupts += 1
        if self._interruptible and (number != signal.SIGINT or not first):
            self._interruptible = False
            raise _AbandonedError
        if number == signal.SIGINT and first and self._interruptible:
            print("\nFinishing the evaluation under way; Ctrl-C again abandons it.", file=sys.stderr, flush=True)

    def at_once(self) -> _Interruptible:
        """Inside, a second Ctrl-C or a SIGTERM interrupts; outside (storing a result) it only asks to stop."""
        return _Interruptible(self)

    def wants_out(self) -> bool:
        """Whether to stop waiting for a database: at once, or with a result in hand only if it is asked for twice."""
        return self.terminated or self._interrupts >= (2 if self.in_hand else 1)

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)


class _Interruptible:
    def __init__(self, stop: _Stop) -> None:
        self.stop = stop

    def __enter__(self) -> None:
        self.stop._interruptible = True
        if self.stop.terminated:
            raise _AbandonedError

    def __exit__(self, *_: object) -> None:
        self.stop._interruptible = False


class Alive:
    """Signs of life for a trial while it is evaluated."""

    def __init__(self, stored: StoredStudy, trial: FrozenTrial) -> None:
        self.stored, self.trial = stored, trial
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        while not self.over.wait(self.stored.file.heartbeat):
            try:
                self.stored.beat(self.trial)
            except Exception:  # the worker itself meets the database next and says what is wrong
                continue

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join(timeout=5.0)


def _point(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={each:.4g}" if isinstance(each, float) else f"{name}={each}" for name, each in params.items())


def _duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """One printed line per evaluation of this worker, with the state of the whole study."""

    def __init__(self, stored: StoredStudy, most: int | None = None) -> None:
        self.stored, self.most = stored, most
        self.start = self._said = time.monotonic()
        self._done, self._left = 0, stored.left()  # evaluations here so far; what was left of the study at the start
        file = stored.file
        whole = (
            f"{file.budget} evaluations" if stored.budget.cost is None else f"a budget of {stored.budget.priced(file.budget)}"
        )
        print(f"{printable(file.name)}: {whole}, {self._shown_left()} left.", flush=True)
        print(f"{'trial':>6} {'left':>5} {'value':>13} {'best':>13} {'took':>8} {'seconds':>8}  point", flush=True)

    def row(self, trial: FrozenTrial, params: Mapping[str, Any], outcome: Evaluation, seconds: float) -> None:
        best = self._best()
        log_evaluation(f"{trial.number} of {self.stored.file.name}", params, outcome.value, best, outcome.reason)
        star = "*" if best is not None and outcome.value == best else " "
        value = f"{'failed':>13}" if outcome.value is None else f"{outcome.value:13.6g}"
        shown = f"{best:13.6g}" if best is not None else f"{'-':>13}"
        total = time.monotonic() - self.start
        numbers = f"{trial.number:6d} {self._shown_left():>5} {value}{star}{shown} {seconds:8.2f} {total:8.1f}"
        print(f"{numbers}  {printable(_point(params))}", flush=True)
        if outcome.reason:
            print(f"{'':13}{printable(outcome.reason)}", flush=True)
        self._done += 1
        if time.monotonic() - self._said >= _SAID_EVERY and not sys.stdout.isatty():
            self._said = time.monotonic()
            if ahead := self.ahead():
                self.say(ahead)

    def _shown_left(self) -> str:
        left = self.stored.left()
        return str(left) if self.stored.budget.cost is None else f"{left:.4g}"

    def ahead(self) -> str | None:
        """How long it took so far, and about how long the rest takes; None before there is a rate, and at the end."""
        elapsed, left = time.monotonic() - self.start, self.stored.left()
        if self.stored.budget.cost is not None:
            return self._ahead_by_cost(elapsed, left)
        done = max(self._done, self._left - left)  # those of other workers too
        rest = left if self.most is None else min(left, self.most - self._done)
        if not self._done or rest <= 0:
            return None
        each = elapsed / done
        return f"{done} done in {_duration(elapsed)}, {_duration(each)} each; the rest takes about {_duration(rest * each)}."

    def _ahead_by_cost(self, elapsed: float, left: float) -> str | None:
        """The same where evaluations differ in price: the rest is taken to be spent as fast as what was spent so far."""
        spent = self._left - left  # also by other workers
        rest = left if self.most is None else min(left, (self.most - self._done) * spent / max(1, self._done))
        if not self._done or not spent > 0 or not rest > 0 or self.stored.remaining() == 0:
            return None
        done = f"{self._done} done here in {_duration(elapsed)}, {self.stored.budget.priced(spent)} spent"
        return f"{done}; the rest takes about {_duration(rest / spent * elapsed)}."

    @contextmanager
    def running(self, trial: FrozenTrial, params: Mapping[str, Any]) -> Iterator[None]:
        """On a terminal, a line that shows what is being evaluated, for how long, and how long the rest may take."""
        if not sys.stdout.isatty():
            yield
            return
        over, start, ahead = threading.Event(), time.monotonic(), self.ahead()
        after = "" if ahead is None else f"  {ahead}"

        def tick() -> None:
            while not over.wait(1.0):
                seconds = int(time.monotonic() - start)
                line = f"{trial.number:6d} running for {seconds // 60}:{seconds % 60:02d}{after}  {printable(_point(params))}"
                print(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K", end="", flush=True)

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            print("\r\x1b[K", end="", flush=True)

    def say(self, words: str) -> None:
        print(f"glasses: {words}", flush=True)

    def stopped(self, reason: str) -> int:
        left = self.stored.budget.words(self.stored.left(), "evaluations")
        print(f"Stopped: {reason} {left} are saved.", flush=True)
        print(f"To go on all the same, change [stop] in {self.stored.file.path} and run it again.", flush=True)
        return self.end()

    def end(self) -> int:
        done = [each for each in self.stored.counted() if each.state.is_finished()]
        trials = self.stored.trials()
        replaced = superseded(trials)
        ended = [each for each in trials if has_result(each) and OUTSIDE not in each.system_attrs]
        failed = sum(each.state == TrialState.FAIL and each.number not in replaced for each in ended)
        words = f", {failed} of them failed" if failed else ""
        budget = self.stored.budget
        if budget.cost is None:
            print(f"Done: {len(done)} of {self.stored.file.budget} evaluations{words}.", flush=True)
        else:
            print(f"Done: {len(done)} evaluations{words}, for {budget.words(budget.sum(done))}.", flush=True)
        asked = [
            each.number for each in self.stored.trials() if each.state == TrialState.RUNNING and ASKED in each.system_attrs
        ]
        if asked:
            print(f"Asked for by hand and not told yet: {', '.join(map(str, asked))}.", flush=True)
        best = self._best()
        if best is not None:
            print(f"Best value: {best:.6g}. Next: glasses show {self.stored.file.path}", flush=True)
        return self.status()

    def status(self) -> int:
        """0, or 1 where evaluations have ended and none has ever succeeded."""
        ended = [each for each in self.stored.trials() if has_result(each)]
        return 1 if ended and all(each.state == TrialState.FAIL for each in ended) else 0

    def _best(self) -> float | None:
        found = self.stored.best()
        return None if found is None else found.value
