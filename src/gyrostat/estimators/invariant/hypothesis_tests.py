"""Statistical tests of what differs between environments: effects with known standard errors, and the features themselves.

Effects and standard errors are arrays (K environments, d directions).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

# --- effects --------------------------------------------------------------------------------------


def _weights(errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> np.ndarray:
    """Precisions. An effect without error, where nothing varied, has weight zero."""
    return np.divide(1.0, errors**2 + tau2, out=np.zeros_like(errors), where=errors > 0)


def cochran(effects: np.ndarray, errors: np.ndarray, tau2: np.ndarray | float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cochran's Q and its p-value.

    Q is chi-square with K - 1 degrees of freedom if effects differ only by errors and by a variance ``tau2``.

    >>> Q, p = cochran(np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]))
    >>> float(Q[0]), round(float(p[0]), 3)
    (2.0, 0.157)
    """
    w = _weights(errors, tau2)
    mean = (w * effects).sum(axis=0) / np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    Q = (w * (effects - mean) ** 2).sum(axis=0)
    return Q, stats.chi2.sf(Q, np.maximum((w > 0).sum(axis=0) - 1, 1))


def effects_differ_p(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Cochran's p-values, adjusted for the number of directions (Benjamini and Hochberg 1995)."""
    return stats.false_discovery_control(cochran(effects, errors)[1])


def mean_effect_test(effects: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The p-value of no mean effect, and the standard error of the mean that the test uses.

    If effects do not differ at ``level``, that is the mean with the smallest error (weights are precisions); otherwise it
    is the mean over these environments with equal weights.
    """
    K, w = len(effects), _weights(errors)
    total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    differ = effects_differ_p(effects, errors) < level
    mean = np.where(differ, effects.mean(axis=0), (w * effects).sum(axis=0) / total)
    error = np.where(differ, np.sqrt(np.mean(errors**2, axis=0) / K), np.where(w.any(axis=0), total**-0.5, 0.0))
    return 2 * stats.norm.sf(np.divide(np.abs(mean), error, out=np.zeros_like(mean), where=error > 0)), error


def spread(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The standard deviation over these environments, without the part that errors are expected to add.

    >>> spread(np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]])).round(3).tolist()
    [0.935]
    """
    K = len(effects)
    return np.sqrt(np.maximum(effects.var(axis=0) - (K - 1) / K * np.mean(errors**2, axis=0), 0.0))


def unexplained_share(effects: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """``spread`` as a share of the observed standard deviation: the part that errors do not explain."""
    observed = effects.std(axis=0)
    return np.divide(spread(effects, errors), observed, out=np.zeros_like(observed), where=observed > 0)


def spread_interval(effects: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An interval for the standard deviation tau of effects over environments like these (Q-profile: Viechtbauer 2007).

    It holds the tau at which Cochran's Q with precisions ``1 / (error^2 + tau^2)`` is not surprising; Q falls as tau grows.
    Effects that agree better than their errors suggest would give an upper end of zero. For the upper end they are
    therefore spread out until Q has the value that errors alone give, K - 1.

    >>> low, high = spread_interval(np.array([[1.0], [3.0], [-2.0]]), np.full((3, 1), 0.1), 0.05)
    >>> round(float(low[0]), 2), round(float(high[0]), 1)
    (1.31, 15.8)
    """
    free = max(len(effects) - 1, 1)
    wide = _spread_out(effects, errors, free)
    low = _tau_at(effects, errors, stats.chi2.ppf(1 - level / 2, free))
    return low, _tau_at(wide, errors, stats.chi2.ppf(level / 2, free))


def _spread_out(effects: np.ndarray, errors: np.ndarray, least: float) -> np.ndarray:
    """Effects whose Q is at least ``least``: deviations are scaled by one factor, or alternate if there are none."""
    alternating = np.where(np.arange(len(effects)) % 2, 1.0, -1.0)[:, None] * errors
    none = cochran(effects, errors)[0] < 1e-9 * least
    effects = np.where(none, effects.mean(axis=0) + alternating, effects)
    Q = np.maximum(cochran(effects, errors)[0], np.finfo(float).tiny)
    centre = effects.mean(axis=0)
    return centre + np.maximum(np.sqrt(least / Q), 1.0) * (effects - centre)


def _tau_at(effects: np.ndarray, errors: np.ndarray, wanted: float) -> np.ndarray:
    """The tau at which Q is ``wanted``, by bisection; zero if Q is already lower at tau = 0."""
    low = np.zeros(effects.shape[1])
    # Q <= sum (b - mean)^2 / tau^2, so that Q is below the wanted value beyond this tau.
    high = np.sqrt(np.maximum(np.sum((effects - effects.mean(axis=0)) ** 2, axis=0) / wanted, 1e-300))
    for _ in range(60):
        middle = (low + high) / 2
        above = cochran(effects, errors, middle**2)[0] > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high * (cochran(effects, errors)[0] > wanted)


# --- features -------------------------------------------------------------------------------------


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
    """Features that look like consequences of y: ``x = a + c y + noise`` with the same c and the same noise everywhere.

    In IRM's example the second feature is ``y + noise``. Its effect on y, by itself, changes with the variance of y,
    although nothing about the feature changes. In the reverse regression nothing varies: neither the slope on y (Cochran)
    nor the size of the residuals (Brown and Forsythe), while the variance of the feature follows that of y. If neither the
    effect of the feature by itself nor its variance differs, the direction cannot be told, and the feature is not named.
    """
    forward = [_slopes(X[mine], y[mine][:, None]) for mine in rows]
    backward = [_slopes(y[mine][:, None], X[mine]) for mine in rows]
    effects, slopes = ([np.stack([f[i] for f in found]) for i in (0, 1)] for found in (forward, backward))
    related = mean_effect_test(slopes[0], slopes[1], level)[0] < level
    noise_p = _welch(_distances_from_medians([residuals for *_, residuals in backward]))
    same = related & (cochran(*slopes)[1] >= level) & (noise_p >= level)
    return same & (cochran(*effects)[1] < level) & (covariate_shifts(X, rows).variance < level)


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
    floor = 1e-12 * np.maximum((means**2).max(axis=0), np.finfo(float).tiny)
    w = n / np.maximum(variances, floor)
    share = w / w.sum(axis=0)
    F = (w * (means - (share * means).sum(axis=0)) ** 2).sum(axis=0) / (K - 1)
    lack = ((1 - share) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
    F /= 1 + 2 * (K - 2) / (K**2 - 1) * lack
    p = stats.f.sf(F, K - 1, (K**2 - 1) / np.maximum(3 * lack, 1e-300))
    return np.where((variances <= floor).all(axis=0) & (np.ptp(means, axis=0) ** 2 <= floor), 1.0, p)
