"""``python -m benchmarks [section ...]``: measure, keep the numbers in docs/benchmarks.json, write docs/benchmarks.md and its
figure.

A run that was cut short goes on with the sections it lacks; when none is missing, all are measured again. Name sections to
measure only those.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import report
from benchmarks.setting import ONE_THREAD

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "benchmarks.json"
CPU_SECONDS = ("decisions", "expectation", "growth", "large", "far", "many")  # with one thread
SERVERS = ("many", "workers", "study")
SECTIONS = ("decisions", "waiting", "events", "profile", "large", "far", "first", "memory", "expectation", "growth", *SERVERS)
OWN = ROOT / ".venv" / "bin" / "python"  # make setup: with a driver for PostgreSQL, without peers
HEBO = ROOT / ".venv-hebo" / "bin" / "python"  # make peers-hebo


def run(section, python=sys.executable, **environment):
    served = section in SERVERS
    command = [OWN if served else python, "-m", "benchmarks.servers" if served else "benchmarks.sections", section]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(section):
    if section in CPU_SECONDS:
        found = run(section, **ONE_THREAD)
        return found | run("hebo", HEBO, **ONE_THREAD) if section == "decisions" and HEBO.exists() else found
    if section == "waiting":
        return {d: _cold_and_warm(section, INPUTS=d) for d in ("2", "6", "20")}
    if section == "profile":
        return run(section, GLASSES_CACHE_DIR="off", GLASSES_COMPILE_AHEAD="off")
    return _cold_and_warm(section) if section in ("first", "events") else run(section)


def _cold_and_warm(section, **environment):
    with tempfile.TemporaryDirectory() as cache:
        cold, *warm = (run(section, GLASSES_CACHE_DIR=cache, **environment) for _ in range(3))
    return {"cold": cold, "warm": warm[-1]}


def main():
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}  # "before": what an earlier version took, by hand
    wanted = sys.argv[1:] or [name for name in SECTIONS if name not in known] or list(SECTIONS)
    unknown = set(wanted) - set(SECTIONS)
    if unknown:
        sys.exit(f"Unknown section {', '.join(sorted(unknown))}: choose from {', '.join(SECTIONS)}.")
    if set(wanted) >= set(SECTIONS):
        known.pop("note", None)  # about sections of different age
    for section in wanted:
        print(f"measuring {section} ...", flush=True)
        known[section] = measure(section)
        known["machine"] = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
        known["date"] = datetime.date.today().isoformat()
        KEPT.write_text(json.dumps(known, indent=1) + "\n")
    report.write(known, ROOT / "docs")
    print((ROOT / "docs" / "benchmarks.md").read_text())


if __name__ == "__main__":
    main()
