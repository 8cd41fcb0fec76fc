"""The stages that a search for the best model has seen, along a path of ridges, and the best of them on held-out entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed
from gyrostat.estimators.low_rank.solver.path import Stage, error, falling, nothing, refined, root_mean_square
from gyrostat.estimators.low_rank.solver.reweighted import certified
from gyrostat.estimators.low_rank.solver.ridge import largest

LARGE = 1_000_000
"""From so many entries on, two sweeps per ridge: a sweep takes seconds, and warm starts make up for it."""
EXACT_WORK = 1e7
"""Entries times rank, summed over the ranks tried, that a search for an exact fit may cost."""
CLOSE, ATTEMPTS = 0.02, 3
"""The validation error, as a share of the data, from which on a stage of the path is tried for an exact fit; how often."""
DEPTHS, WEAK = (3.0, 2.0), 0.8
"""The depths of "auto": the second where the first leaves more than a share ``WEAK`` of the error of knowing nothing. Of
components that barely stand out of the noise a nuclear norm keeps a part, where deeper ridges keep all or none."""

Say = Callable[[str, Stage], None]


class Options(NamedTuple):
    """How to complete: ``depth`` and ``ridge`` None for the best on held-out entries; ``exact`` is "auto", True or False."""

    depth: float | None = None
    ridge: float | None = None
    max_rank: int | None = None
    exact: str | bool = "auto"


class Search:
    """The stages so far and the best of them."""

    def __init__(self, train: Observed, held: Observed, options: Options, say: Say):
        self.train, self.held, self.options, self.say = train, held, options, say
        self.most = options.max_rank or min(2 * train.largest_rank, *train.shape)
        self.sweeps = 2 if len(train) > LARGE else 3
        self.size = root_mean_square(train.values)
        self.path: list[tuple[float, float, int, float]] = []
        empty = nothing(train.shape)
        self.best = Stage(np.inf, self.depths[0], error(held, empty), empty)

    @property
    def depths(self) -> tuple[float, ...]:
        """Those to try, in turn."""
        given = self.options.depth
        if given is not None:
            return (given,)
        return DEPTHS if self.options.ridge is None else DEPTHS[:1]

    def note(self, stage: Stage) -> None:
        """Keep a stage if it is the best so far, or if the ridge is given."""
        self.path.append((stage.ridge, stage.depth, stage.rank, stage.validation_error))
        if self.options.ridge is not None or not stage.validation_error >= self.best.validation_error:
            self.best = stage
        self.say("ridge path", stage)

    def judged(self, stages: Iterable[Stage]) -> float:
        """Note all of them; the least validation error among them."""
        least = np.inf
        for stage in stages:
            self.note(stage)
            least = min(least, stage.validation_error)
        return least

    def along_ridges(self) -> None:
        """The path of the first depth, and of others as long as little has been found."""
        weak = WEAK * self.best.validation_error
        for depth in self.depths:
            if depth != self.depths[0] and not self.best.validation_error > weak:
                return
            if self._falls(depth):
                return
        if self.options.ridge is None and np.isfinite(self.best.ridge):
            self.judged(refined(self.train, self.held, self.best, self.most, self.sweeps))

    def _falls(self, depth: float) -> bool:
        """One path; whether it led to an exact fit."""
        values = self._towards(depth)
        close, attempts = CLOSE * self.size, 0
        for stage in falling(self.train, self.held, depth, values, self.most, self.sweeps):
            self.note(stage)
            near = stage.validation_error < close and attempts < ATTEMPTS
            if values is None and self.options.exact is not False and near and self.affordable(stage.factors):
                attempts, close = attempts + 1, stage.validation_error / 4
                if self.is_exact(stage):
                    return True
        return False

    def _towards(self, depth: float) -> np.ndarray | None:
        """The ridges on the way to a given one."""
        last = self.options.ridge
        if last is None:
            return None
        top = max(largest(self.train, depth), last)
        count = int(np.ceil(np.log(top / last) / np.log(1 / 0.7))) + 1
        return np.geomspace(top, last, count) if count > 1 else np.array([last])

    def affordable(self, factors: Factors) -> bool:
        """Whether joint steps from these factors may be made."""
        return self.options.exact is True or len(self.train) * factors.rank <= EXACT_WORK

    def is_exact(self, stage: Stage) -> bool:
        """Whether its factors lead to an exact fit of the entries of the path, which is then its best stage."""
        found = certified(self.train, stage.factors)
        if found.exact:
            self.note(Stage(0.0, stage.depth, error(self.held, found.factors), found.factors))
        return found.exact

    def plateau(self, most: int) -> int | None:
        """The rank up to ``most`` at which the path stayed longest: components of the matrix come in at large ridges, those
        of noise at small ones."""
        ranks = Counter(rank for _, _, rank, _ in self.path if 0 < rank <= most)
        return max(ranks, key=lambda rank: (ranks[rank], rank)) if ranks else None


def rounded(seen: Observed) -> bool:
    """Whether values repeat: those of a matrix of low rank do not, so that no exact fit is to be found.

    >>> rounded(Observed((2, 2), np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 1.0, 2.0])))
    False
    """
    return len(np.unique(seen.values)) <= 0.5 * len(seen)
