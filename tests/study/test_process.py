"""Commands that leave descendants behind, print without measure or take too long."""

import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from glasses.study.objective import Command


def evaluate(script, folder=Path("."), timeout=None):
    """The evaluation of a shell script, and how many seconds it took."""
    began = time.monotonic()
    found = Command(("sh", "-c", script), folder, timeout).prepare([])({}, 0)
    return found, time.monotonic() - began


def python(code):
    """The evaluation of a Python program."""
    return Command((sys.executable, "-c", "{trial}"), Path(".")).prepare([])({}, code)


@pytest.mark.parametrize("descendant", ["sleep 8", "setsid sleep 8", "nohup setsid sleep 8"])
@pytest.mark.parametrize("timeout", [None, 4.0])
def test_the_evaluation_ends_with_the_command(descendant, timeout):
    found, seconds = evaluate(f"{descendant} & echo 1", timeout=timeout)
    assert (found.value, found.reason) == (1.0, None)
    assert seconds < 4.0


@pytest.mark.parametrize("descendant", ["sleep 8", "setsid sleep 8"])
def test_a_timeout_is_met_whatever_the_descendants_do(descendant):
    found, seconds = evaluate(f"{descendant} & echo 1; sleep 60", timeout=0.5)
    assert (found.value, found.reason) == (None, "took longer than 0.5 s")
    assert seconds < 4.0


def test_a_timeout_is_met_by_a_command_that_closed_its_output():
    found, seconds = evaluate("exec >&- 2>&-; sleep 8", timeout=0.5)
    assert found.reason == "took longer than 0.5 s"
    assert seconds < 4.0


def test_what_is_left_of_the_process_group_is_killed(tmp_path):
    found, _ = evaluate("(sleep 1.5; touch alive) > /dev/null 2>&1 & echo 1", tmp_path)
    assert found.value == 1.0
    time.sleep(2.0)
    assert not (tmp_path / "alive").exists()


def test_an_exception_ends_the_command_and_its_process_group(tmp_path):
    """As a second Ctrl-C does."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate("(sleep 1.5; touch alive) & sleep 1.5; touch alive", tmp_path)
    finally:
        signal.signal(signal.SIGALRM, before)
    time.sleep(2.0)
    assert not (tmp_path / "alive").exists()


def test_a_descendant_that_passes_on_the_last_line_is_given_a_moment():
    """As in ``exec > >(tee log)``, where the shell ends before tee."""
    assert evaluate("(sleep 0.05; echo 2) & echo 1")[0].value == 2.0


def test_a_descendant_that_prints_without_end_does_not_hold_the_evaluation_up():
    found, seconds = evaluate("setsid yes 5 & echo 5")
    assert found.value == 5.0
    assert seconds < 4.0


def test_a_program_that_cannot_be_killed_does_not_hold_the_evaluation_up(monkeypatch):
    """One of another user, as under sudo."""

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr("os.killpg", refused)
    monkeypatch.setattr("os.kill", refused)
    process = None
    started = subprocess.Popen.__init__

    def remember(self, *arguments, **options):
        nonlocal process
        process = self
        started(self, *arguments, **options)

    monkeypatch.setattr("subprocess.Popen.__init__", remember)
    found, seconds = evaluate("exec sleep 4", timeout=0.5)
    assert found.reason == "took longer than 0.5 s"
    assert seconds < 4.0
    process.wait()


@pytest.mark.parametrize("where", ["/dev/stdout", "/dev/stderr"])
@pytest.mark.parametrize("talk", ["yes a line of some length", "yes x | tr -d '\\n'"])
def test_output_takes_bounded_memory(where, talk):
    """40 MB of lines, or of one line."""
    tracemalloc.start()
    try:
        found, _ = evaluate(f"{talk} | head -c 40000000 > {where}; echo; echo 7")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.value == 7.0
    assert most < 12e6


def test_a_long_last_line():
    """One that fills the last MiB is not known to be whole; one byte less, and it is."""
    most = 2**20
    line = "print('talk'); print('[' + ' ' * {} + '1]')"
    assert python(line.format(most - 5)).reason == "gave [1], not a number"
    assert python("import json; print('x' * 3000000); print(json.dumps(dict(value=3, more='y' * 900000)))").extras == {
        "more": "y" * 900_000
    }
    for printed in (line.format(most - 4), "print('1' + ' ' * 2500000)", "print('1' + '\\n' * 2500000)"):
        found = python(printed)
        assert found.value is None
        assert found.reason == (
            "printed no whole line in its last 1 MiB: the last line must be a number or a JSON object, and shorter than that"
        )


def test_the_reason_of_a_failure_is_the_end_of_a_long_complaint():
    found, _ = evaluate("yes warning | head -c 3000000 >&2; echo 'no fuel' >&2; exit 3")
    assert found.reason == "ended with status 3: no fuel"
