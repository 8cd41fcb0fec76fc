"""A path of falling ridges with warm starts: components enter where they are worth their cost, and may leave again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed
from gyrostat.estimators.low_rank.solver.ridge import Ridge, grown, largest, sweep

FALL = 0.7
"""A ridge over the one before it."""
PATIENCE, FOUND, CONVEX = (5, 3), 0.9, 2
"""So many ridges without a better validation error end the path: the second from a share ``FOUND`` of the data on down, and
``CONVEX`` at depth 2, whose path has no folds, so that errors fall and then rise."""
MOST_RIDGES = 60
NARROW = (1.0, 0.5, 0.25, 0.1, 0.01)
"""Ridges of :func:`narrowed`, as shares of its first."""


class Stage(NamedTuple):
    """A point of the path: a ridge of some depth, and the factors at it."""

    ridge: float
    depth: float
    validation_error: float
    factors: Factors

    @property
    def rank(self) -> int:
        """The number of components."""
        return self.factors.rank


def root_mean_square(values: np.ndarray) -> float:
    """NaN for no values.

    >>> root_mean_square(np.array([3.0, -3.0]))
    3.0
    """
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def error(held: Observed, factors: Factors) -> float:
    """The root mean square error at held-out entries."""
    return root_mean_square(held.values - factors.at(held.rows, held.columns))


def nothing(shape: tuple[int, int]) -> Factors:
    """The zero matrix."""
    return Factors(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)))


def falling(
    seen: Observed, held: Observed, depth: float, ridges: np.ndarray | None, most: int, sweeps: int
) -> Iterator[Stage]:
    """The stages of a path on ``seen``, judged on ``held``; without given ridges it ends when errors stop falling."""
    factors = nothing(seen.shape)
    values = largest(seen, depth) * FALL ** np.arange(MOST_RIDGES) if ridges is None else ridges
    best, best_at, scale = np.inf, 0, root_mean_square(seen.values)
    for number, strength in enumerate(values):
        factors = settled(seen, factors, Ridge(float(strength), depth), most, sweeps)
        found = error(held, factors)
        yield Stage(float(strength), depth, found, factors)
        if found < 0.999 * best:
            best, best_at = found, number
        patience = CONVEX if depth == 2 else PATIENCE[int(best < FOUND * scale)]
        flat = number - best_at >= patience and factors.rank > 0
        if ridges is None and (flat or best < 1e-9 * scale):
            return


def settled(seen: Observed, factors: Factors, ridge: Ridge, most: int, sweeps: int) -> Factors:
    """After new components have come in and ``sweeps`` sweeps over both factors."""
    factors = grown(seen, factors, ridge, most)
    for _ in range(sweeps if factors.rank else 0):
        factors, _ = sweep(seen, factors, ridge)
    return factors


def refined(seen: Observed, held: Observed, start: Stage, most: int, sweeps: int) -> Iterator[Stage]:
    """Stages at ridges between those of the path, each from the start's factors."""
    for share in (FALL**-0.5, FALL**0.5):
        ridge = Ridge(start.ridge * share, start.depth)
        factors = settled(seen, start.factors, ridge, most, 2 * sweeps)
        yield Stage(ridge.strength, start.depth, error(held, factors), factors)


def narrowed(seen: Observed, held: Observed, start: Factors, ridge: Ridge, sweeps: int) -> Iterator[Stage]:
    """Stages at the rank of the start, to which nothing comes in, at this ridge and lower ones: with noise, few components
    that are hardly shrunk are often better than more of them."""
    factors = start
    for share in NARROW:
        lower = ridge._replace(strength=share * ridge.strength)
        for _ in range(sweeps if factors.rank else 0):
            factors, _ = sweep(seen, factors, lower)
        yield Stage(lower.strength, ridge.depth, error(held, factors), factors)
