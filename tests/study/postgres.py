"""A PostgreSQL server of the tests' own, in a temporary folder: started, stopped and started again as a test likes."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


def binaries():
    """The folder of PostgreSQL's programs, or None."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return next((path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None)


class Server:
    def __init__(self, programs):
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="glasses-postgres-"))
        self.user = None
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            names = [each.pw_name for each in pwd.getpwall()]
            self.user = next(name for name in ("postgres", "nobody") if name in names)
            shutil.chown(self.folder, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "glasses", "-A", "trust", "--no-sync")
        self.start()

    def _run(self, program, *arguments):
        subprocess.run(
            [self.programs / program, *arguments], check=True, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL
        )

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")

    def stop(self):
        """At once, as if the machine had gone."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def database(self, name):
        """The address of a fresh database."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "glasses", name)
        return f"postgresql://glasses@127.0.0.1:{self.port}/{name}"

    def close(self):
        self.stop()
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.1)


def start_server():
    """A running server, or a skip that says why; where it is needed (in CI), a failure."""
    programs = binaries()
    if programs is None:
        words = "PostgreSQL is not installed: scripts/install-postgres installs it"
        if os.environ.get("GLASSES_NEED_POSTGRES"):
            pytest.fail(words)
        pytest.skip(words)
    return Server(programs)
