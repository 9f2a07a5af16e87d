"""``GlassesAcquisition`` against our own engine, BoTorch's LogEI, Monte Carlo, finite differences and ``optimize_acqf``."""

import math
import re

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import InputPerturbation, Normalize
from botorch.models.transforms.outcome import Log, Standardize
from botorch.optim import optimize_acqf
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from linear_operator import to_linear_operator

from glasses import ExpectedLoss, GaussianProcess, Glasses, TwoStage
from glasses.botorch import GlassesAcquisition, start_generator
from glasses.gaussian import QMC
from glasses.lookahead import DeterminantalPoints, LocalPenalization, LowerConfidenceBound, Marginalized, Rollout
from glasses.runtime.padding import horizon_size
from glasses.search.decision import Problem
from glasses.search.look import look_at
from glasses.search.propose import candidates_over
from glasses.search.value import SCREENED, values_of
from glasses.surrogate import Known
from glasses.surrogate.outputs import Affine

pytestmark = pytest.mark.filterwarnings("ignore")  # BoTorch warns of inputs and outputs that are not scaled as it likes them
LENGTHS, SD, MEAN, NOISE = (0.3, 0.5), 1.2, 0.4, 1e-2
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
_rng = np.random.default_rng(3)
X, POINTS, QUERIES, PENDING = _rng.random((7, 2)), _rng.random((24, 2)), _rng.random((5, 2)), _rng.random((2, 2))
Y = np.sin(6 * X[:, 0]) + (X[:, 1] - 0.4) ** 2  # to be minimised
QUICKLY = {"options": {"maxiter": 20}, "retry_on_optimization_warning": False}
LOSSES = {
    "believer": Glasses(),
    "penalised": Glasses(LocalPenalization()),
    "two-stage": TwoStage(nodes=3, steps=None),
}


def model(dtype=torch.double, X=X, Y=-Y, **transforms):
    """A GP with the hyperparameters above, of values to be maximised."""
    inputs, outputs = torch.as_tensor(X, dtype=dtype), torch.as_tensor(Y, dtype=dtype)[:, None]
    settings = {"outcome_transform": None} | transforms
    scale = 1.0 if settings["outcome_transform"] is None else float(outputs.std())
    found = SingleTaskGP(
        inputs,
        outputs,
        train_Yvar=torch.full_like(outputs, (NOISE * scale) ** 2),
        covar_module=ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)),
        mean_module=ConstantMean(),
        **settings,
    )
    found.to(torch.double)  # before the numbers are set, which single precision would round
    found.covar_module.base_kernel.lengthscale = torch.tensor(LENGTHS, dtype=torch.double)
    found.covar_module.outputscale = SD**2
    found.mean_module.initialize(constant=-MEAN)
    return found.to(dtype)


def acquisition(remaining, loss=None, **settings):
    settings = {"candidates": tensor(POINTS)} | settings
    return GlassesAcquisition(
        settings.pop("model", None) or model(), remaining, settings.pop("bounds", BOX), loss=loss, **settings
    )


def tensor(a, dtype=torch.double):
    return torch.as_tensor(a, dtype=dtype)


def at(acquisition, X=QUERIES):
    with torch.no_grad():
        return acquisition(tensor(X)[:, None]).numpy()


def engine(remaining, loss, pending):
    """Values and steps by our own posterior with the same hyperparameters."""
    surrogate = GaussianProcess(fit=Known(LENGTHS, sd=SD, mean=MEAN), noise=NOISE)
    post = surrogate.posterior(X, Y, Affine(0.0, 1.0))
    problem = Problem(post=post, fitted=post, pending=pending, remaining=remaining)
    candidates = candidates_over(surrogate.kernel, problem, POINTS)
    queries = look_at(candidates, QUERIES, None, SCREENED, kernel=surrogate.kernel)
    found = values_of(candidates, queries, len(QUERIES), remaining, loss, size=horizon_size(remaining))
    return candidates, found


