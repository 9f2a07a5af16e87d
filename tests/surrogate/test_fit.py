import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from glasses import GaussianProcess
from glasses.surrogate import MAP, Constant, Known, Matern52, MaximumLikelihood, SquaredExponential
from glasses.surrogate.fit import FreeModel
from glasses.surrogate.outputs import Affine
from glasses.surrogate.posterior import NUGGET, marginals

PLAIN = Affine(0.0, 1.0)


def wave(n, d=2, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(6 * X[:, 0]) + (X[:, -1] - 0.4) ** 2 + noise * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def test_likelihood_matches_scikit_learn():
    """[eq:map] without a prior is the negative log marginal likelihood up to its constant."""
    X, y = wave(15)
    model = FreeModel(SquaredExponential() + Constant(), constant_mean=False, with_prior=False)
    free = np.array([np.log(0.4), np.log(0.4), np.log(1.3), np.log(0.2), np.log(0.05), 0.0, 0.0])
    J = model.objective(jnp.asarray(free), jnp.asarray(X), jnp.asarray(y), jnp.asarray(15), jnp.asarray(-1.0))
    twin = ConstantKernel(1.3) * RBF(0.4) + ConstantKernel(0.2) + WhiteKernel(0.05**2 + NUGGET * 1.3)
    gp = GaussianProcessRegressor(twin, alpha=0.0, optimizer=None).fit(X, y)
    assert float(J) == pytest.approx(-gp.log_marginal_likelihood() - 7.5 * np.log(2 * np.pi), rel=1e-6)


def test_the_prior_is_the_one_of_the_header():
    """[eq:map] with and without the prior differ by its negative logarithm, up to a constant."""
    X, y = wave(10)
    given = jnp.asarray(X), jnp.asarray(y), jnp.asarray(10), jnp.asarray(-1.0)
    with_, without = (FreeModel(Matern52(), True, flag) for flag in (True, False))

    def penalty(free):
        free = np.asarray(free)
        z = (free[:2] - (2**0.5 - 3 + 0.5 * np.log(2))) / 3**0.5
        return 0.5 * z @ z + 0.5 * free[2] ** 2 + np.exp(free[3]) / 0.05 + 0.5 * free[4] ** 2

    for seed in range(5):
        free = jnp.asarray(np.append(np.random.default_rng(seed).normal(size=5) - 1.0, 0.0))
        difference = float(with_.objective(free, *given) - without.objective(free, *given))
        assert difference == pytest.approx(penalty(free), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [Matern52(), Matern52() + Constant()], ids=str)
@pytest.mark.parametrize("with_prior", [True, False])
@pytest.mark.parametrize("constant_mean", [True, False])
def test_objective_gradient_against_finite_differences(kernel, with_prior, constant_mean):
    """[eq:trace]"""
    X, y = wave(10)
    model = FreeModel(kernel, constant_mean, with_prior)
    free = jnp.asarray([-1.0, -0.5, 0.2, -2.0, 0.1, -1.0, 0.0][: model.layout(2).size + 3])

    def cost(free):
        return model.objective(free, jnp.asarray(X), jnp.asarray(y), jnp.asarray(10), jnp.asarray(-1.0))

    gradient = jax.grad(cost)(free)
    for i in range(free.size):
        step = 1e-6 * jnp.eye(free.size)[i]
        assert float(gradient[i]) == pytest.approx(float(cost(free + step) - cost(free - step)) / 2e-6, rel=1e-5, abs=1e-6)


def test_maximum_likelihood_is_at_least_as_good_as_scikit_learn():
    X, y = wave(25, noise=0.1)
    model = GaussianProcess(kernel=SquaredExponential() + Constant(), fit=MaximumLikelihood(), constant_mean=False)
    post = model.posterior(X, y, PLAIN)
    shape, bias = post.hyper.theta
    twin = ConstantKernel(1.0) * RBF([0.5, 0.5]) + ConstantKernel(0.1) + WhiteKernel(0.01)
    gp = GaussianProcessRegressor(twin, alpha=0.0, n_restarts_optimizer=5, random_state=0).fit(X, y)
    ours = ConstantKernel(float(shape["variance"])) * RBF(np.asarray(shape["lengthscale"]))
    ours = ours + ConstantKernel(float(bias["variance"])) + WhiteKernel(float(post.noise))
    value = GaussianProcessRegressor(ours, alpha=0.0, optimizer=None).fit(X, y).log_marginal_likelihood()
    assert value >= gp.log_marginal_likelihood() - 1e-2


def test_map_finds_the_stationary_point_from_every_side():
    X, y = wave(20)
    few, many = (GaussianProcess(fit=MAP(starts=k)).posterior(X, y, PLAIN).hyper.theta for k in (4, 10))
    np.testing.assert_allclose(few["lengthscale"], many["lengthscale"], rtol=2e-2)


def test_noise_needs_evidence():
    """An exact function is fitted as exact; a noisy one is not."""
    X, y = wave(30)
    assert float(GaussianProcess().posterior(X, y, PLAIN).noise) < 1e-5
    X, y = wave(60, noise=0.4)
    learned = float(GaussianProcess().posterior(X, y, PLAIN).noise)
    truth = (0.4 / np.std(np.sin(6 * X[:, 0]) + (X[:, -1] - 0.4) ** 2 + 0.0)) ** 2
    assert 0.3 * truth < learned < 2 * truth


def test_known_noise_is_taken_in_units_of_y():
    X, y = wave(12)
    assert float(GaussianProcess(noise=0.5).posterior(X, y, Affine(0.0, 10.0)).noise) == pytest.approx(0.0025)
    assert float(GaussianProcess(noise=0.0).posterior(X, y, PLAIN).noise) == 0.0


@pytest.mark.parametrize(
    "model",
    [GaussianProcess(), GaussianProcess(SquaredExponential() + Constant(), MaximumLikelihood(), constant_mean=False)],
    ids=str,
)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_very_little_or_constant_data(model, n, y):
    post = model.posterior(np.random.default_rng(0).random((n, 2)), np.full(n, y), PLAIN)
    mu, sd = marginals(model.kernel, post, jnp.asarray([[0.5, 0.5], [0.0, 1.0]]))
    assert np.all(np.isfinite(mu))
    assert np.all(sd > 0)


@pytest.mark.slow
def test_a_thousand_observations():
    X, y = wave(1000, d=3, noise=0.05)
    model = GaussianProcess()
    post = model.posterior(X, y, PLAIN)
    mu, _ = marginals(model.kernel, post, jnp.asarray(X[:50]))
    assert int(post.n) == 1000
    assert np.sqrt(np.mean((np.asarray(mu) - y[:50]) ** 2)) < 0.1


def test_a_fixed_noise_and_a_fixed_mean_override_the_free_numbers():
    free = jnp.asarray([0.0, 0.0, 0.0, np.log(0.1), 0.7, 0.0])
    learned = FreeModel(Matern52(), True, True).hyper(free, 2, jnp.asarray(-1.0), None)
    assert (float(learned.mean), float(learned.noise)) == (0.7, pytest.approx(0.01))
    fixed = FreeModel(Matern52(), False, True).hyper(free, 2, jnp.asarray(0.5), None)
    assert (float(fixed.mean), float(fixed.noise)) == (0.0, 0.5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"noise": -1.0}, "noise must be a standard deviation"),
        ({"noise": np.nan}, "noise must be"),
        ({"fit": "map"}, r"fit must be an object such as MAP\(starts=4\), got 'map'"),
        ({"fit": Known(0.1)}, "With known hyperparameters nothing is learned, the noise included: give noise=0"),
        ({"fit": Known(0.1), "noise": 0.0, "constant_mean": False}, "the mean is known too: leave constant_mean out"),
        ({"hyperparameter_samples": 1.5}, "hyperparameter_samples must be a whole number of at least 0"),
    ],
)
def test_bad_models_get_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianProcess(**arguments)


