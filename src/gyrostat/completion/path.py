"""A path of falling ridges with warm starts: components enter where they are worth their cost, and may leave again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gyrostat.completion.observed import Factors, Observed
from gyrostat.completion.ridge import Ridge, grown, largest, sweep

FALL = 0.7
"""A ridge over the one before it."""
PATIENCE = 5
"""So many ridges without a better validation error end the path."""
MOST_RIDGES = 60


class Stage(NamedTuple):
    """A point of the path."""

    ridge: float
    rank: int
    validation_error: float
    factors: Factors


def root_mean_square(values: np.ndarray) -> float:
    """NaN for no values.

    >>> root_mean_square(np.array([3.0, -3.0]))
    3.0
    """
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def error(held: Observed, factors: Factors) -> float:
    """The root mean square error at held-out entries."""
    return root_mean_square(held.values - factors.at(held.rows, held.columns))


def falling(
    seen: Observed, held: Observed, depth: float, ridges: np.ndarray | None, most: int, sweeps: int
) -> Iterator[Stage]:
    """The stages of a path on ``seen``, judged on ``held``; without given ridges it ends when errors stop falling."""
    factors = Factors(np.zeros((seen.shape[0], 0)), np.zeros((seen.shape[1], 0)))
    values = largest(seen, depth) * FALL ** np.arange(MOST_RIDGES) if ridges is None else ridges
    best, best_at, scale = np.inf, 0, root_mean_square(seen.values)
    for number, strength in enumerate(values):
        factors = settled(seen, factors, Ridge(float(strength), depth), most, sweeps)
        found = error(held, factors)
        yield Stage(float(strength), factors.rank, found, factors)
        if found < 0.999 * best:
            best, best_at = found, number
        flat = number - best_at >= PATIENCE and factors.rank > 0
        if ridges is None and (flat or best < 1e-9 * scale):
            return


def settled(seen: Observed, factors: Factors, ridge: Ridge, most: int, sweeps: int) -> Factors:
    """After new components have come in and ``sweeps`` sweeps over both factors."""
    factors = grown(seen, factors, ridge, most)
    for _ in range(sweeps if factors.rank else 0):
        factors, _ = sweep(seen, factors, ridge)
    return factors


def refined(
    seen: Observed, held: Observed, start: Stage, depth: float, most: int, sweeps: int,
    say: Callable[[Stage], None],
) -> Stage:  # fmt: skip
    """The best of ridges between those of the path, each from the start's factors."""
    best = start
    for share in (FALL**-0.5, FALL**0.5):
        ridge = Ridge(start.ridge * share, depth)
        factors = settled(seen, start.factors, ridge, most, 2 * sweeps)
        stage = Stage(ridge.strength, factors.rank, error(held, factors), factors)
        say(stage)
        best = min(best, stage, key=lambda stage: stage.validation_error)
    return best
