"""``GlassesSearchCV``: hyperparameter search for scikit-learn's estimators that plans for all the evaluations left.

It keeps the contract of scikit-learn's own searches (``best_params_``, ``cv_results_``, ``refit``, ``n_jobs``), so it stands
wherever ``RandomizedSearchCV`` does, in pipelines and inside other cross-validations. One evaluation is the mean score over all
folds. Candidates are decided one at a time, each with all the scores so far; with more jobs than folds, as many at a time as
keep all jobs busy. Needs scikit-learn (``pip install 'glasses[sklearn]'``).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs

try:
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
except ImportError as error:  # pragma: no cover
    raise ImportError("glasses.sklearn needs scikit-learn: pip install 'glasses[sklearn]'.", name="sklearn") from error

from glasses.configuration.unknown import unknown
from glasses.loop.ledger import ExhaustedError
from glasses.loop.optimizer import Optimizer
from glasses.loop.stopping import Criterion, for_maximizing, is_criterion
from glasses.space.parameters import Choice, Float, Int, Parameter

if TYPE_CHECKING:
    from glasses.study.stored import StoredStudy

_FOLDS = "folds"  # what a study keeps of each candidate besides its mean score
_ALL_FAILED = "\nAll the "  # how scikit-learn's message begins when no fold of a batch could be fitted


class GlassesSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search the hyperparameters of an estimator by cross-validation, within a known number of candidates.

    Parameters
    ----------
    estimator : estimator
        What is tuned. Its own ``score`` is used unless ``scoring`` is given.
    parameters : dict
        By name, as in ``estimator.get_params()``: a range ``(low, high)``, ``Float``, ``Int``, ``Choice``, a list of choices,
        or one of SciPy's distributions ``uniform``, ``loguniform`` and ``randint`` as ``RandomizedSearchCV`` takes them. None
        with ``study``.
    budget : int
        Candidates in all.
    n_initial : int, optional
        Candidates before the model decides (default: twice the number of parameters, at most half the budget).
    stop : Criterion, optional
        When to stop before, in terms of the score: ``glasses.Target(0.98)``, ``glasses.NoGain()``, ``glasses.Price(0.001)``.
    study : path, optional
        A study file with the parameters, the budget and ``direction = "maximize"``. Scores are kept in its database: a search
        that was interrupted goes on, and several processes may share one.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in ``RandomizedSearchCV``; one score only. A candidate of which a fold cannot be fitted has failed, and the search
        keeps away from it (with ``error_score="raise"`` it ends the search).
    random_state : int or RandomState, optional
        Same state, same candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from glasses.sklearn import GlassesSearchCV
    >>> search = GlassesSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, budget=3, cv=3, random_state=0)
    >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Mapping[str, Any] | None = None,
        *,
        budget: int = 30,
        n_initial: int | None = None,
        stop: Criterion | None = None,
        study: str | Path | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.parameters = parameters
        self.budget = budget
        self.n_initial = n_initial
        self.stop = stop
        self.study = study
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> GlassesSearchCV:
        """Search, and fit the best candidate to all the data if ``refit``."""
        self._check()
        with ExitStack() as opened:
            self._source = self._open(opened)
            try:
                super().fit(X, y, **params)
            finally:
                for name in ("_source", "_earlier", "_newest", "_repeating"):
                    self.__dict__.pop(name, None)
        return self

    def _check(self) -> None:
        if not hasattr(self.estimator, "fit"):
            raise TypeError(
                f"estimator must have a method fit, got {self.estimator!r}: give an estimator of scikit-learn's kind."
            )
        if self.scoring is not None and not isinstance(self.scoring, str) and not callable(self.scoring):
            raise ValueError(f"scoring must be one score, got {self.scoring!r}: one number is searched for, name that one.")
        if self.stop is not None and not is_criterion(self.stop):
            raise ValueError(f"stop must be a criterion such as glasses.Target(0.98), got {self.stop!r}.")
        if (self.parameters is None) == (self.study is None):
            raise ValueError("Give either parameters or a study file that names them, and not both.")

    def _open(self, opened: ExitStack) -> _Source:
        if self.study is None:
            assert self.parameters is not None
            space = _space(self.parameters)
            _check_names(self.estimator, space)
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return _Memory(Optimizer(space, budget=self.budget, n_initial=self.n_initial, seed=seed), self.stop)
        from glasses.study.file import read_study
        from glasses.study.stored import StoredStudy

        file = read_study(Path(self.study))
        if not file.maximize:
            raise ValueError(f'Scores are maximised: write direction = "maximize" into {file.path}.')
        _check_names(self.estimator, file.parameters)
        return _Study(opened.enter_context(StoredStudy(file)))

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
        width = max(1, effective_n_jobs(self.n_jobs) // self.n_splits_)
        self._earlier = self._source.earlier(self.n_splits_)
        self._newest: list[dict[str, Any]] = []  # what scikit-learn says of each fold since
        self._repeating = False
        failure: ValueError | None = None
        while asked := self._source.ask(width):
            try:
                results = evaluate_candidates([dict(each.params) for each in asked])
                if "mean_test_score" not in results:
                    raise ValueError("scoring must give one number, got several: return the one that is searched for.")
            except BaseException as error:
                if not _is_of_all_folds(error, self.error_score):
                    self._source.give_back(asked)
                    raise
                failure = error  # type: ignore[assignment]
                for each in asked:
                    self._source.tell(each, None, [])
                    self._earlier.append((each.params, [_failed_fold(self.return_train_score)] * self.n_splits_))
                continue
            folds = self._newest[-len(asked) * self.n_splits_ :]
            for k, each in enumerate(asked):
                score = float(results["mean_test_score"][k - len(asked)])
                self._source.tell(each, score, folds[k * self.n_splits_ : (k + 1) * self.n_splits_])
        if not self._newest:
            self._repeat_best(evaluate_candidates, failure)

    def _repeat_best(self, evaluate_candidates: Callable[..., Any], failure: ValueError | None) -> None:
        """scikit-learn's search must evaluate something: with all of the budget spent before, the best once more."""
        means = [np.mean([fold["test_scores"] for fold in folds]) for _, folds in self._earlier]
        if not np.any(np.isfinite(means)):
            raise failure or ValueError("No candidate has a score and the budget is spent: raise budget in the study file.")
        self._repeating = True
        evaluate_candidates([dict(self._earlier[int(np.nanargmax(means))][0])])

    def _format_results(
        self, candidate_params: list[dict[str, Any]], n_splits: int, out: list[dict[str, Any]], more_results: Any = None
    ) -> dict[str, Any]:
        """scikit-learn's table, of earlier candidates too."""
        if self._repeating:
            candidate_params, out = [], []
        self._newest = out
        params = [params for params, _ in self._earlier] + candidate_params
        return super()._format_results(params, n_splits, [f for _, folds in self._earlier for f in folds] + out, more_results)


