"""Studies whose evaluations differ in price: what [cost] says, and a budget in its unit that deciding never passes."""

import csv
import io
import json
import subprocess
import sys
import textwrap
import threading

import pytest
from optuna.trial import TrialState
from shell import glasses

from glasses import ExhaustedError
from glasses.loop.cost import Cost
from glasses.optuna.sampler import GlassesSampler
from glasses.space.space import Space
from glasses.study.file import read_study
from glasses.study.formula import Formula
from glasses.study.objective import Evaluation
from glasses.study.stored import StoredStudy
from glasses.study.worker import Progress, work

STUDY = """
name = "priced"
budget = {budget}
planner = "el"
{more}
[parameters]
x = [0.0, 1.0]
k = {{ type = "int", low = 1, high = 4 }}
size = {{ choices = ["small", "large"] }}
{cost}
"""
FORMULA = """
[cost]
unit = "EUR"
formula = "1 + x + (3 if size == 'large' else 0)"
"""
TABLES = """
[cost]
x = 0.5
[cost.k]
1 = 2.5
2 = 1
3 = 4
4 = 8.0
[cost.size]
small = 0.5
large = 5.0
"""


@pytest.fixture
def write(tmp_path):
    def write(cost=FORMULA, budget="12.0", more=""):
        path = tmp_path / "priced.toml"
        path.write_text(STUDY.format(cost=textwrap.dedent(cost), budget=budget, more=more))
        return path

    return write


@pytest.fixture
def open_study(write):
    opened = []

    def make(*arguments, **settings):
        opened.append(StoredStudy(read_study(write(*arguments, **settings))))
        return opened[-1]

    yield make
    for stored in opened:
        stored.close()


def price(x, k, size):
    return 1 + x + (3 if size == "large" else 0)


def begin(stored):
    trial = stored.claim()
    return trial, stored.point(trial)


def measure(params):
    return params["x"] ** 2 - params["k"] - (params["size"] == "large")


def run_all(stored):
    """Evaluate as ``work`` does, until nothing can be begun."""
    done = []
    while (trial := stored.claim()) is not None:
        try:
            params = stored.point(trial)
        except ExhaustedError:
            break
        stored.finish(trial, Evaluation(measure(params)), params)
        done.append(params)
    return done


def test_a_formula_or_tables_with_a_unit_and_an_amount(write):
    study = read_study(write())
    assert study.cost == Formula("1 + x + (3 if size == 'large' else 0)", study.parameters)
    assert (study.cost_unit, study.budget, type(study.budget)) == ("EUR", 12.0, float)
    study = read_study(write(TABLES, budget="20"))
    assert study.cost == {"x": 0.5, "k": {1: 2.5, 2: 1, 3: 4, 4: 8.0}, "size": {"small": 0.5, "large": 5.0}}
    assert (study.cost_unit, study.budget) == (None, 20.0)
    assert Cost(Space(study.parameters), study.cost).cheapest == 1.5
    study = read_study(write("", budget="20"))
    assert (study.cost, study.cost_unit, study.budget, type(study.budget)) == (None, None, 20, int)


