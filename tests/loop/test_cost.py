import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from problems import hills

from glasses import Choice, ExhaustedError, ExpectedLoss, Float, Glasses, Int, Optimizer, TwoStage, minimize
from glasses.lookahead import Rollout
from glasses.search.propose import candidates_for
from glasses.search.value import with_gain_after_failure

BOX = [(0, 1), (0, 1)]


def suggestions(loss, fails=False, **settings):
    optimizer = Optimizer(BOX, n_initial=4, loss=loss, seed=2, noise=0.0, **settings)
    found = []
    while optimizer.remaining:
        x = optimizer.ask()
        found.append(x)
        optimizer.tell(x, None if fails and x[1] > 0.6 else hills(x))
    return np.array(found), optimizer


@pytest.mark.parametrize(
    "loss",
    [
        ExpectedLoss(),
        Glasses(),
        *(pytest.param(loss, marks=pytest.mark.slow) for loss in (TwoStage(nodes=3, steps=None), Rollout(race=(16,)))),
    ],
    ids=str,
)
def test_unit_cost_is_counting(loss):
    """The same points to the last bit, for losses that plan the same number of evaluations with costs and without."""
    counted, _ = suggestions(loss, budget=8)
    for unit in (1.0, 0.1):  # eight times 0.1 is not 0.8, and nobody should notice
        paid, _ = suggestions(loss, budget=8 * unit, cost=lambda x, unit=unit: unit)
        np.testing.assert_array_equal(counted, paid)


@pytest.mark.parametrize("loss", [Glasses(), Rollout(race=(16,))], ids=str)
def test_unit_cost_is_counting_where_evaluations_fail(loss):
    counted, optimizer = suggestions(loss, fails=True, budget=8)
    assert optimizer.result().failures
    paid, _ = suggestions(loss, fails=True, budget=8.0, cost=lambda x: 1.0)
    np.testing.assert_array_equal(counted, paid)


def test_a_failure_leaves_what_it_did_not_cost():
    """Less than the whole budget would bring; where there is money for all that is planned, the same."""
    optimizer = Optimizer(BOX, budget=10.0, cost=lambda x: 0.5 + 2.0 * x[0], n_initial=4, loss=Glasses(), seed=2, noise=0.0)
    for x in [[0.2, 0.2], [0.8, 0.3], [0.4, 0.9], [0.6, 0.6]]:
        optimizer.tell(x, None if x[1] > 0.8 else hills(x))
    problem = optimizer._planner.inference.problem()
    kernel, loss, n = optimizer.model.kernel, Glasses(), optimizer.remaining

    def after_failure(budget):
        candidates = candidates_for(kernel, replace(problem, budget=budget), 256, np.random.default_rng(0))
        return with_gain_after_failure(candidates, problem, n, kernel, loss).failures

    short, rich = after_failure(problem.budget), after_failure(1e3)
    assert float(short.log_gain) < float(short.log_gain_unpaid) - 0.01
    assert float(rich.log_gain) == float(rich.log_gain_unpaid) >= float(short.log_gain_unpaid)


def test_the_budget_is_met_and_cheap_points_are_preferred():
    def cost(x):
        return 1.0 + 9.0 * x[0]

    found, optimizer = suggestions(Glasses(), budget=24.0, cost=cost)
    spent = sum(map(cost, found))
    assert spent <= 24.0
    assert optimizer.remaining == 0
    assert 24.0 - spent < 1.2 * min(map(cost, found))
    plain, _ = suggestions(Glasses(), budget=len(found))
    assert np.mean(found[4:, 0]) < np.mean(plain[4:, 0]) - 0.1
    message = optimizer.result().message
    assert message.startswith("Budget spent: ")
    assert "of 24 spent" in message


def test_a_plan_is_what_still_fits():
    optimizer = Optimizer(BOX, budget=16.0, cost=lambda x: 2.0, n_initial=4, loss=Glasses(), seed=2, noise=0.0)
    assert optimizer.remaining == 8
    for x in [[0.2, 0.2], [0.8, 0.3], [0.4, 0.9], [0.6, 0.6]]:
        optimizer.tell(x, hills(x))
    assert optimizer.remaining == 4
    assert len(optimizer.plan()) == 4
    assert len(optimizer.forecast()) == 4


@pytest.mark.parametrize("loss", [Glasses(), ExpectedLoss()], ids=str)
def test_a_plan_can_be_paid_for(loss):
    def cost(x):
        return 0.5 + 5.0 * x[0]

    optimizer = Optimizer(BOX, budget=24.0, cost=cost, n_initial=4, loss=loss, seed=2, noise=0.0)
    opening = optimizer.plan().points
    assert sum(map(cost, opening)) <= 24.0
    for x in [[0.2, 0.2], [0.8, 0.3], [0.4, 0.9], [0.6, 0.6]]:
        optimizer.tell(x, hills(x))
    points = np.array(optimizer.plan().points)
    assert sum(map(cost, points)) <= 24.0 - sum(map(cost, optimizer.result().x_iters))
    assert len(np.unique(points, axis=0)) == len(points) > 1
    np.testing.assert_array_equal(points[0], optimizer.ask())


