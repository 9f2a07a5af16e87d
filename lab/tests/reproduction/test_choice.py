"""What the default was chosen on and the last word on it: what is stored, what the page says, and that goals can be missed."""

import math
from pathlib import Path

import numpy as np
import pytest

from glasses import DEFAULT
from glasses.lookahead.losses import TwoStage
from glasses.surrogate import Compress, GaussianProcess, PartlyAdditive
from glasses_lab.campaign.measures import TENTHS, Row
from glasses_lab.campaign.methods import METHODS
from glasses_lab.campaign.suite import read_suite
from glasses_lab.cli import main
from glasses_lab.reproduction import choice, page

ROOT = Path(__file__).parents[3]
PEERS = ("el", "botorch-logei-exact", "optuna-gp", "optuna-tpe")


@pytest.fixture(scope="module")
def stored():
    return choice.load()


@pytest.mark.parametrize("name", choice.SUITES)
def test_what_is_stored(stored, name):
    rows, about = stored[name]
    assert int(about["runs"]) == len(rows)
    assert about["suite"] == name
    problems = {task.problem for task in read_suite(name).tasks}
    assert {row.problem for row in rows} <= problems
    assert {row.method for row in rows} <= set(METHODS)
    assert {"el", "default"} <= {row.method for row in rows}
    ours = [{(row.problem, row.seed) for row in rows if row.method == method} for method in ("el", "default")]
    assert ours[0] == ours[1]


def test_the_last_word_is_on_instances_that_nothing_was_chosen_on(stored):
    chosen_on, last = ({row.problem for row in stored[name][0]} for name in ("bbob", "bbob-last"))
    assert not chosen_on & last
    assert {problem.rsplit("-i", 1)[1] for problem in last} <= {"4", "5"}
    functions = {f"BBOB-{f}-d{d}-i4" for f in range(1, 25) for d in (2, 3, 5)}
    assert functions <= {row.problem for row in stored["bbob-last"][0] if row.method == "default"}


def test_the_default_is_what_was_chosen():
    assert DEFAULT.loss == TwoStage(steps="trusted")
    assert DEFAULT.model == GaussianProcess(kernel=PartlyAdditive(), outputs=Compress())


def test_every_number_of_the_page_comes_from_the_stored_results(stored):
    text = (ROOT / "docs" / "how_to_choose.md").read_text()
    made = choice.texts(stored)
    assert page.filled(text, made) == text
    for name in ("goals", *(each for suite in choice.SUITES for each in (suite, f"{suite}-against", f"{suite}-about"))):
        assert made[name] in text, name


def made_up(problems, lift, methods=("default", *PEERS), d=2, seeds=3):
    """Rows around a gap that depends on the run; ``lift`` (method -> gain)."""
    rng = np.random.default_rng(0)
    rows = []
    for problem in problems:
        for seed in range(seeds):
            base = rng.uniform(0.5, 0.6)
            for method in methods:
                gap = base + lift(method) + 0.01 * rng.standard_normal()
                numbers = {"observed_gap": gap, "simple_regret": 1 - gap, "inference_regret": 1 - gap, "seconds": 0.1}
                shape = {"evaluations": 5, "failed": False, "curve": (gap,) * TENTHS, "initial_regret": 1.0}
                rows.append(Row(problem, method, seed, d=d, gap=gap, **numbers, **shape))
    return rows


def everywhere(lift):
    def of(name):
        return sorted({task.problem for task in read_suite(name).tasks})

    coco = made_up([f"BBOB-{f}-d2-i4" for f in range(1, 25)], lift) + made_up(["BBOB-1-d10-i4"], lift, d=10)
    return {
        "bbob-last": coco,
        "development": made_up(of("development"), lift),
        "tuning": made_up(of("tuning"), lift),
        "laboratory": made_up(of("laboratory"), lift, seeds=6),
    }


def reached(suites):
    return [line.split("|")[2].strip() for line in choice.goals(suites).splitlines()[2:]]


def test_goals_that_are_met():
    far_ahead = {"default": 0.39, "el": 0.3}
    assert reached(everywhere(lambda method: far_ahead.get(method, 0.0))) == ["yes"] * 11


def test_goals_that_are_missed():
    behind = {"default": 0.0, "el": 0.1}
    assert reached(everywhere(lambda method: behind.get(method, 0.05))) == ["**no**"] * 11


def test_goals_that_nothing_can_be_said_about():
    assert set(reached({})) == {"not enough runs"}
    alone = {name: [row for row in rows if row.method == "default"] for name, rows in everywhere(lambda method: 0.3).items()}
    assert reached(alone)[1:5] == ["not enough runs"] * 4


def test_the_lead_is_in_the_figures():
    text = choice.goals(everywhere(lambda method: 0.2 * (method == "default")))
    line = next(line for line in text.splitlines() if "lead over BoTorch" in line)
    assert "+0.20" in line
    decades = float(line.split("+")[2].split(" ")[0])
    assert decades == pytest.approx(math.log10(0.45 / 0.25), abs=0.05)


def test_from_the_command_line(tmp_path, capsys):
    copy = tmp_path / "page.md"
    copy.write_text("before\n\n<!-- table bbob-last -->\nold\n<!-- end -->\n\nafter\n")
    assert main(["campaign", "choice", "--page", str(copy)]) == 0
    said = capsys.readouterr().out
    assert METHODS["botorch-logei-exact"].title in said
    text = copy.read_text()
    assert "| method | runs | mean gap | mean decades |" in text
    assert "old" not in text
    (tmp_path / "none.jsonl").write_text("")
    assert main(["campaign", "choice", "--results", str(tmp_path / "none.jsonl")]) != 0
    assert "holds no run of bbob" in capsys.readouterr().err
