"""study.toml: what it says, and every way of saying it wrongly; anything at all is read or refused with a sentence."""

import shutil
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glasses import Choice, Float, Int, NoGain, Price, Target
from glasses.study.file import read_study
from glasses.study.objective import Command, PythonFunction
from glasses.study.template import write_study

WHOLE = """
name = "pendulum"
direction = "maximize"
budget = 30
storage = "sqlite:///data/results.db"
seed = 7
n_initial = 5
noise = 0.1
planner = "glasses"
count_failures = false
retries = 0
heartbeat = 5

[objective]
command = ["simulate", "--gain={gain}", "{solver}", "{layers}", "{rate}", "{width}", "{{raw}}", "run-{trial}"]
timeout = 60

[parameters]
gain = [0.0, 60.0]
rate = { low = 1e-5, high = 1e-1, log = true }
width = { low = 0, high = 1, step = 0.25 }

[parameters.layers]
type = "int"
low = 1
high = 8

[parameters.solver]
choices = ["euler", 4, true]

[stop]
price = 0.25
target = 3
no_gain = 0.01
"""


def write(folder, text):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_that_can_be_said(tmp_path):
    study = read_study(write(tmp_path, WHOLE))
    assert study.parameters == {
        "gain": Float(0, 60),
        "rate": Float(1e-5, 1e-1, log=True),
        "width": Float(0, 1, step=0.25),
        "layers": Int(1, 8),
        "solver": Choice(["euler", 4, True]),
    }
    assert study.storage == f"sqlite:///{tmp_path}/data/results.db"
    assert (study.maximize, study.budget, study.seed, study.n_initial, study.noise) == (True, 30, 7, 5, 0.1)
    assert (study.planner, study.count_failures, study.retries, study.heartbeat) == ("glasses", False, 0, 5)
    assert study.stop == Target(3, maximize=True) | Price(0.25) | NoGain(0.01)
    assert isinstance(study.objective, Command)
    assert study.objective.timeout == 60
    assert study.objective.folder == tmp_path


def test_the_least_that_can_be_said(tmp_path):
    study = read_study(write(tmp_path, "budget = 3\n[parameters]\nx = [0, 1]"))
    assert study.name == "study"
    assert study.objective is None
    assert study.stop is None
    for line, criterion in (("no_gain = true", NoGain()), ("no_gain = false", None), ("target = 3", Target(3))):
        assert read_study(write(tmp_path, f"budget = 3\nstop = {{ {line} }}\n[parameters]\nx = [0, 1]")).stop == criterion
    assert study.storage == f"sqlite:///{tmp_path}/study.db"
    assert study.seed == read_study(write(tmp_path, "budget = 9\n[parameters]\nx = [0, 1]")).seed
    assert study.seed != read_study(write(tmp_path, "name = 'b'\nbudget = 3\n[parameters]\nx = [0, 1]")).seed


def test_units_and_what_changed_since_the_first_trials(tmp_path):
    text = """
budget = 3
unit = "mPa s"
dropped = ["width"]
[parameters]
x = { low = 0, high = 1, unit = "°C", default = 5 }
how = { choices = ["a", "b"], unit = "kind", default = "b" }
n = { type = "int", low = 1, high = 4 }
on = { choices = [true, false], default = false }
"""
    study = read_study(write(tmp_path, text))
    assert study.unit == "mPa s"
    assert study.units == {"x": "°C", "how": "kind"}
    assert study.defaults == {"x": 5.0, "how": "b", "on": False}  # 5 lies outside: where the older trials were
    assert study.dropped == ("width",)
    assert study.parameters["x"] == Float(0, 1)
    plain = read_study(write(tmp_path, "budget = 3\n[parameters]\nx = [0, 1]"))
    assert (plain.unit, plain.units, plain.defaults, plain.dropped) == (None, {}, {}, ())


def test_the_starter_is_a_study(tmp_path):
    path, code = write_study(tmp_path / "my_study.toml")
    study = read_study(path)
    assert study.objective == PythonFunction("my_study_objective:measure", tmp_path)
    assert len(study.parameters) == 4
    assert (
        study.objective.prepare(list(study.parameters))(
            {"temperature": 60.0, "rate": 0.05, "stages": 3, "catalyst": "copper"}, 0
        ).value
        is not None
    )
    shown = [line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("# ") and " = " in line]
    for line in shown:  # what is commented out can be commented in
        tomllib.loads(line)
    for again in (path, code):
        with pytest.raises(ValueError, match="exists and is not overwritten"):
            write_study(path)
        again.unlink()
    with pytest.raises(ValueError, match=r"ends in \.toml"):
        write_study(tmp_path / "study.txt")
    with pytest.raises(ValueError, match="letters, digits and _"):
        write_study(tmp_path / "my study.toml")


