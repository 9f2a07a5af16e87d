"""What studies need of a storage of Optuna's kind: one winner of every race, nothing lost, nothing altered.

``GlassesSampler`` counts the budget by the numbers of trials, takes turns by tickets in attributes of running trials, and keeps
what a person changes as attributes of the study. Optuna's own suite for storages, ``optuna.testing.pytest_storages``, says what
Optuna needs; this one says what the budget, the turns and the changes need besides. Needs ``glasses[study]``.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

try:
    import optuna
except ImportError as error:  # pragma: no cover
    raise ImportError("StorageContract needs Optuna 5: pip install 'glasses[study]'.", name="optuna") from error

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from glasses.optuna.changes import new_change
from glasses.optuna.sampler import GlassesSampler
from glasses.optuna.storage import HEARTBEAT, StudyStorage
from glasses.testing.contract import Contract

THREADS = 4
SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(0.0, 1.0),
    "rate": FloatDistribution(1e-5, 1.0, log=True),
    "k": IntDistribution(0, 9),
    "kind": CategoricalDistribution(["a", 2, None, True]),
}
POINT = {"x": 0.1 + 0.2, "rate": 1.0 / 3.0, "k": 7, "kind": None}


def opened(storage: BaseStorage, sampler: optuna.samplers.BaseSampler | None = None) -> Study:
    """The study of a test in this storage; made by whoever comes first."""
    return optuna.create_study(study_name="contract", storage=storage, sampler=sampler, load_if_exists=True)


def side_by_side(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each call gives, all begun at the same moment, each in a thread of its own."""
    found: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []
    begin = threading.Barrier(len(calls))

    def do(k: int) -> None:
        try:
            begin.wait()
            found[k] = calls[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=do, args=(k,)) for k in range(len(calls))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]
    return found