@pytest.mark.parametrize("pending", [PENDING[:0], PENDING], ids=["alone", "pending"])
@pytest.mark.parametrize("name", LOSSES)
def test_it_is_the_engine(name, pending):
    """The same hyperparameters in a BoTorch model and in ours: the same values and the same steps, with [eq:later]."""
    loss = LOSSES[name]
    candidates, (values, steps) = engine(4, loss, pending)
    ours = acquisition(4, loss, X_pending=tensor(pending) if len(pending) else None)
    np.testing.assert_allclose(at(ours), values, rtol=1e-6)
    for x, each in zip(QUERIES, steps, strict=True):
        middle = each if each.ndim == 1 else each[len(each) // 2]
        np.testing.assert_allclose(ours.predict_steps(tensor(x)), np.asarray(candidates.points)[middle[middle >= 0]])


def test_one_left_is_log_ei():
    everywhere = np.concatenate([QUERIES, _rng.random((200, 2))])
    best = float(np.max(-Y))
    expected = LogExpectedImprovement(model(), best)(tensor(everywhere)[:, None]).detach().numpy()
    assert expected.min() < -30  # far in the tail too
    np.testing.assert_allclose(at(acquisition(1, best_f=best), everywhere), expected, rtol=1e-6)
    np.testing.assert_allclose(at(acquisition(1, best_f=best, loss=TwoStage()), everywhere), expected, rtol=1e-6)
    upside_down = acquisition(1, best_f=-best, model=flipped(), maximize=False)
    np.testing.assert_allclose(at(upside_down, everywhere), expected, rtol=1e-6)


def flipped():
    """The same model of the values with the other sign."""
    found = model(Y=Y)
    found.mean_module.initialize(constant=MEAN)
    return found


def test_the_gain_is_what_sampling_the_joint_posterior_finds():
    """E[max(best, y*, y_2..y_n, pending)] - best by 200,000 draws, within four standard errors and the error of QMC."""
    ours = acquisition(4, Glasses(expectation=QMC(1024)), X_pending=tensor(PENDING))
    with torch.no_grad():
        best = ours.model.posterior(tensor(X)).mean.max()
        for x, value in zip(QUERIES, at(ours), strict=True):
            joint = torch.cat([tensor(x)[None], ours.predict_steps(tensor(x)), tensor(PENDING)])
            torch.manual_seed(0)
            draws = ours.model.posterior(joint).sample(torch.Size([200_000]))[..., 0]
            gain = (draws.amax(dim=1) - best).clamp_min(0.0)
            error = float(gain.std()) / math.sqrt(len(gain))
            assert abs(math.exp(value) - float(gain.mean())) < 4 * error + 0.003 * math.exp(value)


@pytest.mark.parametrize("pending", [None, tensor(PENDING)], ids=["alone", "pending"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, pending):
    """Against finite differences, where no predicted step changes between the two points. QMC has kinks: the step is small."""
    ours, step = acquisition(4, LOSSES[name], X_pending=pending), 1e-7
    queries = tensor(QUERIES)[:, None].requires_grad_(True)
    slope = torch.autograd.grad((2.0 * ours(queries)).sum(), queries)[0][:, 0].numpy() / 2.0
    checked = 0
    for i, x in enumerate(QUERIES):
        for j in range(2):
            moved = np.array([x + step * np.eye(2)[j], x - step * np.eye(2)[j]])
            plans = [ours.predict_steps(tensor(each)) for each in moved]
            if torch.equal(*plans):
                up, down = at(ours, moved)
                assert slope[i, j] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5)
                checked += 1
    assert checked > 6


def test_remaining_evaluations_raise_the_gain():
    values = [at(acquisition(n, Glasses(expectation=QMC(512)))) for n in (1, 2, 4, 8)]
    assert np.all(np.diff(values, axis=0) > 0)


def test_units():
    """Other units of inputs and outputs, left to the model's own transforms: the logarithm of the gain moves by that factor."""
    low, width, factor = np.array([-5.0, 100.0]), np.array([15.0, 3.0]), 1e4
    spread = float(np.std(Y, ddof=1))
    plain = model(Y=-(Y - Y.mean()) / spread)
    scaled = model(
        X=low + width * X,
        Y=7.0 - factor * Y,
        input_transform=Normalize(2, bounds=tensor(np.stack([low, low + width]))),
        outcome_transform=Standardize(1),
    )
    bounds = tensor(np.stack([low, low + width]))
    there = acquisition(4, model=scaled, bounds=bounds, candidates=tensor(low + width * POINTS))
    expected = at(acquisition(4, model=plain)) + math.log(factor * spread)
    np.testing.assert_allclose(at(there, low + width * QUERIES), expected, rtol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_single_precision(name):
    """float32 throughout, and float32 queries of a float64 model."""
    expected, single = at(acquisition(4, LOSSES[name])), torch.float32
    queries = tensor(QUERIES, single)[:, None].requires_grad_(True)
    mixed = acquisition(4, LOSSES[name])(queries)
    assert mixed.dtype == single
    np.testing.assert_allclose(mixed.detach(), expected, atol=1e-4)
    low = acquisition(4, LOSSES[name], model=model(single))  # the bounds and candidates are float64 still
    value = low(queries)
    slope = torch.autograd.grad(value.sum(), queries)[0]
    assert value.dtype == slope.dtype == single
    assert torch.isfinite(slope).all()
    np.testing.assert_allclose(value.detach(), expected, atol=0.02)


def test_shapes():
    ours = acquisition(3)
    several = tensor(_rng.random((2, 3, 1, 2)))
    assert ours(several).shape == (2, 3)
    assert ours(several[0, 0]).shape == (1,)
    many = tensor(_rng.random((120, 1, 2))).requires_grad_(True)  # more than one call of the program holds
    together = ours(many)
    (slope,) = torch.autograd.grad(together.sum(), many)
    for k in (0, 47, 48, 119):
        one = many[k : k + 1].detach().requires_grad_(True)
        alone = ours(one)
        assert float(alone[0]) == pytest.approx(float(together[k]), rel=1e-9)
        np.testing.assert_allclose(torch.autograd.grad(alone.sum(), one)[0][0], slope[k], rtol=1e-6, atol=1e-9)
    with pytest.raises(AssertionError, match="q=1"):
        ours(tensor(_rng.random((3, 2, 2))))


def test_optimize_acqf():
    """Better than every candidate, and the same again."""
    ours = acquisition(4)
    starts = ours.starts(4)
    assert torch.equal(starts[0, 0], tensor(POINTS[at(ours, POINTS).argmax()]))
    assert torch.cdist(starts[:, 0], starts[:, 0])[~torch.eye(4, dtype=bool)].min() >= 0.05

    def found():
        return optimize_acqf(ours, BOX, q=1, num_restarts=4, raw_samples=16, ic_generator=start_generator, **QUICKLY)

    x, value = found()
    assert float(value) > at(ours, POINTS).max() + 0.01
    assert torch.equal(x, found()[0])


def test_a_batch_shares_the_budget():
    ours = acquisition(4)
    torch.manual_seed(0)
    search = {"num_restarts": 2, "raw_samples": 16, "ic_generator": start_generator, **QUICKLY}
    batch, _ = optimize_acqf(ours, BOX, q=2, sequential=True, **search)
    assert float(torch.dist(*batch)) > 0.01
    assert ours.X_pending is None
    assert ours.remaining == 4
    ours.set_X_pending(batch)
    assert ours.remaining == 2
    ours.set_X_pending(torch.cat([batch, batch]))
    assert ours.remaining == 1


def test_starts_of_other_searches():
    """Features that are fixed; constraints on the inputs and other acquisition functions have BoTorch's own starts."""
    ours, torch_seed = acquisition(4), {"options": {"seed": 0}}
    fixed = start_generator(ours, BOX, 1, 3, fixed_features={1: 0.25})
    assert torch.equal(fixed[..., 0], ours.starts(3)[..., 0])
    assert (fixed[..., 1] == 0.25).all()
    below = [(torch.tensor([0, 1]), -torch.ones(2).double(), -0.7)]
    inside = start_generator(ours, BOX, 1, 3, 16, inequality_constraints=below, **torch_seed)
    assert (inside.sum(dim=-1) <= 0.7).all()
    assert start_generator(LogExpectedImprovement(model(), 0.5), BOX, 1, 3, 16, **torch_seed).shape == (3, 1, 2)


def test_pending_points_given_at_the_start_are_not_taken_from_the_budget():
    ours = acquisition(4, X_pending=tensor(PENDING))
    assert ours.remaining == 4
    ours.set_X_pending(tensor(np.concatenate([PENDING, QUERIES[:1]])))
    assert ours.remaining == 3


def test_candidates_of_its_own():
    """The cover, the neighbourhood of the best point and the maxima of EI: no two alike, the same again, inside the box."""
    bounds = tensor([[-1.0, 0.0], [1.0, 3.0]])
    ours = acquisition(4, bounds=bounds, candidates=64)
    points = ours._candidates()[0].X[: 64 + 16 + 16]
    assert ((points >= bounds[0]) & (points <= bounds[1])).all()
    apart = torch.cdist(points, points) + 9 * torch.eye(len(points))
    assert apart[-16:].min() > 1e-5
    assert torch.equal(points, acquisition(4, bounds=bounds, candidates=64)._candidates()[0].X[: len(points)])
    log_ei = LogExpectedImprovement(ours.model, ours._best[0])
    grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 41), torch.linspace(0, 3, 61), indexing="ij"), -1).double()
    assert log_ei(points[:, None]).max() > log_ei(grid.reshape(-1, 1, 2)).max() - 1e-6