BASE = 'budget = 5\n[objective]\ncommand = "sim {x}"\n[parameters]\nx = [0, 1]\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BASE + "y = { low = 0, high = 1, unit = 3 }", "key 'y': a unit is a text in quotes of at most 40 characters"),
        ("unit = ''\n" + BASE, "line 1, key 'unit': a unit is a text in quotes"),
        (BASE + "y = { low = 0, high = 1, default = 'a' }", "key 'y': default must be a number, got 'a'"),
        (BASE + "y = { low = 1e-3, high = 1, log = true, default = 0 }", r"key 'y': default = 0 lies outside \[0.001, 1\]"),
        (BASE + "y = { choices = ['a', 'b'], default = 'c' }", "key 'y': default must be one of 'a', 'b', got 'c'"),
        ("dropped = 'x'\n" + BASE, "key 'dropped': expected a list of names"),
        ("dropped = ['x']\n" + BASE, "key 'dropped': 'x' is still a parameter"),
        ("budget = ", "line 1: Invalid value"),
        ("", r"line 1, key 'parameters': expected a table of at least one"),
        ("[parameters]\nx = [0, 1]", r"line 1, key 'budget': is missing"),
        (BASE.replace("5", "0"), r"line 1, key 'budget': expected a whole number of at least 1, got 0"),
        (BASE.replace("5", "true"), "key 'budget': expected a whole number"),
        (f"budgte = 3\n{BASE}", r"line 1, key 'budgte': There is no key 'budgte'; known, nearest first: budget"),
        (f"direction = 'down'\n{BASE}", 'line 1, key \'direction\': expected "minimize" or "maximize"'),
        (f"name = ''\n{BASE}", "key 'name': expected a name in quotes"),
        (f"seed = -1\n{BASE}", "key 'seed': expected a whole number of at least 0"),
        (f"noise = -0.1\n{BASE}", "key 'noise': expected the standard deviation"),
        (f"n_initial = 9\n{BASE}", "key 'n_initial': 9 exceeds the budget of 5"),
        (f"planner = 'ei'\n{BASE}", "key 'planner': There is no planner 'ei'; known, nearest first: "),
        (f"count_failures = 1\n{BASE}", "key 'count_failures': expected true or false"),
        (f"storage = 'mysql://a:secret@b/c'\n{BASE}", r"key 'storage': expected .*got 'mysql://...@b/c'"),
        (f"storage = 'sqlite:///'\n{BASE}", "key 'storage': expected"),
        (BASE.replace("sim {x}", "sim {y}"), r"line 3, key 'command': There is no parameter 'y'; known, nearest first: "),
        (BASE.replace("sim {x}", "sim"), r"parameter 'x' has no placeholder \{x\}, so it would do nothing"),
        (BASE.replace("sim {x}", "sim '{x}"), "cannot be split into arguments"),
        (BASE.replace("sim {x}", "{x} sim"), "the program itself must be a plain name"),
        (BASE.replace('"sim {x}"', "[]"), "expected a command line or a list of its arguments"),
        (BASE.replace("command", "python"), r"key 'python': expected \"module:function\""),
        (BASE.replace("command = ", 'python = "a:b"\ncommand = '), "give either command"),
        (BASE.replace('command = "sim {x}"', 'python = "a:b"\ntimeout = 3'), "only a command can be stopped"),
        (BASE.replace("[objective]", "[objective]\ntimeout = -1"), "key 'timeout': expected seconds above 0"),
        (BASE.replace("[objective]", "[objective]\nshell = true"), "There is no key 'shell'"),
        (BASE.replace("[0, 1]", "[1, 0]"), r"line 5, key 'x': .*has lower above upper"),
        (BASE.replace("[0, 1]", "[0, 1, 2]"), r"expected \[low, high\], or \{ choices"),
        (BASE.replace("[0, 1]", "3"), r"expected \[low, high\]"),
        (BASE.replace("[0, 1]", "{ low = 0 }"), "high is missing"),
        (BASE.replace("[0, 1]", "{ low = 0, high = 1, steps = 3 }"), "There is no key 'steps'"),
        (BASE.replace("[0, 1]", "{ type = 'real', low = 0, high = 1 }"), 'type must be "float"'),
        (BASE.replace("[0, 1]", "{ type = 'int', low = 0, high = 1.5 }"), "must be a whole number, got 1.5"),
        (BASE.replace("[0, 1]", "{ choices = ['a'] }"), "at least 2 values"),
        (BASE.replace("[0, 1]", "{ choices = [['a'], ['b']] }"), "choices must be texts, numbers"),
        (BASE.replace("[0, 1]", "{ choices = [nan, 1.0] }"), "choices must be finite"),
        (BASE.replace("[0, 1]", "{ choices = [1, true] }"), "choices must differ"),
        (BASE.replace("[0, 1]", "{ choices = ['a', 'b'], low = 3 }"), "has nothing else"),
        (BASE.replace("x = ", "'x y' = "), "names are made of letters"),
        (BASE.replace("x = ", "value = "), "has a meaning of its own"),
        (f"{BASE}[stop]\nprice = 0", r"line 7, key 'price': price must be a positive number .* got 0: say what"),
        (f"{BASE}[stop]\nprice = 1\ntarget = nan", r"line 8, key 'target': target must be a finite number .* got nan"),
        (f"{BASE}[stop]\ntarget = 'low'", "key 'target': target must be a finite number .* got 'low'"),
        (f"{BASE}[stop]\nno_gain = 2", "key 'no_gain': share must be a number between 0 and 1, got 2"),
        (f"{BASE}[stop]\nprize = 2", r"line 7, key 'prize': There is no key 'prize'; known, nearest first: price"),
        (f"{BASE}[stop]", r"line 6, key 'stop': expected a table with at least one of price, target, no_gain"),
        (f"stop = 3\n{BASE}", "line 1, key 'stop': expected a table"),
        (f"seed = 1\nstop = {{ price = -1 }}\n{BASE}", "line 2, key 'price': price must be a positive number"),
    ],
)
def test_refusals(tmp_path, text, sentence):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=sentence) as caught:
        read_study(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert said.endswith(".")
    assert "\n" not in said


def test_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match=r"There is no file .*: `glasses new"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="is a folder"):
        read_study(tmp_path)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not text in UTF-8"):
        read_study(tmp_path / "x.toml")


