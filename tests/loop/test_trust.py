"""How far ahead the model is trusted: by the record of what it predicted before it was told."""

import math
from dataclasses import replace

import numpy as np
import pytest

from glasses import ExpectedLoss, GaussianProcess, Glasses, Optimizer, TwoStage
from glasses.loop.inference import Purpose
from glasses.loop.trust import FEWEST, LOOK_BACK, REACH, trust_after
from glasses.search.decision import Trust, horizon, trusting
from glasses.search.predict import predict
from glasses.search.propose import candidates_for
from glasses.search.surface import gains_at
from glasses.search.value import with_gain_after_failure
from glasses.surrogate import Known
from glasses.surrogate.fit import conditioned


def smooth(x):
    return (float(x[0]) - 0.3) ** 2


def played(f, told, **settings):
    optimizer = Optimizer([(0.0, 1.0)], budget=40, n_initial=4, seed=3, **({"noise": 0.0} | settings))
    for _ in range(told):
        x = optimizer.ask()
        optimizer.tell(x, f(x))
    return optimizer


def test_trust_is_its_formula():
    """[eq:surprise] and [eq:survival] by hand: two of six outside the 95 % interval, 1.9599 inside and 1.9600 outside."""
    assert trust_after([0.1, -1.9599, 1.96, -5.0, 0.0, 1.0]) == (REACH, pytest.approx(((1 + 4) / 8) ** 3))
    for few in range(FEWEST):
        assert trust_after([0.0] * few) == (1, 0.0)
    assert trust_after([9.0] * LOOK_BACK).share == pytest.approx((1 / 12) ** 3)
    assert trust_after([0.0] * LOOK_BACK).share == pytest.approx((11 / 12) ** 3)


def test_the_record_is_what_an_earlier_fit_predicted():
    """[eq:innovation], against a model fitted to the values up to the last multiple of five and given those in between."""
    optimizer = played(smooth, 13, loss=ExpectedLoss())
    record = optimizer._planner.inference.record(4)
    X, y = np.array(optimizer.record().x_iters), np.array(optimizer.values)
    assert len(record) == 13 - 4
    for i, z in zip(range(4, 13), record, strict=True):
        fitted = max(3, i - i % 5)
        before = Optimizer([(0.0, 1.0)], budget=40, noise=0.0, seed=0)
        before.tell(X[:fitted], y[:fitted])
        inference, kernel = before._planner.inference, optimizer.model.kernel
        outputs, hyper = inference.outputs(), inference.posterior().hyper
        mu, sd = predict(kernel, conditioned(kernel, hyper, X[:i], outputs.forward(y[:i])), X[i : i + 1])
        assert z == pytest.approx((outputs.forward(y[i]) - mu[0]) / sd[0], rel=1e-4, abs=1e-4)


def test_the_record_is_the_same_in_a_new_process():
    """An optimiser that is told everything at once has the record of one that was told value by value."""
    live = played(smooth, 9, loss=ExpectedLoss())
    again = Optimizer([(0.0, 1.0)], budget=40, n_initial=4, seed=3, noise=0.0, loss=ExpectedLoss())
    again.tell(live.record().x_iters, live.values)
    assert again._planner.inference.record(4) == live._planner.inference.record(4)


def test_a_model_that_was_right_is_trusted_more_than_one_that_was_wrong():
    def jagged(x):
        return smooth(x) + 0.3 * math.sin(1e4 * float(x[0]))

    right, wrong = (played(f, 12)._planner._trust() for f in (smooth, jagged))
    assert right.share > wrong.share
    assert right.steps == wrong.steps == REACH


def test_all_is_believed_where_the_model_is_exact_or_costs_are_planned():
    exact = played(smooth, 6, model=GaussianProcess(fit=Known(0.3), noise=0.0), noise=None, loss=ExpectedLoss())
    exact.loss = TwoStage()
    assert exact._planner._trust() is None
    assert horizon(exact.loss, exact.remaining, exact._planner._trust()) == 34
    dear = Optimizer([(0.0, 1.0)], budget=9.0, cost=lambda x: 1.0 + float(x[0]), seed=0)
    dear.tell([[0.1], [0.5], [0.9]], [3.0, 1.0, 2.0])
    assert dear._planner._trust() is None


