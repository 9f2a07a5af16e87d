import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import hills

from glasses import ExpectedLoss, GaussianProcess, Optimizer
from glasses.search import MultiStart
from glasses.search.decision import Problem
from glasses.search.propose import candidates_for
from glasses.search.surface import gains_at
from glasses.surrogate import Known, Matern52
from glasses.surrogate.outputs import Affine

PLAIN = Affine(0.0, 1.0)


def fitted(model, n=12, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.array([hills(x) for x in X]) + noise * rng.standard_normal(n)
    return model.posterior(X, (y - y.mean()) / y.std(), PLAIN)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 0.0])
def test_samples_spread_around_the_mode_as_the_density_says(noise):
    """[eq:laplace], [eq:chain]: the mean excess of J over its least value is about half the number of free directions, as for
    draws of a density that is normal near its mode; and nobody leaves the box."""
    model = GaussianProcess(kernel=Matern52(), noise=noise, hyperparameter_samples=64)
    post = fitted(model)
    samples, free_model = model.samples(post, PLAIN), model._free(None)
    fixed = jnp.asarray(-1.0 if noise is None else 0.0)

    def deviance(hyper):
        return free_model.objective(free_model.free(hyper, 2), post.X, post.y, post.n, fixed)

    with jax.enable_x64(True):
        each = np.asarray(jax.vmap(deviance)(samples.hyper))
        least = float(deviance(post.hyper))
    free = 5 if noise is None else 4
    excess = each - least
    assert np.all(excess > -1e-6)
    assert 0.25 * free < excess.mean() < 1.2 * free
    assert len(np.unique(np.asarray(samples.variance))) > 32
    assert np.all(np.asarray(samples.noise) == 0.0) == (noise is not None)


def problem(post, samples=None):
    return Problem(post=post, fitted=post, pending=np.zeros((0, 2)), remaining=3, samples=samples)


@pytest.mark.slow
def test_a_decision_averages_over_the_samples():
    """[eq:samples]: the acquisition value is the logarithm of the mean gain, recomputed here sample by sample."""
    model = GaussianProcess(noise=0.0, hyperparameter_samples=5)
    post = fitted(model)
    samples = model.samples(post, PLAIN)
    decision = MultiStart().decide(ExpectedLoss(), model.kernel, problem(post, samples), np.random.default_rng(0))
    alone = []
    for m in range(5):
        one = problem(jax.tree.map(lambda a, m=m: a[m], samples))
        candidates = candidates_for(model.kernel, one, 256, np.random.default_rng(0))
        alone.append(gains_at(ExpectedLoss(), model.kernel, candidates, one, decision.x[None], 1)[1][0])
    assert np.exp(decision.value) == pytest.approx(np.mean(alone), rel=1e-6)
    assert np.std(alone) > 0.01 * np.mean(alone)


def test_known_hyperparameters_are_not_sampled():
    assert GaussianProcess().samples(fitted(GaussianProcess()), PLAIN) is None
    with pytest.raises(ValueError, match="leave nothing to sample"):
        GaussianProcess(fit=Known(0.2), noise=0.0, hyperparameter_samples=3)
    with pytest.raises(ValueError, match="hyperparameter_samples must be a whole number"):
        GaussianProcess(hyperparameter_samples=-1)


def test_failures_are_no_data_for_the_hyperparameters():
    """Samples and the model's record look at the values alone: they are the same with and without failures."""

    def after(failures):
        model = GaussianProcess(noise=0.0, hyperparameter_samples=3)
        optimizer = Optimizer([(0, 1)], budget=40, loss=ExpectedLoss(), model=model, seed=0)
        for x in np.linspace(0.05, 0.95, 8):
            optimizer.tell([x], float(np.sin(40 * x)))
        for x in np.linspace(0.31, 0.36, failures):
            optimizer.tell([x], None)
        inference = optimizer._planner.inference
        problem = inference.problem()
        lengthscale = np.asarray(problem.samples.hyper.theta["lengthscale"])
        return lengthscale, inference.record(4), problem.samples.n

    plain, failed = after(0), after(4)
    np.testing.assert_array_equal(plain[0], failed[0])
    assert plain[1] == failed[1]
    assert plain[2].tolist() == [8, 8, 8]
    assert failed[2].tolist() == [12, 12, 12]
