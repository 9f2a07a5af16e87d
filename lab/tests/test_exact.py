"""The exact values against naive recursion, simulation and closed forms; then the planners of the library against them."""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from glasses import Glasses, TwoStage, tiny
from glasses.gaussian import QMC, expected_min
from glasses.lookahead.candidates import build_candidates, query_candidate
from glasses.surrogate import SquaredExponential
from glasses.surrogate.posterior import Hyper, posterior
from glasses_lab.exact import (
    Even,
    Hermite,
    State,
    largest_ei,
    optimal_values,
    plan_value,
    policy_values,
    two_step_values,
)

LENGTHSCALE, DATA_SETS = 0.12, 12
GRID = np.linspace(0, 1, 13)[:, None]
FINE = Even(48)  # about 2e-3 of the value at worst
OPEN, TWO = Glasses(expectation=QMC(1024)), TwoStage(nodes=64, expectation=QMC(256))


def data(seed, n=3):
    """Observations of a draw from the Gaussian process on [0, 1] whose kernel everybody knows."""
    rng = np.random.default_rng([seed, n])
    X = rng.random((n, 1))
    prior = tiny.kernel(tiny.Model(X, X[:, 0], LENGTHSCALE, 1.0, 0.0, 0.0), X, X) + 1e-10 * np.eye(n)
    return tiny.Model(X, np.linalg.cholesky(prior) @ rng.standard_normal(n), LENGTHSCALE, 1.0, 0.0, 0.0)


def law(seed, points=GRID):
    """Mean, covariance and best value: what the exact values are computed from."""
    model = data(seed)
    mu, cov = tiny.posterior(model, points)
    return mu, cov, float(model.y.min())


def ei(model, A):
    mu, cov = tiny.posterior(model, A)
    return tiny.expected_improvement(mu, np.sqrt(np.maximum(np.diag(cov), 1e-18)), model.y.min())


def observe(model, x, y):
    return model._replace(X=np.vstack([model.X, x]), y=np.append(model.y, y))


def naive(model, n, points, rule):
    """[eq:dp] word for word: every outcome conditions the Gaussian process from scratch."""
    now = ei(model, points)
    if n == 1:
        return now
    mu, cov = tiny.posterior(model, points)
    values = now.copy()
    for i, x in enumerate(points):
        for t, w in zip(*rule.points(), strict=True):
            values[i] += w * naive(observe(model, x, mu[i] + np.sqrt(cov[i, i]) * t), n - 1, points, rule).max()
    return values


def simulate(model, points, choose, paths=2500, n=3):
    """Mean gain and standard error of acting by ``choose`` on functions drawn from the posterior."""
    mu, cov = tiny.posterior(model, points)
    draws = (
        mu + np.random.default_rng(1).standard_normal((paths, len(mu))) @ np.linalg.cholesky(cov + 1e-10 * np.eye(len(mu))).T
    )
    gains = []
    for f in draws:
        seen = model
        for left in range(n, 0, -1):
            i = choose(seen, left)
            seen = observe(seen, points[i], f[i])
        gains.append(model.y.min() - seen.y.min())
    return np.mean(gains), np.std(gains) / np.sqrt(paths)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_evaluation_left_is_expected_improvement(seed):
    """[eq:dp] and [eq:policy] with n = 1."""
    exact = ei(data(seed), GRID)
    found = optimal_values(*law(seed), 1)
    np.testing.assert_allclose(found.values, exact, atol=1e-10)
    np.testing.assert_allclose(policy_values(*law(seed), 1).values, exact, atol=1e-10)
    assert found.best == np.argmax(exact)
    assert found.value == pytest.approx(exact.max())


@pytest.mark.parametrize("rule", [Even(40), Hermite(40)], ids=str)
def test_two_steps_are_dynamic_programming_with_two_left(rule):
    """[eq:twostep] at the points themselves is [eq:dp]; and so is the policy of rollout, whose last step is the best one."""
    for seed in range(3):
        mu, cov, eta = law(seed)
        two = two_step_values((mu, np.diag(cov), cov), mu, np.diag(cov), eta, rule)
        np.testing.assert_allclose(two, optimal_values(mu, cov, eta, 2, rule).values, rtol=1e-10)
        np.testing.assert_allclose(two, policy_values(mu, cov, eta, 2, rule=rule).values, rtol=1e-10)


