"""Measurements of the page of a study: ``python -m benchmarks.page``. Needs Chromium; prints JSON, in seconds.

With ``--dashboard PYTHON``, the Python of an environment with optuna-dashboard, its page on the same database is measured too.

    first paint     from the address to the browser's first contentful paint, and until the table and the charts are there
    second browser  from the click that stores a result to its row in another browser
    next            from telling a result over the click to the next experiment's card, the decision included
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

STUDY = """
name = "page"
direction = "maximize"
budget = {budget}
n_initial = 8
[parameters]
temperature = [20.0, 90.0]
rate = {{ low = 0.001, high = 1.0, log = true }}
stages = {{ type = "int", low = 1, high = 8 }}
catalyst = {{ choices = ["none", "copper", "zeolite"] }}
"""
ARGUMENTS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"


def fill(path, trials):
    """A study with that many results; thirty more are left."""
    from glasses.study.file import read_study
    from glasses.study.objective import Evaluation
    from glasses.study.stored import StoredStudy

    rng = random.Random(1)
    path.write_text(STUDY.format(budget=trials + 30))
    with StoredStudy(read_study(path)) as stored:
        for _ in range(trials):
            point = {
                "temperature": rng.uniform(20, 90),
                "rate": 10 ** rng.uniform(-3, 0),
                "stages": rng.randint(1, 8),
                "catalyst": rng.choice(["none", "copper", "zeolite"]),
            }
            reached = math.exp(-(((point["temperature"] - 62) / 18) ** 2) - 0.5 * (math.log10(point["rate"]) + 1.3) ** 2)
            stored.add(point, Evaluation(96 * reached * (1 - 0.6 ** point["stages"]) + rng.gauss(0, 0.5)))


def serve(path):
    """A server of the page, and its address."""
    command = [sys.executable, "-m", "glasses", "serve", str(path), "--no-open", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split(" is at ")[1].strip()


def end(process):
    """End a server."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def paint(browser, address, ready, repeats=5):
    """Medians over visits with an empty cache: first contentful paint, and until ``ready`` is on the page."""
    paints, whole = [], []
    for _ in range(repeats + 1):
        context = browser.new_context(viewport={"width": 1100, "height": 900})
        page = context.new_page()
        start = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.wait_for_selector(ready, timeout=600_000)
        whole.append(time.perf_counter() - start)
        paints.append(page.evaluate(PAINT))
        context.close()
    return {"first paint": statistics.median(paints[1:]), "complete": statistics.median(whole[1:])}


def told_elsewhere(browser, path, address, repeats=7):
    """From a key in one browser to the row in another; what is told does not matter."""
    from optuna.trial import TrialState, create_trial

    from glasses.optuna.marks import ASKED
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    here, there = (browser.new_context().new_page() for _ in range(2))
    for page in (here, there):
        page.goto(address)
        page.wait_for_selector("#connection.live")
    seconds = []
    for k in range(repeats):
        point = {"temperature": 30.0 + k, "rate": 0.1, "stages": 2, "catalyst": "none"}
        with StoredStudy(read_study(path)) as stored:
            trial = create_trial(
                state=TrialState.RUNNING, params=point, distributions=stored.distributions, system_attrs={ASKED: True}
            )
            number = stored.storage.add(trial).number
        here.wait_for_selector(f"#value-{number}")
        here.fill(f"#value-{number}", "12.5")
        start = time.perf_counter()
        here.press(f"#value-{number}", "Enter")
        there.wait_for_selector(f"#trials tr.complete[data-trial='{number}']")
        seconds.append(time.perf_counter() - start)
    for page in (here, there):
        page.context.close()
    return statistics.median(seconds)


def next_after_telling(browser, path, address, repeats=3):
    """Tell, ask at once, see the card; and a decision by itself, each time from the same data, so that much is remembered."""
    from glasses.study import by_hand
    from glasses.study.file import read_study
    from glasses.study.stored import StoredStudy

    page = browser.new_context().new_page()
    page.goto(address)
    page.click("#ask button")
    page.wait_for_selector(".experiment", timeout=600_000)
    seconds: list[float] = []
    for k in range(repeats + 1):
        number = int(page.get_attribute(".experiment .value", "id").split("-")[1])
        page.fill(f"#value-{number}", str(40 + k))
        start = time.perf_counter()
        page.press(f"#value-{number}", "Enter")
        page.wait_for_selector(f"#value-{number}", state="detached")
        page.click("#ask button", timeout=600_000)
        page.wait_for_selector(".experiment", timeout=600_000)
        seconds.append(time.perf_counter() - start)
    page.context.close()
    alone = []
    with StoredStudy(read_study(path)) as stored:
        for _ in range(repeats + 1):
            start = time.perf_counter()
            trial = by_hand.ask(stored, 1)[0][0]
            alone.append(time.perf_counter() - start)
            stored.cancel(trial.number)
    return {"told to next": statistics.median(seconds[1:]), "decision alone": statistics.median(alone[1:])}


def dashboard(browser, python, path, trials):
    """The same of optuna-dashboard: its page of the study, and a new best trial on it without loading again."""
    from glasses.study.file import read_study
    from glasses.study.objective import Evaluation
    from glasses.study.stored import StoredStudy

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(python).with_name("optuna-dashboard")
    address = f"http://127.0.0.1:{port}/dashboard/studies/1"
    process = subprocess.Popen(
        [program, f"sqlite:///{path.with_suffix('.db')}", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(address, timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        found = paint(browser, address, "svg.main-svg", 5)
        page = browser.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("svg.main-svg")
        seconds = []
        with StoredStudy(read_study(path)) as stored:
            for k in range(3):
                start = time.perf_counter()
                stored.add(
                    {"temperature": 30.0, "rate": 0.1, "stages": 2, "catalyst": "none"}, Evaluation(1000.0 + k)
                )  # the best so far
                page.wait_for_function(f"document.body.innerText.includes('number={trials + k}')", timeout=60_000)
                seconds.append(time.perf_counter() - start)
        return {**found, "new trial visible": statistics.median(seconds)}
    finally:
        process.kill()
        process.wait()


def main():
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dashboard", help="Python of an environment with optuna-dashboard")
    parser.add_argument("--trials", type=int, nargs="+", default=[25, 200, 1000], help="sizes of the studies")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS.split())
        for trials in options.trials:
            path = Path(folder) / f"page{trials}.toml"
            fill(path, trials)
            process, address = serve(path)
            page = browser.new_context().new_page()
            page.goto(address)
            page.wait_for_selector("#forecast svg", timeout=900_000)  # the model is kept from here on
            page.context.close()
            rows = found[f"{trials} trials"] = paint(browser, address, "#forecast svg")
            print(json.dumps({f"{trials} trials": rows}), file=sys.stderr, flush=True)
            end(process)
            start = time.perf_counter()
            process, address = serve(path)
            rows["server start"] = time.perf_counter() - start
            if trials < 1000:
                rows["second browser"] = told_elsewhere(browser, path, address)
            print(json.dumps({f"{trials} trials": rows}), file=sys.stderr, flush=True)
            if trials == 25:
                rows |= next_after_telling(browser, path, address)
            end(process)
            if options.dashboard and trials > 25:
                copy = Path(folder) / f"dashboard{trials}.toml"
                fill(copy, trials)
                rows["optuna-dashboard"] = dashboard(browser, options.dashboard, copy, trials)
            print(json.dumps({f"{trials} trials": rows}), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