class _Candidate(NamedTuple):
    params: Mapping[str, Any]
    trial: Any = None  # of a study


class _Source(Protocol):
    """Where candidates come from and scores go."""

    def ask(self, most: int) -> list[_Candidate]:
        """The next candidates; none where the search is over."""

    def tell(self, candidate: _Candidate, score: float | None, folds: list[dict[str, Any]]) -> None: ...

    def give_back(self, candidates: list[_Candidate]) -> None:
        """They were not evaluated."""

    def earlier(self, n_splits: int) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
        """Candidates scored before this search began, with their folds."""


class _Memory:
    """An optimiser of this process."""

    def __init__(self, optimizer: Optimizer, stop: Criterion | None) -> None:
        self.optimizer = optimizer
        self.stop = None if stop is None else for_maximizing(stop)

    def ask(self, most: int) -> list[_Candidate]:
        optimizer = self.optimizer
        if optimizer.remaining and self.stop is not None and optimizer.values and self.stop.reason(optimizer) is not None:
            return []
        found: list[_Candidate] = []
        try:
            while len(found) < most and optimizer.remaining:
                found.append(_Candidate(optimizer.ask()))
        except ExhaustedError:
            pass  # every configuration is evaluated
        return found

    def tell(self, candidate: _Candidate, score: float | None, folds: list[dict[str, Any]]) -> None:
        self.optimizer.tell(candidate.params, None if score is None else -score)

    def give_back(self, candidates: list[_Candidate]) -> None:
        pass  # the search ends with an exception, and this optimiser with it

    def earlier(self, n_splits: int) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
        return []


