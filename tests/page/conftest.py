"""Studies of the page's tests, the page without a network, and a browser where there is one."""

import os
import shutil
import textwrap
from pathlib import Path

import pytest
from opened import STUDY, TOKEN, Page


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("study")


@pytest.fixture
def bench(tmp_path):
    """A study file without an objective; every suggestion is an initial point, so no model is needed."""

    def make(budget=10, more="", text=STUDY):
        path = tmp_path / "bench.toml"
        path.write_text(textwrap.dedent(text.format(budget=budget, more=more)))
        return path

    return make


@pytest.fixture
def open_page():
    """Opens the page of a study file, as a browser with the token does."""
    pages = []

    def make(path):
        page = Page(path)
        page.__enter__()
        pages.append(page)
        assert page.get("/", params={"token": TOKEN}).status_code == 200
        return page

    yield make
    for page in pages:
        page.__exit__(None, None, None)
        page.served.close()


CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests; each opens contexts of its own."""
    if CHROMIUM is None:
        words = "Chromium is not installed: scripts/install-chromium installs it"
        if os.environ.get("GLASSES_NEED_CHROMIUM"):
            pytest.fail(words)
        pytest.skip(words)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()
