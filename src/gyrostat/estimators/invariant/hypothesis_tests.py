"""Statistical tests of how the features themselves differ between environments, and which look like consequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.random_effects import cochran, mean_effect_p


class CovariateShifts(NamedTuple):
    """For each feature: p-values that its mean and its variance are the same in all environments, and the ratio of the
    largest to the smallest standard deviation.
    """

    mean: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray


def covariate_shifts(X: np.ndarray, rows: list[np.ndarray]) -> CovariateShifts:
    """Welch's analysis of variance of each feature, and of its distances from medians (Brown and Forsythe).

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.standard_normal((200, 1)), 3 * rng.standard_normal((200, 1))])
    >>> found = covariate_shifts(X, [np.arange(200), np.arange(200, 400)])
    >>> bool(found.mean[0] > 0.01), bool(found.variance[0] < 1e-6), round(float(found.ratio[0]), 1)
    (True, True, 3.2)
    """
    parts = [X[mine] for mine in rows]
    deviations = np.stack([part.std(axis=0) for part in parts])
    least = deviations.min(axis=0)
    ratio = np.divide(deviations.max(axis=0), least, out=np.full(X.shape[1], np.inf), where=least > 0)
    ratio[deviations.max(axis=0) == 0] = 1.0
    return CovariateShifts(_welch(parts), _welch(_distances_from_medians(parts)), ratio)


def look_like_consequences(X: np.ndarray, y: np.ndarray, rows: list[np.ndarray], level: float) -> np.ndarray:
    """Features that look like consequences of y: ``x = a + c y + noise`` with the same c everywhere.

    In IRM's example the second feature is ``y + noise``. Its effect on y, by itself, changes with the variances of y and of
    the noise, although the way in which it comes from y does not change. A feature is named if

    - its effect on y by itself differs between environments (Cochran), and so does its variance,
    - its slope on y, given all other features, does not differ, and is not zero,
    - given y, no other feature says anything about it (Bonferroni). A cause is different: causes of the same response depend
      on each other given the response.

    The size of the noise may differ. Where environments have too few rows to adjust for other features, the slope on y alone is
    taken.
    """
    forward = [_slopes(X[mine], y[mine][:, None]) for mine in rows]
    effects, errors = (np.stack([f[i] for f in forward]) for i in (0, 1))
    slopes, slope_errors, others_p = _reverse_slopes(X, y, rows)
    related = mean_effect_p(slopes, slope_errors, level)[0] < level
    same = related & (cochran(slopes, slope_errors)[1] >= level) & (others_p >= level)
    return same & (cochran(effects, errors)[1] < level) & (covariate_shifts(X, rows).variance < level)


def _reverse_slopes(X: np.ndarray, y: np.ndarray, rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes (K, d) of each feature on y given the other features, their errors, and p-values that the others say nothing."""
    K, d = len(rows), X.shape[1]
    if min(map(len, rows)) < d + 5:
        alone = [_slopes(y[mine][:, None], X[mine]) for mine in rows]
        return np.stack([a[0] for a in alone]), np.stack([a[1] for a in alone]), np.ones(d)
    slopes, slope_errors, largest = np.zeros((K, d)), np.zeros((K, d)), np.zeros(d)
    for e, mine in enumerate(rows):
        together = np.column_stack([X[mine], y[mine]])
        # In the regression of one column on all others, coefficients and errors follow from the inverse covariance P.
        P = np.linalg.pinv(np.cov(together, rowvar=False), rcond=1e-10, hermitian=True)
        own = np.maximum(np.diagonal(P)[:d], 1e-200)[:, None]
        coefficients = -P[:d] / own
        left = np.maximum(np.diagonal(P)[None] - P[:d] ** 2 / own, 0.0)
        deviations = np.sqrt(np.where(own > 1e-200, left / np.maximum(own, 1e-200), 0.0) / (len(mine) - d - 1))
        slopes[e], slope_errors[e] = coefficients[:, d], deviations[:, d]
        ratios = np.divide(np.abs(coefficients), deviations, out=np.zeros_like(deviations), where=deviations > 0)
        np.fill_diagonal(ratios, 0.0)
        largest = np.maximum(largest, ratios[:, :d].max(axis=1))
    return slopes, slope_errors, np.minimum(2 * stats.norm.sf(largest) * max(K * (d - 1), 1), 1.0)


def _distances_from_medians(parts: list[np.ndarray]) -> list[np.ndarray]:
    return [np.abs(part - np.median(part, axis=0)) for part in parts]


def _slopes(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The slope of z on x, its standard error, and the residuals, column by column (x or z may have a single column)."""
    x, z = x - x.mean(axis=0), z - z.mean(axis=0)
    energy = np.maximum(np.sum(x**2, axis=0), np.finfo(float).tiny)
    slope = np.sum(x * z, axis=0) / energy
    residuals = z - x * slope
    sandwich = np.sqrt(np.sum((residuals * x) ** 2, axis=0)) / energy
    classical = np.sqrt(np.sum(residuals**2, axis=0) / max(len(residuals) - 2, 1) / energy)
    return slope, np.maximum(sandwich, classical), residuals


def _welch(parts: list[np.ndarray]) -> np.ndarray:
    """p-values of Welch's analysis of variance, column by column; one where a column is constant everywhere."""
    K = len(parts)
    if K == 1:
        return np.ones(parts[0].shape[1])
    n = np.array([len(part) for part in parts])[:, None]
    means = np.stack([part.mean(axis=0) for part in parts])
    variances = np.stack([part.var(axis=0, ddof=1) for part in parts])
    floor = np.maximum(1e-12 * (means**2).max(axis=0), 1e-200)
    w = n / np.maximum(variances, floor)
    share = w / w.sum(axis=0)
    F = (w * (means - (share * means).sum(axis=0)) ** 2).sum(axis=0) / (K - 1)
    lack = ((1 - share) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
    F /= 1 + 2 * (K - 2) / (K**2 - 1) * lack
    p = stats.f.sf(F, K - 1, (K**2 - 1) / np.maximum(3 * lack, 1e-300))
    return np.where((variances <= floor).all(axis=0) & (np.ptp(means, axis=0) ** 2 <= floor), 1.0, p)
