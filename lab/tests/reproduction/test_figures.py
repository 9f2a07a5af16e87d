"""The numbers behind the figures, without pixels; then that each picture is written."""

from pathlib import Path

import numpy as np
import pytest
from pictures import drawn

from glasses import Glasses, TwoStage
from glasses_lab.campaign.measures import read_rows
from glasses_lab.campaign.tables import overall, title
from glasses_lab.reproduction import page
from glasses_lab.reproduction.camel import camel
from glasses_lab.reproduction.comparison import curves, differences, draw
from glasses_lab.reproduction.loss_surface import draw_loss_surfaces, loss_surfaces
from glasses_lab.reproduction.order import LEFT, order_matters
from glasses_lab.reproduction.steps_ahead import AHEAD, SHOWN, draw_steps_ahead, steps_ahead
from glasses_lab.reproduction.stored import FOLDER
from glasses_lab.reproduction.values import PLANNERS, POINTS, draw_planner_values, planner_values, remark, table

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def surfaces():
    return loss_surfaces(resolution=12)


def test_the_loss_falls_and_flattens(surfaces):
    assert surfaces.losses.shape == (6, 12, 12)
    assert np.all(np.diff(surfaces.lowest) < 0)
    assert np.all(np.diff(surfaces.spread) < 0)
    assert np.all(surfaces.losses <= surfaces.best + 1e-9)


def test_the_next_point_is_where_the_loss_is_lowest(surfaces):
    for n, chosen, lowest in zip(surfaces.steps, surfaces.chosen, surfaces.lowest, strict=True):
        gain = surfaces.best - lowest
        assert camel(left=n).loss_at(chosen)[0] <= lowest + 0.01 * gain  # far ahead the surface is jagged and nearly flat


@pytest.fixture(scope="module")
def steps():
    return steps_ahead(resolution=21)


def test_predicted_steps(steps):
    assert steps.steps.shape == steps.believed.shape == (2, AHEAD - 1, 2)
    for query, future in zip(steps.queries, steps.steps, strict=True):
        every = np.vstack([query, future])
        assert len(np.unique(every.round(6), axis=0)) == AHEAD
    assert not np.array_equal(steps.steps[0], steps.steps[1])  # the future depends on the putative point


def test_each_step_maximises_its_stage(steps):
    assert steps.stages.shape[0] == SHOWN
    a, b = steps.axes
    for stage, step in zip(steps.stages, steps.steps[0], strict=False):
        row, column = np.unravel_index(np.argmax(stage), stage.shape)
        np.testing.assert_allclose(step, [a[column], b[row]])
    assert np.all(np.diff(steps.stages, axis=0) <= 1e-12)  # a penalty only takes away


@pytest.fixture(scope="module")
def stored():
    return page.load()


def test_stored_results_are_what_is_promised(stored):
    fair, _ = stored["fair"]
    for problem in {row.problem for row in fair}:
        mine = [row for row in fair if row.problem == problem and row.method == "two-stage"]
        assert len(mine) >= (20 if mine[0].d <= 2 else 10), problem
    nine, _ = stored["nine"]
    assert len({row.problem for row in nine}) == 9
    for method in ("el", "glasses", "two-stage", "botorch-logei-exact", "optuna-gp"):
        for problem in {row.problem for row in nine}:
            assert sum(row.problem == problem and row.method == method for row in nine) >= 10
    samples, _ = stored["samples"]
    assert min(sum(r.problem == p and r.method == "el" for r in samples) for p in {r.problem for r in samples}) >= 200
    for rows, about in stored.values():
        assert {"command", "date", "versions", "runs"} <= set(about)
        assert int(about["runs"]) == len(rows)
        assert len({(row.problem, row.method, row.seed) for row in rows}) == len(rows)


def test_every_number_of_the_page_comes_from_the_stored_results(stored):
    text = (ROOT / "docs" / "paper.md").read_text()
    assert page.filled(text, page.texts(stored)) == text
    assert overall(stored["fair"][0]) in text


