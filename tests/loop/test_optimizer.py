import math

import numpy as np
import pytest
from problems import hills
from scipy.stats import norm

from glasses import ExpectedLoss, GaussianProcess, Glasses, Optimizer, TwoStage
from glasses.lookahead import LowerConfidenceBound
from glasses.search.predict import predict
from glasses.surrogate import Standardize

BOX = [(0.0, 1.0), (0.0, 1.0)]


def started(n=6, budget=20, seed=3, **settings):
    optimizer = Optimizer(BOX, budget=budget, seed=seed, **settings)
    for _ in range(n):
        x = optimizer.ask()
        optimizer.tell(x, hills(x))
    return optimizer


@pytest.mark.parametrize("loss", [None, ExpectedLoss(), Glasses(), TwoStage(nodes=5), LowerConfidenceBound()], ids=str)
def test_asking_without_telling_gives_different_points_inside_the_box(loss):
    optimizer = started(loss=loss)
    points = np.array([optimizer.ask() for _ in range(4)])
    assert np.all((points >= 0) & (points <= 1))
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.eye(4)
    assert gaps.min() > 1e-3
    assert optimizer.remaining == 20 - 6 - 4
    assert len(optimizer.pending) == 4


def test_a_batch_is_the_same_as_asking_one_by_one():
    together, one_by_one = started(), started()
    batch = together.ask(3)
    assert isinstance(batch, list)
    np.testing.assert_array_equal(np.array(batch), np.array([one_by_one.ask() for _ in range(3)]))


def test_results_come_back_in_any_order_and_unasked():
    a, b = started(), started()
    batch = a.ask(3)
    b.ask(3)
    for i in (2, 0, 1):
        a.tell(batch[i], hills(batch[i]))
    b.tell(np.array(batch)[[2, 0, 1]], [hills(batch[i]) for i in (2, 0, 1)])
    assert a.pending == b.pending == []
    np.testing.assert_array_equal(a.ask(), b.ask())
    a.tell([0.123, 0.456], 1.0)
    assert a.remaining == 20 - 6 - 3 - 1 - 1


def test_points_never_asked_for_count_and_are_used():
    optimizer = Optimizer(BOX, budget=12, seed=0)
    X = np.random.default_rng(0).random((5, 2))
    optimizer.tell(X, [hills(x) for x in X])
    assert optimizer.remaining == 7
    x = optimizer.ask()
    assert np.all(np.abs(X - x).max(axis=1) > 1e-6)


def test_decisions_depend_on_data_not_on_history():
    """Rebuilding from the data gives the same suggestion: what resuming needs."""
    first = started(8)
    again = Optimizer(BOX, budget=20, seed=3)
    record = first.result()
    again.tell(np.array(record.x_iters), record.func_vals)
    np.testing.assert_array_equal(first.ask(), again.ask())


def test_the_budget_can_change_and_matters():
    optimizer = started(8, budget=16)
    assert optimizer.remaining == 8
    far = optimizer.plan()
    optimizer.budget = 9
    assert optimizer.remaining == 1
    near = optimizer.plan()
    assert (len(far), len(near)) == (8, 1)
    assert far.expected_best < near.expected_best


def test_the_last_evaluation_is_myopic():
    """n = 1: every look-ahead loss decides as the expected loss does."""
    record = started(7).result()
    points = []
    for loss in (ExpectedLoss(), Glasses(), TwoStage()):
        optimizer = Optimizer(BOX, budget=8, seed=3, loss=loss)
        optimizer.tell(np.array(record.x_iters), record.func_vals)
        points.append(optimizer.ask())
    np.testing.assert_allclose(points[1], points[0], atol=5e-3)
    np.testing.assert_allclose(points[2], points[0], atol=5e-3)


def test_plan_starts_with_what_ask_returns_and_changes_nothing():
    optimizer = started(6, budget=15)
    plan = optimizer.plan()
    assert len(plan) == 9
    assert plan.mean.shape == plan.sd.shape == (9,)
    assert np.all(plan.sd > 0)
    points = np.array(plan.points)
    assert np.unique(points.round(9), axis=0).shape == (9, 2)
    assert plan.expected_best < min(optimizer.result().func_vals)
    np.testing.assert_array_equal(optimizer.ask(), plan.next)


@pytest.mark.parametrize("loss", [Glasses(), TwoStage(nodes=5, steps=None)], ids=str)
def test_the_loss_at_points(loss):
    """What ask() returns has the lowest loss, and the decision was made by exactly it; more evaluations left never hurt."""
    optimizer = started(loss=loss, model=GaussianProcess(outputs=Standardize()))  # predictions are normal in the units of y
    plan = optimizer.plan()
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 8)] * 2), axis=-1).reshape(-1, 2)
    everywhere = optimizer.loss_at(grid)
    assert everywhere.shape == (64,)
    chosen = optimizer.loss_at(plan.points[0])[0]
    decision, outputs = optimizer._planner._decide(), optimizer._planner.inference.outputs()
    assert chosen == pytest.approx(outputs.inverse(decision.eta - np.exp(decision.value)), rel=1e-6)
    best = min(optimizer.values)
    assert chosen <= everywhere.min() + 0.02 * (best - chosen)
    assert np.all(everywhere <= best + 1e-9)
    mu, sd = optimizer.predict(grid)
    z = (best - mu) / sd
    myopic = optimizer.loss_at(grid, left=1)
    np.testing.assert_allclose(myopic, best - sd * (norm.pdf(z) + z * norm.cdf(z)), atol=1e-7)  # [eq:el]
    assert np.mean(everywhere) < np.mean(myopic)