class _Study:
    """A study in its database, which other processes may share."""

    def __init__(self, stored: StoredStudy) -> None:
        self.stored = stored

    def ask(self, most: int) -> list[_Candidate]:
        found: list[_Candidate] = []
        while len(found) < most and self.stored.reason_to_stop() is None:
            trial = self.stored.claim(by_hand=True)
            if trial is None:
                break
            try:
                params = self.stored.point(trial)
            except ExhaustedError:
                break
            except BaseException:
                self.stored.give_back(trial)
                raise
            if params is not None:
                found.append(_Candidate(params, trial))
        return found

    def tell(self, candidate: _Candidate, score: float | None, folds: list[dict[str, Any]]) -> None:
        from glasses.study.objective import Evaluation

        found = score is not None and math.isfinite(score)
        outcome = Evaluation(score, None, {_FOLDS: folds}) if found else Evaluation(None, "a fold could not be fitted")
        self.stored.finish(candidate.trial, outcome, candidate.params)

    def give_back(self, candidates: list[_Candidate]) -> None:
        for each in candidates:
            self.stored.give_back(each.trial)

    def earlier(self, n_splits: int) -> list[tuple[Mapping[str, Any], list[dict[str, Any]]]]:
        trials = [each for each in self.stored.trials() if each.value is not None and _FOLDS in each.user_attrs]
        for each in trials:
            if len(each.user_attrs[_FOLDS]) != n_splits:
                raise ValueError(
                    f"The study's scores are of {len(each.user_attrs[_FOLDS])} folds, this search has {n_splits}: use the same "
                    "cv, or a study of another name."
                )
        return [(each.params, each.user_attrs[_FOLDS]) for each in trials]


def _is_of_all_folds(error: BaseException, error_score: Any) -> bool:
    """Whether scikit-learn ended the batch because no fold of it could be fitted."""
    return isinstance(error, ValueError) and not isinstance(error_score, str) and str(error).startswith(_ALL_FAILED)


def _failed_fold(with_train: bool) -> dict[str, Any]:
    fold = {"fit_error": None, "test_scores": math.nan, "n_test_samples": 0, "fit_time": math.nan, "score_time": math.nan}
    return {**fold, "train_scores": math.nan} if with_train else fold


def _space(given: Mapping[str, Any]) -> dict[str, Parameter | tuple[float, float]]:
    """Ranges and choices as scikit-learn's users write them, as parameters."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"parameters must be a dict of ranges and choices by name, got {given!r}.")
    return {name: _parameter(name, each) for name, each in given.items()}


def _parameter(name: str, given: Any) -> Any:
    if isinstance(given, Float | Int | Choice):
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, numbers.Real) for each in given):
        return given
    if isinstance(given, list | np.ndarray):
        return Choice(list(given))
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal", "randint"):
        low, high = (float(each) for each in given.support())
        return Int(int(low), int(high)) if kind == "randint" else Float(low, high, log=kind != "uniform")
    raise ValueError(
        f"parameters[{name!r}] must be a range (low, high), Float, Int, Choice, a list of choices, or SciPy's uniform, "
        f"loguniform or randint, got {given!r}."
    )


def _check_names(estimator: Any, names: Iterable[str]) -> None:
    known = estimator.get_params(deep=True)
    for name in names:
        if name not in known:
            raise ValueError(f"parameters: {unknown(f'parameter of {type(estimator).__name__}', name, list(known)[:200])}")
