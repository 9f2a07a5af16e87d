"""The pictures of docs/page.md: ``make screenshots``. Needs Chromium (scripts/install-chromium) and Playwright.

Two studies with made-up measurements are served, and a browser is led to what the pictures show.
"""

import math
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy

DOCS = Path(__file__).parent
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
REACTOR = """
name = "reactor"
direction = "maximize"
budget = 24
best_possible = 100.0
[parameters]
temperature = [20.0, 90.0]
rate = { low = 0.001, high = 1.0, log = true }
stages = { type = "int", low = 1, high = 8 }
catalyst = { choices = ["none", "copper", "zeolite"] }
"""
OVEN = """
name = "oven"
direction = "maximize"
budget = 20
[parameters]
temperature = [140.0, 240.0]
minutes = [5.0, 60.0]
"""


def yield_of(temperature: float, rate: float, stages: int, catalyst: str) -> float | None:
    """A made-up reactor; the zeolite decomposes when it is hot."""
    if catalyst == "zeolite" and temperature > 80.0:
        return None
    best = {"none": 75.0, "copper": 62.0, "zeolite": 55.0}[catalyst]
    reached = math.exp(-(((temperature - best) / 18.0) ** 2) - 0.5 * (math.log10(rate) + 1.3) ** 2)
    return 96.0 * reached * (1.0 - 0.6**stages)


def crust_of(temperature: float, minutes: float) -> float:
    """A made-up bread: there is more than one way to bake it."""
    heat = (temperature - 140.0) * minutes / 1000.0
    return 10.0 * math.exp(-((heat - 1.4) ** 2) / 0.6) - 0.02 * abs(temperature - 200.0)


def reactor(path: Path) -> None:
    """Twelve results, one of them corrected and one withdrawn."""
    path.write_text(REACTOR)
    rng = random.Random(4)
    with StoredStudy(read_study(path)) as stored:
        for k in range(12):
            point = {
                "temperature": round(rng.uniform(20, 90), 1),
                "rate": float(f"{10 ** rng.uniform(-3, 0):.3g}"),
                "stages": rng.randint(1, 8),
                "catalyst": ["none", "copper", "zeolite"][k % 3],
            }
            value = yield_of(**point)  # type: ignore[arg-type]
            outcome = Evaluation(None, "the zeolite decomposed") if value is None else Evaluation(round(value, 2))
            stored.add(point, outcome)
        stored.correct(4, outcome=Evaluation(8.35), reason="mistyped")
        stored.withdraw(7, "the pump was off")


def oven(path: Path) -> None:
    """Nine results over two parameters."""
    path.write_text(OVEN)
    rng = random.Random(2)
    with StoredStudy(read_study(path)) as stored:
        for _ in range(9):
            point = {"temperature": round(rng.uniform(140, 240)), "minutes": round(rng.uniform(5, 60))}
            stored.add({name: float(each) for name, each in point.items()}, Evaluation(round(crust_of(**point), 2)))


def main() -> None:
    """Write the pictures beside this file."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed: scripts/install-chromium installs it.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)

        def visit(path: Path, width: int, height: int) -> tuple[Page, subprocess.Popen[str]]:
            command = [sys.executable, "-m", "glasses", "serve", str(path), "--no-open", "--port", "0"]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert server.stdout is not None
            address = server.stdout.readline().split(" is at ")[1].strip()
            context = browser.new_context(viewport={"width": width, "height": height}, device_scale_factor=1)
            page = context.new_page()
            page.set_default_timeout(240_000)
            page.goto(address)
            page.wait_for_selector("#forecast svg")
            return page, server

        path = Path(folder) / "reactor.toml"
        reactor(path)
        page, server = visit(path, 1100, 900)
        page.click("#ask button")
        page.wait_for_selector(".experiment")
        settle(page)
        page.screenshot(path=DOCS / "page.png", full_page=True)
        page.locator("#trials tr[data-trial='4']").get_by_role("button", name="Correct").click()
        page.fill("#correct-value", "83.5")
        page.fill("#correct-reason", "mistyped")
        page.locator("#correct").screenshot(path=DOCS / "page-correct.png")
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 375, "height": 780})
        settle(page)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=DOCS / "page-phone.png")
        end(server)

        path = Path(folder) / "oven.toml"
        oven(path)
        page, server = visit(path, 1000, 900)
        settle(page)
        page.locator("#where").screenshot(path=DOCS / "page-map.png")
        end(server)
        browser.close()


def settle(page: Page) -> None:
    """Until the model is there and nothing is said any more."""
    page.wait_for_timeout(1500)
    page.locator("#model-state").wait_for(state="hidden")
    page.wait_for_timeout(700)
    page.evaluate("document.getElementById('message').replaceChildren(); document.activeElement.blur()")


def end(server: subprocess.Popen[str]) -> None:
    """End a server."""
    server.send_signal(signal.SIGINT)
    server.wait(timeout=30)


if __name__ == "__main__":
    main()