def dense(model, x, points):
    """[eq:twostep] at x by Simpson's rule with 4001 nodes."""
    m, S = tiny.posterior(model, np.vstack([x, points]))
    s, eta = np.sqrt(S[0, 0]), model.y.min()
    t = np.linspace(-8, 8, 4001)
    mean = m[1:] + S[0, 1:] / s * t[:, None]
    sd = np.sqrt(np.maximum(np.diag(S)[1:] - S[0, 1:] ** 2 / S[0, 0], 1e-18))
    later = tiny.expected_improvement(mean, sd, np.minimum(eta, m[0] + s * t)[:, None]).max(axis=1)
    return ei(model, x[None])[0] + integrate.simpson(later * stats.norm.pdf(t), x=t)


def test_quadrature_converges():
    """[eq:twostep] away from the points: the error falls with the nodes, and faster for evenly spaced ones."""
    queries = np.array([[0.07], [0.33], [0.61], [0.96]])
    errors = {rule: [] for rule in (Even(16), Even(32), Even(64), Even(128), Hermite(16), Hermite(64), Hermite(256))}
    for seed in range(4):
        model, (mu, cov, eta) = data(seed), law(seed)
        m, S = tiny.posterior(model, np.vstack([queries, GRID]))
        query = (m[:4], np.diag(S)[:4], S[:4, 4:])
        exact = np.array([dense(model, x, GRID) for x in queries])
        for rule, found in errors.items():
            found.append(np.abs(two_step_values(query, mu, np.diag(cov), eta, rule) / exact - 1).max())
    worst = {rule: max(found) for rule, found in errors.items()}
    assert worst[Even(32)] < worst[Even(16)] / 2
    assert worst[Even(64)] < worst[Even(32)] / 2
    assert worst[Even(64)] < 2e-3
    assert worst[Even(128)] < 1e-3
    assert worst[Hermite(256)] < worst[Hermite(64)] / 2 < worst[Hermite(16)] / 4
    assert worst[Even(64)] < worst[Hermite(64)]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("rule", [Even(6), Hermite(5)], ids=str)
def test_dynamic_programming_is_the_naive_recursion(n, rule):
    """[eq:dp]: rank-1 updates over all outcomes at once, against solving for every outcome."""
    points = GRID[::4]
    np.testing.assert_allclose(optimal_values(*law(2, points), n, rule).values, naive(data(2), n, points, rule), rtol=1e-5)


def test_the_optimum_and_rollout_are_what_acting_that_way_brings():
    """[eq:dp], [eq:policy]: simulated on draws from the posterior, within four standard errors."""
    points, model = GRID[1::3], data(5)
    start = (*law(5, points), 3)
    optimum, rollout = optimal_values(*start, FINE), policy_values(*start, rule=FINE)
    first = optimum.best

    def best(seen, left):
        if left == 3:
            return first
        return optimal_values(*tiny.posterior(seen, points), seen.y.min(), left, Even(24)).best

    mean, error = simulate(model, points, best)
    assert abs(mean - optimum.value) < 4 * error
    assert error < 0.04 * optimum.value
    mean, error = simulate(model, points, lambda seen, left: 0 if left == 3 else np.argmax(ei(seen, points)))
    assert abs(mean - rollout.values[0]) < 4 * error


def test_a_plan_is_the_expected_minimum():
    """[eq:plan]: closed form for two points, QMC for three, in any order; and [eq:policy] when the policy is a plan."""
    mu, cov, eta = law(1)
    pair, triple = [2, 9], [9, 2, 5]
    exact = expected_min(mu[pair], cov[np.ix_(pair, pair)], eta).gain
    assert plan_value(mu, cov, eta, pair, Even(128)) == pytest.approx(exact, rel=5e-4)
    assert plan_value(mu, cov, eta, pair[::-1], Even(128)) == pytest.approx(exact, rel=5e-4)
    exact = expected_min(mu[triple], cov[np.ix_(triple, triple)], eta, QMC(1024)).gain
    assert plan_value(mu, cov, eta, triple, Even(128)) == pytest.approx(exact, rel=3e-3)
    always = policy_values(mu, cov, eta, 2, lambda state: np.full(len(state.eta), 9), FINE)
    assert always.values[2] == pytest.approx(plan_value(mu, cov, eta, pair, FINE), rel=1e-12)