def test_a_parameter_may_have_the_name_of_a_key(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("budget = 9.5\n[parameters]\nunit = [1.0, 2.0]\nformula = [1.0, 2.0]\n[cost]\nunit = 2.0\nformula = 3\n")
    assert read_study(path).cost == {"unit": 2.0, "formula": 3}


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ("[[cost]]\nx = 1", "key 'cost': expected a table: "),
        ("[cost]", "line 10, key 'cost': expected a table: "),
        ("[cost]\nunit = 'EUR'", "line 10, key 'cost': says no price: write formula = "),
        ("[cost]\nunit = 3\nx = 1", "line 11, key 'unit': a unit is a text in quotes"),
        ("[cost]\nformula = 'y + 1'", "line 11, key 'formula': There is no parameter 'y'; known, nearest first: "),
        ("[cost]\nformula = 3", "line 11, key 'formula': expected a formula in quotes"),
        ("[cost]\nformula = 'open(1)'", "line 11, key 'formula': 'open.1.' is not allowed"),
        ("[cost]\nformula = 'x'", "line 11, key 'formula': cost must be a positive number everywhere, got 0.0 at {'x': 0.0, "),
        ("[cost]\nformula = '1 / x'", "line 11, key 'formula': cost must be a positive number everywhere, got nan at "),
        ("[cost]\nformula = '9 ** 9 ** 9'", "line 11, key 'formula': cost must be a positive number everywhere, got nan at "),
        ("[cost]\nformula = '1'\nx = 2", "line 12, key 'x': give either a formula or prices of parameters, not both"),
        ("[cost]\nx = 2", "line 11, key 'x': cost must be a positive .* where a table adds up to nothing give a formula"),
        ("[cost]\ny = 2", "line 11, key 'y': There is no parameter 'y'; known, nearest first: "),
        ("[cost]\nx = 'dear'", "line 11, key 'x': expected a price per unit, such as 0.3, got 'dear'"),
        ("[cost]\nx = true", "line 11, key 'x': expected a price per unit"),
        ("[cost]\nx = inf", "line 11, key 'x': expected a price per unit"),
        ("[cost]\nsize = 2", r"line 11, key 'size': expected a price for each choice: \[cost.size\], then small = 1.0"),
        ("[cost.x]\n0 = 2", "line 10, key 'x': has no list of values: give a price per unit"),
        ("[cost.size]\nsmall = 2", "key 'size': expected a price for each of its 2 values, got 1: large has none"),
        ("[cost.size]\nsmall = 2\nlarge = '3'", "line 12, key 'large': expected a price, got '3'"),
        ("[cost.size]\nsmall = 2\nlarge = 3\nhuge = 4", "line 13, key 'huge': There is no value of size 'huge'; known"),
        ("[cost]\nformula = '13'", "line 3, key 'budget': 12 does not pay for the cheapest evaluation, which costs 13"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(write, cost, words):
    path = write(cost)
    with pytest.raises(ValueError, match=words) as refused:
        read_study(path)
    assert str(refused.value).startswith(str(path))
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("0.0", "expected an amount above 0"),
        ("-3", "expected an amount above 0"),
        ("true", "expected an amount above 0"),
        ("nan", "expected an amount above 0"),
        ("inf", "expected an amount above 0"),
        ("'12'", "expected an amount above 0"),
    ],
)
def test_a_budget_that_is_no_amount(write, budget, words):
    with pytest.raises(ValueError, match=f"line 3, key 'budget': {words}"):
        read_study(write(budget=budget))


def test_what_else_must_fit(write, tmp_path):
    with pytest.raises(ValueError, match=r"key 'n_initial': 13 exceeds the budget of 12\.0"):
        read_study(write(more="n_initial = 13"))
    with pytest.raises(ValueError, match="key 'budget': expected a whole number"):
        read_study(write("", budget="12.5"))
    path = tmp_path / "other.toml"
    path.write_text("[parameters]\nx = [0.0, 1.0]\n[cost]\nformula = '1'\n")
    with pytest.raises(ValueError, match="key 'budget': is missing: say how much all evaluations may cost together"):
        read_study(path)
    path.write_text("budget = 9\n[parameters]\ncost = [0.0, 1.0]\n[cost]\nformula = '1'\n")
    with pytest.raises(ValueError, match="line 3, key 'cost': is the name of a column of its own"):
        read_study(path)


@pytest.mark.parametrize("cost", [FORMULA, TABLES])
def test_a_run_spends_no_more_than_the_budget_and_nothing_fits_then(open_study, cost):
    stored = open_study(cost, budget="30.0")
    done = run_all(stored)
    prices = [stored.budget.at(params) for params in done]
    assert len(set(prices)) > 2
    assert stored.left() == pytest.approx(30.0 - sum(prices))
    assert 0 <= stored.left() < stored.budget.cheapest
    assert stored.remaining() == 0
    assert stored.claim() is None


def test_what_is_running_is_paid_for_and_what_has_no_point_yet_as_the_cheapest(open_study):
    stored = open_study()
    trial, params = begin(stored)
    assert stored.left() == pytest.approx(12.0 - price(**params))
    stored.claim()
    assert stored.left() == pytest.approx(12.0 - price(**params) - 1.0)
    stored.finish(trial, Evaluation(None, "spilled"), params)
    assert stored.left() == pytest.approx(12.0 - price(**params) - 1.0)


