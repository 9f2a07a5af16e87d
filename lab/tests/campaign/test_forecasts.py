"""Forecasts beside what came of them."""

import re

import numpy as np
import pytest
from pictures import drawn

from glasses.loop.correction import ForecastCorrection
from glasses.loop.optimizer import Optimizer
from glasses_lab.campaign.calibration import Gathered, calibration, fitted_correction, gathered, halves, worst
from glasses_lab.campaign.forecasts import AHEAD, forecast_run
from glasses_lab.campaign.run import run
from glasses_lab.campaign.stopping_rules import by_no_gain, by_price, corrected, judged, savings, used
from glasses_lab.campaign.suite import Task
from glasses_lab.cli import main
from glasses_lab.problems import get


@pytest.fixture(scope="module")
def replayed():
    record = run(Task("SinCos", "el", 0, "exact", 3, 6))
    return record, forecast_run(record)


def test_a_run_is_replayed_from_its_record(replayed):
    record, found = replayed
    assert [each["done"] for each in found["forecasts"]] == list(range(6))
    for each in found["forecasts"]:
        done = 3 + each["done"]
        assert each["best"] == pytest.approx(min(record["y"][:done]))
        assert each["steps"][-1] == 6 - each["done"]
        assert each["realised"] == [min(record["y"][: done + k]) for k in each["steps"]]
        assert np.all(np.diff(each["expected"]) <= 1e-12)
        assert each["clairvoyant"] <= each["expected"][-1] + 1e-12
    again = forecast_run(record, moments=(0, 0.5))
    assert [each["done"] for each in again["forecasts"]] == [0, 3]
    assert again["forecasts"][1] == found["forecasts"][3]


def test_what_is_kept_is_the_forecast_of_the_model_and_its_correction_the_one_users_get(replayed):
    record, found = replayed
    problem, m = get("SinCos", seed=0), 3 + 2
    X, y = np.array(record["x"]), np.array(record["y"])
    optimizer = Optimizer(problem.bounds, budget=9, n_initial=3, x0=X[:m], y0=y[:m], noise=0.0, seed=0)
    kept = found["forecasts"][2]
    for raw, numbers in ((True, kept), (False, corrected(record, kept))):
        forecast = optimizer.forecast(x=X[m], raw=raw)
        at = np.array(kept["steps"]) - 1
        np.testing.assert_allclose(forecast.expected[at], numbers["expected"], rtol=1e-9)
        np.testing.assert_allclose(forecast.low[at], numbers["low"], rtol=1e-9)
        np.testing.assert_allclose(forecast.high[at], numbers["high"], rtol=1e-9)


def fake(initial, *forecasts):
    """(best, expected, low, high, realised), one step ahead; the mean initial value is 2 above the minimum."""
    names = ("best", "expected", "low", "high", "realised")
    return {
        "initial": initial,
        "minimum": 1.0,
        "protocol": "fair",
        "y": [3.0] * (initial + 3),
        "forecasts": [
            {"done": i, "steps": [1], **{n: v if n == "best" else [v] for n, v in zip(names, each, strict=True)}}
            for i, each in enumerate(forecasts)
        ],
    }


def test_bias_and_coverage_by_hand():
    """[eq:bias], [eq:coverage]: two runs, three forecasts."""
    forecasts = gathered([fake(2, (10, 8, 7, 10, 9), (9, 8, 7, 9, 5)), fake(3, (4, 4, 3, 4, 4))])
    assert forecasts.told.tolist() == [2, 3, 3]
    (found,) = calibration(forecasts)
    assert (found.steps, found.count) == (1, 3)
    assert found.expected == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    assert found.realised == pytest.approx((0.5 + 2.0 + 0.0) / 3)
    assert found.bias == pytest.approx((-0.5 + 1.5 + 0.0) / 3)
    assert found.error == pytest.approx(np.hypot(1.0 - 2 / 3, 0.0 - 1 / 3) / 3)  # of the sums over runs
    assert found.missed == pytest.approx(np.sqrt((0.5**2 + 1.5**2) / 3))
    assert found.coverage == pytest.approx(2 / 3)
    assert AHEAD[0] == 1