def test_every_further_evaluation_is_worth_something():
    for seed in range(4):
        one, two, three = (optimal_values(*law(seed), n, Even(24)).values for n in (1, 2, 3))
        assert np.all(two > one)
        assert np.all(three > two)


def test_shift_and_scale():
    mu, cov, eta = law(3)
    plain, moved = (optimal_values(*args, 3, Even(16)).values for args in ((mu, cov, eta), (9 + 5 * mu, 25 * cov, 9 + 5 * eta)))
    np.testing.assert_allclose(moved, 5 * plain, rtol=1e-9)


def test_a_known_place_teaches_nothing():
    """An evaluation where the value is known leaves the optimum of the others."""
    model = data(4)
    points = np.vstack([GRID, model.X[:1]])
    mu, cov, eta = law(4, points)
    found = [optimal_values(mu, cov, eta, n, Even(24)) for n in (1, 2, 3)]
    assert found[0].values[-1] == pytest.approx(0.0, abs=1e-12)
    for fewer, more in pairwise(found):
        assert more.values[-1] == pytest.approx(fewer.value, rel=1e-12)
    assert largest_ei(State(mu[None], cov, np.array([eta])))[0] == found[0].best
    two = two_step_values((mu, np.diag(cov), cov), mu, np.diag(cov), eta, Even(24))
    assert two[-1] == pytest.approx(found[0].value, rel=1e-12)


# The planners, on several data sets: the engine in JAX on one side, the exact values on the other.


class Case(NamedTuple):
    """Values at every first place, three evaluations left."""

    optimal: np.ndarray
    hermite: np.ndarray  # the optimum with the nodes of TWO
    rollout: np.ndarray
    plan: np.ndarray  # of the open loop's steps, by quadrature
    open_loop: np.ndarray
    two_stage: np.ndarray


@jax.jit
def candidates_of(X, y):
    kernel = SquaredExponential()
    theta = {"lengthscale": jnp.full(1, LENGTHSCALE), "variance": jnp.asarray(1.0)}
    hyper = Hyper(theta, jnp.zeros(()), jnp.zeros(()))
    post = posterior(kernel, hyper, X, y, jnp.asarray(X.shape[0]))
    return build_candidates(kernel, post, jnp.asarray(GRID), jnp.zeros((0, 1)), jnp.asarray(0))


@cache
def planner(loss):
    def one(candidates, i, left):
        query = query_candidate(candidates, i)
        futures = loss.predict_steps(candidates, query, left, 3)
        return loss.acquisition_value(candidates, query, futures, left), futures

    return jax.jit(lambda candidates, left: jax.lax.map(lambda i: one(candidates, i, left), jnp.arange(len(GRID))))


def gains(loss, candidates, left):
    acquisition, futures = planner(loss)(candidates, jnp.asarray(left))
    return np.exp(np.asarray(acquisition)), np.asarray(futures)


@pytest.fixture(scope="module")
def cases():
    found = []
    with jax.enable_x64(True):
        for seed in range(DATA_SETS):
            start, model = law(seed), data(seed)
            candidates = candidates_of(jnp.asarray(model.X), jnp.asarray(model.y))
            np.testing.assert_allclose(candidates.mu, start[0], atol=1e-6)
            open_loop, steps = gains(OPEN, candidates, 3)
            found.append(
                Case(
                    optimal_values(*start, 3, FINE).values,
                    optimal_values(*start, 3, Hermite(TWO.nodes)).values,
                    policy_values(*start, 3, rule=FINE).values,
                    np.array([plan_value(*start, [i, *steps[i]], FINE) for i in range(len(GRID))]),
                    open_loop,
                    gains(TWO, candidates, 3)[0],
                )
            )
    return Case(*(np.array(values) for values in zip(*found, strict=True)))  # (DATA_SETS, points) each