def test_several_outputs():
    """Refused, unless a posterior transform makes one of them."""
    two = ModelListGP(model(), model(Y=X[:, 0]))
    with pytest.raises(
        ValueError, match=re.escape("A look-ahead needs one output, the model has 2: give a posterior_transform")
    ):
        acquisition(3, model=two)
    one = acquisition(3, model=two, posterior_transform=ScalarizedPosteriorTransform(tensor([1.0, 0.0])))
    np.testing.assert_allclose(at(one), at(acquisition(3)), rtol=1e-6)


def test_a_sum_of_outputs_for_every_environment():
    """Inputs that are perturbed: an average of the model is again one Gaussian value for each point."""
    shifts = tensor([[0.0, 0.0], [0.05, -0.02]])
    robust = model(input_transform=InputPerturbation(shifts))
    with pytest.raises(ValueError, match="A look-ahead needs one value for each of"):
        acquisition(3, model=robust, best_f=0.5)
    average = acquisition(3, model=robust, best_f=0.5, posterior_transform=ExpectationPosteriorTransform(2))
    assert np.all(np.isfinite(at(average)))


def test_a_posterior_that_is_not_gaussian():
    with pytest.raises(ValueError, match="A look-ahead needs a Gaussian posterior of one output, got TransformedPosterior"):
        acquisition(3, model=model(Y=np.exp(-Y), outcome_transform=Log()))


