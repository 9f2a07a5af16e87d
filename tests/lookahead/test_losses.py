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
from glasses.lookahead.candidates import query_candidate
from glasses.testing import LookAheadContract, LossContract
from glasses.testing.losses import POINTS, QUERIES, acquisition, closed_form

BY_EP = Glasses(expectation=EP())
LOOKING = [
    Glasses(),
    Glasses(LocalPenalization()),
    BY_EP,
    TwoStage(),
    TwoStage(nodes=3, oracle=LocalPenalization()),
    Marginalized(samples=4),
]
MYOPIC = [ExpectedLoss(), ProbabilityOfImprovement(), LowerConfidenceBound()]


for each in (  # with all losses they take more than two seconds
    LossContract.test_padding_of_the_pending_points_is_invisible,
    LossContract.test_gradient_against_finite_differences,
    LookAheadContract.test_padding_of_the_horizon_is_invisible,
):
    pytest.mark.slow(each)


class TestLooking(LookAheadContract):
    @pytest.fixture(params=[loss for loss in LOOKING if loss != BY_EP], ids=str)
    def loss(self, request):
        return request.param


class TestByEP(LookAheadContract):
    """EP's derivative is the true one, not that of its own error."""

    rtol, atol = 0.1, 2e-2

    @pytest.fixture
    def loss(self):
        return BY_EP


class TestMyopic(LossContract):
    @pytest.fixture(params=MYOPIC, ids=str)
    def loss(self, request):
        return request.param


@pytest.mark.parametrize("x", QUERIES)
def test_one_evaluation_is_the_closed_form(x):
    """[eq:el]: Lambda_1 = eta - EI, to 1e-8; the contract has the same for losses that look ahead."""
    value, candidates, _, model = acquisition(ExpectedLoss(), x, 1)
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
    kernel, candidates, _ = make_candidates(POINTS, pending=[[0.4, 0.6]])
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
