"""Formulas of study files: Python's own arithmetic, and nothing besides it."""

import math
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasses import Choice, Float, Int
from glasses.study.formula import Formula

PARAMETERS = {
    "x": Float(-5, 5),
    "k": Int(-3, 9),
    "catalyst": Choice(["zeolite", "none"]),
    "size": Choice([1, 2, 4]),
    "dry": Choice([True, False]),
    "mixed": Choice(["a", -4, True]),
}
numbers = st.one_of(st.sampled_from(["x", "k", "size"]), st.integers(0, 9).map(str), st.floats(0, 100).map(repr))


def deeper(inner):
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner)
    compared = st.tuples(inner, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner)
    conditions = compared.map(" ".join) | st.sampled_from(["catalyst == 'zeolite'", "dry != True", "1 < x <= k", "-4 == mixed"])
    return st.one_of(
        binary.map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda each: f"-{each}"),
        inner.map(lambda each: f"(+{each})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda each: f"{each[0]}({each[1]}, {each[2]})"),
        st.tuples(inner, conditions, inner).map(lambda each: f"({each[0]} if {each[1]} else {each[2]})"),
    )


@given(
    text=st.recursive(numbers, deeper, max_leaves=12),
    x=st.floats(-5, 5),
    k=st.integers(-3, 9),
    size=st.sampled_from([1, 2, 4]),
    catalyst=st.sampled_from(["zeolite", "none"]),
    dry=st.booleans(),
    mixed=st.sampled_from(["a", -4, True]),
)
def test_it_is_pythons_arithmetic_in_floats(text, **point):
    found = Formula(text, PARAMETERS)(**point)
    floats = {name: float(each) if name in ("x", "k", "size") else each for name, each in point.items()}
    inside = "".join(f"{part}.0" if part.isdigit() else part for part in _split(text))
    try:
        expected = eval(inside, {"__builtins__": {}, "min": min, "max": max}, floats)
    except (ArithmeticError, TypeError):  # two complex numbers have no order
        expected = math.nan
    if isinstance(expected, complex) or math.isnan(expected):
        assert math.isnan(found)
    elif "**" not in text or not math.isnan(found):  # of a complex number within Python may make a real one again
        assert found == expected


def _split(text):
    """The whole numbers apart from everything else."""
    return re.split(r"(?<![\w.\-])(\d+)(?![\w.])", text)


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("0.2 + 0.01 * x", 3.0, 0.23),
        ("5 if catalyst == 'zeolite' else 1", 0.0, 5.0),
        ("1 if catalyst != 'zeolite' else 2", 0.0, 2.0),
        ("3 if 0 < x < 2 else 4", 1.0, 3.0),
        ("max(1, x, 2) - min(1, x)", -3.0, 5.0),
        ("2 ** -x", 1.0, 0.5),
        ("size * 2", 0.0, 8.0),
        ("1 if 'a' == mixed else 2 if mixed == -4 else 3", 0.0, 2.0),
        ("1 / x", 0.0, math.nan),
        ("x ** 0.5", -1.0, math.nan),
        ("10 ** 10 ** 10", 0.0, math.nan),
        ("9 ** 9 ** 9 ** 9", 0.0, math.nan),
    ],
)
def test_examples(text, x, expected):
    found = Formula(text, PARAMETERS)(x=x, k=1, catalyst="zeolite", size=4, dry=True, mixed=-4)
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y + 1", r"There is no parameter 'y'; known, nearest first: "),
        ("print", "There is no parameter 'print'"),
        ("__import__('os').system('true')", "is not allowed: a formula may hold numbers"),
        ("print(1)", r"'print\(1\)' is not allowed"),
        ("abs(x)", r"'abs\(x\)' is not allowed"),
        ("min(x)", r"'min\(x\)' must have at least two numbers"),
        ("min(*x, 1)", "must have at least two numbers"),
        ("min(x, 1, key=2)", "is not allowed"),
        ("x.real", "'x.real' is not allowed"),
        ("x[0]", r"'x\[0\]' is not allowed"),
        ("(x, 1)", "is not allowed"),
        ("[x]", "is not allowed"),
        ("{x}", "is not allowed"),
        ("lambda: 1", "is not allowed"),
        ("(y := 1)", "is not allowed"),
        ("[x for x in x]", "is not allowed"),
        ("f'{x}'", "is not allowed"),
        ("x // 2", "'x // 2' is not allowed"),
        ("x % 2", "is not allowed"),
        ("x @ 2", "is not allowed"),
        ("x << 2", "is not allowed"),
        ("~k", "is not allowed"),
        ("not x", "is not allowed"),
        ("x and 1", "is not allowed"),
        ("1j", "is not allowed"),
        ("...", "is not allowed"),
        ("None", "is not allowed"),
        ("True", "'True' is no number: a choice may only be compared"),
        ("'zeolite'", "is no number: a choice may only be compared"),
        ("catalyst * 2", "'catalyst' is no number: compare it, as in 5 if catalyst == 'zeolite' else 1"),
        ("x > 3", "is no number: a comparison stands between if and else"),
        ("(x > 3) * 2", "is no number: a comparison stands"),
        ("1 if x else 2", "'x' is no comparison"),
        ("1 if dry else 2", "'dry' is no comparison"),
        ("1 if x > 1 and x < 2 else 2", "is no comparison"),
        ("1 if x in (1, 2) else 2", "comparisons in a formula are made with"),
        ("1 if x is 1 else 2", "comparisons in a formula are made with"),
        ("1 if catalyst == 'zeolit' else 2", "There is no choice of catalyst 'zeolit'; known, nearest first: zeolite, none"),
        ("1 if dry == 1 else 2", "There is no choice of dry '1'"),
        ("1 if catalyst == dry else 2", "'dry' cannot be compared with catalyst: give one of its values"),
        ("1 if catalyst < 'zeolite' else 2", "'catalyst' is no number"),
        ("1 +", "is not a formula"),
        ("x = 1", "is not a formula"),
        ("import os", "is not a formula"),
        ("x; x", "is not a formula"),
        ("x\0", "is not a formula"),
        ("(" * 300 + "x" + ")" * 300, "is not a formula"),
        ("+".join(["x"] * 500), "more than 100 parts within each other"),
        ("x" + ".a" * 900, "is not allowed"),
        ("x + 1" * 1000, "of at most 2000 characters"),
        ("1e999", "a number of the formula is too large"),
        ("1" + "0" * 400, "a number of the formula is too large"),
        ("", "expected a formula in quotes"),
        (3, "expected a formula in quotes"),
    ],
)
def test_whatever_is_no_arithmetic_is_refused(text, words):
    with pytest.raises(ValueError, match=words) as refused:
        Formula(text, PARAMETERS)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@given(st.text(max_size=40) | st.text(alphabet="xk()+-*/.,<>=! if else0129", max_size=40))
def test_any_text_is_a_formula_or_refused(text):
    try:
        formula = Formula(text, PARAMETERS)
    except ValueError:
        return
    assert isinstance(formula(x=1.0, k=2, catalyst="none", size=1, dry=True, mixed="a"), float)


def test_it_can_be_sent_to_another_process():
    formula = pickle.loads(pickle.dumps(Formula("x + 1", PARAMETERS)))
    assert formula == Formula("x + 1", PARAMETERS)
    assert formula(x=1.0) == 2.0


def test_names_of_parameters_may_be_any_word_that_python_takes_for_one():
    assert Formula("self + min(min, 1)", {"self": Float(0, 1), "min": Float(0, 1)})(self=1.0, min=0.5) == 1.5
