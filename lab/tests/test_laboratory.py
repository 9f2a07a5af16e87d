"""Tables of experiments: the smoother is the formula that is printed, its constants the likeliest, its minima minima."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest, qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from glasses_lab import problems
from glasses_lab.problems import laboratory
from glasses_lab.problems.laboratory import LABORATORY, TABLES, blend, rows, unlikelihood


@pytest.mark.parametrize("name", LABORATORY)
def test_the_smoother_is_a_gaussian_process(name):
    """[eq:smoother] against scikit-learn's Gaussian process with the same constants."""
    problem, table, (X, y) = problems.get(name), TABLES[name], rows(name)
    kernel = Matern(table.lengthscales, nu=2.5)
    process = GaussianProcessRegressor(kernel, alpha=table.noise, optimizer=None).fit(X, y - y.mean())
    unit = np.random.default_rng(0).random((20, problem.d))
    places = np.array([blend(u) for u in unit]) if table.blend else unit
    expected = (process.predict(places) + y.mean()) * (-1 if table.maximised else 1)
    found = [problem.true(x) for x in problem.from_unit(unit)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.ptp(y))


@pytest.mark.parametrize("name", [name for name in LABORATORY if not TABLES[name].blend])
def test_the_table_is_followed(name):
    """At the rows of the table the function explains most of what was measured."""
    problem, (X, y) = problems.get(name), rows(name)
    sign = -1 if TABLES[name].maximised else 1
    found = sign * np.array([problem.true(x) for x in problem.from_unit(X)])
    assert 1 - np.var(found - y) / np.var(y) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", LABORATORY)
def test_the_constants_are_the_likeliest(name, monkeypatch):
    """A tenth more or less of any of them, within what is allowed, does not make the table likelier (to rounding)."""
    given = rows(name)
    monkeypatch.setattr(laboratory, "rows", lambda _: given)
    table = TABLES[name]
    here = unlikelihood(name, np.array(table.lengthscales), table.noise)
    for j in range(len(table.lengthscales)):
        for factor in (0.9, 1.1):
            scales = np.array(table.lengthscales)
            scales[j] *= factor
            if table.shortest <= scales[j] <= laboratory.LONGEST:
                assert unlikelihood(name, scales, table.noise) > here - 1e-3
    for factor in (0.8, 1.25):
        assert unlikelihood(name, np.array(table.lengthscales), table.noise * factor) > here - 1e-3


@pytest.mark.parametrize("name", LABORATORY)
def test_nothing_is_lower_than_the_minimum(name):
    problem = problems.get(name)
    scale = np.ptp(rows(name)[1])
    assert problem.true(problem.minimizers[0]) == pytest.approx(problem.minimum, abs=1e-9 * scale)
    cover = qmc.Sobol(problem.d, rng=np.random.default_rng(5)).random_base2(9)
    values = [problem.true(problem.from_unit(u)) for u in cover]
    bounds = [(0, 1)] * problem.d
    starts = cover[np.argsort(values)[:5]]
    found = [minimize(lambda u: problem.true(problem.from_unit(u)), u, bounds=bounds, method="L-BFGS-B").fun for u in starts]
    assert min(*values, *found) >= problem.minimum - 1e-6 * scale


def test_equal_rows_are_averaged():
    X, y = rows("lab-alkox")
    assert len(X) == len(np.unique(X, axis=0)) == 104
    raw = np.loadtxt(laboratory.FOLDER / "alkox.csv", delimiter=",")
    first = raw[np.all(raw[:, :-1] == raw[0, :-1], axis=1), -1]
    assert np.any(np.isclose(y, first.mean()))
    assert X.min() == 0.0
    assert X.max() == 1.0


def test_blends_are_whole_and_uniform():
    """[eq:blend]: parts of one, each with the distribution of a part of a uniform blend, P(w < t) = 1 - (1 - t)^3."""
    parts = np.array([blend(u) for u in qmc.Sobol(3, rng=np.random.default_rng(0)).random_base2(11)])
    assert np.all(parts >= 0)
    np.testing.assert_allclose(parts.sum(axis=1), 1.0)
    for column in parts.T:
        assert kstest(column, lambda t: 1 - (1 - t) ** 3).pvalue > 0.01


def test_names_and_files_that_are_not_there(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="There is no laboratory problem 'lab-alcox'; known, nearest first: lab-alkox"):
        problems.get("lab-alcox")
    monkeypatch.setattr(laboratory, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"The table \S+alkox.csv is not there: it is part of the repository \(lab/data\)"):
        rows("lab-alkox")
