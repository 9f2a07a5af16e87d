import numpy as np
import pytest

from glasses import Choice, ExpectedLoss, Optimizer


def begun(budget=10, units=(0.0, 1.0), n=5, **settings):
    optimizer = Optimizer([(0, 1)], budget=budget, loss=ExpectedLoss(), seed=3, noise=0.0, **settings)
    for x in (0.1, 0.35, 0.6, 0.8, 0.95)[:n]:
        optimizer.tell([x], units[0] + units[1] * float(np.sin(9 * x) + x))
    return optimizer


def test_in_the_users_units():
    plain, moved = begun().forecast(), begun(units=(50.0, 1000.0)).forecast()
    np.testing.assert_allclose(moved.gain, 1000.0 * plain.gain, rtol=1e-6)
    assert moved.best == pytest.approx(50.0 + 1000.0 * plain.best)
    assert len(plain) == 5
    assert plain.clairvoyant <= plain.expected[-1] <= plain.expected[0] <= plain.best
    assert np.all(plain.low <= plain.high)


def test_the_first_step_is_the_loss_of_the_next_point():
    """Exact at k = 1: eta - EI at the point that ask will give."""
    optimizer = begun()
    forecast = optimizer.forecast(steps=1)
    x = optimizer.plan().next
    assert forecast.expected[0] == pytest.approx(float(optimizer.loss_at([x], left=1)[0]), abs=1e-6)


def test_asks_for_nothing_and_is_the_same_twice():
    optimizer = begun()
    first, second = optimizer.forecast(steps=3), begun().forecast(steps=3)
    assert optimizer.pending == []
    np.testing.assert_array_equal(first.expected, second.expected)
    np.testing.assert_allclose(first.expected, begun().forecast().expected[:3], atol=0.05)


def test_in_words():
    assert str(begun().forecast(steps=1)).startswith("1 more evaluation is expected to buy ")
    assert "2 more evaluations are expected to buy " in str(begun().forecast())


@pytest.mark.parametrize(
    ("steps", "words"),
    [(0, "steps must be a whole number of at least 1"), (6, "5 evaluations remain"), (2.5, "steps must be"), (True, "steps")],
)
def test_wrong_horizons_are_refused(steps, words):
    with pytest.raises(ValueError, match=words):
        begun().forecast(steps=steps)


def test_nothing_to_go_by_or_nothing_left():
    with pytest.raises(ValueError, match="no data to forecast from"):
        begun(n=0).forecast()
    with pytest.raises(ValueError, match="Nothing is left to forecast"):
        begun(budget=5).forecast()


def test_no_more_steps_than_a_finite_space_holds():
    optimizer = Optimizer({"a": Choice(list("abcdefgh"))}, budget=20, loss=ExpectedLoss(), seed=1, noise=0.0, n_initial=3)
    for k, name in enumerate("abcde"):
        optimizer.tell({"a": name}, float(k * k % 7))
    assert len(optimizer.forecast()) == 3
    with pytest.raises(ValueError, match="only 3 configurations of this space are new"):
        optimizer.forecast(steps=4)
