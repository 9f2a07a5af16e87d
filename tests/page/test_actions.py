"""What a person does on the page, by requests: stored once, refused in one sentence, safe to repeat."""

import json
import math
import threading
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened import STUDY, TOKEN, Page, dump, sentence, stored_trials

from glasses.optuna.trials import state_of
from glasses.study.storage import UnreachableError

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


@pytest.fixture
def page(bench, open_page):
    return open_page(bench())


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A page with one open trial."""
    path = tmp_path_factory.mktemp("refusing") / "bench.toml"
    path.write_text(STUDY.format(budget=10, more=""))
    with Page(path) as page:
        page.get("/", params={"token": TOKEN})
        page.act("ask", n=1, request="first")
        yield page


def states(page):
    return [state_of(trial) for trial in stored_trials(page.served.path)]


def test_ask_tell_correct_withdraw_undo_cancel(page):
    asked = page.act("ask", n=2, request="a")
    assert asked["trials"] == [0, 1]
    assert page.state()["head"]["open"] == [0, 1]
    told = page.act("tell", trial=0, value="34.0")
    assert told["said"] == "Stored for trial 0: 34."
    corrected = page.act("correct", trial=0, value="3.4", reason="mistyped")
    assert corrected["said"] == "Corrected trial 0 to 3.4 (mistyped)."
    state = page.state()
    assert state["rows"]["0"]["value"] == 3.4
    assert state["head"]["last_change"]["words"] == "Corrected trial 0 to 3.4 (mistyped)."
    undone = page.act("undo", **corrected["undo"]["body"])
    assert undone["said"] == "Taken back: corrected trial 0 to 3.4 (mistyped)."
    assert page.state()["rows"]["0"]["value"] == 34.0
    assert page.act("undo", **undone["undo"]["body"])["said"].startswith("Taken back:")
    assert page.state()["rows"]["0"]["value"] == 3.4
    page.act("withdraw", trial=0, reason="the pump was off")
    page.act("cancel", trial=1)
    assert states(page) == ["withdrawn", "cancelled"]
    assert page.state()["head"]["left"] == 10
    entries = page.get("/api/history", params={"trial": 0}).json()["entries"]
    assert [entry["what"] for entry in entries] == ["told", "correct", "undo", "undo", "withdraw"]


def test_a_trial_without_its_whole_point_cannot_be_told(page):
    stored = page.served.writer
    trial = stored.claim(by_hand=True)
    stored.study.sampler = stored.sampler
    stored.storage.suggest(trial, {"temperature": stored.distributions["temperature"]})
    state = page.state()
    assert (state["head"]["open"], state["head"]["deciding"]) == ([], 1)
    assert page.act("tell", status=400, trial=0, value="1") == "Trial 0 is being decided: wait for its point."


def test_what_is_sent_twice_is_stored_once(page):
    first = page.act("ask", n=1, request="same click")
    assert page.act("ask", n=1, request="same click") == first
    page.act("tell", trial=0, value="2.5")
    assert page.act("tell", trial=0, value="2.50")["said"] == "Trial 0 has this result already."
    refused = page.post("/api/tell", json={"trial": 0, "value": "2.6"}, headers=page.write)
    assert refused.status_code == 409
    assert refused.json() == {
        "error": "Trial 0 has a result already (2.5): correct it instead of telling it again.",
        "correct": 0,
    }
    changed = page.act("correct", trial=0, value="2.6")
    assert page.act("correct", trial=0, value="2.6")["said"] == "Trial 0 is as you say already (2.6)."
    page.act("undo", **changed["undo"]["body"])
    assert page.act("undo", **changed["undo"]["body"])["said"] == "That is taken back already."
    page.act("withdraw", trial=0)
    assert page.act("withdraw", trial=0)["said"] == "Trial 0 is withdrawn already."
    page.act("ask", n=1, request="another click")
    page.act("cancel", trial=1)
    assert page.act("cancel", trial=1)["said"] == "Trial 1 is cancelled already."
    assert states(page) == ["withdrawn", "cancelled"]
    assert len(page.get("/api/history", params={"trial": 0}).json()["entries"]) == 4


def test_failed_with_a_reason_and_tried_again(page):
    page.act("ask", n=1, request="a")
    assert page.act("tell", trial=0, failed=True, reason="leaked")["said"] == "Stored for trial 0: failed."
    row = page.state()["rows"]["0"]
    assert (row["state"], row["reason"]) == ("failed", "leaked")
    assert page.act("tell", trial=0, failed=True)["said"] == "Trial 0 has this result already."
    assert page.act("retry", trial=0)["said"] == "Trial 0 is queued again as trial 1."
    assert page.state()["rows"]["0"]["state"] == "failed, not counted"
    assert page.act("ask", n=1, request="b")["trials"] == [1]
    assert page.state()["rows"]["1"]["params"] == row["params"]


def test_something_slightly_different_was_done(page):
    page.act("ask", n=1, request="a")
    point = page.state()["rows"]["0"]["params"]
    page.act("tell", trial=0, value="1.5", params={"temperature": "33"})
    row = page.state()["rows"]["0"]
    assert row["params"] == {"temperature": 33.0, "catalyst": point["catalyst"]}
    assert row["value"] == 1.5


def test_values_as_they_are_shown_are_not_changes(page):
    page.act("ask", n=1, request="a")
    point = page.state()["rows"]["0"]["params"]
    page.act("tell", trial=0, value="1", params={"temperature": f"{point['temperature']:.6g}", "catalyst": point["catalyst"]})
    assert page.state()["rows"]["0"]["params"] == point
    assert page.state()["head"]["last_change"] is None


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("ask", {"n": 0, "request": "r"}, "n must be a whole number from 1 to 50, got '0'"),
        ("ask", {"n": 12, "request": "r"}, "12 asked but 9 of 10 evaluations are left"),
        ("ask", {"n": 1}, "request is missing"),
        ("tell", {"trial": 0}, "A value is missing"),
        ("tell", {"trial": 0, "value": "3,4"}, "The value must be a number, or `failed`, got '3,4'"),
        ("tell", {"trial": 0, "value": "1e200"}, "beyond 1e100 in size"),
        ("tell", {"trial": 0, "value": "1", "failed": True}, "An evaluation has a value or has failed, not both"),
        ("tell", {"trial": 7, "value": "1"}, "There is no trial 7"),
        ("tell", {"trial": -1, "value": "1"}, "trial must be a whole number"),
        ("tell", {"trial": True, "value": "1"}, "trial must be a whole number"),
        ("tell", {"trial": 0, "value": 1.5}, "value must be a text of at most 100 characters"),
        ("tell", {"trial": 0, "value": "1", "params": {"temperature": "300"}}, "outside"),
        ("tell", {"trial": 0, "value": "1", "params": {"temperature": "warm"}}, "temperature"),
        ("tell", {"trial": 0, "value": "1", "params": {"catalyst": "gold"}}, "gold"),
        ("tell", {"trial": 0, "value": "1", "params": {"pressure": "3"}}, "pressure"),
        ("tell", {"trial": 0, "value": "1", "params": ["x"]}, "params must be an object of texts"),
        ("correct", {"trial": 0, "value": "1"}, "has no result to correct yet"),
        ("withdraw", {"trial": 0}, "has no result to withdraw"),
        ("cancel", {"trial": 5}, "There is no trial 5"),
        ("undo", {"key": "glasses:change:000001:00"}, "There is no such change"),
        ("undo", {}, "There is no such change"),
        ("retry", {"trial": 0}, "only failed trials are tried again"),
        ("import/preview", {}, "text is missing"),
    ],
)
def test_what_is_refused_is_said_and_nothing_is_stored(refusing, name, body, words):
    before = dump(refusing.served.path)
    assert words in refusing.act(name, status=400, **body)
    assert dump(refusing.served.path) == before


NAMES = st.sampled_from(["ask", "tell", "correct", "withdraw", "cancel", "undo", "retry", "import/preview", "import/store"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("NaN") | st.just("\ud800")
BODIES = st.dictionaries(
    st.sampled_from(["trial", "value", "failed", "params", "reason", "n", "key", "text", "again", "outside_budget"]),
    st.recursive(LEAVES, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3)),
)
ADDRESSES = st.sampled_from(["/api/forecast?budget=", "/api/history?trial=", "/api/", "/static/", "/export.", "/?token="])


@settings(max_examples=80)
@given(name=NAMES, body=BODIES)
def test_any_body_is_an_answer_or_one_sentence(fuzzed, name, body):
    """No trial is open, so there is nothing that a body could store but a table."""
    page, before = fuzzed
    answer = page.post(f"/api/{name}", content=json.dumps(body), headers=page.write | {"content-type": "application/json"})
    if answer.status_code == 200:
        assert name.startswith("import")
    else:
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.json()["error"].endswith(".")
    assert dump(page.served.path) == before


@settings(max_examples=40)
@given(name=NAMES, body=st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_sentence(fuzzed, name, body):
    page, before = fuzzed
    answer = page.post(f"/api/{name}", content=body, headers=page.write | {"content-type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"].endswith(".")
    assert dump(page.served.path) == before


@settings(max_examples=40)
@given(address=ADDRESSES, rest=st.text(max_size=30))
def test_any_address_is_an_answer_or_one_sentence(fuzzed, address, rest):
    page, before = fuzzed
    answer = page.get(address + quote(rest))
    assert answer.status_code in (200, 400, 403, 404, 405), answer.text
    if answer.status_code != 200:
        assert answer.json()["error"].endswith(".")
    assert dump(page.served.path) == before


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """A page with one trial that was told, and what its study holds."""
    path = tmp_path_factory.mktemp("fuzzed") / "bench.toml"
    path.write_text(STUDY.format(budget=10, more=""))
    with Page(path) as page:
        page.get("/", params={"token": TOKEN})
        page.act("ask", n=1, request="only")
        page.act("tell", trial=0, value="1.0")
        page.act("withdraw", trial=0)
        yield page, dump(path)


def test_many_browsers_at_once_lose_and_double_nothing(bench, open_page):
    page = open_page(bench(budget=30))
    answers, errors = [], []

    def person(k):
        try:
            for i in range(3):
                number = page.act("ask", n=1, request=f"{k}-{i}")["trials"][0]
                for _ in range(2):  # a double click
                    page.act("tell", trial=number, value=str(number))
                answers.append(number)
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=person, args=(k,)) for k in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert sorted(answers) == list(range(24))
    trials = stored_trials(page.served.path)
    assert [trial.value for trial in trials] == [float(k) for k in range(24)]


def test_two_browsers_tell_one_trial_differently(page):
    page.act("ask", n=1, request="a")
    answers = []
    threads = [
        threading.Thread(
            target=lambda v=v: answers.append(
                page.post("/api/tell", json={"trial": 0, "value": str(v)}, headers=page.write).status_code
            )
        )
        for v in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(answers) == [200] + [409] * 7
    assert len(stored_trials(page.served.path)) == 1


def test_hostile_names_values_and_reasons_are_only_text(bench, open_page):
    text = STUDY.replace(
        '["none", "copper"]',
        json.dumps([HOSTILE, "</script><img src=x onerror=alert(2)>"]).replace("{", "{{").replace("}", "}}"),
    )
    page = open_page(bench(text=text))
    page.act("ask", n=1, request="a")
    page.act("tell", trial=0, failed=True, reason=HOSTILE)
    for address in ("/", "/report.html"):
        shown = page.get(address).text
        assert "<script>alert" not in shown
        assert "<img" not in shown
        assert "&lt;script&gt;" in shown or "\\u003cscript\\u003e" in shown
    assert page.state()["rows"]["0"]["reason"] == HOSTILE


def test_exports_and_report(page):
    page.act("ask", n=2, request="a")
    page.act("tell", trial=0, value="0.125")
    csv = page.get("/export.csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="results.csv"'
    assert csv.text.splitlines()[1].startswith("0,complete,")
    assert page.get("/export.json").json()[0]["value"] == 0.125
    report = page.get("/report.html").text
    assert 'http-equiv="Content-Security-Policy"' in report
    assert "0.125" in report


def test_the_study_file_is_read_again_when_it_changes(page):
    path = page.served.path
    path.write_text(path.read_text().replace("budget = 10", "budget = 12"))
    page.get("/")
    assert page.state()["head"]["budget"] == 12
    path.write_text(path.read_text().replace("budget = 12", "budget = -1"))
    page.get("/")
    assert page.served.trouble is not None
    assert page.served.trouble.startswith("bench.toml")
    assert page.state()["head"]["budget"] == 12


def test_the_numbers_are_the_studys(page):
    page.act("ask", n=3, request="a")
    for number, value in enumerate((3.0, 1.0, 2.0)):
        page.act("tell", trial=number, value=str(value))
    state = page.state()
    assert state["head"]["best"] == 1
    assert state["head"]["counts"] == {"complete": 3}
    assert math.isfinite(state["rows"]["1"]["params"]["temperature"])


def test_a_database_out_of_reach_is_said_and_what_was_seen_stays(page, monkeypatch):
    page.act("ask", n=1, request="a")

    def away(*arguments):
        raise UnreachableError("The database stayed out of reach for 10 s (gone): start again later.")

    with monkeypatch.context() as patch:
        patch.setattr("glasses.page.live.fingerprint", away)
        patch.setattr(page.served.writer.storage, "trials", away)
        assert page.state()["head"]["open"] == [0]
        assert page.app.state.live.trouble == "The database stayed out of reach for 10 s (gone): start again later."
        assert "out of reach" in page.act("tell", status=503, trial=0, value="1")
    page.act("tell", trial=0, value="1")
    assert page.app.state.live.trouble is None


def test_another_budget_is_looked_at_and_not_kept(page):
    """A forecast needs the model: four values are enough for two parameters."""
    page.act("ask", n=4, request="a")
    for number, value in enumerate((3.0, 1.0, 2.0, 2.5)):
        page.act("tell", trial=number, value=str(value))
    text = page.served.path.read_text()
    found = page.get("/api/forecast", params={"budget": "7"}).json()
    assert len(found["steps"]) == 3
    assert found["words"].startswith("The next three are expected to bring")
    assert found["edit"] == "To change it for good, edit line 4 of bench.toml: budget = 7."
    assert page.served.path.read_text() == text
    refused = page.get("/api/forecast", params={"budget": "3"})
    assert sentence(refused) == "The budget must be between 5 and 132 to be looked at, got 3."


def test_a_table_is_shown_before_it_is_stored(page):
    text = "temperature,catalyst,value\n41.5,none,1.25\n42.5,copper,1.75\n"
    before = dump(page.served.path)
    found = page.act("import/preview", text=text)
    assert (found["count"], found["duplicates"]) == (2, 0)
    assert found["rows"][0][:5] == ["2", "", "41.5", "none", "1.25"]
    assert dump(page.served.path) == before
    assert page.act("import/store", text=text)["said"] == "Stored 2 results."
    assert page.act("import/store", text=text)["said"] == "Nothing new to store."
    assert page.act("import/preview", text=text)["duplicates"] == 2
    assert page.state()["head"]["left"] == 10
    for wrong in ("", "a,b\n1,2\n", "temperature,catalyst,value\n1e9,none,1\n", "temperature,value\n30,1\n", "\0", "=1+1"):
        page.act("import/store", status=400, text=wrong)


def test_with_costs_the_page_says_amounts(page):
    text = page.served.path.read_text()
    page.served.path.write_text(
        text.replace("budget = 10", "budget = 12.5") + '\n[cost]\nunit = "EUR"\nformula = "1 + temperature / 100"\n'
    )
    head = page.state()["head"]
    assert (head["left_words"], head["priced"]) == ("12.5 of 12.5 EUR left", True)
    page.act("ask", n=1, request="a")
    page.act("tell", trial=0, value="1.5")
    head = page.state()["head"]
    assert 0 < head["left"] < 11.5
    assert head["remaining"] > 0
    answer = page.get("/api/forecast?budget=20", headers=page.write)
    assert answer.status_code == 400
    assert "Experiments have costs: to see another budget, edit line" in answer.text
