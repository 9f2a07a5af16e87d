"""Children of tests start with default signal handling, however the tests were started."""

import signal
import subprocess
import sys

import pytest
from children import start_child

WAIT = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(30)"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_child_hears_a_signal_that_this_process_ignores(number):
    before = signal.signal(number, signal.SIG_IGN)  # as in the background of a shell, or under nohup
    try:
        child = start_child(WAIT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    finally:
        signal.signal(number, before)
    with child:
        assert child.stdout.readline() == b"1\n"
        child.send_signal(number)
        assert child.wait(timeout=10) == -number
