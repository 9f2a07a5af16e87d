"""The page in a real browser: a person clicks, types and reads. Chromium draws it, the server is a process of its own."""

import json
import signal
import subprocess
import sys

import pytest
from opened import STUDY, stored_trials
from server import Server

from glasses.optuna.trials import state_of
from glasses.study.file import read_study
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def serve():
    servers = []

    def start(path, *more):
        servers.append(Server(path, *more))
        return servers[-1]

    yield start
    for each in servers:
        each.end()


@pytest.fixture
def visit(browser):
    """Opens a page in a browser of its own; whatever the browser complains about fails the test."""
    contexts, complaints = [], []

    def open_page(address, width=1100, height=900):
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(address)
        page.wait_for_selector("#connection.live")
        return page

    open_page.complaints = complaints
    yield open_page
    for each in contexts:
        each.close()
    assert [each for each in complaints if "ERR_CONNECTION" not in each and "ERR_INCOMPLETE" not in each] == []


def ask(page):
    page.click("#ask button")
    page.wait_for_selector(".experiment")


def tell(page, number, value):
    page.fill(f"#value-{number}", str(value))
    page.press(f"#value-{number}", "Enter")
    page.wait_for_selector(f"#value-{number}", state="detached")


def row(page, number):
    return page.locator(f"#trials tr[data-trial='{number}']")


def said(page, words):
    page.locator("#message", has_text=words).wait_for()


def states(path):
    return [state_of(trial) for trial in stored_trials(path)]


def test_the_walkthrough_by_clicking(bench, serve, visit, tmp_path):
    path = bench()
    page = visit(serve(path).address)
    assert page.title() == "bench · glasses"
    ask(page)
    tell(page, 0, 34.0)
    row(page, 0).get_by_role("cell", name="34", exact=True).wait_for()

    row(page, 0).get_by_role("button", name="Correct").click()
    page.fill("#correct-value", "3.4")
    page.fill("#correct-reason", "mistyped")
    page.get_by_role("button", name="Store the correction").click()
    said(page, "Corrected trial 0 to 3.4 (mistyped).")
    assert page.inner_text("#best-value") == "3.4"
    page.locator("#last-change").get_by_role("button", name="Undo").click()
    said(page, "Taken back: corrected trial 0")
    page.locator("#best-value", has_text="34").wait_for()
    page.locator("#message").get_by_role("button", name="Undo").click()
    page.locator("#best-value", has_text="3.4").wait_for()

    ask(page)
    page.click("text=I did something slightly different")
    page.locator(".experiment").get_by_label("temperature").fill("33")
    tell(page, 1, "2.5")
    assert stored_trials(path)[1].params["temperature"] == 33.0

    ask(page)
    page.get_by_role("button", name="It could not be done").click()
    page.fill("#why-reason", "out of powder")
    page.get_by_role("button", name="Cancel it").click()
    said(page, "Cancelled trial 2 (out of powder).")

    ask(page)
    page.locator(".experiment").get_by_role("button", name="It failed").click()
    page.locator("#why").get_by_role("button", name="It failed").click()
    said(page, "Stored for trial 3: failed.")

    row(page, 1).get_by_role("button", name="Withdraw").click()
    page.get_by_role("button", name="Withdraw it").click()
    said(page, "Withdrew trial 1.")
    row(page, 1).get_by_text("withdrawn").wait_for()
    row(page, 0).get_by_role("button", name="History").click()
    page.wait_for_selector("#history[open]")
    assert page.locator("#history-entries li").count() == 4
    assert "34 → 3.4" in page.inner_text("#history-entries")
    page.keyboard.press("Escape")

    old = tmp_path / "old.csv"
    old.write_text("temperature;catalyst;value\n41,5;none;1,25\n42,5;copper;1,75\n")
    page.set_input_files("#csv", old)
    page.get_by_text("2 results will be stored.").wait_for()
    page.get_by_role("button", name="Store 2").click()
    said(page, "Stored 2 results.")
    page.set_input_files("#csv", old)
    page.get_by_text("0 results will be stored.").wait_for()
    page.get_by_role("button", name="Leave it").last.click()

    with page.expect_download() as download:
        page.get_by_role("link", name="Report").click()
    report = tmp_path / "report.html"
    download.value.save_as(report)
    page.goto(report.as_uri())
    assert page.locator("tr.best").inner_text().split("\t")[0] == "4"
    assert states(path) == ["complete", "withdrawn", "cancelled", "failed", "complete", "complete"]


def test_two_browsers_and_another_shell_see_the_same(bench, serve, visit):
    path = bench()
    address = serve(path).address
    here, there = visit(address), visit(address)
    ask(here)
    there.wait_for_selector("#value-0")
    there.fill("#value-0", "7")  # typed, not stored
    with StoredStudy(read_study(path)) as stored:
        stored.add({"temperature": 30.0, "catalyst": "none"}, Evaluation(5.5))
    for page in (here, there):
        row(page, 1).get_by_text("5.5").wait_for()
    assert there.input_value("#value-0") == "7"
    tell(here, 0, 6)
    there.wait_for_selector("#value-0", state="detached")
    row(there, 0).get_by_text("6", exact=True).wait_for()
    assert [trial.value for trial in stored_trials(path)] == [6.0, 5.5]