def test_the_loss_needs_data_and_an_expected_value():
    with pytest.raises(ValueError, match="no data to value a point by"):
        Optimizer(BOX, budget=3).loss_at([0.5, 0.5])
    with pytest.raises(ValueError, match="LowerConfidenceBound is no expected value"):
        started(loss=LowerConfidenceBound()).loss_at([0.5, 0.5])
    with pytest.raises(ValueError, match="left must be a whole number of at least 1, got 0"):
        started().loss_at([0.5, 0.5], left=0)


@pytest.mark.parametrize("loss", [ExpectedLoss(), Glasses(steps=2), LowerConfidenceBound()], ids=str)
def test_a_myopic_plan_still_shows_the_whole_budget(loss):
    optimizer = started(6, budget=12, loss=loss)
    plan = optimizer.plan()
    assert len(plan) == 6
    np.testing.assert_array_equal(optimizer.ask(), plan.next)


def test_plan_before_any_data_is_the_initial_design():
    optimizer = Optimizer(BOX, budget=12, n_initial=4, seed=0)
    plan = optimizer.plan()
    assert len(plan) == 4
    assert np.all(np.isnan(plan.mean))
    np.testing.assert_array_equal(np.array(plan.points), np.array([optimizer.ask() for _ in range(4)]))


def test_plan_says_when_nothing_is_left():
    optimizer = started(6, budget=6)
    with pytest.raises(ValueError, match="Nothing is left to plan"):
        optimizer.plan()


def test_initial_points_given_by_the_user_come_first():
    optimizer = Optimizer(BOX, budget=10, x0=[[0.5, 0.5], [0.1, 0.2]], seed=0)
    np.testing.assert_array_equal(np.array(optimizer.ask(2)), [[0.5, 0.5], [0.1, 0.2]])
    optimizer = Optimizer(BOX, budget=10, x0=[[0.5, 0.5], [0.1, 0.2]], y0=[1.0, 2.0], seed=0)
    assert optimizer.remaining == 8
    assert optimizer.result().fun == 1.0


def test_an_initial_point_that_is_told_is_not_asked_for():
    optimizer = Optimizer(BOX, budget=10, x0=[[0.5, 0.5], [0.1, 0.2]], seed=0)
    optimizer.tell([0.5, 0.5], 1.0)
    np.testing.assert_array_equal(optimizer.ask(), [0.1, 0.2])


def test_another_loss_or_model_decides_anew():
    optimizer = started(8, budget=30)
    first = optimizer.plan()
    optimizer.loss = LowerConfidenceBound(kappa=5.0)
    assert not np.array_equal(optimizer.plan().next, first.next)
    optimizer.loss, optimizer.model = TwoStage(), GaussianProcess(noise=0.3)
    second = optimizer.plan()
    assert not np.array_equal(second.mean, first.mean)
    optimizer.model = GaussianProcess()
    np.testing.assert_array_equal(optimizer.plan().mean, first.mean)


@pytest.mark.parametrize("loss", [Glasses(steps=1), TwoStage(steps=1)], ids=str)
def test_one_step_ahead_is_a_loss_too(loss):
    assert np.isfinite(started(6, budget=12, loss=loss).ask()).all()


def test_workers_may_ask_before_anything_is_told():
    optimizer = Optimizer(BOX, budget=12, n_initial=2, seed=0)
    points = np.array(optimizer.ask(6))
    assert np.unique(points, axis=0).shape == (6, 2)


def test_result_has_scipys_fields_and_ours():
    optimizer = started(9, budget=9)
    result = optimizer.result()
    for name in ("x", "fun", "success", "status", "message", "nfev", "nit", "x_iters", "func_vals", "recommended", "seed"):
        assert name in result
    assert result.success
    assert (result.nfev, result.status, result.fun) == (9, 0, min(result.func_vals))
    assert result.recommended.mean <= result.fun + 1e-6
    assert result.recommended.sd >= 0
    assert hills(result.x) == result.fun
    unfinished = started(5, budget=9).result()
    assert not unfinished.success
    assert "5 of 9" in unfinished.message
    assert Optimizer(BOX, budget=3, seed=0).result().x is None


