"""How much a finding depends on a single environment or on a single row."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.invariant.effects import MeasuredEffects
from gyrostat.estimators.invariant.random_effects import (
    effects_differ_p,
    known_effects,
    mean_effect_p,
    random_effects,
    spread_interval,
)

KEPT, REMOVED, UNCLEAR = "kept", "removed", "unclear"
LARGE = 2.0
"""A row is reported if it moves an effect by more than this many standard errors."""


def verdict_by_rule(
    effects: np.ndarray, errors: np.ndarray, *, tolerance: float, level: float, confidence: float, families: int = 1
) -> np.ndarray:
    """The verdict on each direction without a descent: the spread beyond the tolerance, or its interval within.

    ``families`` is that of :func:`effects_differ_p`.
    """
    model, (_, high) = random_effects(effects, errors), spread_interval(effects, errors, 1 - confidence)
    size, several = np.abs(model.mean), known_effects(errors).sum(axis=0) > 1
    differ = effects_differ_p(effects, errors, families) < level
    seen = differ | (mean_effect_p(effects, errors, level, families)[0] < level)
    kept = several & seen & (high <= tolerance * size)
    return np.where(several & differ & (model.spread > tolerance * size), REMOVED, np.where(kept, KEPT, UNCLEAR))


class WithoutOne(NamedTuple):
    """Mean effects and verdicts (K, d) without each of the K environments, and the verdict by rule with all (d,)."""

    means: np.ndarray
    verdicts: np.ndarray
    whole: np.ndarray


def without_each(
    effects: np.ndarray, errors: np.ndarray, *, tolerance: float, level: float, confidence: float
) -> WithoutOne:
    """Leave out one environment at a time.

    >>> effects, errors = np.array([[1.0], [1.1], [0.9], [1.0], [-9.0]]), np.full((5, 1), 0.1)
    >>> found = without_each(effects, errors, tolerance=0.5, level=0.01, confidence=0.95)
    >>> found.verdicts[:, 0].tolist()
    ['removed', 'removed', 'removed', 'removed', 'kept']
    """
    rule = partial(verdict_by_rule, tolerance=tolerance, level=level, confidence=confidence)
    whole = rule(effects, errors)
    if len(effects) < 3:
        return WithoutOne(np.full_like(effects, np.nan), np.broadcast_to(whole, effects.shape), whole)
    K, d = effects.shape
    # One block of directions for each environment left out; an effect without an error is unknown.
    every = np.tile(effects, K)
    left = np.where(np.repeat(np.eye(K, dtype=bool), d, axis=1), 0.0, np.tile(errors, K))
    means, words = random_effects(every, left).mean, rule(every, left, families=K)
    return WithoutOne(means.reshape(K, d), words.reshape(K, d), whole)


class LargestRow(NamedTuple):
    """The row with the largest influence on an effect in its environment: ``ratio`` standard errors of the effect."""

    row: int
    environment: int
    feature: int
    effect: float
    without: float
    ratio: float


def most_influential_row(measured: MeasuredEffects) -> LargestRow:
    """The row that moves some effect of its environment by most standard errors; effects are in units of the data.

    Where nothing is known of an effect, or of its error because no row is free, rows do not count.
    """
    effects, ratios = measured.feature_effects[0], np.stack([influence.ratio for influence in measured.influences])
    ratios = np.where(np.isnan(effects), 0.0, np.nan_to_num(ratios, nan=0.0))
    e, j = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    influence, effect = measured.influences[e], effects[e, j]
    return LargestRow(
        influence.row, int(e), int(j), float(effect), float(effect - influence.change[j]), float(ratios[e, j])
    )
