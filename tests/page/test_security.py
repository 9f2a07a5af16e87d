"""Who is let in: the token, Host, Origin, methods, sizes. Everything refused is one sentence and stores nothing."""

import json

import pytest
from opened import STUDY, TOKEN, Page, dump, sentence

from glasses.page.security import LARGEST, WRITES, is_own, write_secret

WRITING = ("ask", "tell", "correct", "withdraw", "cancel", "undo", "retry", "import/preview", "import/store")
READING = ("/", "/api/state", "/api/events", "/api/forecast?budget=5", "/api/history?trial=0", "/export.csv", "/export.json")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    path = tmp_path_factory.mktemp("guarded") / "bench.toml"
    path.write_text(STUDY.format(budget=10, more=""))
    with Page(path) as page:
        page.get("/", params={"token": TOKEN})
        page.act("ask", n=1, request="first")
        yield page


@pytest.fixture
def page(opened):
    opened.cookies.clear()
    opened.get("/", params={"token": TOKEN})
    return opened


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(bench, open_page):
    page = open_page(bench())
    page.cookies.clear()
    answer = page.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    assert TOKEN not in page.get("/").text


@pytest.mark.parametrize("address", [*READING, "/report.html", "/static/page.js", "/nothing", "/?token=wrong-token-of-16"])
def test_nothing_is_shown_without_the_token(page, address):
    page.cookies.clear()
    answer = page.get(address)
    assert answer.status_code == 403
    assert sentence(answer) == "This page needs its token: open the address that `glasses serve` printed."


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"cookie": ""}, 403),
        ({"cookie": "glasses-00000000=x"}, 403),
        ({WRITES: ""}, 403),
        ({WRITES: write_secret("another token")}, 403),
        ({WRITES: TOKEN}, 403),
        ({"host": "evil.example:8000"}, 421),
        ({"host": "127.0.0.1:9000"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9000"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_write_that_is_not_the_pages_own_stores_nothing(page, change, status):
    before = dump(page.served.path)
    headers = page.write | {"content-type": "application/json"} | change
    body = json.dumps({"trial": 0, "value": "1.0", "n": 1, "request": "x", "text": "temperature,catalyst,value\n30,none,1\n"})
    if "cookie" in change:
        page.cookies.clear()
    for name in WRITING:
        answer = page.post(f"/api/{name}", content=body, headers=headers)
        assert answer.status_code == status, name
    assert dump(page.served.path) == before


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_writes_are_posts(page, method):
    for name in WRITING:
        answer = page.request(method, f"/api/{name}", headers=page.write)
        assert answer.status_code == 405
        assert sentence(answer) == "Expected GET to read or POST to write."


def test_bodies_are_limited(page):
    before = dump(page.served.path)
    body = json.dumps({"trial": 0, "value": "1.0", "reason": "x" * LARGEST})
    answer = page.post("/api/tell", content=body, headers=page.write | {"content-type": "application/json"})
    assert answer.status_code == 413
    assert sentence(answer) == "The request is larger than 64 KiB: send less at once."
    huge = json.dumps({"text": "temperature,catalyst,value\n" + "30,none,1\n" * 1_000_000})
    answer = page.post("/api/import/store", content=huge, headers=page.write | {"content-type": "application/json"})
    assert answer.status_code == 413
    assert dump(page.served.path) == before


def test_every_answer_forbids_what_the_page_does_not_need(page):
    for address in ("/", "/api/state", "/static/page.js", "/nothing"):
        headers = page.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert page.get("/static/../app.py").status_code == 404
    assert page.get("/static/%2e%2e/app.py").status_code == 404


@pytest.mark.parametrize(
    ("host", "listening", "own"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("localhost:80", "127.0.0.1", True),
        ("LOCALHOST:80", "127.0.0.1", True),
        ("[::1]:80", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:81", "127.0.0.1", False),
        ("evil.example:80", "127.0.0.1", False),
        ("localhost.evil.example:80", "127.0.0.1", False),
        ("192.168.0.7:80", "127.0.0.1", False),
        ("192.168.0.7:80", "0.0.0.0", True),
        ("evil.example:80", "0.0.0.0", False),
        ("lab.example:80", "lab.example", True),
        ("evil.example:80", "lab.example", False),
        ("", "127.0.0.1", False),
    ],
)
def test_which_hosts_are_this_server(host, listening, own):
    assert is_own(host, listening, 80) is own
