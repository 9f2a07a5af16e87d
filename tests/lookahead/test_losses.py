from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_candidates, query_of
from scipy import integrate, stats

from glasses import ExpectedLoss, Glasses, TwoStage, tiny
from glasses.gaussian import EP, QMC, expected_min
from glasses.lookahead import (
    KrigingBeliever,
    LocalPenalization,
    LowerConfidenceBound,
    Marginalized,
    ProbabilityOfImprovement,
    ThompsonPaths,
)
from glasses.lookahead.candidates import query_candidate, query_point

POINTS = np.random.default_rng(3).random((60, 2))
LOOKING = [
    Glasses(),
    Glasses(LocalPenalization()),
    Glasses(expectation=EP()),
    TwoStage(),
    TwoStage(nodes=3, oracle=LocalPenalization()),
    Marginalized(samples=4),
]
MYOPIC = [ExpectedLoss(), ProbabilityOfImprovement(), LowerConfidenceBound()]


@cache
def compiled(loss, size):
    return jax.jit(
        lambda candidates, query, left: loss.acquisition_value(
            candidates, query, loss.predict_steps(candidates, query, left, size), left
        )
    )


def candidates_with(pending, room=2):
    """Room for two pending points, as decisions have room for some: one program for all."""
    return make_candidates(POINTS, pending=pending, room=room - len(pending or []))


def acquisition(loss, x, left, size=8, pending=None, room=2, **settings):
    kernel, candidates, model = make_candidates(POINTS, pending=pending, room=room - len(pending or []), **settings)
    query = query_of(kernel, candidates, jnp.asarray(x))
    return float(compiled(loss, size)(candidates, query, jnp.asarray(left))), candidates, query, model


def closed_form(model, x, eta):
    mu, cov = tiny.posterior(model, np.asarray(x)[None])
    return float(tiny.expected_improvement(mu, np.sqrt(np.diag(cov)), eta)[0])


@pytest.mark.parametrize("loss", [*LOOKING, ExpectedLoss()], ids=str)
@pytest.mark.parametrize("x", [(0.2, 0.3), (0.9, 0.9), (0.5, 0.05)])
def test_one_evaluation_left_is_the_closed_form(loss, x):
    """[eq:el]: Lambda_1 = eta - EI, to 1e-8, by every loss."""
    value, candidates, _, model = acquisition(loss, x, 1)
    assert np.exp(value) == pytest.approx(closed_form(model, x, float(candidates.eta)), abs=1e-8)


def test_probability_of_improvement_and_confidence_bound():
    """[eq:mpi], [eq:lcb]"""
    value, candidates, query, _ = acquisition(ProbabilityOfImprovement(), (0.2, 0.3), 1)
    sd = float(jnp.sqrt(query.var))
    assert np.exp(value) == pytest.approx(stats.norm.cdf((float(candidates.eta) - float(query.mu)) / sd))
    value, _, query, _ = acquisition(LowerConfidenceBound(kappa=2.0), (0.2, 0.3), 1)
    assert value == pytest.approx(2.0 * sd - float(query.mu))


@pytest.mark.parametrize("x", [(0.2, 0.3), (0.8, 0.6)])
def test_open_loop_is_the_tiny_version(x):
    """[eq:open] with the paper's oracle and EP: two independent implementations of Lambda_n."""
    value, candidates, _, model = acquisition(Glasses(LocalPenalization(softplus=True), EP(fallback=None)), x, 4)
    exact = tiny.look_ahead_loss(model, np.asarray(x), 4, POINTS, float(candidates.eta))
    assert float(candidates.eta) - np.exp(value) == pytest.approx(exact, abs=2e-5)


