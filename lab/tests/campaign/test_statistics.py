"""Statistics against SciPy, against numbers worked out by hand, and against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, sem, ttest_rel, wilcoxon

from glasses_lab.campaign.measures import TENTHS, Row
from glasses_lab.campaign.statistics import (
    TIE,
    against,
    against_by_problem,
    average_ranks,
    estimate,
    holm,
    lead,
    over_problems,
    paired,
    rank_sign,
    signed_rank,
    tied_ranks,
)
from glasses_lab.campaign.tables import by_function, duels, overall, paper_gaps, regrets


def row(problem, method, seed, gap, **other):
    usual = {"d": 2, "observed_gap": gap, "simple_regret": 1 - gap, "inference_regret": 1 - gap, "seconds": 0.1}
    usual |= {"evaluations": 5, "failed": False, "curve": (gap,) * TENTHS}
    return Row(problem=problem, method=method, seed=seed, gap=gap, **(usual | other))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    found = []
    for problem, lift in (("easy", 0.2), ("hard", 0.0)):
        for seed in range(20):
            base = rng.uniform(0.2, 0.6)
            found += [row(problem, "el", seed, base), row(problem, "glasses", seed, base + lift + 0.05 * rng.standard_normal())]
            found += [row(problem, "random", seed, base / 2)]
    return found


def test_mean_and_error_against_scipy(rng):
    v = rng.random(17)
    found = estimate(v)
    assert found.mean == pytest.approx(v.mean())
    assert found.error == pytest.approx(sem(v))
    assert np.isnan(estimate([1.0]).error)
    both = over_problems([estimate(v), estimate(v + 1)])
    assert both.mean == pytest.approx(v.mean() + 0.5)
    assert both.error == pytest.approx(sem(v) / np.sqrt(2))


def test_signed_rank_against_scipy_and_by_hand(rng):
    d = rng.standard_normal(25)
    assert signed_rank(d) == wilcoxon(d).pvalue
    assert signed_rank([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 2**5)  # all five signs agree
    assert signed_rank([0.0, TIE / 2, -TIE / 2]) == 1.0
    assert signed_rank([0.1, 0.2, 0.3, 0.4, 0.5, 0.0]) == pytest.approx(2 / 2**5)


def test_holm_by_hand():
    """[eq:holm]"""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p):
    corrected = np.array(holm(p))
    assert np.all(corrected >= np.array(p))
    assert np.all(corrected <= np.minimum(1, len(p) * np.array(p)) + 1e-15)
    assert np.all(corrected >= false_discovery_control(p) - 1e-12)  # controls more than Benjamini and Hochberg
    order = np.argsort(p)
    assert np.all(np.diff(corrected[order]) >= 0)


def test_comparison_is_paired(rows):
    found = against(rows, "el", ["el", "glasses", "random"])
    assert set(found) == {"glasses", "random"}
    test = found["random"]
    d = {p: [r.gap for r in rows if r.problem == p and r.method == "random"] for p in ("easy", "hard")}
    e = {p: [r.gap for r in rows if r.problem == p and r.method == "el"] for p in ("easy", "hard")}
    differences = np.array(d["easy"] + d["hard"]) - np.array(e["easy"] + e["hard"])
    assert test.difference.mean == pytest.approx(differences.mean())
    assert (test.wins, test.losses) == (0, 40)
    assert test.p == wilcoxon(differences).pvalue
    assert test.p_holm == pytest.approx(2 * test.p)
    assert ttest_rel(d["easy"], e["easy"]).pvalue < 1e-6  # another test agrees
    assert found["glasses"].difference.mean == pytest.approx(0.1, abs=0.03)


def test_a_lead_is_the_other_side_of_being_behind(rows):
    found, seen = lead(rows, "glasses", ["el", "glasses", "random"]), against(rows, "el", ["glasses", "random"])
    assert set(found) == {"el", "random"}
    assert found["el"].difference == seen["glasses"].difference
    assert found["el"].p == seen["glasses"].p
    worst = against(rows, "glasses", ["random"])["random"]
    assert found["random"].difference.mean == pytest.approx(-worst.difference.mean)
    assert (found["random"].wins, found["random"].losses) == (worst.losses, worst.wins)


def test_duels_by_family(rows):
    """Each cell is the paired mean over its family; a method without runs there leaves it empty."""
    rows = [row for row in rows if not (row.method == "random" and row.problem == "hard")]
    families = {"easy": "A", "hard": "B"}
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in duels(rows, families).splitlines()]
    head = ["method", "functions", "pairs", "against EL", "± elsewhere", "wins : losses", "by > .01", "p (Holm)", "A", "B"]
    assert lines[0] == head
    glasses, random = lines[2:]
    easy, hard = (estimate(paired(rows, "glasses", "el")[problem]) for problem in ("easy", "hard"))
    assert glasses[:3] == ["GLASSES", "2", "40"]
    assert glasses[3].startswith(f"{over_problems([easy, hard]).mean:+.3f}".replace("0.", ".", 1))
    assert glasses[4] == f"{abs(easy.mean - hard.mean) / 2:.3f}".replace("0.", ".", 1)
    assert glasses[8].startswith(f"{easy.mean:+.3f}".replace("0.", ".", 1))
    assert random[1:3] == ["1", "20"]
    assert random[-1] == ""
    led = [[cell.strip() for cell in line.split("|")[1:-1]] for line in duels(rows, families, "glasses").splitlines()]
    assert led[0][3] == "GLASSES against it"
    assert [line[0] for line in led[2:]] == ["EL", "random"]
    assert led[2][3:8] == glasses[3:8]


def test_a_test_that_contradicts_the_mean_says_whom_it_favours():
    """Nineteen small losses and one large win: a higher mean, and a test for the other side."""
    rows = [row("p", "el", s, 0.5) for s in range(20)] + [row("p", "glasses", s, 0.99 if s == 0 else 0.48) for s in range(20)]
    assert against(rows, "el", ["glasses"])["glasses"].difference.mean > 0
    for text in (overall(rows), duels(rows, {"p": "A"}), duels(rows, {"p": "A"}, "glasses")):
        assert "(for EL)" in text
    assert "CPU s" in overall(rows)
    assert "CPU s" not in overall(rows, timed=False)


def test_by_problem_finds_where_it_pays(rows):
    cells = against_by_problem(rows, "el", ["el", "glasses", "random"])
    assert cells["easy", "glasses"].p_holm < 0.001
    assert cells["hard", "glasses"].p_holm > 0.05
    assert cells["hard", "glasses"].p_holm >= cells["hard", "glasses"].p


def test_only_common_runs_are_compared(rows):
    fewer = [r for r in rows if not (r.method == "glasses" and r.seed >= 5)]
    assert [len(d) for d in paired(fewer, "glasses", "el").values()] == [5, 5]
    assert against(fewer, "el", ["glasses"])["glasses"].difference.count == 10
    assert paired(fewer, "glasses", "nobody") == {}


def test_ranks():
    rows = [row("p", m, s, g) for s in range(2) for m, g in (("a", 0.5), ("b", 0.9), ("c", 0.5 + TIE / 10), ("d", 0.1))]
    assert average_ranks(rows, ["a", "b", "c", "d"]) == {"a": 2.5, "b": 1.0, "c": 2.5, "d": 4.0}
    more = [row("q", m, s, g) for s in range(6) for m, g in (("a", 0.9), ("b", 0.1))]
    assert average_ranks(rows + more, ["a", "b"]) == {"a": 1.25, "b": 1.75}
    assert average_ranks(rows + more, ["a", "b"], by_problem_first=True) == {"a": 1.5, "b": 1.5}
    assert average_ranks(rows, ["a", "b", "c", "d"], tie=0.6) == dict.fromkeys("abcd", 2.5)
    assert np.isnan(average_ranks(rows, ["a", "missing"])["a"])
    np.testing.assert_array_equal(tied_ranks([0.2, 0.99996, 0.99994, 0.5, 0.99993]), [5, 2, 2, 4, 2])


def test_the_sign_of_a_claim_is_that_of_the_test():
    """One huge win and many small losses: the mean is positive, the ranks are not."""
    d = [1.2] + [-0.013 * k for k in range(1, 13)]
    assert np.mean(d) > 0
    assert rank_sign(d) == -1
    assert rank_sign([0.0, TIE / 2]) == 0
    rows = [row("p", m, k, g) for k, x in enumerate(d) for m, g in (("el", 0.5), ("glasses", 0.5 + x / 2))]
    found = against(rows, "el", ["glasses"])["glasses"]
    assert found.favours == -1
    assert (found.wins, found.losses, found.clear_wins, found.clear_losses) == (1, 12, 1, 11)  # .0065 is not clear


def test_tables_say_what_the_rows_say(rows):
    rows = [*rows, row("easy", "lcb", 0, 0.5, failed=True)]
    lines = overall(rows).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| GP-LCB", "| EL", "| GLASSES", "| random"]
    assert lines[2].endswith("| 1 |")
    assert "0 : 40" in lines[5]
    assert "< .001" in lines[5]
    table = by_function(rows).splitlines()
    easy = next(line for line in table if line.startswith("| easy"))
    mean = np.mean([r.gap for r in rows if r.problem == "easy" and r.method == "glasses"])
    assert f"**{mean:.3f}".replace("0.", ".") in easy
    assert "** +" in easy
    assert easy.rstrip(" |").endswith("−")
    assert len(paper_gaps(rows).splitlines()) == len(regrets(rows).splitlines()) == 4
    assert "(1 of 2 functions)" in lines[2]
    values = [r.simple_regret for r in rows if r.problem == "hard" and r.method == "el"]
    hard = next(line for line in regrets(rows).splitlines() if line.startswith("| hard"))
    assert f"{np.mean(values):.2g} ± {sem(values):.1g}" in hard
