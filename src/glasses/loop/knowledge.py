"""What is known at a moment of a run, as the numerics see it: the fitted model, its doubts, the failures, the situation.

Everything is a function of the books, the model and the seed, computed once per state.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from glasses.loop.ledger import Ledger
from glasses.runtime.padding import data_size, pad_rows
from glasses.search.decision import Situation
from glasses.search.underway import gain_under_way
from glasses.surrogate.gaussian_process import GaussianProcess
from glasses.surrogate.posterior import Posterior, grow
from glasses.surrogate.success import Success, disappointed, fit_success

SMALL = 256  # configurations: a space of no more is looked at as a whole


class Knowledge:
    """The books of a run seen through a model."""

    def __init__(self, books: Ledger, model: GaussianProcess, seed: int) -> None:
        self.books, self.space, self.model, self.seed = books, books.space, model, seed
        self._cache: dict[Any, Any] = {}

    def rng(self, purpose: int, *, decision: bool = True) -> np.random.Generator:
        """Random numbers for a purpose: the same whenever as much has been evaluated, or in the whole run."""
        return np.random.default_rng([self.seed, purpose, self.books.evaluated if decision else 0])

    def once(self, what: str, key: tuple[Any, ...], make: Any) -> Any:
        """``make()``, remembered until the key changes."""
        key = (what, *key)
        if key not in self._cache:
            made = make()  # before anything is dropped: it may remember things of its own
            self._cache = {k: v for k, v in self._cache.items() if k[0] != what} | {key: made}
        return self._cache[key]

    def moment(self) -> tuple[Any, ...]:
        """What a decision depends on besides its configuration."""
        books = self.books
        return len(books.y), len(books.failed), tuple(x.tobytes() for x in books.pending), books.budget

    def units(self) -> tuple[float, float]:
        """Centre and scale of the outputs; a constant has scale 1."""
        y = np.array(self.books.y)
        centre = float(np.mean(y))
        size = float(np.max(np.abs(y)))
        spread = float(np.std(y / size)) if size > 0 else 0.0  # relative first: squares of tiny values vanish
        return centre, size * spread if spread > 1e-13 else 1.0

    def posterior(self) -> Posterior:
        """The fitted model given everything told, over the unit cube and standardised outputs."""
        if not self.books.y:
            raise ValueError("There is no data to fit a model to: tell at least one evaluation first.")

        def fit() -> Posterior:
            centre, scale = self.units()
            X = self.space.to_unit(np.array(self.books.X))
            y = np.round((np.array(self.books.y) - centre) / scale, 10)
            return self.model.posterior(X, y, y_centre=centre, y_scale=scale, choice=self.space.choice)

        return self.once("posterior", (len(self.books.y), self.model), fit)

    def success(self) -> Success | None:
        """The model of failures, once there is one."""
        books = self.books
        if not books.failed:
            return None

        def fit() -> Success:
            X = self.space.to_unit(np.array(books.X + books.failed))
            return fit_success(self.model.kernel, X, np.arange(len(X)) >= len(books.X), self.space.choice)

        return self.once("success", (len(books.y), len(books.failed), self.model.kernel), fit)

    def situation(self) -> Situation:
        """What a search is given."""
        space, books = self.space, self.books
        pending = space.to_unit(np.array(books.pending)) if books.pending else np.zeros((0, space.d))
        return Situation(
            self._told_of_failures(self.posterior()),
            pending,
            books.remaining,
            space.lattice,
            self.success(),
            space.every(SMALL),
            None if books.cost is None else books.cost.at,
            books.purse,
            self.once("doubt", (*self.moment(), self.model), self._doubt),
            self.posterior(),
        )

    def under_way(self) -> float:
        """[eq:waiting]: what the pending evaluations are expected to gain by themselves, in the units of y."""
        if not self.books.pending:
            return 0.0
        key = (*self.moment(), self.model)
        return self.units()[1] * self.once("under way", key, lambda: gain_under_way(self.model.kernel, self.situation()))

    def _doubt(self) -> Posterior | None:
        """Other hyperparameters that the values allow, each told of the failures."""
        stacked = self.model.doubt(self.posterior(), self.units()[1])
        if stacked is None:
            return None
        plain = jax.tree.map(np.asarray, stacked)
        members = [self._told_of_failures(jax.tree.map(lambda a, m=m: a[m], plain)) for m in range(self.model.draws)]
        return jax.tree.map(lambda *each: np.stack([np.asarray(a) for a in each]), *members)

    def _told_of_failures(self, post: Posterior) -> Posterior:
        """With room for what is pending, and each failed point as having brought nothing."""
        books = self.books
        post = _with_room(post, len(books.failed) + len(books.pending))
        if not books.failed:
            return post
        failed = self.space.to_unit(np.array(books.failed))
        padded = pad_rows(failed, data_size(len(failed)))
        return disappointed(post, padded, np.asarray(len(failed)), kernel=self.model.kernel)


def _with_room(post: Posterior, extra: int) -> Posterior:
    """The posterior in arrays large enough for ``extra`` more observations."""
    have, need = post.X.shape[0], data_size(int(post.observed) + extra)
    return post if need <= have else grow(post, need)
