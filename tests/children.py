"""Children of tests with the signal handling that a person at a terminal gives them.

A process inherits which signals are ignored. A shell without job control ignores SIGINT and SIGQUIT in what it runs in the
background (``make test &``), and nohup ignores SIGHUP; so a child that a test interrupts would not notice.

Run as a program, ``children.py COMMAND ...`` becomes that command. A ``preexec_fn`` would do the same, but it runs Python in a
fork of this process, which has threads of JAX.
"""

import os
import signal
import subprocess
import sys


def default_signals():
    """Give this process the signal handling with which Python starts in the foreground."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for each in (signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def start_child(command, **options):
    """``subprocess.Popen`` of a command that a test will signal; the process keeps its number."""
    return subprocess.Popen([sys.executable, "-I", __file__, *map(str, command)], **options)


if __name__ == "__main__":
    default_signals()
    os.execvp(sys.argv[1], sys.argv[1:])
