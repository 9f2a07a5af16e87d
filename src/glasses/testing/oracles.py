"""What every oracle must do (``lookahead.oracles``)."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from glasses import tiny
from glasses.lookahead.candidates import CandidateSet, Costs
from glasses.lookahead.oracles import Oracle, before_outcome
from glasses.testing.contract import Contract, check_immutable
from glasses.testing.examples import make_candidates, query_of

POINTS = np.random.default_rng(3).random((80, 2))


def _compiled(oracle: Oracle, size: int) -> Any:
    """The steps that the oracle predicts, as a compiled function of the candidates, the belief and what is left."""
    return jax.jit(lambda candidates, belief, left: oracle.predict(candidates, belief, left, size))


compiled: Any = cache(_compiled)


def predict(
    oracle: Oracle, x: Any, left: int, size: int = 16, points: Any = POINTS, **settings: Any
) -> tuple[np.ndarray, CandidateSet, tiny.Model]:
    """The steps after x with so many evaluations left, and what they were computed from."""
    kernel, candidates, model = make_candidates(points, **settings)
    query = query_of(kernel, candidates, jnp.asarray(x))
    belief = before_outcome(candidates, query)
    return np.asarray(compiled(oracle, size)(candidates, belief, jnp.asarray(left)))[: left - 1], candidates, model


class OracleContract(Contract):
    """Give the oracle by a fixture ``oracle``."""

    def test_it_is_immutable(self, oracle: Oracle) -> None:
        check_immutable("oracle", oracle)

    def test_steps_are_distinct_candidates_other_than_the_query_point(self, oracle: Oracle) -> None:
        steps, _, _ = predict(oracle, POINTS[5], 16)
        assert len(set(steps.tolist())) == 15
        assert 5 not in steps
        assert np.all((steps >= 0) & (steps < 80))

    def test_same_question_same_answer(self, oracle: Oracle) -> None:
        assert np.array_equal(predict(oracle, [0.3, 0.3], 9)[0], predict(oracle, [0.3, 0.3], 9)[0])

    def test_padding_of_the_horizon_is_invisible(self, oracle: Oracle) -> None:
        short, long = (predict(oracle, [0.3, 0.3], 7, size=size)[0] for size in (8, 64))
        assert np.array_equal(short, long)

    def test_nothing_follows_the_last_evaluation(self, oracle: Oracle) -> None:
        assert predict(oracle, [0.3, 0.3], 1)[0].size == 0
        kernel, candidates, _ = make_candidates(POINTS)
        belief = before_outcome(candidates, query_of(kernel, candidates, jnp.asarray([0.3, 0.3])))
        steps = compiled(oracle, 16)(candidates, belief, jnp.asarray(4))
        assert np.asarray(steps)[3:].tolist() == [-1] * 12

    def test_pending_points_are_never_predicted_again(self, oracle: Oracle) -> None:
        favourite = POINTS[predict(oracle, [0.99, 0.01], 2)[0][0]]
        steps, _, _ = predict(oracle, [0.99, 0.01], 9, pending=[favourite + 1e-9])
        assert np.all(steps < 80)
        with_pending = POINTS[steps[0]]
        assert np.linalg.norm(with_pending - favourite) > 0.02

    def test_padding_of_the_pending_points_is_invisible(self, oracle: Oracle) -> None:
        plain, padded = (predict(oracle, [0.2, 0.2], 9, pending=[[0.4, 0.6]], room=room)[0] for room in (0, 3))
        assert np.array_equal(plain, padded)

    def test_steps_are_paid_for(self, oracle: Oracle) -> None:
        """With costs: never more than the budget holds after x*, and -1 only once nothing fits."""
        kernel, candidates, _ = make_candidates(POINTS)
        cost = 0.5 + 4.0 * POINTS[:, 0]
        dear = candidates._replace(costs=Costs(jnp.asarray(cost), jnp.asarray(6.0)))
        query = query_of(kernel, candidates, jnp.asarray([0.3, 0.3]))._replace(cost=jnp.asarray(1.0))
        steps = np.asarray(compiled(oracle, 8)(dear, before_outcome(dear, query), jnp.asarray(8)))
        went = steps[steps >= 0]
        assert cost[went].sum() <= 5.0
        rest = 5.0 - cost[went].sum()
        left_over = np.setdiff1d(np.arange(80), went)
        assert len(went) == 7 or np.all(cost[left_over] > rest)

    @pytest.mark.parametrize("count", [6, 12])
    def test_a_small_space_is_visited_once(self, oracle: Oracle, count: int) -> None:
        """Candidates of a finite space are copied to fill the candidate set; a configuration is still visited once, and not if
        it is done. Asked for more steps than there are configurations, an oracle predicts those there are.
        """
        origin = make_candidates(POINTS[:1])[1].origin
        assert origin is not None
        some = np.concatenate([POINTS[:count], origin.post.X[:2]])  # two of them are evaluated
        kernel, candidates, _ = make_candidates(np.concatenate([some] * 3))
        candidates = candidates._replace(copies=candidates.apart < 1e-6)
        belief = before_outcome(candidates, query_of(kernel, candidates, jnp.asarray(POINTS[0])))
        program = jax.jit(lambda s: oracle.predict(candidates, belief, jnp.asarray(9), 16, s))
        for draw in range(3):
            steps = np.asarray(program(draw))
            went = steps[steps >= 0] % (count + 2)
            assert len(set(went.tolist())) == len(went) == min(8, count - 1)
            assert not {0, count, count + 1} & set(went.tolist())