@pytest.mark.parametrize("x", [(0.2, 0.3), (0.8, 0.6), (0.45, 0.9)])
def test_two_stage_with_two_left_against_quadrature(x):
    """[eq:two]: gain = EI(x) + E[max over the places of EI given y*], the outer integral by brute force."""
    _, candidates, model = make_candidates(POINTS)
    eta = float(candidates.eta)
    m, S = tiny.posterior(model, np.vstack([x, POINTS]))
    s = np.sqrt(S[0, 0])

    def later(y):
        mean = m[1:] + S[0, 1:] / S[0, 0] * (y - m[0])
        sd = np.sqrt(np.maximum(np.diag(S)[1:] - S[0, 1:] ** 2 / S[0, 0], 0) + 1e-10)
        return tiny.expected_improvement(mean, sd, min(eta, y)).max() * stats.norm.pdf(y, m[0], s)

    grid = np.linspace(m[0] - 8 * s, m[0] + 8 * s, 6001)
    gain = closed_form(model, x, eta) + integrate.simpson([later(y) for y in grid], x=grid)
    fine = np.exp(acquisition(TwoStage(nodes=63), x, 2)[0])
    usual = np.exp(acquisition(TwoStage(), x, 2)[0])
    assert fine == pytest.approx(gain, rel=3e-3)
    assert usual == pytest.approx(gain, rel=3e-2)


def test_two_stage_counts_nothing_twice_under_noise():
    """[eq:two] with noise so large that an outcome teaches nothing: the last of two evaluations alone counts, at its best."""
    value, candidates, _, model = acquisition(TwoStage(), (0.2, 0.3), 2, noise=1e8)
    best = max(closed_form(model, point, float(candidates.eta)) for point in POINTS)
    assert np.exp(value) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("loss", LOOKING, ids=str)
def test_the_loss_falls_with_every_further_evaluation(loss):
    values = [acquisition(loss, (0.2, 0.3), left)[0] for left in (1, 2, 3, 5, 8)]
    assert np.all(np.diff(values) > -0.01)
    assert values[-1] > values[0] + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOOKING, ids=str)
def test_padding_of_the_horizon_is_invisible(loss):
    assert acquisition(loss, (0.2, 0.3), 5, size=8)[0] == pytest.approx(acquisition(loss, (0.2, 0.3), 5, size=16)[0], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [*LOOKING, *MYOPIC], ids=str)
def test_padding_of_the_pending_points_is_invisible(loss):
    waiting = [[0.4, 0.6], [0.1, 0.9]]
    plain = acquisition(loss, (0.2, 0.3), 4, pending=waiting)[0]
    assert plain == pytest.approx(acquisition(loss, (0.2, 0.3), 4, pending=waiting, room=4)[0], abs=1e-9)


@cache
def sloped(loss, kernel):
    """The steps predicted for x, its value given them and the derivative of that."""

    def predict(x, candidates, left):
        return loss.predict_steps(candidates, query_point(kernel, candidates, x), left, 8)

    def value(x, candidates, steps, left):
        return loss.acquisition_value(candidates, query_point(kernel, candidates, x), steps, left)

    return jax.jit(predict), jax.jit(value), jax.jit(jax.grad(value))


@pytest.mark.slow
@pytest.mark.parametrize("loss", [*LOOKING, *MYOPIC], ids=str)
@pytest.mark.parametrize("pending", [None, [[0.4, 0.6]]])
def test_gradient_against_finite_differences(loss, pending):
    """The derivative by x* with the predicted steps held fixed."""
    kernel, candidates, _ = candidates_with(pending)
    x, left = jnp.asarray([0.21, 0.33]), jnp.asarray(4)
    predict, value, slope = sloped(loss, kernel)
    steps = predict(x, candidates, left)
    gradient = slope(x, candidates, steps, left)
    finite = [
        float(value(x + 1e-6 * e, candidates, steps, left) - value(x - 1e-6 * e, candidates, steps, left)) / 2e-6
        for e in jnp.eye(2)
    ]
    loose = isinstance(getattr(loss, "expectation", None), EP)  # EP's derivative is the true one, not that of its own error
    np.testing.assert_allclose(gradient, finite, rtol=0.1 if loose else 1e-4, atol=2e-2 if loose else 1e-5)