@pytest.mark.parametrize("fit", [MAP, MaximumLikelihood])
def test_a_fit_needs_a_start(fit):
    with pytest.raises(ValueError, match="starts must be a whole number of at least 1, got 0"):
        fit(starts=0)


def test_known_hyperparameters_in_the_users_units():
    """Whatever the centre and scale of the outputs, the prior in the user's units is the one that was given."""
    X, y = wave(8)
    model = GaussianProcess(SquaredExponential(), Known(lengthscale=(0.3, 0.6), sd=2.0, mean=5.0), noise=0.1)
    points = jnp.asarray(np.random.default_rng(1).random((20, 2)))
    plain = marginals(model.kernel, model.posterior(X, y, PLAIN), points)
    for centre, scale in ((y.mean(), y.std()), (100.0, 0.01)):
        post = model.posterior(X, (y - centre) / scale, Affine(centre, scale))
        mu, sd = marginals(model.kernel, post, points)
        np.testing.assert_allclose(centre + scale * np.asarray(mu), plain[0], rtol=1e-7)
        np.testing.assert_allclose(scale * np.asarray(sd), plain[1], rtol=1e-6)
    far = GaussianProcess(fit=Known(lengthscale=0.01, sd=3.0, mean=-4.0), noise=0.0)
    mu, sd = marginals(far.kernel, far.posterior(X[:1], y[:1], PLAIN), jnp.asarray([[0.99, 0.01]]))
    assert (float(mu[0]), float(sd[0])) == (pytest.approx(-4.0), pytest.approx(3.0))


@pytest.mark.parametrize(
    "arguments",
    [
        {"lengthscale": 0.0},
        {"lengthscale": (0.1, -1.0)},
        {"lengthscale": 1.0, "sd": np.nan},
        {"lengthscale": 1.0, "sd": (1.0, 2.0)},
    ],
)
def test_known_hyperparameters_must_make_sense(arguments):
    with pytest.raises(ValueError, match="must be positive, got"):
        Known(**arguments)


def test_known_hyperparameters_must_fit_the_box():
    with pytest.raises(ValueError, match="lengthscale must be one number or 2, one per parameter, got 3"):
        GaussianProcess(fit=Known((0.1, 0.2, 0.3)), noise=0.0).posterior(*wave(4), PLAIN)
    composed = GaussianProcess(Matern52() + Constant(), fit=Known(0.1), noise=0.0)
    with pytest.raises(ValueError, match="Known gives the lengthscale and sd of one stationary kernel"):
        composed.posterior(*wave(4), PLAIN)
    with pytest.raises(ValueError, match="lengthscale must be a number or a tuple of them"):
        Known([0.1, 0.2])
    with pytest.raises(ValueError, match="mean must be finite"):
        Known(0.1, mean=np.inf)