def test_a_correction_is_found_again_from_forecasts_that_need_it():
    """[eq:stretch], [eq:idle]: exponential gains, and forecasts that become right when they are stretched as given."""
    rng = np.random.default_rng(0)
    truth, count = ForecastCorrection(0.4, 1.5, 2), 40_000
    told, steps = rng.integers(4, 40, count).astype(float), rng.choice([1.0, 5.0, 20.0], count)
    r, mean, t = rng.uniform(0.5, 1.0, count), rng.uniform(0.6, 0.9, count), (told + steps) / (told + 1)

    def before(gain, share):
        """What is stretched to this gain: the root of s^2 + c k / 10 ln(t) sqrt(r) s = gain, squared."""
        half = 0.5 * share * steps / 10 * np.log(t) * np.sqrt(r)
        return (np.sqrt(half**2 + gain) - half) ** 2

    right = -np.log(0.9) * mean
    ends = before(-np.log(0.1) * mean, truth.most), right / np.where(steps > 1, 1 - truth.idle / steps, 1.0)
    first = np.where(steps > 1, 0.0, right)
    columns = np.arange(count), told, r, steps, before(mean, truth.gain), *ends, rng.exponential(mean), first
    forecasts = Gathered(*columns)
    found = fitted_correction(forecasts)
    assert (found.gain, found.most) == pytest.approx((truth.gain, truth.most), abs=0.11)
    assert found.idle == truth.idle
    right_again = calibration(forecasts.corrected(found))
    assert [line.steps for line in right_again] == [1, 5, 20]
    for line in right_again:
        assert abs(line.bias) < 4 * line.error + 0.03 * line.realised
        assert line.coverage == pytest.approx(0.8, abs=0.02)
    with pytest.raises(ValueError, match="A correction needs 50 forecasts"):
        fitted_correction(gathered([fake(2, (10, 8, 7, 10, 9))]))


def test_each_half_of_the_problems_is_judged_by_the_fit_to_the_other():
    runs = [{"problem": name, "seed": seed} for name in ("c", "a", "b", "d") for seed in (0, 1)]
    first, second = halves(runs)
    assert {run["problem"] for run in first} == {"a", "c"}
    assert {run["problem"] for run in second} == {"b", "d"}
    lines = calibration(gathered([fake(2, (10, 8, 7, 10, 9), (9, 8, 7, 9, 5)), fake(3, (4, 4, 3, 4, 4))]))
    error = np.hypot(1.0 - 2 / 3, 0.0 - 1 / 3) / 3
    assert worst(lines) == f"Largest bias +0.333 ± {error:.3f}, 1 evaluations ahead; the band holds 67% to 67%."


def test_moments_without_enough_values_are_left_out():
    found = forecast_run(run(Task("Branin", "random", 0, "fair", 2, 4)))
    assert [each["done"] for each in found["forecasts"]] == [2, 3]


def test_known_hyperparameters_are_judged_as_they_are():
    run = fake(2, (10, 8, 7, 10, 9)) | {"protocol": "known"}
    forecasts = gathered([run])
    for raw, moved in zip(forecasts, forecasts.corrected(ForecastCorrection(2.0, 2.0, 2)), strict=True):
        np.testing.assert_array_equal(raw, moved)
    raw = run["forecasts"][0] | {"open_loop": [8], "clairvoyant": 7.0}
    moved = corrected(run, raw)
    assert {name: list(np.ravel(moved[name])) for name in moved} == {name: list(np.ravel(raw[name])) for name in raw}


def falling(forecasts):
    """A run of two initial and four decided evaluations whose best value falls by one each time, minimum 0."""
    y = [10.0, 8.0, 7.0, 6.0, 5.0, 4.0]
    return {"initial": 2, "evaluations": 4, "minimum": 0.0, "protocol": "fair", "y": y, "forecasts": forecasts}


def forecast(done, best, expected, low):
    bounds = {"high": [best, best], "open_loop": expected, "clairvoyant": expected[-1]}
    return {"done": done, "best": best, "steps": [1, 2], "expected": expected, "low": low, **bounds}


