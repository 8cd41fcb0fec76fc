"""After the path of ridges: which rank, and is there a matrix of that rank that fits every entry?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, balanced
from gyrostat.estimators.low_rank.solver.path import Stage, narrowed
from gyrostat.estimators.low_rank.solver.repair import concentrated, repaired
from gyrostat.estimators.low_rank.solver.reweighted import Found, certified, hypothesis
from gyrostat.estimators.low_rank.solver.ridge import Ridge, residual
from gyrostat.estimators.low_rank.solver.search import EXACT_WORK, LARGE, Search, rounded
from gyrostat.estimators.low_rank.solver.spectrum import strongest

MARGIN = 1.05
"""Entries over degrees of freedom that an exact fit must have to be a certificate."""
NEAR = 1.6
"""Entries over degrees of freedom below which a search may fail for want of the entries held out."""
ENOUGH, PER_ROW = 1.25, 20
"""Entries over degrees of freedom of a model, and entries in a row, from which on its residual tells noise from wrong rows.
With fewer (n = 100, rank 3, 1.5 times the freedom) a matrix that could be found was given up."""
GOOD = 0.5
"""The validation error, as a share of the data, below which a model has found something."""
EDGE = 1.2
"""The strongest component of a residual over that of noise of its size from which on there is more to be found in it."""
REPAIRS = 1e5
"""Entries times rank up to which a fit that is nearly right is repaired: that takes seconds."""
WORSE = 3
"""So many ranks in turn without a better validation error end a search that is judged."""


class Ranks:
    """Rank after rank, those near the plateau of the path first; models on the way are judged on held-out entries too."""

    def __init__(self, search: Search, seen: Observed):
        self.search, self.seen = search, seen
        self.work, self.tried = 0.0, {True: set[int](), False: set[int]()}

    def exact(self) -> Found | None:
        """A matrix that fits all entries exactly, if there is one; the search's best model may be a better one after it."""
        options = self.search.options
        if options.ridge is not None:
            return None
        plateau = self.search.plateau(self._most(self.seen))
        if options.exact is False or not self._worth_searching():
            self._narrow(plateau)
            return None
        best = self.search.best.factors
        if self.search.affordable(best) and (found := certified(self.seen, best)).exact:
            return found
        if plateau and self.good and self._roomy(plateau):
            self._narrow(plateau)
            if self._only_noise():
                return None
        return self._by_rank(plateau)

    @property
    def good(self) -> bool:
        """Whether something has been found."""
        return self.search.best.validation_error < GOOD * self.search.size

    def _by_rank(self, plateau: int | None) -> Found | None:
        found = self._around(plateau) if plateau else None
        if found is None and not self.good:
            found = self._judged(range(1, self._most(self.search.train) + 1))
        if found is not None or (self.good and self._roomy(max(self.search.best.rank, 1))):
            return found  # a model with entries to spare that predicts well: it is noise that keeps it from being exact
        if self._plainly_noise():
            return None
        # Near the limit the held-out entries are needed too; of lower ranks the search above would have found it.
        near = [rank for rank in range(1, self._most(self.seen) + 1) if not self._roomy(rank)]
        likely = {plateau, self.search.best.rank}
        if self.good:
            near = [rank for rank in near if any(abs(rank - other) <= 1 for other in likely if other)]
        return self._unjudged(near)

    def _around(self, plateau: int) -> Found | None:
        """The plateau, judged and on all entries; if it has found something, its neighbours while they are better."""
        found = self._judged([plateau])
        if found is None and not self._plainly_noise():
            found = self._unjudged([plateau], repairs=len(self.seen) * plateau < REPAIRS)
        for step in (1, -1) if found is None and self.good else ():
            rank = plateau
            while found is None and self.search.best.rank == rank and 1 <= rank + step <= self._most(self.search.train):
                rank += step
                found = self._judged([rank])
        return found

    def _judged(self, ranks: Iterable[int]) -> Found | None:
        """Exact fits of the entries of the path, confirmed on all; others count as models of noisy data."""
        search, since, lowest = self.search, 0, np.inf
        for rank in ranks:
            found = self._tried(search.train, rank, judged=True)
            if found is None:
                continue
            before = lowest
            if found.exact:
                search.is_exact(Stage(0.0, search.best.depth, np.nan, found.factors))
                return certified(self.seen, search.best.factors)
            lowest = min(lowest, search.judged(self._shrunk(found.factors)))
            since = 0 if lowest < before else since + 1  # by their own errors: the path may be ahead of all low ranks
            if since >= WORSE and lowest < GOOD * search.size:
                break  # below the true rank errors go up and down: not before something has been found
        return None

    def _unjudged(self, ranks: Iterable[int], *, repairs: bool = False) -> Found | None:
        """Exact fits of all entries; nothing is left to judge others by."""
        for rank in ranks:
            found = self._tried(self.seen, rank, judged=False)
            if found is not None:
                if repairs and not found.exact:
                    found = repaired(self.seen, found, max(self.search.depths))
                best = self.search.best
                self.search.say("exact fit", Stage(0.0, best.depth, best.validation_error, found.factors))
                if found.exact:
                    return certified(self.seen, found.factors)
        return None

    def _tried(self, entries: Observed, rank: int, *, judged: bool) -> Found | None:
        """None if it has been tried before, could not be certified or would cost too much."""
        cost = len(entries) * rank
        dear = self.work + cost > EXACT_WORK and self.search.options.exact == "auto"
        if rank in self.tried[judged] or rank > self._most(entries) or dear:
            return None
        self.work += cost
        self.tried[judged].add(rank)
        return hypothesis(entries, rank, max(self.search.depths))

    def _narrow(self, plateau: int | None) -> None:
        """Models of exactly the plateau's rank, or next to it, from the components of the best."""
        search, best, large = self.search, self.search.best, len(self.seen) > LARGE
        (left, right), _ = balanced(best.factors)
        near = (plateau,) if large else (plateau, plateau + 1, plateau - 1) if plateau else ()
        for rank in near if self.good else ():
            if rank and rank <= best.rank:
                start, ridge = Factors(left[:, :rank], right[:, :rank]), Ridge(best.ridge, best.depth)
                stages = narrowed(search.train, search.held, start, ridge, 2 * search.sweeps)
                search.judged(islice(stages, 3) if large else stages)

    def _shrunk(self, factors: Factors) -> Iterable[Stage]:
        search, ridge = self.search, Ridge(self.search.best.ridge, self.search.best.depth)
        if not np.isfinite(ridge.strength):
            return ()
        return narrowed(search.train, search.held, factors, ridge, 2 * search.sweeps)

    def _only_noise(self) -> bool:
        """Whether the best model leaves nothing that stands out: then no matrix of low rank fits better, let alone exactly."""
        train = self.search.train
        left = residual(train, self.search.best.factors)
        most = [np.sqrt(np.bincount(at).max()) for at in (train.rows, train.columns)]
        edge = float(np.sqrt(np.mean(left**2))) * sum(most)
        return bool(strongest(train, left, 1)[1][0] < EDGE * edge)

    def _plainly_noise(self) -> bool:
        """Whether it is noise that keeps a good model from being exact, rather than a few rows that are wrong."""
        train, best = self.search.train, self.search.best.factors
        enough = best.rank > 0 and ENOUGH * train.freedom(best.rank) < len(train) >= PER_ROW * max(train.shape)
        return enough and self.good and not concentrated(train, best) and self._only_noise()

    def _roomy(self, rank: int) -> bool:
        return NEAR * self.seen.freedom(rank) < len(self.search.train)

    def _most(self, entries: Observed) -> int:
        """The largest rank that could be certified."""
        most = min(self.search.most, entries.largest_rank, min(entries.shape) - 1)
        while most > 0 and len(entries) < MARGIN * entries.freedom(most):
            most -= 1
        return most

    def _worth_searching(self) -> bool:
        return self.search.options.exact is True or not rounded(self.seen)
