"""What optimisers, results, plans and forecasts say of themselves: short, right, and names escaped."""

import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from glasses import Choice, Optimizer


class Tags(HTMLParser):
    """Whether every tag that is opened is closed, and which there are."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in ("br", "circle", "polyline", "polygon"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()


@pytest.fixture(scope="module")
def run():
    optimizer = Optimizer({"heat<b>": (0.0, 1.0), "k": Choice(["a", "<script>"])}, budget=20, seed=0)
    for i in range(8):
        x = optimizer.ask()
        optimizer.tell(x, None if i == 2 else (x["heat<b>"] - 0.3) ** 2)
    return optimizer


def test_text_is_short_and_says_what_a_person_asks_first(run):
    best = f"{run.record().fun:.6g}"
    assert repr(run).startswith("Optimizer: 8 of 20 evaluations done, 1 failed, 12 left; best " + best)
    assert "\n" not in repr(run)
    shown = repr(run.result())
    assert len(shown.splitlines()) == 5
    assert f"best observed: {best} at heat<b> = " in shown
    assert "recommended:   " in shown
    plan = repr(run.plan()).splitlines()
    assert plan[0].split() == ["step", "mean", "sd", "heat<b>", "k"]
    assert len(plan) == 12
    assert plan[-1] == "... and 2 more"
    forecast = repr(run.forecast()).splitlines()
    assert forecast[0] == f"best now {run.forecast().best:.6g}"
    assert [line.split()[0] for line in forecast[2:7]] == ["1", "2", "5", "10", "12"]
    assert forecast[-1] == str(run.forecast())


def test_nothing_told_yet():
    fresh = Optimizer([(0, 1)], budget=5, seed=0)
    assert repr(fresh) == "Optimizer: 0 of 5 evaluations done, 5 left"
    assert "0 of 5" in repr(fresh.result())
    assert "<svg" not in Tags(fresh._repr_html_()).rawdata + fresh._repr_html_()


def test_html_is_whole_and_names_are_escaped(run):
    for shown in (run, run.result(), run.plan(), run.forecast()):
        text = shown._repr_html_()
        assert "script" not in Tags(text).seen
        assert "b" not in Tags(text).seen
    assert "svg" in Tags(run._repr_html_()).seen
    assert "svg" in Tags(run.forecast()._repr_html_()).seen


def test_without_pandas_a_sentence_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        run.to_frame()


def test_frames_have_a_row_each(run, monkeypatch):
    class DataFrame(dict):
        pass

    class Pandas:
        pass

    Pandas.DataFrame = DataFrame
    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    frame = run.to_frame()
    assert list(frame) == ["heat<b>", "k", "value", "reason"]
    assert {len(column) for column in frame.values()} == {8}
    assert np.isnan(frame["value"][-1])
    assert frame["reason"][-1] == "told as failed"
    assert frame["value"][:-1] == run.values
    assert len(run.plan().to_frame()["step"]) == 12
    np.testing.assert_array_equal(run.forecast().to_frame()["expected"], run.forecast().expected)