def test_no_planner_promises_more_than_the_optimum(cases):
    """For the same first place. Plan and rollout share the optimum's nodes, where the inequality holds term by term.

    The two-stage loss shares the outer nodes with ``hermite``; what is left is QMC in the loss and the inner quadrature of
    the exact values, a few thousandths each.
    """
    assert np.all(cases.plan <= cases.optimal * (1 + 1e-12))
    assert np.all(cases.rollout <= cases.optimal * (1 + 1e-12))
    assert np.all(cases.open_loop <= cases.optimal * 1.005)
    assert np.all(cases.two_stage <= cases.hermite * 1.005)
    for below in (cases.plan, cases.rollout, cases.two_stage):
        assert np.any(below < 0.97 * cases.optimal)  # the inequality is not an equality


def test_the_open_loop_loss_is_the_value_of_its_plan(cases):
    """[eq:open] against [eq:plan], for every first place of every data set."""
    np.testing.assert_allclose(cases.open_loop, cases.plan, rtol=1e-2)


def test_seeing_more_is_worth_more_on_average(cases):
    """Open loop < two-stage < optimum: on the average over data sets by many standard errors, at the best place always.

    Not at every place: the believer's pair after an outcome need not be as good as the plan, which sees x* as uncertain.
    """

    def apart(more, less):
        shares = ((more - less) / cases.optimal).mean(axis=1)
        return shares.mean() / (shares.std(ddof=1) / np.sqrt(DATA_SETS))

    assert apart(cases.two_stage, cases.open_loop) > 4
    assert apart(cases.optimal, cases.two_stage) > 4
    assert np.all(cases.two_stage.max(axis=1) > cases.open_loop.max(axis=1))
    assert 0 < np.mean(cases.two_stage < cases.open_loop) < 0.15


def test_two_stage_with_two_left_is_the_exact_two_step_value():
    """[eq:two] with n = 2 is [eq:twostep] with the same nodes: the believer's one step is the best one."""
    for seed in range(3):
        model, (mu, cov, eta) = data(seed), law(seed)
        candidates = candidates_of(jnp.asarray(model.X), jnp.asarray(model.y))
        exact = two_step_values((mu, np.diag(cov), cov), mu, np.diag(cov), eta, Even(TWO.nodes))
        np.testing.assert_allclose(gains(TWO, candidates, 2)[0], exact, rtol=1e-4)


MU, COV = np.zeros(4), np.eye(4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: optimal_values(MU, COV, 0.0, 4), "needs 1, 2 or 3 evaluations left, got 4: TwoStage and Glasses"),
        (lambda: policy_values(MU, COV, 0.0, 0), "needs 1, 2 or 3 evaluations left, got 0"),
        (lambda: optimal_values(MU, COV, 0.0, 2.0), "needs 1, 2 or 3 evaluations left, got 2.0"),
        (lambda: plan_value(MU, COV, 0.0, [0, 1, 2, 3]), "needs 1, 2 or 3 evaluations left, got 4"),
        (lambda: plan_value(MU, COV, 0.0, [0, 4]), "steps must be places between 0 and 3, got 4"),
        (lambda: optimal_values(MU, COV[:3], 0.0, 2), r"mu must have shape \(U,\) and cov \(U, U\).*\(4,\) and \(3, 4\)"),
        (lambda: optimal_values(MU[None], COV, 0.0, 2), r"got \(1, 4\) and \(4, 4\)"),
        (lambda: optimal_values(MU, np.nan * COV, 0.0, 2), "mu, cov and eta must be finite"),
        (
            lambda: two_step_values((MU, MU, COV[:2]), MU, MU, 0.0),
            r"two_step_values needs query .* got \(4,\), \(4,\), \(2, 4\)",
        ),
        (lambda: Even(1), "nodes must be a whole number between 2 and 256, got 1: 64 is the default"),
        (lambda: Hermite(6.5), "nodes must be a whole number between 2 and 256, got 6.5"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
