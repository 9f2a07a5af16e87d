"""Kernels: each passes the contract of ``glasses.testing`` (add yours to ``KERNELS``), and what each is."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasses import GaussianProcess
from glasses.surrogate import (
    Additive,
    Constant,
    Hyperparameter,
    Kernel,
    Matern52,
    Normal,
    PartlyAdditive,
    SquaredExponential,
    Subset,
    Warped,
)
from glasses.surrogate.hyperparameters import Layout
from glasses.surrogate.kernels import Stationary
from glasses.surrogate.outputs import Affine
from glasses.testing import KernelContract
from glasses.testing.kernels import theta_of

STATIONARY = [Matern52(), SquaredExponential()]
KERNELS = [
    *STATIONARY,
    SquaredExponential() + Constant(),
    Matern52() + Additive(),
    Matern52() * Subset(SquaredExponential(), (1,)),
    Subset(Matern52(), (0, 2)) * Subset(Matern52(), (1,)),
    Additive(SquaredExponential()),
    PartlyAdditive(),
    Warped(PartlyAdditive(SquaredExponential())),
    Warped(Matern52()),
    Warped(Matern52() + Additive()) + Constant(),
]
D = 3
POINTS = jnp.asarray(np.random.default_rng(0).random((25, D)))
CHOICE = jnp.asarray([False, True, False])


class TestKernels(KernelContract):
    @pytest.fixture(params=KERNELS, ids=str)
    def kernel(self, request):
        return request.param


@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_stationary_correlations(kernel):
    """1 at distance 0 with a finite slope, falling, with the right derivative."""
    r2 = jnp.linspace(0.0, 30.0, 301)
    value = kernel.correlation(r2)
    assert float(value[0]) == 1.0
    assert np.all(np.diff(value) < 0)
    assert np.isfinite(float(jax.grad(kernel.correlation)(jnp.asarray(0.0))))
    finite = (kernel.correlation(r2[1:] + 1e-6) - kernel.correlation(r2[1:] - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.vmap(jax.grad(kernel.correlation))(r2[1:]), finite, rtol=1e-5, atol=1e-9)


def test_composition_is_arithmetic():
    """[eq:compose], [eq:additive]"""
    a, b = Matern52(), SquaredExponential()
    ta, tb = theta_of(a), theta_of(b, seed=3)
    A, B = POINTS[:4], POINTS[4:9]
    ka, kb = a.covariance(ta, A, B), b.covariance(tb, A, B)
    np.testing.assert_allclose((a + b).covariance((ta, tb), A, B), ka + kb)
    np.testing.assert_allclose((a * b).covariance((ta, tb), A, B), ka * kb)
    alone = [
        a.covariance(
            {"lengthscale": ta["lengthscale"][i : i + 1], "variance": ta["variance"]}, A[:, i : i + 1], B[:, i : i + 1]
        )
        for i in range(D)
    ]
    np.testing.assert_allclose(Additive(a).covariance(ta, A, B), sum(alone) / D)


def test_the_lengthscale_of_a_choice_has_a_prior_of_its_own():
    """[eq:alike]: log l ~ N(log 2, 1/2) where the input is a choice, in every kernel, and the fit starts at its mode."""
    numbers = 2**0.5 - 3.0 + 0.5 * np.log(D)

    def penalty(kernel, lengths, choice):
        layout = Layout.of(kernel.hyperparameters(D))
        theta = jax.tree.map(jnp.asarray, layout.theta(jnp.asarray(layout.starts([0.0], True)[0])))
        return float(layout.penalty(layout.free(theta | {"lengthscale": jnp.exp(jnp.asarray(lengths))}), choice))

    lengths = [0.3, -0.4, 0.1]
    for kernel in (Matern52(), SquaredExponential(), Additive()):
        expected = ((0.3 - numbers) ** 2 + (0.1 - numbers) ** 2) / 3 / 2 + (-0.4 - np.log(2)) ** 2 / 0.5 / 2
        assert penalty(kernel, lengths, CHOICE) == pytest.approx(expected)
        assert penalty(kernel, lengths, None) == pytest.approx(sum((each - numbers) ** 2 for each in lengths) / 6)
        starts = Layout.of(kernel.hyperparameters(D)).starts([0.0], True, np.asarray(CHOICE))[0]
        np.testing.assert_allclose(starts[:D], [numbers, np.log(2), numbers])


def test_a_kernel_of_some_inputs_knows_which_of_them_are_choices():
    """Also a subset of a subset: its only input is number 1 of the whole."""
    for kernel in (Subset(Matern52(), (1,)), Subset(Subset(Matern52(), (1,)), (2, 1))):
        layout = Layout.of(kernel.hyperparameters(D))
        one = layout.free({"lengthscale": jnp.asarray([1.0]), "variance": jnp.asarray(1.0)})
        assert float(layout.penalty(one, CHOICE)) == pytest.approx(np.log(2) ** 2)
        assert float(layout.penalty(one, ~CHOICE)) == pytest.approx((2**0.5 - 3.0) ** 2 / 6)
        assert layout.starts([0.0], True, np.asarray(CHOICE))[0, 0] == pytest.approx(np.log(2))


@given(power=st.floats(0.3, 3.0), root=st.floats(0.3, 3.0))
def test_a_warping_keeps_the_order_the_ends_and_the_choices(power, root):
    """[eq:warp]"""
    kernel, inner = Warped(SquaredExponential()), theta_of(SquaredExponential(), d=1)
    theta = ({"power": jnp.full(1, power), "root": jnp.full(1, root)}, inner)
    x = jnp.linspace(0.0, 1.0, 30)[:, None]
    bent = 1.0 - (1.0 - np.asarray(x) ** power) ** root
    direct = SquaredExponential().covariance(inner, jnp.asarray(bent), jnp.asarray(bent))
    np.testing.assert_allclose(kernel.covariance(theta, x, x), direct, atol=5e-3)  # the ends are cut at 1e-9
    fixed = kernel.covariance(theta, x, x, jnp.asarray([True]))
    np.testing.assert_allclose(fixed, SquaredExponential().covariance(inner, x, x, jnp.asarray([True])))


@pytest.mark.slow
def test_a_warping_is_learned_where_the_function_needs_one():
    """log(x) over three decades, given linearly: the bend is found, and predictions between the data are better."""
    x = np.linspace(0.0, 1.0, 14)[:, None] ** 2
    truth = lambda x: np.log(x[:, 0] + 1e-3)  # noqa: E731
    between = (x[1:] + x[:-1]) / 2
    error = {}
    for kernel in (Matern52(), Warped(Matern52())):
        model = GaussianProcess(kernel=kernel, noise=0.0)
        outputs = model.outputs.fit(truth(x))
        post = model.posterior(x, outputs.forward(truth(x)), outputs)
        from glasses.surrogate.posterior import marginals

        mu, _ = marginals(kernel, post, jnp.asarray(between))
        error[kernel] = np.abs(outputs.inverse(np.asarray(mu)) - truth(between)).max()
    assert error[Warped(Matern52())] < 0.7 * error[Matern52()]


@dataclass
class Loose(Stationary):
    """Not frozen: programs compiled for it would be used after it has changed."""

    factor: float = 1.0

    def correlation(self, r2):
        return jnp.exp(-self.factor * r2)


@dataclass(frozen=True)
class Broken(Matern52):
    def correlation(self, r2):
        return jnp.nan * r2


def fitted_by(kernel):
    return GaussianProcess(kernel=kernel).posterior(np.eye(3), np.arange(3.0), Affine(0.0, 1.0))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Subset(Matern52(), ()), "inputs must be a tuple of different positions"),
        (lambda: Subset(Matern52(), (0, 0)), "inputs must be a tuple of different positions"),
        (lambda: Subset(Matern52(), (3,)).hyperparameters(3), "inputs must be positions below 3, the number of parameters"),
        (lambda: GaussianProcess(kernel="rbf"), r"kernel must be an object such as PartlyAdditive\(.*\), got 'rbf'"),
        (lambda: GaussianProcess(kernel=Matern52), r"kernel must be an object such as PartlyAdditive\(.*: write Matern52\(\)"),
        (lambda: GaussianProcess(kernel=Loose()), "kernel must not change.*make Loose a dataclass with frozen=True"),
        (lambda: GaussianProcess(kernel=Warped(Loose())), "kernel must not change.*make Loose a dataclass with frozen=True"),
        (lambda: Warped("rbf"), r"Warped needs a kernel such as Matern52\(\), got 'rbf'"),
        (lambda: Subset(Matern52, (0,)), r"Subset needs a kernel such as Matern52\(\)"),
        (lambda: Additive(Constant()), r"Additive needs a stationary kernel such as Matern52\(\), got Constant\(\)"),
        (lambda: Hyperparameter(10.0, 1.0), "needs bounds low < high, above 0 unless log=False, got 10.0 and 1.0"),
        (lambda: Hyperparameter(0.0, 1.0), "needs bounds low < high, above 0 unless log=False"),
        (lambda: Hyperparameter(2.0, 3.0), "must start within 2.0 and 3.0, got start=1.0"),
        (lambda: Hyperparameter(0.1, 9.0, choice_prior=Normal(0.0, 1.0)), "choice_prior needs a vector with a normal prior"),
        (lambda: Layout.of({"p": 1.0}), r"What a kernel learns must be Hyperparameter\(low, high, ...\), got 1.0"),
        (lambda: fitted_by(Broken()), r"The covariance of Broken\(\) is not finite or not positive definite"),
    ],
)
def test_wrong_kernels_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_a_sum_with_something_else_is_a_type_error():
    with pytest.raises(TypeError, match="unsupported operand"):
        Matern52() + 1.0


@dataclass(frozen=True)
class Periodic(Kernel):
    """A kernel of somebody's own: functions that repeat with period 1/2 in every input."""

    def hyperparameters(self, d):
        return {"variance": Hyperparameter(1e-3, 1e3, Normal(0.0, 1.0)), "width": Hyperparameter(0.1, 10.0, size=d, spread=0.5)}

    def covariance(self, theta, A, B, choice=None):
        waves = jnp.sin(2 * jnp.pi * (A[:, None, :] - B[None, :, :])) / theta["width"]
        return theta["variance"] * jnp.exp(-2.0 * jnp.sum(waves**2, axis=-1))

    def diagonal(self, theta, A, choice=None):
        return jnp.broadcast_to(theta["variance"], A.shape[:1])

    def variance(self, theta):
        return theta["variance"]