class StorageContract(Contract):
    """Give by a fixture ``open_storage`` a function that opens the storage: empty for each test, and each call of a test opens
    the same one again, as another process would. A storage that lives in one process returns the same object.
    """

    @pytest.fixture
    def two(self, open_storage: Callable[[], BaseStorage]) -> tuple[StudyStorage, StudyStorage]:
        """The same study, opened twice."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        mine = StudyStorage(opened(open_storage()))
        return mine, StudyStorage(opened(open_storage()))

    def test_a_trial_is_claimed_once(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        """WAITING becomes RUNNING for one of many who try at the same moment."""
        for _ in range(3):
            trial = two[0].add(create_trial(state=TrialState.WAITING))
            won = side_by_side([lambda k=k, t=trial: two[k % 2].claim(t) for k in range(THREADS)])  # type: ignore[misc]
            assert sorted(won) == [False] * (THREADS - 1) + [True]
            assert two[1].current(trial).state == TrialState.RUNNING

    def test_a_result_is_stored_once(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        """The second of two results is refused, and the first one stays."""
        trial = two[0].add(create_trial(state=TrialState.RUNNING))
        won = side_by_side(
            [lambda k=k: two[k % 2].finish(trial, TrialState.COMPLETE, float(k)) for k in range(THREADS)]  # type: ignore[misc]
        )
        assert sorted(won) == [False] * (THREADS - 1) + [True]
        assert [each.value for each in two[1].trials()] == [float(won.index(True))]
        assert not two[0].finish(trial, TrialState.FAIL)
        assert two[0].trials()[0].state == TrialState.COMPLETE

    def test_trials_are_numbered_without_gaps_in_the_order_of_the_storage(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        """The budget is counted by number: whoever adds trials at the same moment, all see the same ones."""

        def add(k: int) -> list[int]:
            return [two[k % 2].add(create_trial(state=TrialState.WAITING)).number for _ in range(5)]

        numbers = side_by_side([lambda k=k: add(k) for k in range(THREADS)])  # type: ignore[misc]
        assert sorted(itertools.chain(*numbers)) == list(range(5 * THREADS))
        for each in two:
            assert [trial.number for trial in each.trials()] == list(range(5 * THREADS))

    def test_points_come_back_as_they_were(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        """Every digit, and choices of any kind."""
        trial = create_trial(state=TrialState.COMPLETE, value=0.1 + 0.7, params=POINT, distributions=SPACE)
        number = two[0].add(trial).number
        found = two[1].trials()[number]
        assert found.params == POINT
        assert [type(each) for each in found.params.values()] == [type(each) for each in POINT.values()]
        assert found.distributions == SPACE
        assert found.value == 0.1 + 0.7

    def test_attributes_are_seen_by_others_and_fixed_once_a_trial_has_ended(
        self, two: tuple[StudyStorage, StudyStorage]
    ) -> None:
        """Nested ones and long ones too; system and user attributes of one name are two."""
        trial = two[0].add(create_trial(state=TrialState.RUNNING))
        value = {"nested": [1, 2.5, None, True, {"ü": "text"}], "long": "x" * 5000}
        two[0].mark(trial, "name", value)
        two[1].note(trial, "name", [1.0 / 3.0])
        two[1].mark(trial, "name of another", 1)
        two[0].mark(trial, "name of another", 2)
        for each in two:
            found = each.current(trial)
            assert found.system_attrs == {"name": value, "name of another": 2}
            assert found.user_attrs == {"name": [1.0 / 3.0]}
        two[0].finish(trial, TrialState.COMPLETE, 1.0)
        for set_it in (two[0].mark, two[1].note):
            with pytest.raises(UpdateFinishedTrialError):
                set_it(trial, "late", 1)

    def test_signs_of_life_are_seen_by_others(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        trial = two[0].add(create_trial(state=TrialState.RUNNING))
        seen = []
        for _ in range(3):
            two[0].beat(trial)
            seen.append(two[1].trials(TrialState.RUNNING)[0].system_attrs[HEARTBEAT])
        assert len(set(seen)) == 3

    def test_changes_of_many_people_are_all_kept_in_one_order(self, two: tuple[StudyStorage, StudyStorage]) -> None:
        """Corrections and what takes them back are attributes of the study: none overwrites another."""
        for y in (3.0, 1.0, 2.0):
            two[0].add(create_trial(state=TrialState.COMPLETE, value=y, params=POINT, distributions=SPACE))

        def change(k: int) -> None:
            two[k % 2].change(new_change(two[k % 2].changes(), "withdraw", 1, reason=f"by {k}"))

        side_by_side([lambda k=k: change(k) for k in range(THREADS)])  # type: ignore[misc]
        mine, theirs = (each.changes() for each in two)
        assert mine == theirs
        assert sorted(each.reason or "" for each in mine) == [f"by {k}" for k in range(THREADS)]
        two[1].change(new_change(theirs, "correct", 0, value=9.0))
        assert two[0].trials()[0].value == 9.0
        assert two[0].raw_trials()[0].value == 3.0

    def test_workers_side_by_side_meet_the_budget_at_different_points(self, open_storage: Callable[[], BaseStorage]) -> None:
        """Threads of two workers: each point is decided with all the others as pending, so none is evaluated twice."""
        grid: dict[str, BaseDistribution] = {"a": IntDistribution(0, 3), "b": IntDistribution(0, 2)}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = [GlassesSampler(budget=12, n_initial=12, seed=1, noise=0.0, search_space=grid) for _ in range(2)]
        studies = [opened(open_storage(), each) for each in samplers]

        def objective(trial: optuna.Trial) -> float:
            return float(trial.suggest_int("a", 0, 3) + trial.suggest_int("b", 0, 2))

        def work(study: Study) -> None:
            for _ in range(3):
                trial = study.ask(grid)
                study.tell(trial, objective(trial))

        side_by_side([lambda s=studies[k % 2]: work(s) for k in range(THREADS)])  # type: ignore[misc]
        trials: list[FrozenTrial] = StudyStorage(studies[1]).trials()
        assert len(trials) == 12
        assert {each.state for each in trials} == {TrialState.COMPLETE}
        assert Counter((each.params["a"], each.params["b"]) for each in trials) == Counter(
            {(a, b): 1 for a in range(4) for b in range(3)}
        )