leaves = st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.booleans())
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
KEYS = sorted(set(tomllib.loads(WHOLE)) | {"low", "high", "x", "command", "cost"})


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(str(key))} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return (
            '"'
            + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in value if ord(c) < 0xD800)
            + '"'
        )
    return repr(value)


def read_or_refused(folder, text):
    folder.mkdir(exist_ok=True)
    path = write(folder, text)
    refusal = None
    try:
        read_study(path)
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert refusal.endswith(".")
        assert str(path) in refusal
    shutil.rmtree(folder)


@given(content=st.dictionaries(st.sampled_from(KEYS), values, max_size=6))
@example(content={"budget": 10**30, "parameters": {"x": [0, 10**400]}})
def test_any_content_is_read_or_refused(tmp_path, content):
    read_or_refused(tmp_path / "f", "\n".join(f"{key} = {toml(value)}" for key, value in content.items()))


@given(key=st.sampled_from([*sorted(tomllib.loads(WHOLE)), "cost"]), value=values)
@example(key="cost", value={"gain": 1.0, "rate": 1, "layers": {"1": 2.0}})
@example(key="cost", value={"formula": "1 + gain / layers"})
def test_any_value_of_any_key_is_read_or_refused(tmp_path, key, value):
    content = {**tomllib.loads(WHOLE), key: value}
    read_or_refused(tmp_path / "f", "\n".join(f"{name} = {toml(each)}" for name, each in content.items()))


@given(at=st.integers(0, len(WHOLE)), cut=st.integers(0, 40), new=st.text(max_size=10))
def test_any_damage_is_read_or_refused(tmp_path, at, cut, new):
    clean = "".join(each for each in new if not 0xD800 <= ord(each) <= 0xDFFF)
    read_or_refused(tmp_path / "f", WHOLE[:at] + clean + WHOLE[at + cut :])