def decision_of(optimizer, share):
    """The decision that believes this share of a plan, whatever the record says."""
    known = optimizer._planner.inference
    problem = replace(known.problem(), trust=None if share is None else Trust(3, share))
    return optimizer.search.decide(optimizer.loss, known.model.kernel, problem, known.rng(Purpose.DECISION))


def test_a_plan_is_believed_in_parts():
    """[eq:trust]: with tau = 0 the gain of the myopic decision, with tau = 1 that of all three steps, and in between the mean
    of both, weighted by tau."""
    optimizer = played(lambda x: math.sin(7 * float(x[0])), 6)
    gain = {share: _gain_at(optimizer, share, 0.77) for share in (0.0, 0.36, 1.0)}
    assert gain[0.36] == pytest.approx(0.64 * gain[0.0] + 0.36 * gain[1.0], rel=1e-9)
    optimizer.loss = ExpectedLoss()
    assert _gain_at(optimizer, None, 0.77) == pytest.approx(gain[0.0], rel=1e-9)
    optimizer.loss = TwoStage(steps=3)
    assert _gain_at(optimizer, None, 0.77) == pytest.approx(gain[1.0], rel=1e-9)
    assert gain[1.0] > gain[0.0]


def test_without_trust_the_decision_is_the_myopic_one():
    optimizer = played(smooth, 6)
    trusting_nothing = decision_of(optimizer, 0.0)
    optimizer.loss = ExpectedLoss()
    assert trusting_nothing.value == pytest.approx(decision_of(optimizer, None).value, abs=1e-2)


def test_what_follows_a_failure_is_valued_as_a_plan_that_is_believed():
    """Whatever the share, which is counted where the risk is weighed."""
    optimizer = Optimizer([(0.0, 1.0)], budget=12, n_initial=4, seed=3, noise=0.0)
    for x in (0.1, 0.35, 0.6, 0.8):
        optimizer.tell([x], math.sin(7 * x))
    optimizer.tell([0.97], math.nan)
    known = optimizer._planner.inference
    kernel, problem = known.model.kernel, known.problem()
    plain = candidates_for(kernel, problem, 256, known.rng(Purpose.DECISION))
    points = np.linspace(0.05, 0.9, 8)[:, None]

    def after(loss, candidates):
        return float(with_gain_after_failure(candidates, problem, 3, kernel, loss, points).failures.log_gain)

    believed = after(TwoStage(steps=3), plain)
    assert after(TwoStage(), trusting(TwoStage(), plain, Trust(3, 0.2))) == pytest.approx(believed, rel=1e-9)


def _gain_at(optimizer, share, x):
    known = optimizer._planner.inference
    kernel, problem = known.model.kernel, known.problem()
    candidates = candidates_for(kernel, problem, 256, known.rng(Purpose.DECISION))
    trust = None if share is None else Trust(3, share)
    candidates = trusting(optimizer.loss, candidates, trust)
    return float(gains_at(optimizer.loss, kernel, candidates, problem, np.array([[x]]), 3)[1][0])


def test_steps_that_are_no_steps():
    for wrong in ("all", 0, -1, 2.5, True):
        with pytest.raises(ValueError, match='None for all evaluations left or "trusted"'):
            Glasses(steps=wrong)
    assert TwoStage().steps == "trusted"
    assert Glasses().steps is None


def test_a_record_is_computed_once_in_a_process(monkeypatch):
    """Studies make an optimiser for every decision: what the model predicted before is not fitted again."""
    live = played(smooth, 8, loss=ExpectedLoss())
    record = live._planner.inference.record(4)
    again = Optimizer([(0.0, 1.0)], budget=40, n_initial=4, seed=9, noise=0.0)
    again.tell(live.record().x_iters, live.values)
    monkeypatch.setattr(again._planner.inference, "_fit", None)
    assert again._planner.inference.record(4) == record
    other = Optimizer([(0.0, 1.0)], budget=40, n_initial=4, seed=9, noise=0.0)
    other.tell(live.record().x_iters, [*live.values[:4], 3.0, *live.values[5:]])
    assert other._planner.inference.record(4) != record
