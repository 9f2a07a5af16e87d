"""What is said of a run: printed lines, and records of the logger ``glasses``."""

import logging
from concurrent.futures import Future

import pytest
from problems import hills

from glasses import ExpectedLoss, Optimizer, maximize, minimize
from glasses.loop import progress

BOX = [(0.0, 1.0), (0.0, 1.0)]
SETTINGS = {"budget": 10, "n_initial": 3, "seed": 0, "loss": ExpectedLoss(), "noise": 0.0}  # those of test_stopping


def wave(x):
    return float((x[0] - 0.3) ** 2)


def columns(line):
    return dict(zip(("eval", "left", "value", "best", "expected", "seconds", "point"), line.split(maxsplit=6), strict=True))


def test_a_line_per_evaluation_and_the_end(capsys):
    result = minimize(hills, BOX, budget=5, n_initial=5, seed=0, verbose=True)
    out = capsys.readouterr().out
    head, *rows, last = out.splitlines()
    assert head.split() == list(columns(head).values()) == ["eval", "left", "value", "best", "expected", "seconds", "point"]
    assert [columns(row)["eval"] for row in rows] == ["1/5", "2/5", "3/5", "4/5", "5/5"]
    assert [int(columns(row)["left"]) for row in rows] == [4, 3, 2, 1, 0]
    assert [float(columns(row)["value"].rstrip("*")) for row in rows] == pytest.approx(result.func_vals, rel=1e-5)
    assert float(columns(rows[-1])["best"]) == pytest.approx(result.fun, rel=1e-5)
    assert last == result.message
    assert "\r" not in out
    assert "\x1b" not in out
    minimize(hills, BOX, budget=5, n_initial=5, seed=0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("upwards", [False, True])
def test_the_expected_end_is_the_forecast_where_there_is_time_for_it(capsys, monkeypatch, upwards):
    def rows():
        if upwards:
            maximize(lambda x: -wave(x), [(0.0, 1.0)], **SETTINGS, verbose=True)
        else:
            minimize(wave, [(0.0, 1.0)], **SETTINGS, verbose=True)
        return [columns(line)["expected"] for line in capsys.readouterr().out.splitlines()[1:-1]]

    monkeypatch.setattr(progress, "SHARE", 0.0)
    assert rows() == ["-"] * 10
    monkeypatch.setattr(progress, "SHARE", 1e9)
    found, optimizer, expected = rows(), Optimizer([(0.0, 1.0)], **SETTINGS), []
    for _ in range(10):
        x = optimizer.ask()
        optimizer.tell(x, wave(x))
        known = len(optimizer.values) >= 3 and optimizer.remaining
        expected.append(f"{(-1.0 if upwards else 1.0) * optimizer.forecast().expected[-1]:.6g}" if known else "-")
    assert found == expected
    assert found.count("-") == 3


class Both:
    """An executor that ends two evaluations at once."""

    def __init__(self):
        self.waiting = []

    def submit(self, call, *args):
        future = Future()
        self.waiting.append((future, call(*args)))
        if len(self.waiting) == 2:
            for each, value in self.waiting:
                each.set_result(value)
            self.waiting = []
        return future


def test_evaluations_that_end_together_are_each_told_with_their_own_value(capsys):
    values = iter([3.0, 1.0, 2.0, 4.0])
    result = minimize(lambda x: next(values), BOX, budget=4, n_initial=4, seed=0, executor=Both(), workers=2, verbose=True)
    rows = [columns(line) for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert [row["value"] for row in rows] == ["3*", "1*", "2", "4"]
    assert [row["best"] for row in rows] == ["3", "1", "1", "1"]
    assert [row["eval"] for row in rows] == ["1/4", "2/4", "3/4", "4/4"]
    assert result.func_vals.tolist() == [3.0, 1.0, 2.0, 4.0]


def test_with_a_price_the_count_is_of_what_fits_and_a_failure_has_its_reason(capsys):
    def spills(x):
        if x[0] > 0.5:
            raise ValueError("spilled")
        return 1.0

    start = {"x0": [[0.2, 0.2], [0.8, 0.8]], "budget": 6.0, "cost": lambda x: 2.0, "n_initial": 3, "seed": 0}
    with pytest.warns(UserWarning, match="kept as failed"):
        minimize(spills, BOX, **start, verbose=True, stop=None)
    out = capsys.readouterr().out.splitlines()
    assert columns(out[1])["eval"] == "1/3"
    assert out[2].split()[:3] == ["2/3", "1", "failed"]
    assert out[3].strip() == "ValueError: spilled"


def records(caplog, name):
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == name]


def test_evaluations_decisions_and_fits_are_logged(caplog):
    with caplog.at_level(logging.INFO, logger="glasses"):
        result = minimize(wave, [(0.0, 1.0)], **SETTINGS)
    evaluations = records(caplog, "glasses.evaluations")
    assert len(evaluations) == 11
    x, y = result.x_iters[0], result.func_vals[0]
    assert evaluations[0] == ("INFO", f"evaluation 1/10: {y:.6g} at [{x[0]:.6g}]; best {y:.6g}")
    assert evaluations[-1] == ("INFO", result.message)
    decisions, fits = records(caplog, "glasses.decisions"), records(caplog, "glasses.fits")
    assert len(decisions) == 7
    assert f"decided on [{result.x_iters[3][0]:.6g}] after 3 values, 7 left, planning 1: the model expects" in decisions[0][1]
    assert "fitted PartlyAdditive to 3 values: lengthscale = [" in fits[0][1]
    assert {level for level, _ in decisions + fits} == {"INFO"}


def test_what_goes_wrong_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING, logger="glasses"), pytest.warns(UserWarning, match="kept as failed"):
        minimize(lambda x: None, BOX, budget=2, n_initial=2, seed=0)
    assert [level for level, _ in records(caplog, "glasses.evaluations")] == ["WARNING", "WARNING"]
    assert records(caplog, "glasses.evaluations")[1][1].startswith("evaluation 2/2 failed at [")


def test_nothing_is_configured_and_nothing_written_without_a_handler(capsys, monkeypatch):
    logger = logging.getLogger("glasses")
    assert [type(each) for each in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    assert logger.propagate
    monkeypatch.setattr(logging.root, "handlers", [])  # those of pytest: a warning would be printed as a last resort
    with pytest.warns(UserWarning, match="kept as failed"):
        minimize(lambda x: None, BOX, budget=2, n_initial=2, seed=0)
    assert capsys.readouterr() == ("", "")
