import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from glasses import GaussianProcess
from glasses.surrogate import MAP, Known, Matern52, MaximumLikelihood, SquaredExponential
from glasses.surrogate.fit import hyper_from, objective
from glasses.surrogate.posterior import NUGGET, marginals


def wave(n, d=2, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = np.sin(6 * X[:, 0]) + (X[:, -1] - 0.4) ** 2 + noise * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def test_likelihood_matches_scikit_learn():
    """[eq:map] without a prior is the negative log marginal likelihood up to its constant."""
    X, y = wave(15)
    theta = np.array([np.log(0.4), np.log(0.4), np.log(1.3), np.log(0.05), 0.0, np.log(0.2)])
    J = objective(
        jnp.asarray(theta), jnp.asarray(X), jnp.asarray(y), jnp.asarray(15), jnp.asarray(-1.0),
        kernel=SquaredExponential(), prior=MaximumLikelihood().prior(2), bias=True,
    )  # fmt: skip
    twin = ConstantKernel(1.3) * RBF(0.4) + ConstantKernel(0.2) + WhiteKernel(0.05**2 + NUGGET * 1.3)
    gp = GaussianProcessRegressor(twin, alpha=0.0, optimizer=None).fit(X, y)
    assert float(J) == pytest.approx(-gp.log_marginal_likelihood() - 7.5 * np.log(2 * np.pi), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rule", [MAP(), MaximumLikelihood()], ids=str)
def test_objective_gradient_against_finite_differences(rule, bias):
    """[eq:trace]"""
    X, y = wave(10)
    theta = jnp.asarray([-1.0, -0.5, 0.2, -2.0, 0.1, -1.0])

    def cost(theta):
        return objective(
            theta,
            jnp.asarray(X),
            jnp.asarray(y),
            jnp.asarray(10),
            jnp.asarray(-1.0),
            kernel=Matern52(),
            prior=rule.prior(2),
            bias=bias,
        )

    gradient = jax.grad(cost)(theta)
    for i in range(6):
        step = 1e-6 * jnp.eye(6)[i]
        assert float(gradient[i]) == pytest.approx(float(cost(theta + step) - cost(theta - step)) / 2e-6, rel=1e-5, abs=1e-6)


def test_maximum_likelihood_is_at_least_as_good_as_scikit_learn():
    X, y = wave(25, noise=0.1)
    post = GaussianProcess(kernel=SquaredExponential(), fit=MaximumLikelihood(), bias=True).posterior(X, y)
    h = post.hyper
    ours = np.log([*np.asarray(h.lengthscale), float(h.signal), float(h.noise), float(h.bias)])
    twin = ConstantKernel(1.0) * RBF([0.5, 0.5]) + ConstantKernel(0.1) + WhiteKernel(0.01)
    gp = GaussianProcessRegressor(twin, alpha=0.0, n_restarts_optimizer=5, random_state=0).fit(X, y)
    twin_ours = (
        ConstantKernel(np.exp(ours[2])) * RBF(np.exp(ours[:2])) + ConstantKernel(np.exp(ours[4])) + WhiteKernel(np.exp(ours[3]))
    )
    value = GaussianProcessRegressor(twin_ours, alpha=0.0, optimizer=None).fit(X, y).log_marginal_likelihood()
    assert value >= gp.log_marginal_likelihood() - 1e-2


def test_map_finds_the_stationary_point_from_every_side():
    X, y = wave(20)
    few, many = (GaussianProcess(fit=MAP(starts=k)).posterior(X, y).hyper for k in (4, 10))
    np.testing.assert_allclose(few.lengthscale, many.lengthscale, rtol=2e-2)


def test_noise_needs_evidence():
    """An exact function is fitted as exact; a noisy one is not."""
    X, y = wave(30)
    assert float(GaussianProcess().posterior(X, y).hyper.noise) < 1e-5
    X, y = wave(60, noise=0.4)
    learned = float(GaussianProcess().posterior(X, y).hyper.noise)
    truth = (0.4 / np.std(np.sin(6 * X[:, 0]) + (X[:, -1] - 0.4) ** 2 + 0.0)) ** 2
    assert 0.3 * truth < learned < 2 * truth


def test_known_noise_is_taken_in_units_of_y():
    X, y = wave(12)
    assert float(GaussianProcess(noise=0.5).posterior(X, y, y_scale=10.0).hyper.noise) == pytest.approx(0.0025)
    assert float(GaussianProcess(noise=0.0).posterior(X, y).hyper.noise) == 0.0


@pytest.mark.parametrize(
    "model", [GaussianProcess(), GaussianProcess(SquaredExponential(), MaximumLikelihood(), bias=True)], ids=str
)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_very_little_or_constant_data(model, n, y):
    post = model.posterior(np.random.default_rng(0).random((n, 2)), np.full(n, y))
    mu, sd = marginals(model.kernel, post, jnp.asarray([[0.5, 0.5], [0.0, 1.0]]))
    assert np.all(np.isfinite(mu))
    assert np.all(sd > 0)


@pytest.mark.slow
def test_a_thousand_observations():
    X, y = wave(1000, d=3, noise=0.05)
    post = GaussianProcess().posterior(X, y)
    mu, _ = marginals(Matern52(), post, jnp.asarray(X[:50]))
    assert int(post.observed) == 1000
    assert np.sqrt(np.mean((np.asarray(mu) - y[:50]) ** 2)) < 0.1


def test_hyperparameters_from_theta():
    h = hyper_from(jnp.asarray([0.0, 0.0, 0.0, np.log(0.1), 0.7, np.log(2.0)]), 2, jnp.asarray(-1.0), True)
    assert (float(h.mean), float(h.bias)) == (0.0, pytest.approx(2.0))
    h = hyper_from(jnp.asarray([0.0, 0.0, 0.0, np.log(0.1), 0.7, np.log(2.0)]), 2, jnp.asarray(-1.0), False)
    assert (float(h.mean), float(h.bias), float(h.noise)) == (0.7, 0.0, pytest.approx(0.01))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"noise": -1.0}, "noise must be a standard deviation"),
        ({"noise": np.nan}, "noise must be"),
        ({"fit": MAP(starts=0)}, "starts must be"),
        ({"fit": Known(0.1)}, "With known hyperparameters nothing is learned, the noise included: give noise=0"),
        ({"fit": Known(0.1), "noise": 0.0, "bias": True}, "the mean is known too: leave bias out"),
    ],
)
def test_bad_models_get_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianProcess(**arguments)