def test_failures_may_be_free(open_study):
    stored = open_study(more="count_failures = false")
    trial, params = begin(stored)
    stored.finish(trial, Evaluation(None, "spilled"), params)
    assert stored.left() == 12.0
    trial, params = begin(stored)
    stored.finish(trial, Evaluation(1.0), params)
    assert stored.left() == pytest.approx(12.0 - price(**params))


def test_of_two_who_want_the_last_amount_one_gives_way(open_study):
    stored, other = open_study(budget="1.9"), open_study(budget="1.9")
    first = stored.claim()
    stored.study.sampler = stored.sampler
    assert other.claim() is None  # a running one without a point is as dear as the cheapest: .9 is left
    params = stored.point(first)
    assert params["size"] == "small"
    assert price(**params) <= 1.9


def test_a_worker_that_lost_the_rest_gives_way_and_its_trial_is_no_cost(open_study):
    stored, other = open_study(budget="3.0"), open_study(budget="3.0")
    first, second, third = stored.claim(), other.claim(), other.claim()
    taken = [stored.point(first), other.point(second)]
    with pytest.raises(ExhaustedError, match=r"of 3 is left, and nothing can be paid for with that"):
        other.point(third)
    assert sum(price(**params) for params in taken) <= 3.0
    assert other.left() == pytest.approx(3.0 - sum(price(**params) for params in taken))
    assert [trial.state for trial in other.trials()][2] == TrialState.FAIL


def test_whoever_sees_too_late_that_others_spent_the_rest_gives_way(open_study, monkeypatch):
    """A worker whose turn was passed over decides without seeing what another decides at the same time."""
    stored, other = open_study(budget="8.0"), open_study(budget="8.0")
    trial = stored.claim()
    suggest = stored.storage.suggest

    def late(*arguments):
        found = suggest(*arguments)
        other.add({"x": 1.0, "k": 1, "size": "large"}, Evaluation(1.0))  # 5
        other.add({"x": 1.0, "k": 1, "size": "small"}, Evaluation(1.0))  # 2
        return found

    monkeypatch.setattr(stored.storage, "suggest", late)
    with pytest.raises(
        ExhaustedError, match="Others have begun evaluations meanwhile, and the rest of the budget does not pay"
    ):
        stored.point(trial)
    assert stored.optimizer().pending == []
    assert stored.left() == pytest.approx(1.0)


def test_a_worker_that_gives_way_ends_as_when_the_budget_is_spent(open_study, monkeypatch, capsys):
    stored = open_study(budget="3.0")

    def late(*arguments):
        for _ in range(2):
            stored.add({"x": 1.0, "k": 1, "size": "small"}, Evaluation(1.0))
        return suggest(*arguments)

    suggest = stored.storage.suggest
    monkeypatch.setattr(stored.storage, "suggest", late)
    assert work(stored, lambda params, number: Evaluation(1.0), again="glasses run") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[2:] == ["Done: 2 evaluations, for 4 of 3 EUR.", f"Best value: 1. Next: glasses show {stored.file.path}"]


def test_what_waits_is_begun_once_it_can_be_paid_for(open_study):
    stored = open_study(budget="6.0")
    lost = stored.claim()
    dear = stored.add({"x": 0.0, "k": 1, "size": "large"}, Evaluation(None, "spilled"))  # 4
    stored.point(lost)
    again = stored.retry([dear])
    assert [each.number for each in stored.budget.startable(stored.counted())] == again
    stored.add({"x": 0.5, "k": 1, "size": "small"}, Evaluation(1.0))
    assert stored.budget.startable(stored.counted()) == []
    fresh = stored.claim()  # what does not fit holds nothing
    assert fresh is not None
    assert stored.point(fresh) is not None