class Sampled(Model):
    """Several GPs as one model, in the form of BoTorch's fully Bayesian ones (which need NumPyro)."""

    num_outputs = 1
    _is_ensemble = True

    def __init__(self, models):
        super().__init__()
        self.each = torch.nn.ModuleList(models)
        self.train_inputs = (torch.stack([one.train_inputs[0] for one in models]),)

    def posterior(self, X, observation_noise=False, posterior_transform=None):
        laws = [one.posterior(X, observation_noise=observation_noise).distribution for one in self.each]
        mean, cov = torch.stack([law.mean for law in laws]), torch.stack([law.covariance_matrix for law in laws])
        return GaussianMixturePosterior(MultivariateNormal(mean, to_linear_operator(cov)))


@pytest.mark.parametrize("pending", [None, tensor(PENDING)], ids=["alone", "pending"])
@pytest.mark.parametrize("name", LOSSES)
def test_several_samples_of_the_hyperparameters(name, pending):
    """The gain is the average of those under each sample; so is its gradient."""
    models = [model() for _ in range(3)]
    for one, factor in zip(models, (0.7, 1.0, 1.6), strict=True):
        one.covar_module.base_kernel.lengthscale = factor * torch.tensor(LENGTHS, dtype=torch.double)

    def value_and_slope(model):
        queries = tensor(QUERIES)[:, None].requires_grad_(True)
        value = acquisition(4, LOSSES[name], model=model, X_pending=pending)(queries)
        return value.detach(), torch.autograd.grad(value.sum(), queries)[0]

    values, slopes = (torch.stack(part) for part in zip(*map(value_and_slope, models), strict=True))
    together, slope = value_and_slope(Sampled(models))
    np.testing.assert_allclose(together, torch.logsumexp(values, 0) - math.log(3), rtol=1e-6)
    weights = torch.softmax(values, dim=0)[..., None, None]
    np.testing.assert_allclose(slope, (weights * slopes).sum(dim=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", [Marginalized(DeterminantalPoints(sample=True), samples=2), ExpectedLoss()], ids=str)
def test_other_losses(loss):
    values = at(acquisition(3, loss))
    assert np.all(np.isfinite(values))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"remaining": 0}, "remaining must be a whole number of evaluations, at least 1, got 0."),
        ({"remaining": 2.0}, "remaining must be a whole number of evaluations, at least 1, got 2.0."),
        ({"loss": LowerConfidenceBound()}, "loss must be an expected gain such as Glasses()"),
        ({"loss": Rollout()}, "loss must be an expected gain such as Glasses()"),
        ({"loss": Glasses}, "loss must be an expected gain such as Glasses()"),
        ({"bounds": BOX.T[:1]}, "bounds must be a tensor of shape (2, d), finite and low below high"),
        ({"bounds": BOX.flip(0)}, "bounds must be a tensor of shape (2, d), finite and low below high"),
        ({"best_f": float("nan")}, "best_f must be one finite number, got nan."),
        ({"X_pending": torch.zeros(2, 3)}, "X_pending must be a tensor of shape (n, 2) of finite numbers"),
        ({"candidates": torch.zeros(2)}, "candidates must be a tensor of shape (n, 2) of finite numbers"),
        ({"candidates": 8}, "candidates must be at least 16 points, got 8: 256 is the default."),
        ({"bounds": BOX + 5}, "The model shows no data inside the bounds: give the best value so far as best_f."),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input(wrong, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        acquisition(**({"remaining": 3} | wrong))