def test_recommendation_is_the_minimum_of_the_posterior_mean():
    optimizer = started(12, budget=12)
    found = optimizer.result().recommended
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 1, 60)), -1).reshape(-1, 2)
    assert found.mean <= optimizer.predict(grid)[0].min() + 1e-6
    with pytest.raises(ValueError, match="no data to predict from"):
        Optimizer(BOX, budget=3, seed=0).predict([0.5, 0.5])


def test_names_make_dicts():
    optimizer = Optimizer({"rate": (0.0, 1.0), "depth": (0.0, 1.0)}, budget=8, seed=1)
    for _ in range(5):
        x = optimizer.ask()
        assert set(x) == {"rate", "depth"}
        assert all(type(v) is float for v in x.values())
        optimizer.tell(x, hills(tuple(x.values())))
    optimizer.tell([{"rate": 0.1, "depth": 0.2}], [0.3])
    assert optimizer.remaining == 2
    assert isinstance(optimizer.result().x, dict)


@pytest.mark.parametrize("values", [[1.0] * 6, [0.0] * 6, [1e99] * 6, [-1e-300] * 6, [k * 1e-200 for k in range(6)]])
def test_constant_values_are_no_trouble(values):
    optimizer = Optimizer(BOX, budget=10, seed=1)
    points = [optimizer.ask() for _ in range(6)]
    optimizer.tell(points, values)
    x = optimizer.ask()
    assert np.all(np.isfinite(x))
    assert np.isfinite(optimizer.plan().mean).all()


def test_one_observation_is_enough():
    optimizer = Optimizer([(0, 1)], budget=5, n_initial=1, seed=1)
    optimizer.tell(optimizer.ask(), 3.0)
    assert 0 <= optimizer.ask()[0] <= 1


def test_repeated_measurements_are_used():
    optimizer = Optimizer(BOX, budget=20, seed=1, model=GaussianProcess(noise=0.5))
    rng = np.random.default_rng(0)
    for x in ([0.2, 0.2], [0.8, 0.8]):
        optimizer.tell([x] * 4, hills(x) + 0.5 * rng.standard_normal(4))
    assert len(optimizer.result().func_vals) == 8
    assert np.isfinite(optimizer.ask()).all()


def test_an_exact_point_is_never_proposed_again():
    optimizer = started(6, budget=26)
    seen = [tuple(x) for x in optimizer.result().x_iters]
    for _ in range(12):
        x = optimizer.ask()
        assert min(np.abs(np.array(seen) - x).max(axis=1)) > 1e-6
        seen.append(tuple(x))
        optimizer.tell(x, hills(x))


def test_more_pending_points_than_there_is_padding():
    """Crossing a padded size by pending points alone changes nothing but the shapes."""
    optimizer = started(30, budget=60, loss=ExpectedLoss())
    points = np.array(optimizer.ask(5))
    assert np.unique(points.round(6), axis=0).shape == (5, 2)


def test_a_seed_is_drawn_and_kept():
    optimizer = Optimizer(BOX, budget=5)
    assert isinstance(optimizer.seed, int)
    same = Optimizer(BOX, budget=5, seed=optimizer.seed)
    np.testing.assert_array_equal(optimizer.ask(), same.ask())


def test_quantiles_of_a_prediction_are_in_the_units_of_y():
    """Outputs with a long tail: against draws of the model's normal prediction, sent through the output transform."""
    optimizer = Optimizer([(0.0, 1.0)], budget=20, seed=1)
    X = np.linspace(0.02, 0.98, 7)[:, None]
    optimizer.tell(X, [math.exp(12 * (float(x[0]) - 0.3) ** 2) for x in X])
    found = optimizer.quantiles([[0.4], [0.93]], (0.1, 0.5, 0.9))
    assert found.shape == (2, 3)
    assert np.all(np.diff(found, axis=1) > 0)
    known = optimizer._planner.inference
    mu, sd = predict(optimizer.model.kernel, known.posterior(), np.array([[0.4], [0.93]]))
    normal = np.random.default_rng(0).standard_normal(200_000)
    for row, m, s in zip(found, np.asarray(mu), np.asarray(sd), strict=True):
        draws = known.outputs().inverse(m + s * normal)
        np.testing.assert_allclose(row, np.quantile(draws, (0.1, 0.5, 0.9)), rtol=0.02, atol=0.02 * draws.std())
    recommended = optimizer.result().recommended
    assert recommended.low <= recommended.high
    assert optimizer.quantiles([recommended.x], (0.1, 0.9))[0] == pytest.approx([recommended.low, recommended.high], rel=1e-6)


@pytest.mark.parametrize("levels", [0.5, (), (0.0, 0.5), (0.5, 1.0), "half", (math.nan,), None])
def test_levels_that_are_no_levels(levels):
    optimizer = Optimizer([(0.0, 1.0)], budget=20, seed=1)
    with pytest.raises(ValueError, match="no data to predict from"):
        optimizer.quantiles([0.5])
    optimizer.tell([0.5], 1.0)
    with pytest.raises(ValueError, match=r"levels must be numbers between 0 and 1 such as \(0.1, 0.9\), got"):
        optimizer.quantiles([0.5], levels)