class TestPeriodic(KernelContract):
    """A kernel of one's own passes the contract, beside another one too; the data it is fitted to need not repeat."""

    @pytest.fixture(params=[Periodic() + Matern52()], ids=str)
    def kernel(self, request):
        return request.param


def test_a_kernel_of_ones_own_predicts_what_repeats():
    model = GaussianProcess(kernel=Periodic())
    X = np.random.default_rng(0).random((12, 1))
    y = np.sin(4 * np.pi * X[:, 0])
    post = model.posterior(X, y, Affine(0.0, 1.0))
    from glasses.surrogate.posterior import mean

    new = jnp.linspace(0.0, 1.0, 40)[:, None]
    np.testing.assert_allclose(mean(model.kernel, post, new), np.sin(4 * np.pi * np.asarray(new)[:, 0]), atol=0.05)


def test_a_partly_additive_kernel_is_both_in_shares():
    """[eq:partly]: against the two kernels it is made of; with one input they are the same."""
    kernel, A, B = PartlyAdditive(), POINTS[:4], POINTS[4:9]
    theta = theta_of(kernel)
    share = float(theta["share"])
    assert 0 < share < 1
    expected = (1 - share) * Matern52().covariance(theta, A, B) + share * Additive().covariance(theta, A, B)
    np.testing.assert_allclose(kernel.covariance(theta, A, B), expected, rtol=1e-12)
    one = kernel.hyperparameters(1)
    assert "share" not in one
    alone = theta_of(kernel, d=1)
    np.testing.assert_array_equal(
        kernel.covariance(alone, A[:, :1], B[:, :1]), Matern52().covariance(alone, A[:, :1], B[:, :1])
    )


def test_the_additive_share_is_learned():
    """Near one for a sum of functions of one input each, near zero for one that has no such part."""
    X = np.random.default_rng(4).random((40, 2))
    shares = []
    for z in (np.sin(9 * X[:, 0]) + np.cos(7 * X[:, 1]), np.sin(9 * X[:, 0]) * np.sin(8 * X[:, 1])):
        post = GaussianProcess(noise=0.0).posterior(X, (z - z.mean()) / z.std(), Affine(0.0, 1.0))
        shares.append(float(post.hyper.theta["share"]))
    assert shares[0] > 0.7
    assert shares[1] < 0.3
