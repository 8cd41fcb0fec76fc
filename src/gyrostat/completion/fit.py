"""Completion with unknown rank: a path of ridges judged on held-out entries, and a search for an exact fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gyrostat.completion.observed import Factors, Observed, split
from gyrostat.completion.path import Stage, error, falling, refined, root_mean_square, settled
from gyrostat.completion.reweighted import Found, certified, hypothesis
from gyrostat.completion.ridge import Ridge, largest, sweep

LARGE = 1_000_000
"""From so many entries on, two sweeps per ridge: a sweep takes seconds, and warm starts make up for it."""
EXACT_WORK = 1e7
"""Entries times rank, summed over the ranks tried, that a search for an exact fit may cost."""
MARGIN = 1.05
"""Entries over degrees of freedom that an exact fit must have to be a certificate."""

MANY = 1000
"""Held-out entries from which on choice and intervals have their own."""
CLOSE = 0.02
"""The validation error, as a share of the data, from which on a stage of the path is tried for an exact fit."""
ATTEMPTS = 3
GOOD = 0.5
"""The validation error, as a share of the data, below which a model has found something."""
REFITS, SETTLED = 200, 1e-4
"""The most sweeps of the last fit, and the change of the fitted values, as a share of the data, that ends them."""
NEAR = 1.6
"""Entries over degrees of freedom below which a search may fail for want of the entries held out."""

WORSE = 3
"""So many ranks in turn without a better validation error end a search that is judged."""


class Options(NamedTuple):
    """How to complete; ``exact`` is "auto", True or False, ``ridge`` None for the best on held-out entries."""

    depth: float = 3.0
    ridge: float | None = None
    ridges: np.ndarray | None = None
    validation: float = 0.1
    max_rank: int | None = None
    exact: str | bool = "auto"


class Completion(NamedTuple):
    """What was found: factors fitted to all entries, how they were chosen, and untouched entries that judge them."""

    factors: Factors
    ridge: float
    path: list[Stage]
    exact: bool
    validation_error: float
    calibration: np.ndarray
    interrupted: bool


def complete(
    seen: Observed, options: Options, random: np.random.RandomState, say: Callable[[str, Stage], None] = lambda *_: None
) -> Completion:
    """Fit ``seen``. Ctrl-C keeps the best model so far.

    Of the entries held out, one half chooses the ridge and the other is only looked at afterwards, for intervals; when they
    are few, all do both, which costs the intervals a little of their honesty and saves the choice from chance.

    >>> rng = np.random.RandomState(0)
    >>> A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    >>> rows, columns = np.nonzero(rng.random_sample(A.shape) < 0.6)
    >>> found = complete(Observed(A.shape, rows, columns, A[rows, columns]), Options(), rng)
    >>> found.exact, found.factors.rank, bool(np.abs(found.factors.left @ found.factors.right.T - A).max() < 1e-6)
    (True, 2, True)
    """
    train, held = split(seen, options.validation, random)
    half = random.random_sample(len(held)) < 0.5
    choosing, calibrating = (held.take(half), held.take(~half)) if len(held) >= MANY else (held, held)
    search = _Search(train, choosing, options, say)
    interrupted = False
    found: Found | None = None
    try:
        search.along_ridges()
        found = search.exact(seen)
    except KeyboardInterrupt:
        interrupted = True
    best = search.best
    calibration = calibrating.values - best.factors.at(calibrating.rows, calibrating.columns)
    exact = found is not None and found.exact
    if found is not None and found.exact:
        factors, ridge = found.factors, 0.0
    else:
        factors, ridge = best.factors, best.ridge * len(seen) / len(train)
        if not interrupted:
            factors = _refitted(seen, factors, Ridge(ridge, options.depth), search)
    return Completion(factors, ridge, search.path, exact, best.validation_error, calibration, interrupted)


class _Search:
    """The stages seen so far and the best of them."""

    def __init__(self, train: Observed, held: Observed, options: Options, say: Callable[[str, Stage], None]):
        self.train, self.held, self.options, self.say = train, held, options, say
        self.most = options.max_rank or min(2 * train.largest_rank, *train.shape)
        self.sweeps = 2 if len(train) > LARGE else 3
        self.path: list[Stage] = []
        nothing = Factors(np.zeros((train.shape[0], 0)), np.zeros((train.shape[1], 0)))
        self.best = Stage(np.inf, 0, error(held, nothing), nothing)

    def note(self, stage: Stage) -> None:
        self.path.append(stage._replace(factors=self.best.factors))  # factors of all stages would be many
        given = self.options.ridge is not None
        if given or not stage.validation_error >= self.best.validation_error:
            self.best = stage
        self.say("ridge path", stage)

    def along_ridges(self) -> None:
        options, values = self.options, self.options.ridges
        if options.ridge is not None:
            top = max(largest(self.train, options.depth), options.ridge)
            count = int(np.ceil(np.log(top / options.ridge) / np.log(1 / 0.7))) + 1
            values = np.geomspace(top, options.ridge, count) if count > 1 else np.array([options.ridge])
        close, attempts = CLOSE * root_mean_square(self.train.values), 0
        for stage in falling(self.train, self.held, options.depth, values, self.most, self.sweeps):
            self.note(stage)
            if values is None and options.exact is not False and stage.validation_error < close and attempts < ATTEMPTS:
                attempts, close = attempts + 1, stage.validation_error / 4
                if self.is_exact(stage.factors):
                    return
        if options.ridge is None and np.isfinite(self.best.ridge):
            refined(self.train, self.held, self.best, options.depth, self.most, self.sweeps, self.note)

    def is_exact(self, factors: Factors) -> bool:
        """Whether these factors lead to an exact fit of the entries of the path, which is then its best stage."""
        found = certified(self.train, factors)
        if found.exact:
            self.note(Stage(0.0, found.factors.rank, error(self.held, found.factors), found.factors))
        return found.exact

    def exact(self, seen: Observed) -> Found | None:
        """A matrix that fits all entries exactly: from the path if that got near, else rank by rank."""
        if self.options.exact is False or self.options.ridge is not None:
            return None
        found = certified(seen, self.best.factors)
        if found.exact or not self._worth_searching(seen):
            return found
        if self.by_rank(self.train, judged=True) is not None:
            return certified(seen, self.best.factors)
        good = self.best.validation_error < GOOD * root_mean_square(self.train.values)
        if good and NEAR * seen.freedom(max(self.best.rank, 1)) < len(self.train):
            return None  # a model with entries to spare predicts well: it is noise that keeps it from being exact
        # Near the limit the held-out entries are needed too; of lower ranks the search above would have found it.
        near = [rank for rank in range(1, min(seen.shape)) if NEAR * seen.freedom(rank) > len(self.train)]
        return self.by_rank(seen, judged=False, least=min(near, default=1))

    def by_rank(self, seen: Observed, *, judged: bool, least: int = 1) -> Found | None:
        """Try rank after rank; those that do not fit exactly still count as models of noisy data, if they are ``judged``."""
        work, since, lowest, depth = 0.0, 0, np.inf, self.options.depth
        for rank in range(least, min(self.most, seen.largest_rank, min(seen.shape) - 1) + 1):
            work += len(seen) * rank
            if len(seen) < MARGIN * seen.freedom(rank) or (work > EXACT_WORK and self.options.exact == "auto"):
                break
            found = hypothesis(seen, rank, depth)
            before = lowest
            for ridge, factors in self._shrunk(found.factors) if judged else ():
                stage = Stage(ridge, factors.rank, error(self.held, factors), factors)
                lowest = min(lowest, stage.validation_error)
                self.note(stage)
            if not judged:
                self.say("exact fit", Stage(0.0, rank, self.best.validation_error, found.factors))
            if found.exact:
                return found
            since = 0 if lowest < before else since + 1  # by their own errors: the path may be ahead of all low ranks
            if judged and since >= WORSE and lowest < GOOD * root_mean_square(self.train.values):
                break  # below the true rank errors go up and down: not before something has been found
        return None

    def _shrunk(self, factors: Factors) -> list[tuple[float, Factors]]:
        """Ridges around the best of the path so far, and the factors after some sweeps with them."""
        out = []
        for share in (1.0, 0.25, 0.01) if np.isfinite(self.best.ridge) else ():
            ridge, shrunk = Ridge(share * self.best.ridge, self.options.depth), factors
            for _ in range(2 * self.sweeps if shrunk.rank else 0):
                shrunk, _ = sweep(self.train, shrunk, ridge)
            out.append((ridge.strength, shrunk))
        return out

    def _worth_searching(self, seen: Observed) -> bool:
        # Values that repeat are rounded: a matrix of low rank has none that do.
        return self.options.exact is True or len(np.unique(seen.values)) > 0.5 * len(seen)


def _refitted(seen: Observed, factors: Factors, ridge: Ridge, search: _Search) -> Factors:
    """The best model of the path, fitted to all entries; the rank may fall, but nothing new comes in."""
    if factors.rank == 0 and np.isfinite(ridge.strength):
        factors = settled(seen, factors, ridge, search.most, search.sweeps)
    values = factors.at(seen.rows, seen.columns)
    # Sweeps converge slowly where cells are few, and the held-out cells that come in now matter most there.
    for _ in range((2 * search.sweeps if len(seen) > LARGE else REFITS) if factors.rank else 0):
        factors, _ = sweep(seen, factors, ridge)
        before, values = values, factors.at(seen.rows, seen.columns)
        if root_mean_square(values - before) < SETTLED * root_mean_square(seen.values):
            break
    return factors