def test_where_rules_stop_and_what_that_costs(monkeypatch):
    """[eq:saved]: by hand, with forecasts that need no correction. The initial values have standard deviation 1."""
    monkeypatch.setattr("glasses_lab.campaign.stopping_rules.corrected", lambda run, forecast: forecast)
    promising, dull = forecast(0, 8.0, [7.5, 6.5], [6.0, 5.0]), forecast(1, 7.0, [6.99, 6.98], [6.9, 6.5])
    run = falling([promising, dull])
    assert used(run, by_price(0.5)) == 1
    assert used(run, by_price(0.8)) == 0
    assert used(run, by_price(0.001)) == 4
    assert used(run, by_no_gain(0.2)) == 1
    assert used(run, by_no_gain(0.1)) == 4
    found = savings("price", [run, run], [1, 3])
    assert found.saved == pytest.approx(0.5)
    assert found.paid == pytest.approx((3 / 8 + 1 / 8) / 2)
    assert found.fixed == pytest.approx(2 / 8)


def test_a_peer_is_judged_on_the_same_runs():
    """Where the terminator has been asked about some of the runs only, all rules are judged on those."""
    runs = [{**falling([forecast(0, 8.0, [7.5, 6.5], [6.0, 5.0])]), "key": str(k)} for k in range(3)]
    assert {line.runs for line in judged(runs)} == {3}
    found = judged(runs, {"0": {"one": 4, "other": 2}, "2": {"one": 4, "other": 4}})
    assert {line.runs for line in found} == {2}
    assert [line.rule for line in found[-2:]] == ["one", "other"]
    assert found[-2].saved == 0
    assert found[-1].saved == pytest.approx(0.25)
    assert found[-1].paid == pytest.approx(2 / 8 / 2)


def test_from_the_command_line(tmp_path, capsys, monkeypatch):
    """A fresh batch of seeds, replayed, drawn; and a second call has nothing left to do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nmethods = ["el"]\nproblems = ["SinCos"]\ninitial = 3\nevaluations = 6\nseeds = 2\n'
    )
    batch = ["--first-seed", "70"]
    assert main(["campaign", "forecasts", "mine.toml", *batch, "--method", "el"]) != 0
    assert "run the campaign first" in capsys.readouterr().err
    assert main(["campaign", "run", "mine.toml", *batch, "--jobs", "1"]) == 0
    assert main(["campaign", "forecasts", "mine.toml", *batch, "--jobs", "1", "--method", "glasses"]) != 0
    assert "holds no finished run of glasses" in capsys.readouterr().err
    command = [
        "campaign",
        "forecasts",
        "mine.toml",
        *batch,
        "--jobs",
        "1",
        "--method",
        "el",
        "--out",
        str(tmp_path / "calibration.png"),
    ]
    with drawn(tmp_path / "calibration.png") as picture:
        assert main(command) == 0
    first = capsys.readouterr().out
    assert "mine, el: 2 runs replayed" in first
    assert "| price 0.01 sd | 2 |" in first
    lines = [line.split("|") for line in first.splitlines() if re.match(r"\| \d", line)]
    expected = [[float(cells[1]), *map(float, cells[4].split("/"))] for cells in lines]
    assert [row[0] for row in expected] == [1, 2, 3, 4, 5, 6]
    for column, label in ((1, "expected, the model alone"), (2, "expected, corrected")):
        np.testing.assert_allclose(picture.curve(0, label), [[row[0], row[column]] for row in expected], atol=6e-4)
    assert main(command) == 0
    again = capsys.readouterr().out
    assert "runs to do" not in again
    assert again[again.index("mine, el") :] == first[first.index("mine, el") :]
    assert main([*command, "--seeds", "1"]) == 0
    assert "mine, el: 1 runs replayed" in capsys.readouterr().out
    assert main([*command, "--seeds", "0"]) != 0
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
    assert main([*command, "--moments", "0"]) != 0
    assert "--moments must be at least 1, got 0" in capsys.readouterr().err
    assert main([*command, "--moments", "2"]) == 0
    few = capsys.readouterr().out
    assert "Largest bias" in few
    assert "price" not in few  # rules need every evaluation
    assert len((tmp_path / "results" / "mine.forecasts-2.jsonl").read_text().splitlines()) == 2
    assert main([*command, "--fit"]) != 0
    assert "A correction needs 50 forecasts" in capsys.readouterr().err
    assert "SinCos | el | 70 |" in (tmp_path / "results" / "mine.jsonl").read_text()
