"""The test problems: what is said to be the minimum is one, and the wrappers change what they say."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc

from glasses.surrogate.kernels import Matern52, SquaredExponential
from glasses_lab import problems
from glasses_lab.problems.gp_draw import SamplePath, frequencies

FIXED = [*problems.PAPER, *problems.NINE, "Branin-standard"]
SHIFTED = [f"{name}-shifted" for name in ("Dropwave", "Powers", "Ackley-2", "Ackley-5", "Ackley-10", "rastrigin-4")]
DRAWS = ["GP-SE-1-0.05", "GP-SE-2-0.1", "GP-M52-2-0.3", "GP-SE-4-0.5"]


def lowest_found(problem, starts=12):
    """A search for something lower: a cover, its best places polished, and the neighbourhood of the known minimisers."""
    cover = problem.from_unit(qmc.Sobol(problem.d, rng=np.random.default_rng(3)).random_base2(10))
    values = [problem.true(x) for x in cover]
    near = problem.from_unit(
        np.clip(_unit(problem, problem.minimizers[0]) + 1e-3 * np.random.default_rng(1).standard_normal((200, problem.d)), 0, 1)
    )
    rough = [*cover[np.argsort(values)[:starts]], *problem.minimizers]
    found = [minimize(problem.true, x, bounds=problem.bounds, method="L-BFGS-B").fun for x in rough]
    simplex = minimize(problem.true, problem.minimizers[0], bounds=problem.bounds, method="Nelder-Mead").fun
    return min(*values, *found, simplex, *(problem.true(x) for x in near))


def _unit(problem, x):
    low, high = np.array(problem.bounds).T
    return (x - low) / (high - low)


@pytest.mark.parametrize("name", FIXED + SHIFTED + DRAWS)
def test_nothing_is_lower_than_the_minimum(name):
    problem = problems.get(name, seed=4)
    low, high = np.array(problem.bounds).T
    scale = max(1.0, abs(problem.minimum))
    assert np.all((problem.minimizers >= low) & (problem.minimizers <= high))
    for x in problem.minimizers:
        assert problem.true(x) == pytest.approx(problem.minimum, abs=2e-6 * scale)
    assert lowest_found(problem) >= problem.minimum - 1e-9 * scale


@pytest.mark.parametrize(("name", "d"), [("Branin", 20), ("shekel-5", 50), ("Ackley-5-shifted", 100)])
def test_an_embedded_function_depends_on_a_turn_of_its_parameters(name, d):
    """[eq:embedding]: the minimum is where it is said to be, other directions change nothing, and the seed turns it."""
    inner, problem = problems.get(name), problems.get(f"{name}-in-{d}", seed=3)
    assert (problem.d, problem.name, problem.minimum) == (d, f"{name}-in-{d}", inner.minimum)
    assert np.all(np.abs(problem.minimizers) <= 1)
    for v in problem.minimizers:
        assert problem.true(v) == pytest.approx(inner.minimum, abs=1e-6)
    rng = np.random.default_rng(0)
    slopes = np.array([_slope(problem.true, v) for v in rng.uniform(-0.1, 0.1, (3 * inner.d, d))])
    assert np.linalg.matrix_rank(slopes, tol=1e-4 * np.linalg.norm(slopes, 2)) == inner.d
    v = rng.uniform(-1, 1, d)
    assert problem.true(v) == problems.get(f"{name}-in-{d}", seed=3).true(v) != problems.get(f"{name}-in-{d}", seed=4).true(v)
    with pytest.raises(ValueError, match=r"fits into no fewer, got 1: give at least"):
        problems.embedded(inner, 1, seed=0)


def _slope(f, x, h=1e-5):
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)])


def test_known_values():
    """Values from the literature at other places than the minimum."""
    assert problems.get("Branin").true([0, 0]) == pytest.approx(55.602113, abs=1e-6)
    assert problems.get("Sixhumpcamel").true([1, 1]) == pytest.approx(3.2333333, abs=1e-6)
    assert problems.get("Beale").true([0, 0]) == pytest.approx(14.203125)
    assert problems.get("McCormick").true([0, 0]) == 1.0
    assert problems.get("Ackley-2").true([1, 1]) == pytest.approx(3.6253849, abs=1e-6)
    assert problems.get("rastrigin-4").true([1, 1, 1, 1]) == pytest.approx(4.0)
    assert problems.get("bukin").true([-10, 2]) == pytest.approx(100.0)
    assert problems.get("eggholder").true([0, 0]) == pytest.approx(-25.460337, abs=1e-6)
    assert problems.get("shubert").true([0, 0]) == pytest.approx(19.875836, abs=1e-6)
    assert problems.get("Powers").true([-0.5, -0.5]) == pytest.approx(0.25 + 0.125)


def test_shubert_has_eighteen_minimisers():
    found = problems.get("shubert").minimizers
    assert len(np.unique(found.round(3), axis=0)) == 18


def test_centre_optima_are_known_and_moved():
    at_centre = {name for name in FIXED if problems.get(name).optimum_at_centre}
    assert at_centre == {
        *("Dropwave", "Powers", "Ackley-2", "Ackley-5", "Ackley-10", "dropwave", "ackley-2", "ackley-5", "rastrigin-4")
    }
    for name in SHIFTED:
        moved = problems.get(name)
        assert not moved.optimum_at_centre
        place = _unit(moved, moved.minimizers[0])
        assert np.all((np.abs(place - 0.5) > 0.09) & (np.abs(place - 0.5) < 0.21))


@pytest.mark.parametrize(
    ("name", "kernel", "d", "lengthscale", "error"),
    [
        ("SE", SquaredExponential(), 1, 0.05, 0.001),
        ("SE", SquaredExponential(), 2, 0.1, 0.006),
        ("M52", Matern52(), 2, 0.3, 0.01),
    ],
)
def test_draws_have_the_covariance_of_the_kernel(name, kernel, d, lengthscale, error):
    """[eq:features]: the covariance of the features against the kernel; random features are off by 1 / sqrt(2 m) = .022."""
    A = np.random.default_rng(0).random((60, d))
    between = A[:, None] - A[None]
    r2 = np.sum((between / lengthscale) ** 2, axis=-1)
    off = np.cos(between @ frequencies(name, d, lengthscale).T).mean(axis=-1) - np.asarray(kernel.correlation(r2))
    assert np.sqrt(np.mean(off[np.triu_indices(60, 1)] ** 2)) < error


def test_draws_are_deterministic_and_differ_by_seed():
    x = [0.3, 0.7]
    a, b = problems.get("GP-SE-2-0.1", seed=1), problems.get("GP-SE-2-0.1", seed=2)
    assert a.true(x) == problems.get("GP-SE-2-0.1", seed=1).true(x) != b.true(x)


def test_draws_are_standard_normal_at_a_point_and_have_that_gradient():
    paths = [SamplePath("SE", 2, 0.3, seed) for seed in range(400)]
    x = np.array([0.4, 0.9])
    values = np.array([path(x) for path in paths])
    assert abs(values.mean()) < 4 / 20
    assert values.std() == pytest.approx(1.0, abs=4 / np.sqrt(800))
    step = 1e-6 * np.eye(2)
    slope = [(paths[0](x + e) - paths[0](x - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(paths[0].gradient(x), slope, rtol=1e-6)


def test_noisy():
    quiet = problems.get("Branin")
    x = [1.0, 2.0]
    a, b = problems.noisy(quiet, 0.5, seed=3), problems.noisy(quiet, 0.5, seed=3)
    first = [a(x) for _ in range(400)]
    assert first == [b(x) for _ in range(400)]
    assert a.true(x) == quiet(x) == quiet.true(x)
    assert np.std(np.array(first) - quiet(x)) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(800))
    with pytest.raises(ValueError, match=r"sd must be a standard deviation of at least 0, got -1"):
        problems.noisy(quiet, -1, seed=0)


def test_counted_and_negated():
    problem, counter = problems.counted(problems.negated(problems.get("Cosines")))
    assert problem([0.1, 0.2]) == -problems.get("Cosines")([0.1, 0.2])
    assert counter.evaluations == 1
    assert np.isnan(problem.minimum)


def test_shifting_too_far_is_refused():
    with pytest.raises(ValueError, match="loses a minimiser: move it less"):
        problems.shifted(problems.get("Ackley-2"), [0.6, 0.0])
    with pytest.raises(ValueError, match="Beale has no optimum at the centre of its box"):
        problems.get("Beale-shifted")
    with pytest.raises(ValueError, match="by must hold 2 numbers"):
        problems.shifted(problems.get("Ackley-2"), [0.1])


def test_unknown_names_list_the_nearest_first():
    with pytest.raises(ValueError, match=r"There is no problem 'Brannin'; known, nearest first: Branin,"):
        problems.get("Brannin")
    with pytest.raises(ValueError, match=r"nearest first: Ackley-q|nearest first: ackley-q"):
        problems.get("Ackley")
    with pytest.raises(ValueError, match="There is no problem 'GP-SE-2-0'"):
        problems.get("GP-SE-2-0")
    with pytest.raises(ValueError, match="Branin takes 2 numbers, got an array of shape"):
        problems.get("Branin")([1.0])
