"""Which source code a program depends on is derived, and old code never gets a new key."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import glasses
from glasses import TwoStage
from glasses.runtime import sources
from glasses.surrogate import Matern52

ROOT = Path(glasses.__file__).parent


def test_the_sources_of_a_program_are_those_it_imports():
    """Of the search: everything numerical, and nothing of the loop or the studies."""
    needed, pending = set(), ["glasses.search.multi_start"]
    while pending:
        name = pending.pop()
        if name in needed:
            continue
        needed.add(name)
        found = [sources._own_module(each) for each in sources._source(name).imports if each.startswith("glasses.")]
        pending += [each for each in found if each]
    folders = {name.split(".")[1] for name in needed if name.count(".") > 1}
    assert folders == {"gaussian", "lookahead", "numerics", "runtime", "search", "space", "surrogate"}


@pytest.mark.slow
def test_a_digest_does_not_depend_on_what_is_loaded():
    """Another process that has loaded more or less of the package finds the same program."""
    code = "{more}\nfrom glasses.runtime.sources import digest_of_own_module as d; print(d('glasses.search.multi_start'))"
    found = {
        subprocess.run([sys.executable, "-c", code.format(more=more)], check=True, capture_output=True, text=True).stdout
        for more in ("import glasses.search.multi_start", "import glasses.loop.minimize, glasses.cli", "")
    }
    assert found == {f"{sources.digest_of_own_module('glasses.search.multi_start')}\n"}


def write(folder, name, text, age=1000.0):
    """A module that was last edited ``age`` seconds before this process began."""
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    os.utime(path, (sources._STARTED - age,) * 2)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("mine_")]:
        del sys.modules[name]


KERNEL = """
    from dataclasses import dataclass
    from {helper} import factor
    from glasses.surrogate import SquaredExponential
    @dataclass(frozen=True)
    class Mine(SquaredExponential):
        def correlation(self, r2):
            return factor * super().correlation(r2)
"""


def test_a_kernel_of_ones_own_has_a_digest_of_its_file_and_what_that_imports(own_module):
    write(own_module, "mine_helper", "factor = 1.0\n")
    write(own_module, "mine_kernel", KERNEL.format(helper="mine_helper"))
    write(own_module, "mine_other_helper", "factor = 2.0\n")
    write(own_module, "mine_other", KERNEL.format(helper="mine_other_helper"))
    from mine_kernel import Mine
    from mine_other import Mine as Other

    digests = [sources.digest_of_class(each) for each in (Mine, Other, Matern52)]
    assert None not in digests
    assert len(set(digests)) == 3


def test_a_class_that_is_no_longer_what_its_file_says_has_no_digest(own_module):
    write(own_module, "mine_edited", KERNEL.format(helper="math").replace("factor", "tau"))
    from mine_edited import Mine

    assert sources.digest_of_class(Mine) is not None
    write(own_module, "mine_edited", KERNEL.format(helper="math").replace("factor", "e"))
    assert sources.digest_of_class(Mine) is None


def test_an_edit_of_something_it_imports_takes_the_digest_away(own_module):
    """The old code is in memory, the new one in the file: neither may be the key of the other."""
    write(own_module, "mine_constant", "factor = 1.0\n")
    write(own_module, "mine_user", KERNEL.format(helper="mine_constant"))
    from mine_user import Mine

    assert sources.digest_of_class(Mine) is not None
    write(own_module, "mine_constant", "factor = 2.0\n", age=-10.0)
    assert sources.digest_of_class(Mine) is None


def test_what_cannot_be_digested_has_no_digest(own_module):
    class Local(Matern52):
        pass

    assert sources.digest_of_class(Local) is None
    write(
        own_module, "mine_heavy", "import sklearn.base\n" + textwrap.dedent(KERNEL.format(helper="math")).replace("factor", "e")
    )
    from mine_heavy import Mine

    assert sources.digest_of_class(Mine) is None  # an installed library may change without this file changing


EDITED = """
import sys
sys.path.insert(0, sys.argv[1])
import glasses
from pathlib import Path
assert Path(glasses.__file__).is_relative_to(sys.argv[1]), glasses.__file__
import glasses.search.multi_start
from glasses.runtime.sources import digest_of_own_module
file = Path(glasses.__file__).parent / "gaussian" / "univariate.py"
file.write_text(file.read_text() + "# edited while the process runs")
print(digest_of_own_module("glasses.search.multi_start"))
"""


@pytest.mark.slow
def test_an_edit_after_import_does_not_give_old_code_a_new_key(tmp_path):
    """The first process has the old code in memory and keeps the old key; the next one reads the new file."""
    copy = tmp_path / "glasses"
    for path in ROOT.rglob("*.py"):
        place = copy / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
    found = [
        subprocess.run([sys.executable, "-c", EDITED, str(tmp_path)], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert found[0] == f"{sources.digest_of_own_module('glasses.search.multi_start')}\n"
    assert found[1] != found[0]


def test_static_configuration_is_described_completely():
    from glasses.runtime.program import _words

    words = _words((("loss", TwoStage()), ("size", 8)))
    assert re.search(r"TwoStage [0-9a-f]{64}\(9, KrigingBeliever [0-9a-f]{64}\(\), QMC [0-9a-f]{64}", words)
    assert _words((object(),)) is None
