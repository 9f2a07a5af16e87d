"""Decades of regret: by hand, and their statistics against SciPy's."""

import math

import numpy as np
import pytest
from scipy.stats import wilcoxon

from glasses_lab.campaign.decades import below_best_known, decades, duels, floor_of, function_of, ranks
from glasses_lab.campaign.decades_tables import decades_tables, functions, summary
from glasses_lab.campaign.measures import Row, measure, read_rows, write_rows


def row(problem="BBOB-1-d2-i1", method="el", seed=0, left=0.1, first=10.0, **other):
    usual = {"d": 2, "observed_gap": 0.0, "inference_regret": 0.0, "seconds": 0.1, "evaluations": 5, "failed": False}
    given = {"gap": min(1.0, 1 - left), "simple_regret": left * first, "initial_regret": first, "curve": (0.0,) * 11}
    return Row(problem=problem, method=method, seed=seed, **(usual | given | other))


def test_decades():
    """[eq:decades]"""
    assert decades(row(left=1e-3)) == pytest.approx(-3)
    assert decades(row(left=1.0)) == 0.0
    assert decades(row(left=1e-12)) == decades(row(left=0.0)) == decades(row(left=-1e-3)) == -8
    assert decades(row("tune-svm-digits-error", left=1e-5)) == decades(row("lab-alkox", left=-0.1)) == pytest.approx(-3)
    assert decades(row(first=0.0)) == -8  # began at the minimum
    assert decades(row(failed=True, simple_regret=math.nan, initial_regret=math.nan)) == 0.0
    assert math.isnan(decades(row(initial_regret=math.nan)))
    assert (floor_of("Branin"), floor_of("lab-hplc")) == (1e-8, 1e-3)


def test_of_a_record():
    record = {"problem": "Branin", "method": "el", "seed": 0, "initial": 2, "evaluations": 2, "minimum": 1.0, "true": None}
    record |= {"x": [[0.0, 0.0]] * 4, "y": [11.0, 21.0, 5.0, 1.1], "recommended_true": None, "seconds": [0.1], "error": None}
    assert measure(record).initial_regret == 10.0
    assert decades(measure(record)) == pytest.approx(-2)
    below = measure(record | {"y": [11.0, 21.0, 5.0, 0.9]})
    assert (below.gap, below.simple_regret) == (1.0, pytest.approx(-0.1))


def test_rows_of_earlier_versions_have_no_decades(tmp_path):
    write_rows([row(left=1e-3)], tmp_path / "new.csv", {})
    assert decades(read_rows(tmp_path / "new.csv")[0][0]) == pytest.approx(-3)
    lines = (tmp_path / "new.csv").read_text().splitlines()
    (tmp_path / "old.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    old = read_rows(tmp_path / "old.csv")[0]
    assert math.isnan(decades(old[0]))
    assert decades_tables(old, {}) == ""


def test_functions():
    assert function_of("BBOB-12-d10-i3") == "BBOB-12"
    assert function_of("tune-knn-digits-error") == "tune-knn-digits"
    assert function_of("lab-alkox") == "lab-alkox"
    assert function_of("Ackley-5-shifted") == "Ackley-5-shifted"


def test_ranks_share_ties():
    """Within .05 decades, or both at the floor."""
    rows = [row(method="a", left=1.0e-2), row(method="b", left=1.1e-2), row(method="c", left=0.5)]
    rows += [row(method="a", left=1e-9, seed=1), row(method="b", left=1e-12, seed=1), row(method="c", left=1e-7, seed=1)]
    rows += [row(method="a", left=1e-9, seed=2)]  # the others have no such run
    assert ranks(rows, ["a", "b", "c"]) == {"a": 1.5, "b": 1.5, "c": 3.0}
    rows[1] = row(method="b", left=1.2e-2)
    assert ranks(rows, ["a", "b", "c"]) == {"a": 1.25, "b": 1.75, "c": 3.0}


def played(rng):
    """Two methods on four functions with three instances each; the champion leaves less."""
    rows = []
    for f in range(1, 5):
        for i in range(1, 4):
            base = -1 - rng.random()
            rows.append(row(f"BBOB-{f}-d2-i{i}", "el", left=10**base))
            rows.append(row(f"BBOB-{f}-d2-i{i}", "default", left=10 ** (base - 0.2 * f + 0.3 * rng.standard_normal())))
    return rows


def test_duels():
    rows = played(np.random.default_rng(0))
    left = {(r.method, r.problem): decades(r) for r in rows}
    problems = sorted({r.problem for r in rows})
    d = np.array([left["el", p] - left["default", p] for p in problems])
    found = duels(rows, "default", ["default", "el", "random"])
    assert found.keys() == {"el"}
    duel = found["el"]
    assert duel.decades.mean == pytest.approx(d.mean())
    assert duel.decades.error == pytest.approx(d.std(ddof=1) / np.sqrt(12))
    means = d.reshape(4, 3).mean(axis=1)  # the names sort by function
    assert duel.decades_elsewhere.error == pytest.approx(means.std(ddof=1) / 2)
    assert duel.decades_elsewhere.count == 4
    assert (duel.wins, duel.losses) == (np.sum(d > 0.05), np.sum(d < -0.05))
    assert duel.p == duel.p_holm == pytest.approx(wilcoxon(d[np.abs(d) > 0.05]).pvalue)
    gaps = {(r.method, r.problem): r.gap for r in rows}
    assert duel.gap.mean == pytest.approx(np.mean([gaps["default", p] - gaps["el", p] for p in problems]))


def test_tables():
    rows = played(np.random.default_rng(1))
    families = {r.problem: "first" if r.problem.startswith("BBOB-1-") else "rest" for r in rows}
    text = decades_tables(rows, families)
    assert "default against each" in text
    assert "rank, first" in text
    assert len(functions(rows).splitlines()) == 2 + 4
    assert functions(rows).count("**") == 2 * 4
    assert summary(rows, {}).splitlines()[0].endswith("| rank |")
    assert "lower values" not in text
    low = [*rows, row("lab-alkox", "el", left=-0.1), row("lab-alkox", "default", left=0.1)]
    assert below_best_known(low) == ["lab-alkox"]
    assert "Runs found lower values than the best known of lab-alkox" in decades_tables(low, families)