@pytest.mark.slow
def test_pending_points_enter_the_expectation():
    """With one evaluation left and one pending the expected loss is that of the pair."""
    x, waiting = (0.2, 0.3), (0.4, 0.6)
    value, candidates, _, model = acquisition(ExpectedLoss(), x, 1, pending=[waiting])
    m, S = tiny.posterior(model, np.array([x, waiting]))
    pair = expected_min(m, S, float(candidates.eta)).gain
    assert np.exp(value) == pytest.approx(pair, rel=1e-3)
    for loss, error in (
        (Glasses(), 1e-2),
        (TwoStage(nodes=31, expectation=QMC(512)), 6e-2),
    ):  # a gain 6 sd away: nodes reach 5.5
        assert np.exp(acquisition(loss, x, 1, pending=[waiting])[0]) == pytest.approx(pair, rel=error)


@pytest.mark.parametrize("loss", MYOPIC[1:], ids=str)
def test_pending_points_lower_the_merit_next_to_them(loss):
    lonely = acquisition(loss, (0.4, 0.6), 1)[0]
    assert acquisition(loss, (0.4, 0.6), 1, pending=[(0.41, 0.6)])[0] < lonely


def test_a_place_and_its_coordinates_are_the_same_star():
    kernel, candidates, _ = candidates_with([[0.4, 0.6]])
    gathered, computed = query_candidate(candidates, jnp.asarray(7)), query_of(kernel, candidates, jnp.asarray(POINTS[7]))
    assert gathered.cost is gathered.samples is computed.cost is computed.samples is None
    assert gathered.log_feasibility is computed.log_feasibility is None
    for name in ("mu", "var", "cov", "later_var", "later_cov", "loadings", "same", "apart", "excluded"):
        a, b = np.array(getattr(gathered, name), float), np.array(getattr(computed, name), float)
        if a.size > 10:
            a[7] = b[7] = 0.0  # the nugget of a place with itself
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_el_k_looks_k_steps_ahead():
    from glasses.search.decision import horizon

    assert horizon(Glasses(steps=3), 10) == 3
    assert horizon(Glasses(steps=3), 2) == 2
    assert horizon(Glasses(), 10) == 10
    assert horizon(Glasses(), 1000) == 128
    assert horizon(ExpectedLoss(), 10) == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Glasses(steps=0), "steps must be a whole number"),
        (lambda: TwoStage(steps=2.5), "steps must be a whole number"),
        (lambda: TwoStage(nodes=0), "nodes must be a whole number between 1 and 64"),
        (lambda: LowerConfidenceBound(kappa=-1.0), "kappa must be a finite number"),
        (lambda: TwoStage(oracle="believer"), r"oracle must be an object such as KrigingBeliever\(\), got 'believer'"),
        (lambda: Glasses(KrigingBeliever), r"oracle must be an object such as KrigingBeliever\(\)"),
        (lambda: Glasses(expectation=16), "expectation must be an object such as QMC"),
    ],
)
def test_bad_losses_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.slow
def test_the_marginal_loss_is_the_mean_over_draws():
    """[eq:marginal]: the gain is the average of the open-loop gains of the drawn steps, the same ones for every query."""
    loss = Marginalized(ThompsonPaths(), samples=3)
    kernel, candidates, _ = make_candidates(POINTS)
    query = query_of(kernel, candidates, jnp.asarray([0.2, 0.3]))
    left = jnp.asarray(5)
    steps = np.asarray(jax.jit(lambda: loss.predict_steps(candidates, query, left, 8))())
    assert len({tuple(row) for row in steps[:, :4]}) > 1
    alone = Glasses(expectation=loss.expectation)
    gains = [np.exp(float(alone.acquisition_value(candidates, query, jnp.asarray(row), left))) for row in steps]
    assert np.exp(float(loss.acquisition_value(candidates, query, jnp.asarray(steps), left))) == pytest.approx(
        np.mean(gains), rel=1e-9
    )