def test_data_without_a_place_or_a_price_cost_what_is_usual_or_nearest(open_study):
    stored = open_study("[cost]\nformula = '1 + 2 * x'", budget="20")
    stored.add({"x": 0.0, "k": 4, "size": "large"}, Evaluation(1.0))
    stored.add({"x": 1.0, "k": 4, "size": "small"}, Evaluation(2.0))
    path = stored.file.path
    path.write_text(
        path.read_text().replace("[0.0, 1.0]", "[0.25, 1.0]").replace("1 + 2 * x", "8 * x").replace("large", "huge")
    )
    with StoredStudy(read_study(path)) as later:
        assert later.used() == pytest.approx(8.0 + later.budget.cost.usual)
        run_all(later)
        assert later.used() <= 20 * (1 + 1e-9)
    path.write_text(path.read_text().replace("huge", "large"))
    with StoredStudy(read_study(path)) as later:
        assert later.budget.of(later.trials()[0]) == pytest.approx(2.0)  # 8 x is nothing at 0: as at .25


def test_two_workers_spend_the_budget_and_never_more(write, tmp_path):
    (tmp_path / "priced_objective.py").write_text(
        "import time\n\ndef measure(x, k, size):\n    time.sleep(0.02)\n    return x ** 2 - k - (size == 'large')\n"
    )
    path = write(FORMULA + '[objective]\npython = "priced_objective:measure"\n', budget="25")
    workers = [
        subprocess.Popen([sys.executable, "-m", "glasses", "worker", str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], told
    with StoredStudy(read_study(path), writing=False) as stored:
        done = [trial for trial in stored.trials() if trial.state == TrialState.COMPLETE]
        spent = sum(price(**trial.params) for trial in done)
        assert 24 < spent <= 25 * (1 + 1e-9)
        assert stored.left() == pytest.approx(25 - spent)
        assert not [trial for trial in stored.trials() if trial.state == TrialState.RUNNING]
    assert all("priced: a budget of 25 EUR, " in text for text in told)
    assert f"Done: {len(done)} evaluations, for {spent:.6g} of 25 EUR." in "\n".join(told)


def test_threads_that_decide_together_never_pass_the_budget(open_study):
    studies = [open_study(budget="14.0", more="n_initial = 12") for _ in range(4)]
    done = []
    threads = [threading.Thread(target=lambda s=s: done.extend(run_all(s))) for s in studies]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(price(**params) for params in done) <= 14.0 * (1 + 1e-9)
    assert studies[0].used() == pytest.approx(sum(price(**params) for params in done))


def test_by_hand(write, capsys):
    path = write()
    out = glasses(capsys, "ask", path)
    assert out.splitlines()[0].split() == ["trial", "x", "k", "size", "cost", "(EUR)"]
    found = read_study(path)
    with StoredStudy(found) as stored:
        [first] = stored.trials()
        cost = price(**first.params)
    assert f"({12 - cost:.6g} of 12 EUR left after this)" in out
    assert glasses(capsys, "tell", path, "3.5") == f"Stored: trial 0. {12 - cost:.6g} of 12 EUR left.\n"
    out = glasses(capsys, "tell", path, "--at", "x=0", "--at", "k=1", "--at", "size=large", "1")
    assert f"Stored: trial 1. {8 - cost:.6g} of 12 EUR left." in out
    [asked] = json.loads(glasses(capsys, "ask", path, "--format", "json"))
    assert asked["cost"] == pytest.approx(price(**asked["params"]))
    shown = glasses(capsys, "show", path, "--no-plan")
    left = 8 - cost - asked["cost"]
    assert f"2 complete, 1 running; {left:.6g} of 12 EUR left." in shown
    said = json.loads(glasses(capsys, "show", path, "--no-plan", "--format", "json"))
    assert (said["left"], said["budget"], said["cost_unit"]) == (pytest.approx(left), 12.0, "EUR")
    complaint = glasses(capsys, "ask", path, "-n", "20", status=2)
    assert f"20 asked but {left:.6g} of 12 EUR is left, which pays for {int(left)} at most (1 under way)" in complaint
    out = glasses(capsys, "cancel", path, "--trial", "2")
    assert f"{8 - cost:.6g} of 12 EUR left." in out


def test_a_result_beyond_the_budget_is_stored_and_said(write, capsys):
    path = write()
    dear = ["--at", "x=1", "--at", "k=1", "--at", "size=large"]
    assert "7 of 12 EUR left" in glasses(capsys, "tell", path, *dear, "1")
    assert "2 of 12 EUR left" in glasses(capsys, "tell", path, *dear, "2")
    out = glasses(capsys, "tell", path, *dear, "3")
    assert out == "Stored: trial 2. This makes 15 EUR of a budget of 12 EUR: 0 of 12 EUR left.\n"
    assert "12 EUR is left, which pays for 0 at most" in glasses(capsys, "ask", path, status=2)
    assert "3 complete; 0 of 12 EUR left." in glasses(capsys, "show", path)
    assert "0 of 12 EUR is left, which pays for nothing more: raise budget" in glasses(capsys, "forecast", path, status=2)


def test_export_says_what_each_costs(write, capsys):
    path = write()
    glasses(capsys, "tell", path, "--at", "x=0.5", "--at", "k=1", "--at", "size=large", "1")
    glasses(capsys, "tell", path, "--at", "x=0.25", "--at", "k=1", "--at", "size=small", "--failed")
    glasses(capsys, "ask", path)
    glasses(capsys, "tell", path, "--at", "x=0.75", "--at", "k=1", "--at", "size=small", "2")
    glasses(capsys, "withdraw", path, "--trial", "3")
    rows = list(csv.DictReader(io.StringIO(glasses(capsys, "export", path))))
    costs = [float(row["cost"]) for row in rows]
    assert (costs[0], costs[1], costs[3]) == (4.5, 1.25, 0.0)
    left = json.loads(glasses(capsys, "show", path, "--no-plan", "--format", "json"))["left"]
    assert sum(costs) == pytest.approx(12 - left)
    assert [row["cost"] for row in json.loads(glasses(capsys, "export", path, "--format", "json"))] == costs


def test_plan_and_forecast_are_made_with_costs(write, capsys):
    path = write(budget="30")
    with StoredStudy(read_study(path)) as stored:
        for x, k, size in ((0.1, 1, "small"), (0.5, 2, "small"), (0.9, 3, "large"), (0.3, 4, "small"), (0.7, 1, "large")):
            params = {"x": x, "k": k, "size": size}
            stored.add(params, Evaluation(measure(params)))
        left = stored.left()
    shown = json.loads(glasses(capsys, "show", path, "--format", "json"))
    assert sum(price(**each["params"]) for each in shown["plan"]) <= left * (1 + 1e-9)
    assert len(shown["plan"]) > 1
    assert f"{left:.6g} of 30 EUR left; best value now" in glasses(capsys, "forecast", path)


def test_how_long_the_rest_takes_is_said_by_what_was_spent(open_study, monkeypatch):
    stored = open_study()
    clock = iter([100.0, 106.0, 106.0])
    monkeypatch.setattr("glasses.study.worker.time.monotonic", lambda: next(clock))
    progress = Progress(stored, most=2)
    progress._done = 1
    stored.add({"x": 0.0, "k": 1, "size": "large"}, Evaluation(1.0))
    assert progress.ahead() == "1 done here in 6 s, 4 EUR spent; the rest takes about 6 s."
    progress.most = None
    assert progress.ahead() == "1 done here in 6 s, 4 EUR spent; the rest takes about 12 s."


def test_the_sampler_takes_a_cost_of_its_own():
    import optuna

    with pytest.raises(ValueError, match="budget must be a positive number"):
        GlassesSampler(budget=0.0, cost={"x": 1.0})
    asked = []

    def cost(x):
        return 1 + x

    def objective(trial):
        asked.append(trial.suggest_float("x", 0, 1))
        return asked[-1]

    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    sampler = GlassesSampler(budget=6.5, cost=cost, seed=1, search_space=space, n_initial=9)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=3)
    known = sampler.optimizer(study)
    assert known._ledger.unspent == pytest.approx(6.5 - sum(map(cost, asked)))
    study.optimize(objective, n_trials=4)  # Optuna wants its trials: beyond the budget each is as cheap as can be
    assert len(asked) == 7
