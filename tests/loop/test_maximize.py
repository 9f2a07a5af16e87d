"""``maximize``: the run of ``minimize`` on the negated function, said in the user's sense."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from glasses import ExpectedLoss, Target, maximize, minimize

BOUNDS = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
SETTINGS = {"budget": 10, "seed": 3, "loss": ExpectedLoss()}


def hill(a, b):
    return 5.0 - (a - 0.3) ** 2 - (b - 0.7) ** 2


def test_it_is_the_run_of_the_negated_function():
    up, down = maximize(hill, BOUNDS, **SETTINGS), minimize(lambda a, b: -hill(a, b), BOUNDS, **SETTINGS)
    assert up.x_iters == down.x_iters
    np.testing.assert_array_equal(up.func_vals, -down.func_vals)
    assert up.x == down.x
    assert up.fun == max(up.func_vals) == hill(**up.x)
    assert up.recommended.mean == -down.recommended.mean
    assert up.recommended.low < up.recommended.mean < up.recommended.high
    assert up.recommended.low == -down.recommended.high
    assert f"best observed: {up.fun:.6g}" in repr(up)


def test_what_is_given_and_said_is_in_the_users_sense(capsys):
    seen = []
    result = maximize(
        hill, BOUNDS, **SETTINGS, x0=[{"a": 0.5, "b": 0.5}], y0=[4.92], callback=lambda r: seen.append(r.fun), verbose=True
    )
    assert result.func_vals[0] == 4.92
    assert seen == np.maximum.accumulate(result.func_vals)[1:].tolist()
    rows = capsys.readouterr().out.splitlines()[1:-1]
    assert [float(row.split()[2].rstrip("*")) for row in rows] == pytest.approx(result.func_vals[1:].tolist(), rel=1e-5)
    assert [float(row.split()[3]) for row in rows] == pytest.approx(
        np.maximum.accumulate(result.func_vals)[1:].tolist(), rel=1e-5
    )


def test_a_target_is_a_floor():
    result = maximize(hill, BOUNDS, budget=40, seed=3, stop=Target(4.5))
    assert result.status == 5
    assert result.fun >= 4.5 > max(result.func_vals[:-1], default=0)


def test_failures_and_executors():
    def sometimes(a, b):
        return None if a < 0.4 else hill(a, b)

    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match="returned None"):
        result = maximize(sometimes, BOUNDS, **SETTINGS, executor=pool)
    assert result.failures
    assert result.fun == max(result.func_vals)


def test_an_exception_carries_the_values_of_the_user():
    def ends(a, b):
        if ends.left == 0:
            raise KeyboardInterrupt
        ends.left -= 1
        return hill(a, b)

    ends.left = 3
    with pytest.raises(KeyboardInterrupt) as caught:
        maximize(ends, BOUNDS, **SETTINGS)
    assert caught.value.result.func_vals.min() > 0


def test_a_ceiling_that_is_beaten_is_said_in_the_users_sense():
    with pytest.raises(ValueError, match="best_possible"):
        maximize(hill, BOUNDS, **SETTINGS, best_possible="high")