def test_the_comparison(stored, tmp_path):
    rows, _ = stored["samples"]
    data = differences(rows, ("glasses", "two-stage"))
    assert set(data.cells) == {(p, m) for p in data.problems for m in ("glasses", "two-stage")}
    curve = curves(rows)
    assert np.all(np.diff(curve.mean["el"]) >= -1e-9)
    final = np.mean([np.mean([r.gap for r in rows if r.problem == p and r.method == "el"]) for p in data.problems])
    assert curve.mean["el"][-1] == pytest.approx(final, abs=1e-4)
    with drawn(tmp_path / "c.png") as picture:
        draw({"samples": rows}, tmp_path / "c.png")
    left, right = 0, 1
    assert picture.ticks(left) == data.problems
    for method, mean in curve.mean.items():
        np.testing.assert_array_equal(picture.curve(right, title(method)), np.column_stack([100 * curve.part, mean]))
    bars = {bar.lines[0].get_xdata()[0] for bar in picture.figure.axes[left].containers}
    assert bars == {cell.difference.mean for cell in data.cells.values()}


def test_the_pictures_are_written(surfaces, steps, tmp_path):
    """Maps with the evaluated points and the next one where the numbers have them."""
    with drawn(tmp_path / "new" / "loss.png") as picture:
        draw_loss_surfaces(surfaces, tmp_path / "new" / "loss.png")
    for k, lowest in enumerate(surfaces.lowest):
        np.testing.assert_array_equal(picture.marks(k, "*"), surfaces.chosen[k : k + 1])
        np.testing.assert_array_equal(picture.marks(k, "o"), surfaces.points)
        assert f"minimum {lowest:.3f}" in picture.figure.axes[k].get_title()
    with drawn(tmp_path / "steps.png") as picture:
        draw_steps_ahead(steps, tmp_path / "steps.png")
    for k in range(2):
        np.testing.assert_array_equal(picture.marks(k, "*"), steps.queries[k : k + 1])
        np.testing.assert_array_equal(picture.marks(k, "o"), np.vstack([steps.points, steps.steps[k]]))
        np.testing.assert_array_equal(picture.marks(k, "s"), steps.believed[k])
        assert {text.get_text() for text in picture.figure.axes[k].texts} == {str(n) for n in range(2, AHEAD + 1)}


def test_the_open_loop_hardly_knows_which_point_comes_first():
    """[eq:firm]: a set has no order, so the points of an open-loop plan are nearly the same as first points."""
    open_loop, two_stage = order_matters(Glasses(), draws=2), order_matters(TwoStage(), draws=2)
    assert 0 < open_loop.firmness < two_stage.firmness < 1
    assert 0 <= open_loop.better_ei <= LEFT - 1


def test_planners_against_the_optimum(tmp_path):
    """[eq:attained]: no planner attains more than the optimum, and each chooses better than chance."""
    data = planner_values(data_sets=2)
    one = data.example
    optimum = one.values["optimum"]
    assert optimum.shape == (POINTS,)
    assert np.all(one.values["EI"] < one.values["EI rollout"])
    assert np.all(one.values["EI rollout"] <= optimum * (1 + 1e-12))
    assert np.all(one.values["open loop"] < 1.01 * optimum)
    np.testing.assert_allclose(one.values["two-stage"], one.values["two-stage, fine"], rtol=0.1)  # nine outcomes against 64
    for name in PLANNERS:
        assert data.attained[name][0] == optimum[one.values[name].argmax()] / optimum.max()
        assert np.all(data.attained[name] <= 1)
        assert data.attained[name].mean() > data.attained["any place"].mean()
    assert data.promised["EI"].mean() < data.promised["open loop"].mean() < data.promised["two-stage, fine"].mean() < 1
    assert [line.split("|")[1].strip() for line in table(data).splitlines()[2:]] == ["any place", *PLANNERS]
    assert data.reaction.shape == (2, POINTS)
    assert data.reaction.mean() > 0
    assert f"at {np.mean(data.reaction < 0):.1%} of the places it is below" in remark(data)
    with drawn(tmp_path / "new" / "values.png") as picture:
        draw_planner_values(data, tmp_path / "new" / "values.png")
    below, right = 1, 2
    for name in ("optimum", "EI", "open loop", "two-stage"):
        np.testing.assert_array_equal(picture.curve(below, name), np.column_stack([one.places, one.values[name]]))
    assert [label.splitlines()[0] for label in picture.ticks(right)] == list(data.attained)
    np.testing.assert_array_equal(
        np.sort(picture.marks(right, ".")[:, 0]), np.sort(100 * np.concatenate([*data.attained.values()]))
    )


def test_pages_and_folders_that_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match="asks for a table 'nothing' that was not made"):
        page.filled("<!-- table nothing -->\n<!-- end -->", {"fair": "x"})
    with pytest.raises(ValueError, match="holds no results"):
        page.load(tmp_path)
    rows, about = read_rows(FOLDER / "fair.csv")
    assert about["suite"] == "fair"
    assert rows
