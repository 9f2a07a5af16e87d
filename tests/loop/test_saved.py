"""An optimiser in a file: what is loaded decides like what was saved; what is no such file is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasses import PAPER, Choice, ExpectedLoss, Float, GaussianProcess, Int, Optimizer, TwoStage
from glasses.search import MultiStart
from glasses.surrogate import Additive, Matern52, Standardize, Warped

MIXED = {"x": Float(1e-3, 10.0, log=True), "k": Int(1, 8), "c": Choice(["a", True, 3, None]), "s": Float(0, 1, step=0.1)}


def told(optimizer, n=7):
    for i in range(n):
        x = optimizer.ask()
        optimizer.tell(x, None if i == 3 else float(i % 5) + 0.1 * i)
    return optimizer


@pytest.mark.parametrize(
    ("bounds", "arguments"),
    [
        ([(0.0, 1.0), (2.0, 5.0)], {}),
        (MIXED, {"count_failures": False, "best_possible": -1.0, "n_initial": 5}),
        (MIXED, {"loss": ExpectedLoss(), "cost": {"c": {"a": 1.0, True: 2.0, 3: 2.5, None: 1.0}}, "budget": 30.0}),
        pytest.param([(0.0, 1.0)], {"preset": PAPER, "budget": 9}, marks=pytest.mark.slow),
        pytest.param(
            [(0.0, 1.0)],
            {"model": GaussianProcess(kernel=Warped(Matern52()) + Additive(), noise=0.1), "loss": TwoStage(steps=3)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_loaded_decides_like_what_was_saved(bounds, arguments, tmp_path):
    optimizer = told(Optimizer(bounds, **{"budget": 16, "seed": 4, **arguments}))
    optimizer.correct(0, 2.5, reason="misread")
    optimizer.withdraw(2)
    pending = optimizer.ask()
    optimizer.save(tmp_path / "run.json")
    found = Optimizer.load(tmp_path / "run.json")
    assert repr(found) == repr(optimizer)
    assert str(found.pending) == str([pending])
    assert str(found.history) == str(optimizer.history)
    assert (found.loss, found.model, found.search) == (optimizer.loss, optimizer.model, optimizer.search)
    assert found.n_initial == optimizer.n_initial
    assert str(found.ask()) == str(optimizer.ask())
    for each in (found, optimizer):
        each.tell(pending, 1.0)
    assert str(found.ask()) == str(optimizer.ask())
    assert found.result().recommended.mean == optimizer.result().recommended.mean


@dataclass(frozen=True)
class OwnLoss(ExpectedLoss):
    pass


def test_what_a_file_cannot_hold_is_given_again(tmp_path):
    path = tmp_path / "run.json"
    price = lambda x: 1.0 + x[0]  # noqa: E731
    optimizer = told(Optimizer([(0, 1)], budget=20, seed=1, cost=price, loss=OwnLoss()), 5)
    optimizer.save(path)
    with pytest.raises(ValueError, match=r"with a loss of your own.*load\(path, loss=\.\.\.\)"):
        Optimizer.load(path, cost=price)
    with pytest.raises(ValueError, match=r"with a cost function.*load\(path, cost=\.\.\.\)"):
        Optimizer.load(path, loss=OwnLoss())
    found = Optimizer.load(path, cost=price, loss=OwnLoss(), search=MultiStart())
    assert found.remaining == optimizer.remaining
    assert found.ask() == optimizer.ask()
    with pytest.raises(ValueError, match="cannot hold the parameter"):
        Optimizer([(0, 1), Choice([np.zeros(2), "a"])], budget=5).save(path)
    assert Optimizer.load(path, cost=price, loss=OwnLoss()).remaining == found.remaining + 1  # the former file is whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(version=3), "is of version 3, this glasses reads version 1 and 2"),
        (lambda c: c.update(format="something else"), "holds no saved optimiser"),
        (lambda c: c.pop("ledger"), "is damaged"),
        (lambda c: c["ledger"]["y"].pop(), "is damaged .its results do not fit together"),
        (lambda c: c["ledger"].update(y=["1.0"] * len(c["ledger"]["y"])), "a value is no number"),
        (lambda c: c["ledger"]["X"].__setitem__(0, [1.0]), "do not fit together"),
        (lambda c: c["parameters"][0].update(kind="os.system"), "is damaged"),
        (lambda c: c["parts"]["loss"].update(kind="Popen"), "is damaged"),
        (lambda c: c.update(budget=-1), "is damaged"),
    ],
)
def test_files_that_are_not_right_are_refused(change, message, tmp_path):
    path = tmp_path / "run.json"
    told(Optimizer([(0, 1), (0, 1)], budget=9, seed=1), 5).save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        Optimizer.load(path)


@settings(max_examples=60, deadline=None)
@given(cut=st.floats(0, 0.999), noise=st.binary(max_size=20))
def test_cut_and_foreign_files_are_refused(cut, noise, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    told(Optimizer([(0, 1)], budget=9, seed=1), 4).save(path)
    whole = path.read_bytes()
    for content in (whole[: int(cut * len(whole))], noise):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"is damaged|holds no saved optimiser"):
            Optimizer.load(path)


def test_kernels_without_a_transform_are_kept(tmp_path):
    model = GaussianProcess(kernel=Matern52(), outputs=Standardize())
    Optimizer([(0, 1)], budget=5, model=model).save(tmp_path / "a.json")
    assert Optimizer.load(tmp_path / "a.json").model == model