def test_tables():
    space = {"solver": Choice(["euler", "rk4"]), "steps": Int(1, 4), "gain": Float(0, 1)}
    table = {"solver": {"euler": 1, "rk4": 4}, "steps": np.float64(0.5)}
    optimizer = Optimizer(space, budget=30.0, cost=table, n_initial=3, loss=ExpectedLoss(), seed=0)
    assert optimizer.remaining == math.floor(30 / 1.5)
    optimizer.tell({"solver": "rk4", "steps": 4, "gain": 0.3}, 1.0)
    assert optimizer.remaining == math.floor(24 / 1.5)

    def cost(solver, steps, gain):
        return {"euler": 1, "rk4": 4}[solver] + 0.5 * steps

    same = Optimizer(space, budget=30.0, cost=cost, n_initial=3, loss=ExpectedLoss(), seed=0)
    same.tell({"solver": "rk4", "steps": 4, "gain": 0.3}, 1.0)
    assert same.ask() == optimizer.ask()
    assert same.remaining == optimizer.remaining


def test_minimize_spends_money():
    result = minimize(hills, BOX, budget=9.0, cost=lambda x: 1.5, n_initial=3, loss=ExpectedLoss(), seed=1, noise=0.0)
    assert result.nfev == 6
    assert result.success


def test_what_cannot_be_paid_for_is_not_asked():
    optimizer = Optimizer([Choice(["cheap", "dear"]), (0, 1)], budget=5.0, cost={0: {"cheap": 1.0, "dear": 100.0}}, seed=0)
    asked = [optimizer.ask() for _ in range(5)]
    assert {x[0] for x in asked} == {"cheap"}
    with pytest.raises(ValueError, match="1 asked but 0 at most fit into the 0 left"):
        optimizer.ask()


def test_wanted_points_that_cannot_be_paid_for_are_passed_over():
    optimizer = Optimizer([(1, 10)], budget=10.0, cost={0: 1.0}, x0=[[8.0], [2.0]], n_initial=2, loss=ExpectedLoss(), seed=0)
    optimizer.tell([2.5], 1.0)
    optimizer.tell([2.4], 2.0)
    x = optimizer.ask()
    assert x.tolist() == [2.0]
    optimizer.tell(x, 3.0)
    assert optimizer.remaining == 3


def test_a_failure_that_costs_nothing_makes_room_again():
    """With workers: the budget that a free failure gives back is spent."""
    table = {"a": 0.4} | dict.fromkeys("bcdef", 4.0)

    def fun(x):
        if x[0] in "bc":
            raise RuntimeError("no")
        return float("abcdef".index(x[0]))

    space = [Choice(list("abcdef"))]
    settings = {"cost": {0: table}, "count_failures": False, "loss": ExpectedLoss(), "seed": 0, "noise": 0.0}
    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match="failed"):
        result = minimize(fun, space, budget=8.9, executor=pool, **settings)
    assert sum(table[x[0]] for x in result.x_iters) > 8.0


def test_an_end_before_the_last_penny():
    """The cheapest configurations are done and nothing else fits."""
    optimizer = Optimizer(
        [Choice(list("abc"))], budget=10.0, cost={0: {"a": 1.0, "b": 2.0, "c": 50.0}}, n_initial=1, seed=0, noise=0.0
    )
    for name, value in (("a", 1.0), ("b", 2.0)):
        optimizer.tell([name], value)
    with pytest.raises(ExhaustedError, match="7 of 10 is left"):
        optimizer.ask()


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (lambda x: -1.0, "cost must be a positive number everywhere, got -1.0"),
        (lambda x: 0.0, "cost must be a positive number everywhere, got 0.0"),
        (lambda x: math.nan, "cost must be a positive number everywhere, got nan"),
        (lambda x: "much", "cost must be a positive number everywhere, got 'much'"),
        (3.0, "cost must be a function of the point or a table"),
        ({}, "cost must be a function of the point or a table"),
        ({5: 1.0}, "There is no parameter '5'"),
        ({0: {0.5: 1.0}}, "lists values of a continuous parameter"),
        ({0: "much"}, "a rate per unit, got 'much'"),
        ({0: 1.0}, "cost must be a positive number everywhere"),
        ({1: 1.0}, "got 0.0 at"),
        ({1: None}, "a rate per unit, got None"),
    ],
)
def test_wrong_costs_are_refused(cost, words):
    with pytest.raises(ValueError, match=words):
        Optimizer([(-1, 1), (0, 1)], budget=10.0, cost=cost)


def test_a_table_must_know_every_value():
    with pytest.raises(ValueError, match="lacks 'b'"):
        Optimizer([Choice(list("ab"))], budget=10.0, cost={0: {"a": 1.0}})
    with pytest.raises(ValueError, match="must be a number, got 'cheap'"):
        Optimizer([Choice(list("ab"))], budget=10.0, cost={0: {"a": 1.0, "b": "cheap"}})
    with pytest.raises(ValueError, match="its values are no keys"):
        Optimizer([Choice([[1], [2]])], budget=10.0, cost={0: {}})


@pytest.mark.parametrize("budget", [0, -1.0, math.nan, math.inf, "ten", True, None])
def test_wrong_amounts_are_refused(budget):
    with pytest.raises(ValueError, match="budget must be a positive number"):
        Optimizer(BOX, budget=budget, cost=lambda x: 1.0)