def test_known_hyperparameters_in_the_users_units():
    """Whatever the centre and scale of the outputs, the prior in the user's units is the one that was given."""
    X, y = wave(8)
    model = GaussianProcess(SquaredExponential(), Known(lengthscale=(0.3, 0.6), sd=2.0, mean=5.0), noise=0.1)
    places = jnp.asarray(np.random.default_rng(1).random((20, 2)))
    plain = marginals(model.kernel, model.posterior(X, y), places)
    for centre, scale in ((y.mean(), y.std()), (100.0, 0.01)):
        post = model.posterior(X, (y - centre) / scale, y_centre=centre, y_scale=scale)
        mu, sd = marginals(model.kernel, post, places)
        np.testing.assert_allclose(centre + scale * np.asarray(mu), plain[0], rtol=1e-7)
        np.testing.assert_allclose(scale * np.asarray(sd), plain[1], rtol=1e-6)
    far = GaussianProcess(fit=Known(lengthscale=0.01, sd=3.0, mean=-4.0), noise=0.0)
    mu, sd = marginals(far.kernel, far.posterior(X[:1], y[:1]), jnp.asarray([[0.99, 0.01]]))
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
        GaussianProcess(fit=Known((0.1, 0.2, 0.3)), noise=0.0).posterior(*wave(4))
    with pytest.raises(ValueError, match="lengthscale must be a number or a tuple of them"):
        Known([0.1, 0.2])
    with pytest.raises(ValueError, match="mean must be finite"):
        Known(0.1, mean=np.inf)
