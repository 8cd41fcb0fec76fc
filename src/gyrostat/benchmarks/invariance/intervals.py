"""Errors of several methods on the same draws or rows, with intervals by the bootstrap, and who is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gyrostat.benchmarks.invariance.methods import OURS, REFERENCE

RESAMPLES = 2000
COVER = (0.025, 0.975)
SAME = 0.01
"""Errors that differ by less than this share of the other's are a tie, however sure the difference is."""


def over_repetitions(errors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Resampled means of the errors (repetitions, methods): the same repetitions for all methods."""
    picks = rng.integers(len(errors), size=(RESAMPLES, len(errors)))
    return errors[picks].mean(axis=1)


def over_rows(places: Sequence[np.ndarray], rng: np.random.Generator, resamples: int = RESAMPLES) -> np.ndarray:
    """Resampled means (resamples, places, methods) of errors with one array (rows, methods) for each place.

    Rows are weighed by Poisson(1) numbers, which is resampling without holding the number of rows fixed.
    """
    means = []
    for errors in places:
        sums = np.empty((resamples, errors.shape[1]))
        for b in range(resamples):  # row by row of the result: all weights at once would take gigabytes
            weights = rng.poisson(1.0, len(errors))
            sums[b] = weights @ errors / max(weights.sum(), 1)
        means.append(sums)
    return np.stack(means, axis=1)


def summary(names: Sequence[str], means: np.ndarray, resampled: np.ndarray) -> dict[str, dict[str, Any]]:
    """For each method: error, its interval, the ratio to least squares and its interval, and ours against it.

    ``ours`` is the :func:`verdict` on our error beside this one. Ratios are None where least squares makes no error.

    >>> found = summary(["least squares", "ours"], np.array([2.0, 1.0]), np.array([[2.0, 1.0], [2.2, 1.1]]))
    >>> found["ours"]["ratio"], found["least squares"]["ours"]
    (0.5, 'wins')
    """
    base, mine = names.index(REFERENCE), names.index(OURS)
    found = {}
    for j, name in enumerate(names):
        low, high = np.quantile(resampled[:, j], COVER)
        entry: dict[str, Any] = {"error": float(means[j]), "low": float(low), "high": float(high)}
        entry |= {"ratio": None, "ratio_low": None, "ratio_high": None}
        if (resampled[:, base] > 0).all() and means[base] > 0:
            low, high = np.quantile(resampled[:, j] / resampled[:, base], COVER)
            entry |= {"ratio": float(means[j] / means[base]), "ratio_low": float(low), "ratio_high": float(high)}
        entry["ours"] = verdict(means[mine], means[j], resampled[:, mine] - resampled[:, j])
        found[name] = entry
    return found


def verdict(ours: float, other: float, differences: np.ndarray) -> str:
    """What two errors and resampled differences (ours less the other) say: "wins", "ties" or "loses".

    A tie is an interval of differences with zero in it, or errors that are the same to one percent.

    >>> verdict(1.0, 2.0, np.array([-1.5, -0.5])), verdict(1.0, 2.0, np.array([-3.0, 1.0]))
    ('wins', 'ties')
    >>> verdict(1.2, 1.0, np.array([0.1, 0.3])), verdict(1.002, 1.0, np.array([0.001, 0.003]))
    ('loses', 'ties')
    """
    low, high = np.quantile(differences, COVER)
    if low <= 0 <= high or abs(ours - other) < SAME * other:
        return "ties"
    return "wins" if high < 0 else "loses"
