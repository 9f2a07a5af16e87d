"""Invariances of whole decisions: how data arrived, in which order parameters stand and what choices are called says nothing
about the objective, so it must not change what is decided. (Units are in ``test_determinism``.)"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import hills

from glasses import Choice, ExpectedLoss, Int, Optimizer, TwoStage

NAMES = ("a", "b", "c")
HEIGHT = {"a": 0.3, "b": 0.0, "c": 0.6}


def square(seed, n=8):
    X = np.round(np.random.default_rng(seed).random((n, 2)), 6)
    return X, np.array([hills(x) for x in X])


def decision(X, y, loss, bounds=((0.0, 1.0), (0.0, 1.0)), budget=12):
    optimizer = Optimizer(list(bounds), budget=budget, n_initial=3, noise=0.0, loss=loss, seed=5)
    for x, value in zip(X, y, strict=True):
        optimizer.tell(x, value)
    return optimizer


@pytest.mark.slow
@pytest.mark.parametrize("loss", [ExpectedLoss(), TwoStage(steps=4)], ids=str)
@given(order=st.permutations(range(8)), seed=st.integers(0, 3))
@settings(max_examples=6)
def test_the_order_of_tells_does_not_matter(loss, order, seed):
    """The fit sums in another order, so to the rounding that an optimum of a smooth function allows.

    The default believes a plan by the record of what was predicted before each value was told, which has an order.
    """
    X, y = square(seed)
    plain, other = (decision(X[rows], y[rows], loss) for rows in (np.arange(8), np.array(order)))
    np.testing.assert_allclose(other.ask(), plain.ask(), atol=1e-4)
    np.testing.assert_allclose(other.predict(X + 0.01 * (0.5 - X)), plain.predict(X + 0.01 * (0.5 - X)), atol=1e-4)


@given(seed=st.integers(0, 7))
@settings(max_examples=5)
def test_the_order_of_the_parameters_does_not_matter(seed):
    """Candidates are spread in another way, and polished to the same maximum of EI."""
    X, y = square(seed)
    plain, swapped = decision(X, y, ExpectedLoss()), decision(X[:, ::-1], y, ExpectedLoss())
    x, other = plain.ask(), swapped.ask()[::-1]
    gains = [y.min() - float(plain.loss_at(each, left=1)[0]) for each in (x, other)]
    assert gains[1] == pytest.approx(gains[0], rel=1e-3)
    np.testing.assert_allclose(swapped.predict(X[:, ::-1]), plain.predict(X), atol=1e-6)


@given(labels=st.permutations(NAMES), seed=st.integers(0, 3))
@settings(max_examples=6)
def test_what_choices_are_called_and_how_they_are_ordered_does_not_matter(labels, seed):
    """A choice has no order: the same values listed in another one give the same model and the same value of a decision."""
    rng = np.random.default_rng(seed)
    points = [
        (float(np.round(u, 6)), int(n), NAMES[k]) for u, n, k in zip(rng.random(9), range(1, 10), [0, 1, 2] * 3, strict=True)
    ]
    y = [(u - 0.4) ** 2 + 0.05 * abs(n - 4) + HEIGHT[name] for u, n, name in points]
    plain, other = (
        decision(points, y, ExpectedLoss(), [(0.0, 1.0), Int(1, 9), Choice(list(names))], budget=14)
        for names in (NAMES, labels)
    )
    probe = [(0.33, 5, name) for name in NAMES]
    np.testing.assert_allclose(other.predict(probe), plain.predict(probe), atol=1e-6)
    chosen = [optimizer.ask() for optimizer in (plain, other)]
    gains = [
        min(y)
        - float(
            decision(points, y, ExpectedLoss(), [(0.0, 1.0), Int(1, 9), Choice(list(NAMES))], budget=14).loss_at(x, left=1)[0]
        )
        for x in chosen
    ]
    assert gains[1] == pytest.approx(gains[0], rel=0.02, abs=1e-6)
