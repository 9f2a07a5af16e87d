"""``minimize`` documents what it takes and what it gives."""

import inspect
import re

from glasses import minimize


def test_every_parameter_is_documented_once_and_in_order():
    sections = dict(re.findall(r"^(\w+)\n-{5,}\n(.*?)(?=^\w+\n-{5,}|\Z)", inspect.getdoc(minimize), re.DOTALL | re.MULTILINE))
    documented = re.findall(r"^(\w[\w, ]*) : ", sections["Parameters"], re.MULTILINE)
    assert [name for names in documented for name in names.split(", ")] == list(inspect.signature(minimize).parameters)
    assert sections["Returns"].startswith("Result\n")
