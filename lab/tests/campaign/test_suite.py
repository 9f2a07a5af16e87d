"""Suite files: what they say is what is run; what they get wrong is named by line and key."""

import pytest

from glasses_lab.campaign.suite import expanded, read_suite, suites
from glasses_lab.problems import NINE, PAPER, get
from glasses_lab.problems.laboratory import LABORATORY
from glasses_lab.problems.tuning import TUNING

GOOD = """name = "mine"
methods = ["el", "random"]
initial = "2d"
evaluations = 3

[[runs]]
problems = ["SinCos", "Branin"]
seeds = 2

[[runs]]
problems = ["GP-SE-2-0.2"]
protocol = "known"
seeds = 1
first_seed = 7
evaluations = "5d"
"""


def written(tmp_path, text):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return path


def test_a_suite(tmp_path):
    suite = read_suite(written(tmp_path, GOOD))
    assert suite.name == "mine"
    assert suite.methods() == ["el", "random"]
    assert len(suite.tasks) == 2 * 2 * 2 + 2
    assert [task.seed for task in suite.tasks] == [0] * 4 + [1] * 4 + [7] * 2
    assert suite.tasks[0].key == "SinCos | el | 0 | exact | 2+3"
    assert suite.tasks[-1].key == "GP-SE-2-0.2 | random | 7 | known | 4+10"
    assert suite.families == {}


def test_families_of_problems(tmp_path):
    text = 'family = "all"\n' + GOOD.replace("seeds = 1\n", 'seeds = 1\nfamily = "draws"\n')
    families = {"SinCos": "all", "Branin": "all", "GP-SE-2-0.2": "draws"}
    suite = read_suite(written(tmp_path, text))
    assert suite.families == families
    assert suite.from_seed(50).families == families
    other = '\n[[runs]]\nproblems = ["SinCos"]\nseeds = 1\nfirst_seed = 50\n'
    assert read_suite(written(tmp_path, text.removeprefix('family = "all"\n') + other)).families == {"GP-SE-2-0.2": "draws"}
    with pytest.raises(ValueError, match="puts SinCos into two families, 'all' and 'one': keep one"):
        read_suite(written(tmp_path, text + other + 'family = "one"\n'))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("seeds = 2", "seeds = 2\nfamily = 4", r"line 9, key 'family': expected a name in quotes, got 4"),
        ('"random"', '"randm"', r"line 2, key 'methods': There is no method 'randm'; known, nearest first: random,"),
        ('"Branin"', '"Brannin"', r"line 7, key 'problems': There is no problem 'Brannin'; known, nearest first: Branin,"),
        ("seeds = 2", "seeds = 0", r"line 8, key 'seeds': expected a whole number of at least 1, got 0"),
        ("seeds = 2", "seeds = true", r"line 8, key 'seeds': expected a whole number"),
        ("seeds = 1\n", "", r"line 10, key 'seeds': is missing: give it at the top or under \[\[runs\]\]"),
        ('"2d"', '"d2"', r"line 3, key 'initial': expected a whole number of at least 1 or one such as \"2d\", got 'd2'"),
        ("evaluations = 3", "evaluations = -3", r"line 4, key 'evaluations': expected"),
        ("first_seed = 7", "frist_seed = 7", r"line 14, key 'frist_seed': There is no key 'frist_seed'; .* first_seed"),
        ('protocol = "known"', 'protocol = "faire"', r"line 12, key 'protocol': There is no protocol 'faire'; .* fair"),
        ('["GP-SE-2-0.2"]', '["Branin"]', r"line 11, key 'problems': Protocol 'known' needs draws"),
        ('name = "mine"', "name = 3", r"line 1, key 'name': expected a name in quotes, got 3"),
        ('["el", "random"]', '"el"', r"line 2, key 'methods': expected a list of names in quotes, got 'el'"),
        ('initial = "2d"', 'initial = "2d', r"line 3: .* a suite is a TOML file"),
        ('problems = ["SinCos"', 'problems = ["Branin"', r"lists Branin with el and seed 0 twice \('Branin \| el \| 0 "),
        (
            'problems = ["SinCos"',
            'problems = ["SinCos-shifted"',
            r"line 7, key 'problems': SinCos has no optimum at the centre",
        ),
        ('name = "mine"', 'nam = "mine"', r"line 1, key 'nam': There is no key 'nam'; known, nearest first: name"),
    ],
)
def test_mistakes_are_named_by_line_and_key(tmp_path, old, new, sentence):
    assert old in GOOD
    with pytest.raises(ValueError, match=sentence):
        read_suite(written(tmp_path, GOOD.replace(old, new, 1)))


