"""What else differs between environments: the features themselves, and whether a feature looks like a consequence of y."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.variation import cochran, mean_differs_from_zero


class Shifts(NamedTuple):
    """p-values, feature by feature, that its mean and its variance are the same everywhere, and the largest over the
    smallest standard deviation.
    """

    mean: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray


def shifts_of(X: np.ndarray, rows: list[np.ndarray]) -> Shifts:
    """One-way analysis of variance of each feature (Welch's), and of its distances from medians (Brown and Forsythe).

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((200, 1)), 3 * rng.standard_normal((200, 1))])
    >>> found = shifts_of(X, [np.arange(200), np.arange(200, 400)])
    >>> bool(found.mean[0] > 0.01), bool(found.variance[0] < 1e-6), round(float(found.ratio[0]), 1)
    (True, True, 3.2)
    """
    parts = [X[mine] for mine in rows]
    away = [np.abs(part - np.median(part, axis=0)) for part in parts]
    deviations = np.stack([part.std(axis=0) for part in parts])
    least = deviations.min(axis=0)
    ratio = np.divide(deviations.max(axis=0), least, out=np.full(X.shape[1], np.inf), where=least > 0)
    ratio[deviations.max(axis=0) == 0] = 1.0
    return Shifts(_welch(parts), _welch(away), ratio)


def consequences(X: np.ndarray, y: np.ndarray, rows: list[np.ndarray], level: float) -> np.ndarray:
    """Features that look like consequences of y: ``x = a + c y + noise`` with the same c and the same noise everywhere.

    In IRM's example the second feature is ``y + noise``: its effect on y, by itself, changes with the variance of y although
    nothing about it does. Turned round, nothing varies: the slope on y (Cochran) and the size of what it leaves (Brown and
    Forsythe), while the variance of the feature has to follow that of y. If neither its effect by itself nor its variance
    differs, there is no telling which way it goes, and it is not named.
    """
    forth = [_slopes(X[mine], y[mine][:, None]) for mine in rows]
    back = [_slopes(y[mine][:, None], X[mine]) for mine in rows]
    effects, slopes = ([np.stack([f[i] for f in found]) for i in (0, 1)] for found in (forth, back))
    away = [np.abs(left - np.median(left, axis=0)) for *_, left in back]
    there = mean_differs_from_zero(slopes[0], slopes[1], level)[0] < level
    same = there & (cochran(*slopes)[1] >= level) & (_welch(away) >= level)
    return same & (cochran(*effects)[1] < level) & (shifts_of(X, rows).variance < level)


def _slopes(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column by column (one of the two may have just one): the slope of z on x, its standard error, and the residuals."""
    x, z = x - x.mean(axis=0), z - z.mean(axis=0)
    energy = np.maximum(np.sum(x**2, axis=0), np.finfo(float).tiny)
    slope = np.sum(x * z, axis=0) / energy
    left = z - x * slope
    sandwich = np.sqrt(np.sum((left * x) ** 2, axis=0)) / energy
    classical = np.sqrt(np.sum(left**2, axis=0) / max(len(left) - 2, 1) / energy)
    return slope, np.maximum(sandwich, classical), left


def _welch(parts: list[np.ndarray]) -> np.ndarray:
    """p-values of Welch's analysis of variance, column by column; one where a column is constant everywhere."""
    K = len(parts)
    if K == 1:
        return np.ones(parts[0].shape[1])
    n = np.array([len(part) for part in parts])[:, None]
    means = np.stack([part.mean(axis=0) for part in parts])
    variances = np.stack([part.var(axis=0, ddof=1) for part in parts])
    floor = 1e-12 * np.maximum((means**2).max(axis=0), np.finfo(float).tiny)
    w = n / np.maximum(variances, floor)
    share = w / w.sum(axis=0)
    F = (w * (means - (share * means).sum(axis=0)) ** 2).sum(axis=0) / (K - 1)
    lack = ((1 - share) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
    F /= 1 + 2 * (K - 2) / (K**2 - 1) * lack
    p = stats.f.sf(F, K - 1, (K**2 - 1) / np.maximum(3 * lack, 1e-300))
    return np.where((variances <= floor).all(axis=0) & (np.ptp(means, axis=0) ** 2 <= floor), 1.0, p)