def test_results_of_a_worker_appear_by_themselves(bench, serve, visit, tmp_path):
    (tmp_path / "measured.py").write_text("def measure(temperature, catalyst):\n    return temperature\n")
    path = bench(budget=4, more='[objective]\npython = "measured:measure"\n')
    page = visit(serve(path).address)
    ask(page)
    worker = [sys.executable, "-m", "glasses", "worker", str(path), "--most", "2"]
    subprocess.run(worker, check=True, capture_output=True)
    for number in (1, 2):
        row(page, number).get_by_text("complete").wait_for()
    assert page.locator("#value-0").is_visible()
    assert states(path)[:3] == ["running", "complete", "complete"]


def test_a_server_that_is_started_again_in_the_middle(bench, serve, visit):
    path = bench()
    server = serve(path)
    page = visit(server.address)
    ask(page)
    page.fill("#value-0", "1.5")
    server.end()
    page.wait_for_selector("#connection.waiting")
    assert page.inner_text("#connection").endswith("waiting for the server")
    page.press("#value-0", "Enter")
    said(page, "The server does not answer: waiting for it, your entry is kept.")
    again = serve(path)
    assert again.address == server.address  # the same port and token
    page.wait_for_selector("#connection.live")
    page.wait_for_selector("#value-0", state="detached")
    assert [trial.value for trial in stored_trials(path)] == [1.5]
    assert again.end(signal.SIGINT) == 130


def test_hostile_names_are_texts(bench, serve, visit, tmp_path):
    choices = json.dumps([HOSTILE, "none"])
    text = STUDY.replace('["none", "copper"]', choices.replace("{", "{{")).replace('name = "bench"', f"name = '{HOSTILE}'")
    path = bench(text=text)
    page = visit(serve(path).address)
    assert page.inner_text("h1") == HOSTILE
    for number in range(2):
        ask(page)
        page.locator(".experiment").get_by_role("button", name="It failed").click()
        page.fill("#why-reason", HOSTILE)
        page.locator("#why").get_by_role("button", name="It failed").click()
        said(page, f"Stored for trial {number}: failed.")
        row(page, number).get_by_role("cell", name=HOSTILE).last.wait_for()
    row(page, 0).get_by_role("button", name="History").click()
    page.locator("#history-entries", has_text=HOSTILE).wait_for()
    page.keyboard.press("Escape")
    old = tmp_path / "old.csv"
    old.write_text(f'temperature,catalyst,value\n30,"{HOSTILE}",1\n')
    page.set_input_files("#csv", old)
    page.locator("#import-rows td", has_text=HOSTILE).wait_for()
    page.locator("#import").get_by_role("button", name="Leave it").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Report").click()
    download.value.save_as(tmp_path / "report.html")
    page.goto((tmp_path / "report.html").as_uri())
    assert page.inner_text("h1") == HOSTILE
    assert page.locator("img").count() == 0


def test_on_a_phone(bench, serve, visit):
    path = bench()
    with StoredStudy(read_study(path)) as stored:
        stored.add({"temperature": 30.0, "catalyst": "none"}, Evaluation(None, "a long reason " * 20))
    page = visit(serve(path).address, width=375, height=700)
    ask(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    size = page.locator(".values dd").first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
    assert size > 24
    row(page, 0).get_by_role("button", name="Correct").click()
    box = page.locator("#correct").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 375
    page.keyboard.press("Escape")
    tell(page, 1, 2)
    assert states(path) == ["failed", "complete"]


def test_by_keyboard_alone(bench, serve, visit):
    path = bench()
    page = visit(serve(path).address)

    def go_to(words, shift=False):
        for _ in range(60):
            page.keyboard.press("Shift+Tab" if shift else "Tab")
            found = page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
            if found.strip() == words:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none"
                return
        raise AssertionError(f"{words} is not reached")

    go_to("Get the next experiment")
    page.keyboard.press("Enter")
    page.wait_for_selector("#value-0:focus")
    page.keyboard.type("4.5")
    page.keyboard.press("Enter")
    row(page, 0).get_by_text("4.5").wait_for()
    go_to("Correct, trial 0")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("5.5")
    page.keyboard.press("Enter")
    said(page, "Corrected trial 0 to 5.5.")
    go_to("Withdraw, trial 0")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    said(page, "Withdrew trial 0.")
    assert states(path) == ["withdrawn"]


def test_every_field_has_a_label_and_every_text_enough_contrast(bench, serve, visit):
    page = visit(serve(bench()).address)
    ask(page)
    page.click("text=I did something slightly different")
    unlabelled = page.evaluate("[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).map(e => e.id)")
    assert unlabelled == []
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, a')].filter(e => e.getClientRects().length && !e.textContent.trim()).length"
    )
    assert nameless == 0
    assert page.evaluate(CONTRASTS) == []


# Texts whose contrast with what is behind them is below 4.5, by the formula of WCAG 2.
CONTRASTS = """
(() => {
  const parts = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg, script, noscript") || !e.getClientRects().length || e.disabled) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName} ${e.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return bad;
})()
"""