def test_one_run_under_two_conditions_is_refused(tmp_path):
    more = '\n[[runs]]\nproblems = ["Branin"]\nprotocol = "paper"\nseeds = 1\n'
    with pytest.raises(ValueError, match=r"lists Branin with el and seed 0 twice .* which one table cannot hold"):
        read_suite(written(tmp_path, GOOD + more))
    with pytest.raises(ValueError, match=r"key 'runs': expected tables that start with \[\[runs\]\]"):
        read_suite(written(tmp_path, "runs = []\n"))


def test_files_that_are_no_suites(tmp_path):
    with pytest.raises(ValueError, match=r"There is no suite 'fare'; known, nearest first: fair,.* or give the path"):
        read_suite("fare")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not text in UTF-8"):
        read_suite(tmp_path / "binary.toml")
    with pytest.raises(ValueError, match="key 'methods': is missing"):
        read_suite(written(tmp_path, ""))


def test_the_suites_of_the_library():
    elsewhere = ["bbob", "bbob-10", "bbob-last", "bbob-peers", "laboratory", "many-parameters", "tuning"]
    assert suites() == sorted(["development", "fair", "forecasts", "nine", "protocol", "samples", *elsewhere])
    fair = read_suite("fair").tasks
    rows = {task.problem.removesuffix("-shifted") for task in fair}
    assert rows >= set(PAPER) - {"Alpine2-10"}
    assert not any(get(name).optimum_at_centre for name in {task.problem for task in fair})
    for task in fair:
        d = get(task.problem).d
        assert (task.initial, task.evaluations, task.protocol) == (5, 10 * d, "fair")
    seeds = {name: sum(task.problem == name and task.method == "el" for task in fair) for name in {t.problem for t in fair}}
    assert all(count >= (20 if get(name).d <= 2 else 10) for name, count in seeds.items())
    nine = read_suite("nine")
    assert {task.problem for task in nine.tasks} == set(NINE)
    assert {"el", "glasses", "two-stage", "botorch-logei-exact", "optuna-gp"} <= set(nine.methods())
    samples = read_suite("samples").tasks
    assert {get(task.problem).d for task in samples} == {1, 2}
    assert len({task.seed for task in samples}) >= 200


def test_braces_stand_for_names(tmp_path):
    assert expanded("BBOB-{1..3}-d{2,5}-i1") == [f"BBOB-{f}-d{d}-i1" for f in (1, 2, 3) for d in (2, 5)]
    assert expanded("Branin") == ["Branin"]
    text = GOOD.replace('["SinCos", "Branin"]', '["Ackley-{2,3}"]\nfamily = "round"')
    suite = read_suite(written(tmp_path, text))
    assert {task.problem for task in suite.tasks} == {"Ackley-2", "Ackley-3", "GP-SE-2-0.2"}
    assert suite.families == {"Ackley-2": "round", "Ackley-3": "round"}
    with pytest.raises(ValueError, match=r"line 7, key 'problems': There is no problem 'Brannin'"):
        read_suite(written(tmp_path, GOOD.replace('"Branin"', '"{Brannin,Branin}"')))


def test_the_suites_from_elsewhere():
    bbob, last = read_suite("bbob"), read_suite("bbob-last")
    assert {task.problem for task in bbob.tasks} == {
        f"BBOB-{f}-d{d}-i{i}" for f in range(1, 25) for d in (2, 3, 5) for i in (1, 2, 3)
    }
    assert {(task.initial, task.evaluations) for task in bbob.tasks} == {(5, 20), (5, 30), (5, 50)}
    assert {task.problem[-2:] for task in last.tasks} == {"i4", "i5"}
    assert {task.evaluations for task in read_suite("bbob-10").tasks} == {100}
    assert {get(task.problem).d for task in read_suite("many-parameters").tasks} == {20, 40, 50}
    assert {task.problem for task in read_suite("tuning").tasks} == set(TUNING)
    assert {task.problem for task in read_suite("laboratory").tasks} == set(LABORATORY)
    for name in ("bbob", "bbob-10", "bbob-last", "tuning", "laboratory"):
        assert {"el", "default", "two-stage", "botorch-logei-exact", "optuna-gp", "optuna-tpe", "random"} <= set(
            read_suite(name).methods()
        )
