"""The campaign that chose the default: what is stored, what the page says, and that its goals can be missed."""

from pathlib import Path

import numpy as np
import pytest
from pictures import drawn

from glasses import DEFAULT
from glasses.lookahead.losses import TwoStage
from glasses_lab.campaign.measures import TENTHS, Row
from glasses_lab.campaign.methods import METHODS
from glasses_lab.campaign.suite import read_suite
from glasses_lab.campaign.tables import problems_of
from glasses_lab.cli import main
from glasses_lab.reproduction import choice, page

ROOT = Path(__file__).parents[3]
PEERS = ("el", "botorch-logei-exact", "optuna-gp", "binoculars")


@pytest.fixture(scope="module")
def stored():
    return choice.load()


def test_what_is_stored(stored):
    rows, about = stored["first"]
    assert int(about["runs"]) == len(rows)
    assert "--first-seed 1000" in about["command"]
    assert {row.method for row in rows} <= set(read_suite(choice.SUITE).methods())
    assert all(1000 <= row.seed < 1100 for row in rows)


def test_the_last_batch_is_as_large_as_promised(stored):
    rows, about = stored["last"]
    assert int(about["runs"]) == len(rows)
    assert "--first-seed 2000" in about["command"]
    problems = {task.problem for task in read_suite(choice.SUITE).tasks}
    for method in (choice.CHOSEN, *PEERS):
        for problem in problems:
            mine = [row for row in rows if row.problem == problem and row.method == method]
            least = 100 if problem.startswith("GP") else 40 if mine[0].d <= 2 else 15
            assert len({row.seed for row in mine}) >= least, (method, problem)
            assert min(row.seed for row in mine) == 2000


def test_the_two_batches_share_no_seed(stored):
    first, last = ({(row.problem, row.seed) for row in rows} for rows, _ in stored.values())
    assert not first & last


def test_the_default_is_what_was_chosen():
    assert choice.CHOSEN == "two-stage"
    assert DEFAULT.loss == TwoStage()


def test_every_number_of_the_page_comes_from_the_stored_results(stored):
    text = (ROOT / "docs" / "how_to_choose.md").read_text()
    assert page.filled(text, choice.texts(stored)) == text
    for name in ("first", "goals", "last", "lead", "functions"):
        assert choice.texts(stored)[name] in text


def test_the_tables_and_the_figure_of_a_last_batch(tmp_path, monkeypatch):
    rows = made_up(lambda method, problem: 0.2 * (method == choice.CHOSEN))
    about = {"command": "x --first-seed 2000", "runs": str(len(rows)), "date": "today", "versions": "none"}
    monkeypatch.setattr(choice, "load", lambda results: {"last": (rows, about)})
    page_ = tmp_path / "page.md"
    names = ("goals", "last", "lead", "functions", "last-about")
    page_.write_text("".join(f"<!-- table {name} -->\n<!-- end -->\n" for name in names))
    with drawn(tmp_path / "choice.png") as picture:
        choice.make(tmp_path, None, page_)
    text = page_.read_text()
    assert choice.goals(rows) in text
    assert "| two-stage against it |" in text
    assert picture.ticks(0) == problems_of(rows)
    means = {method: np.mean([row.gap for row in rows if row.method == method]) for method in (choice.CHOSEN, *PEERS)}
    for method, mean in means.items():
        assert picture.curve(1, METHODS[method].title)[-1, 1] == pytest.approx(mean)


def made_up(lift, seeds=12):
    """Every problem of the suite, ``lift`` (method -> gain over EL, by problem) around a gap that depends on the run."""
    rng = np.random.default_rng(0)
    rows = []
    for problem in read_suite(choice.SUITE).families:
        for seed in range(seeds):
            base = rng.uniform(0.3, 0.6)
            for method in (choice.CHOSEN, *PEERS):
                gap = base + lift(method, problem) + 0.02 * rng.standard_normal()
                numbers = {"observed_gap": gap, "simple_regret": 1 - gap, "inference_regret": 1 - gap, "seconds": 0.1}
                rows.append(
                    Row(problem, method, seed, d=2, gap=gap, evaluations=5, failed=False, curve=(gap,) * TENTHS, **numbers)
                )
    return rows


def reached(rows):
    return [line.split("|")[2].strip() for line in choice.goals(rows).splitlines()[2:]]


def test_goals_that_are_met_and_goals_that_are_not():
    assert reached(made_up(lambda method, problem: 0.2 * (method == choice.CHOSEN))) == ["yes"] * 5
    level = reached(made_up(lambda method, problem: 0.1 * (method == "optuna-gp")))
    assert level == ["**no**", "**no**", "**no**", "**no**", "yes"]

    def worse_on_draws(method, problem):
        return 0.0 if method != choice.CHOSEN else -0.1 if problem.startswith("GP") else 0.2

    assert reached(made_up(worse_on_draws))[-1] == "**no**"
    assert "draws -0.1" in choice.goals(made_up(worse_on_draws))


def test_goals_that_nothing_can_be_said_about():
    rows = made_up(lambda method, problem: 0.2 * (method == choice.CHOSEN), seeds=1)
    assert reached(rows)[-1] == "not enough runs"
    alone = [row for row in rows if row.method != choice.RIVAL]
    assert reached(alone)[3] == "not enough runs"
    partly = [row for row in rows if row.problem != "Branin" or row.method != choice.CHOSEN]
    assert reached(partly)[0] == "not enough runs"


def test_from_the_command_line(tmp_path, capsys):
    copy = tmp_path / "page.md"
    copy.write_text("before\n\n<!-- table first -->\nold\n<!-- end -->\n\nafter\n")
    assert main(["campaign", "choice", "--out", str(tmp_path), "--page", str(copy)]) == 0
    said = capsys.readouterr().out
    assert METHODS[choice.CHOSEN].title in said
    text = copy.read_text()
    assert "| method | functions | pairs | against EL |" in text
    assert "old" not in text
    (tmp_path / "none.jsonl").write_text("")
    assert main(["campaign", "choice", "--results", str(tmp_path / "none.jsonl")]) != 0
    assert "holds no run of suite development" in capsys.readouterr().err
