"""A page that is served by a process of its own, as a person starts it, and stopped, killed or started again by a test."""

import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from subprocess import PIPE

from children import start_child

TOKEN = "a-token-of-the-tests-1234"


class Server:
    def __init__(self, path, *more):
        command = [sys.executable, "-m", "glasses", "serve", path, "--no-open", *more]
        self.process = start_child(command, stdout=PIPE, stderr=PIPE, text=True, env=dict(os.environ))
        self.said = self.process.stdout.readline()
        found = re.search(r"http://\S+", self.said)
        assert found, self.said + self.process.stderr.read()
        self.address = found[0]
        self.root = self.address.split("/?")[0]
        self.wait()

    def wait(self):
        """Until it answers."""
        for _ in range(400):
            try:
                urllib.request.urlopen(self.root, timeout=1)
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)

    def end(self, how=signal.SIGKILL):
        """End it; its exit status."""
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
        status = self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()
        return status
