"""Typed parameters, finite spaces and failures in a whole run."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_candidates

from glasses import Choice, ExhaustedError, ExpectedLoss, Float, GaussianProcess, Glasses, Int, Optimizer, TwoStage, minimize
from glasses.gaussian.univariate import log_expected_improvement
from glasses.lookahead.candidates import Costs, Failures, query_candidate
from glasses.lookahead.loss import value_for
from glasses.search.propose import candidates_for
from glasses.search.screen import screen
from glasses.surrogate import Standardize
from glasses.surrogate.feasibility import fit_failures
from glasses.surrogate.posterior import incumbent, marginals

MIXED = {
    "rate": Float(1e-4, 1e-1, log=True),
    "layers": Int(1, 8),
    "kind": Choice(["a", "b", "c"]),
    "drop": Float(0, 0.5, step=0.1),
}


def cost(rate, layers, kind, drop):
    return (math.log10(rate) + 2.5) ** 2 + 0.05 * (layers - 5) ** 2 + {"a": 0.5, "b": 0.0, "c": 1.0}[kind] + abs(drop - 0.2)


@pytest.mark.slow
def test_a_mixed_space_is_minimised():
    seen = []

    def objective(**params):
        seen.append(params)
        return cost(**params)

    result = minimize(objective, MIXED, budget=24, n_initial=8, loss=ExpectedLoss(), seed=1)
    assert result.success
    assert result.x["kind"] == "b"
    assert result.fun < 0.2
    assert {type(v) for params in seen for v in params.values()} == {float, int, str}
    assert len({tuple(params.items()) for params in seen}) == 24
    assert set(result.recommended.x) == set(MIXED)


VALUES = ["a", "b", "c"]


def valley(x):
    """Three values whose optima lie apart; the best one is b."""
    centre = {"a": (0.2, 0.7, 0.4), "b": (0.7, 0.3, 0.6), "c": (0.5, 0.5, 0.8)}[x[3]]
    return sum(4 * (u - c) ** 2 for u, c in zip(x[:3], centre, strict=True)) + {"a": 0.4, "b": 0.0, "c": 0.2}[x[3]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_value_of_a_choice_is_considered(seed):
    """EI at the best candidate of each value is nearly what a dense search finds with that value, and each is screened."""
    optimizer = Optimizer([(0.0, 1.0)] * 3 + [Choice(VALUES)], budget=20, seed=seed, loss=ExpectedLoss())
    for _ in range(9):
        x = optimizer.ask()
        optimizer.tell(x, valley(x))
    problem, kernel = optimizer._planner.inference.problem(), optimizer.model.kernel
    candidates = candidates_for(kernel, problem, 256, np.random.default_rng(0))
    post = problem.post
    eta = incumbent(kernel, post)

    @jax.jit
    def log_ei(X):
        return log_expected_improvement(*marginals(kernel, post, X), eta)

    points = np.asarray(candidates.candidates)
    screened = np.asarray(screen(candidates, np.asarray(6), size=8, count=48))
    floats = np.random.default_rng(1).random((4096, 3))
    for k in range(3):
        unit = (k + 0.5) / 3
        dense = float(jnp.max(log_ei(jnp.asarray(np.column_stack([floats, np.full(4096, unit)])))))
        found = float(jnp.max(log_ei(jnp.asarray(points[np.abs(points[:, 3] - unit) < 1e-6]))))
        assert found > dense - 0.2
        assert np.any(np.abs(screened[:, 3] - unit) < 1e-6)


@pytest.mark.slow
def test_a_run_does_not_stay_with_one_value_of_a_choice():
    """Values that are alike (their correlation is above .9): what is learned with one is tried with the others."""
    at = np.array([[0.37, 0.12, 0.27], [0.47, 0.44, 0.75], [0.11, 0.87, 0.55], [0.04, 0.57, 0.88]])
    width = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    height = {"a": (1.0, 1.2, 3.0, 2.2), "b": (1.0, 1.2, 3.0, 3.2), "c": (2.5, 1.2, 1.0, 2.0)}

    def hartmann(x):
        return -float(np.array(height[x[3]]) @ np.exp(-np.sum(width * (np.array(x[:3]) - at) ** 2, axis=1)))

    for seed in (1, 6):  # with the prior of numbers: only a in the first run, a minimum of -3.0 in the second
        optimizer = Optimizer([(0.0, 1.0)] * 3 + [Choice(VALUES)], budget=20, seed=seed, loss=ExpectedLoss())
        taken = []
        for _ in range(20):
            x = optimizer.ask()
            taken.append(x[3])
            optimizer.tell(x, hartmann(x))
        assert len(set(taken[8:])) > 1
        assert "b" in taken[8:]


@pytest.mark.parametrize("loss", [ExpectedLoss(), Glasses(), TwoStage(nodes=3)], ids=str)
def test_what_is_valued_is_what_is_run(loss):
    """Suggestions and every step of the plan lie on the lattice, and the plan predicts at those very points."""
    optimizer = Optimizer(MIXED, budget=12, n_initial=6, loss=loss, seed=0)
    while len(optimizer.values) < 7:
        x = optimizer.ask()
        optimizer.tell(x, cost(**x))
    plan = optimizer.plan()
    assert len(plan) == 5
    mean, sd = optimizer.predict(plan.points)
    np.testing.assert_allclose(mean, plan.mean, atol=1e-6)
    np.testing.assert_allclose(sd, plan.sd, atol=1e-6)
    assert optimizer.ask() == plan.next


def test_choices_have_no_order():
    """[eq:hamming]: listing the values of a choice in another order changes no prediction."""
    rng = np.random.default_rng(0)
    data = [({"x": rng.random(), "kind": kind}, rng.standard_normal()) for kind in "abcabcabca"]
    predictions = []
    for order in ("abc", "cab", "bca"):
        optimizer = Optimizer({"x": (0, 1), "kind": Choice(list(order))}, budget=30, seed=0)
        optimizer.tell([x for x, _ in data], [y for _, y in data])
        predictions.append(np.concatenate(optimizer.predict([{"x": 0.3, "kind": kind} for kind in "abc"])))
    np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-8)
    np.testing.assert_allclose(predictions[2], predictions[0], atol=1e-8)


@pytest.mark.parametrize("loss", [ExpectedLoss(), TwoStage(nodes=3)], ids=str)
def test_a_finite_space_is_searched_without_repetition_and_says_when_it_is_exhausted(loss):
    bounds = [Int(0, 3), Choice(["u", "v", "w"])]
    optimizer = Optimizer(bounds, budget=30, noise=0.0, loss=loss, seed=0)
    seen = []
    for _ in range(12):
        x = optimizer.ask()
        seen.append(tuple(x))
        optimizer.tell(x, (x[0] - 2) ** 2 + "uvw".index(x[1]))
    with pytest.raises(ExhaustedError, match="All 12 configurations of this space are evaluated or pending"):
        optimizer.ask()
    assert len(seen) == len(set(seen)) == 12
    result = minimize(lambda x: (x[0] - 2) ** 2 + "uvw".index(x[1]), bounds, budget=30, noise=0.0, loss=loss, seed=0)
    assert result.nfev == 12
    assert result.success
    assert "the search is complete" in result.message
    assert result.x == [2, "u"]


def test_noise_makes_repetitions_worth_something_in_an_exhausted_space():
    rng = np.random.default_rng(0)
    optimizer = Optimizer([Int(0, 3)], budget=40, noise=0.5, loss=ExpectedLoss(), seed=0)
    for _ in range(16):
        x = optimizer.ask()
        optimizer.tell(x, x[0] + 0.5 * rng.standard_normal())
    counts = np.bincount([x[0] for x in optimizer.record().x_iters], minlength=4)
    assert counts[0] == counts.max()  # the best is measured most
    assert optimizer.result().recommended.x == [0]


def test_pending_configurations_are_not_suggested_twice():
    optimizer = Optimizer([Int(0, 2), Int(0, 2)], budget=20, noise=0.0, loss=ExpectedLoss(), seed=0)
    asked = optimizer.ask(9)
    assert len({tuple(x) for x in asked}) == 9
    with pytest.raises(ExhaustedError):
        optimizer.ask()


def test_the_recommendation_can_be_run():
    model = GaussianProcess(noise=0.0, outputs=Standardize())
    optimizer = Optimizer({"n": Int(0, 10), "s": Float(0, 1, step=0.25)}, budget=20, model=model, seed=0)
    for n in (0, 2, 4, 7, 10):
        for s in (0.0, 1.0):
            optimizer.tell({"n": n, "s": s}, (n - 5.4) ** 2 + (s - 0.6) ** 2)
    found = optimizer.result().recommended
    assert found.x["n"] in (5, 6)
    assert found.x["s"] in (0.25, 0.5, 0.75, 1.0)
    grid = [{"n": n, "s": s} for n in range(11) for s in (0, 0.25, 0.5, 0.75, 1.0)]
    mean, _ = optimizer.predict(grid)
    assert found.mean == pytest.approx(mean.min(), abs=1e-6)


def test_failures_are_kept_cost_budget_and_do_not_end_the_run():
    """Two fifths of the square fail, and the objective falls towards them: the best that can be had lies at the border."""
    calls = []

    def objective(x):
        calls.append(x)
        if x[0] > 0.6:
            raise RuntimeError("diverged") if len(calls) % 2 else ArithmeticError("overflow")
        return float((x[0] - 0.9) ** 2 + (x[1] - 0.3) ** 2)

    with pytest.warns(UserWarning, match=r"failed \(.*\) and is kept as failed"):
        result = minimize(objective, [(0, 1), (0, 1)], budget=20, loss=TwoStage(nodes=3), seed=0)
    assert result.success
    assert result.nfev == 20 == len(result.failures) + len(result.func_vals)
    assert {each.reason for each in result.failures} <= {"RuntimeError: diverged", "ArithmeticError: overflow"}
    assert all(each.x[0] > 0.6 for each in result.failures)
    late = [x for x in calls[4:] if x[0] > 0.6]
    assert len(late) <= 8  # of 16, most of them at the border; without the model of failures nearly all of them
    assert result.fun < 0.2  # 0.09 at the border


@pytest.mark.slow
def test_the_risk_of_a_failure_is_weighed_against_the_rest_of_the_budget():
    """[eq:risk]: p G + (1 - p) G_rest, by hand; without a rest it is p G."""
    _, candidates, _ = make_candidates(np.random.default_rng(0).random((40, 2)))
    model = fit_failures(np.array([[0.2, 0.2], [0.8, 0.8]]), np.array([False, True]))
    feasible, nothing = model.log_probability(candidates.points), jnp.asarray(-jnp.inf)
    risky = candidates._replace(failures=Failures(feasible, nothing, nothing))
    loss, one = ExpectedLoss(), jnp.asarray(1)
    for i in (3, 17):
        gain = math.exp(float(loss.acquisition_value(candidates, query_candidate(candidates, jnp.asarray(i)), (), one)))
        p = math.exp(float(feasible[i]))
        alone = float(value_for(loss, risky, query_candidate(risky, jnp.asarray(i)), (), one))
        assert math.exp(alone) == pytest.approx(p * gain, rel=1e-9)
        with_rest = risky._replace(failures=risky.failures._replace(log_gain=jnp.log(0.3)))
        rest = float(value_for(loss, with_rest, query_candidate(with_rest, jnp.asarray(i)), (), one))
        assert math.exp(rest) == pytest.approx(p * gain + (1 - p) * 0.3, rel=1e-9)
        doubted = with_rest._replace(trust=jnp.asarray(0.25))  # all of the rest comes later
        less = float(value_for(loss, doubted, query_candidate(doubted, jnp.asarray(i)), (), one))
        assert math.exp(less) == pytest.approx(p * gain + (1 - p) * 0.25 * 0.3, rel=1e-9)
        cost = 1.0 + np.arange(40.0)  # that of candidate 29 is the largest that a budget of 30 affords
        failures = with_rest.failures._replace(log_gain_unpaid=jnp.log(0.7))
        in_money = with_rest._replace(costs=Costs(jnp.asarray(cost), jnp.asarray(30.0)), failures=failures)
        paid = float(value_for(loss, in_money, query_candidate(in_money, jnp.asarray(i)), (), one))
        left = 0.7 + (0.3 - 0.7) * cost[i] / 30.0
        assert math.exp(paid) == pytest.approx(p * gain + (1 - p) * left, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None, "text", [1.0, 2.0], 1e300])
def test_whatever_is_not_a_number_is_a_failure(bad):
    calls = []

    def objective(x):
        calls.append(x)
        return bad if len(calls) == 3 else float(np.sum(x))

    with pytest.warns(UserWarning, match="kept as failed"):
        result = minimize(objective, [(0, 1), (0, 1)], budget=6, n_initial=6, seed=0)
    assert result.success
    assert len(result.func_vals) == 5
    assert len(result.failures) == 1
    np.testing.assert_array_equal(result.failures[0].x, calls[2])


def test_nothing_is_recommended_where_evaluations_fail():
    """Choices at their own values, not in between: what has failed with every integer is not recommended."""
    optimizer = Optimizer([Int(0, 9), Choice(["a", "b"])], budget=40, noise=0.0, seed=0)
    for n in range(10):
        if n % 2 == 0:
            optimizer.tell([n, "a"], 5.0 + n)
        elif n > 1:
            optimizer.tell([n, "b"], None)
    found = optimizer.result().recommended
    unit = optimizer.space.to_unit(optimizer.space.read(found.x)[0])
    feasibility = optimizer._planner.inference.feasibility()
    assert math.exp(float(feasibility.log_probability(jnp.asarray(unit))[0])) > 0.5


def test_failures_do_not_move_what_is_to_be_beaten():
    """eta is what the evaluations say, with noise too."""
    rng = np.random.default_rng(1)
    X = rng.random((12, 2))
    optimizer = Optimizer([(0, 1), (0, 1)], budget=40, noise=0.3, x0=X, y0=np.sin(5 * X[:, 0]) + X[:, 1], seed=0)
    before = float(incumbent(optimizer.model.kernel, optimizer.posterior()))
    for x in ([0.95, 0.02], [0.9, 0.1], [0.99, 0.0]):
        optimizer.tell(x, None)
    told = optimizer._planner.inference.problem().post
    assert float(incumbent(optimizer.model.kernel, told)) == pytest.approx(before, abs=1e-9)


@pytest.mark.slow
def test_failures_may_be_free():
    def objective(x):
        return float(x[0]) if x[0] < 0.7 else math.nan

    with pytest.warns(UserWarning, match="kept as failed"):
        result = minimize(objective, [(0, 1)], budget=6, n_initial=6, count_failures=False, seed=0)
    assert len(result.func_vals) == 6
    assert result.nfev == 6 + len(result.failures) > 6
    with pytest.warns(UserWarning, match="kept as failed"):
        result = minimize(lambda x: math.nan, [(0, 1)], budget=3, count_failures=False, seed=0)
    assert len(result.failures) == 6  # as many as the budget are free, then they count
    assert not result.success
    assert result.x is None


def test_a_failed_point_is_told_and_not_asked_again():
    optimizer = Optimizer({"a": Int(0, 3)}, budget=10, noise=0.0, seed=0)
    for a in (0, 1):
        optimizer.tell({"a": a}, float(a))
    optimizer.tell({"a": 2}, None, reason="spilled")
    assert optimizer.ask() == {"a": 3}
    assert optimizer.record().failures[0].reason == "spilled"
    assert optimizer.record().message == "Unfinished: 3 of 10 evaluations done, 1 failed."


def test_exceptions_that_are_not_caught_carry_the_result():
    def objective(x):
        if len(seen) == 3:
            raise RuntimeError("the furnace is out")
        seen.append(1)
        return float(np.sum(x))

    seen = []
    with pytest.raises(RuntimeError, match="furnace") as caught:
        minimize(objective, [(0, 1)], budget=6, n_initial=6, seed=0, catch=())
    assert len(caught.value.result.func_vals) == 3
    assert "3 evaluations were done" in caught.value.__notes__[0]


def test_known_noise_changes_what_is_believed():
    """With a known sd the model explains scatter of that size as noise; eta is a posterior mean then."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 12)[:, None]
    y = (X[:, 0] - 0.5) ** 2 + 0.3 * rng.standard_normal(12)
    noisy = Optimizer([(0, 1)], budget=20, noise=0.3, x0=X, y0=y, seed=0)
    exact = Optimizer([(0, 1)], budget=20, noise=0.0, x0=X, y0=y, seed=0)
    at = int(np.argmin(y))
    mean, sd = noisy.predict(X[at])
    assert mean[0] > y[at] + 0.1
    assert sd[0] > 0.05
    assert exact.predict(X[at])[0][0] == pytest.approx(y[at], abs=1e-3)
