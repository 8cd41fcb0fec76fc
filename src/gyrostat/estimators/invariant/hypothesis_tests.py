"""Statistical tests of how the features themselves differ between environments, and which look like consequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.random_effects import cochran, mean_effect_p

TINY = 1e-200
"""Stands in for a variance of zero: the inverse is finite, and makes errors infinite for all purposes."""


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
    return feature_facts(X, np.zeros(len(X)), rows).shifts()


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
    return feature_facts(X, y, rows).consequences(level)


class EnvironmentFacts(NamedTuple):
    """The rows of one environment: number, means and covariance of features and response (last), medians of features."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed
    means: np.ndarray
    covariance: np.ndarray
    medians: np.ndarray

    @property
    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """The slopes of the response on each feature by itself, and of each feature on the response."""
        variances, together = np.diagonal(self.covariance), self.covariance[:-1, -1]
        return together / np.maximum(variances[:-1], TINY), together / max(variances[-1], TINY)

    def sums(self, X: np.ndarray, y: np.ndarray) -> FeatureSums:
        """The sums over some rows of the environment."""
        distances = np.abs(X - self.medians).sum(axis=0)
        x, z, (forward, backward) = X - self.means[:-1], (y - self.means[-1])[:, None], self.slopes
        left, back = z - x * forward, x - z * backward
        squares = (np.einsum("ij,ij->j", r, r) for r in (left, left * x, back, back * z))
        return FeatureSums(distances, *squares)


class FeatureSums(NamedTuple):
    """Sums over rows, for each feature: distances from medians, and squares of residuals and scores of both slopes."""

    distances: np.ndarray
    residuals: np.ndarray
    scores: np.ndarray
    back_residuals: np.ndarray
    back_scores: np.ndarray

    def plus(self, other: FeatureSums) -> FeatureSums:
        """The sums over both sets of rows."""
        return FeatureSums(*(a + b for a, b in zip(self, other, strict=True)))


class FeatureFacts(NamedTuple):
    """What the tests need to know of every environment: one row of each array, one column for each feature."""

    counts: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    medians: np.ndarray
    sums: FeatureSums

    @classmethod
    def of(cls, environments: list[EnvironmentFacts], sums: list[FeatureSums]) -> FeatureFacts:
        """The facts of all environments, and the sums over all rows of each."""
        counts, means, covariances, medians = (np.array(x) for x in zip(*environments, strict=True))
        return cls(counts[:, None], means, covariances, medians, FeatureSums(*map(np.stack, zip(*sums, strict=True))))

    def shifts(self) -> CovariateShifts:
        """The tests of :func:`covariate_shifts`."""
        means, variances = self.means[:, :-1], np.diagonal(self.covariances, axis1=1, axis2=2)[:, :-1]
        deviations = np.sqrt(variances * (self.counts - 1) / self.counts)
        least = deviations.min(axis=0)
        ratio = np.divide(deviations.max(axis=0), least, out=np.full(len(least), np.inf), where=least > 0)
        ratio[deviations.max(axis=0) == 0] = 1.0
        distances = self.sums.distances / self.counts
        squares = variances * (self.counts - 1) + self.counts * (means - self.medians) ** 2
        spread = np.maximum(squares - self.counts * distances**2, 0.0) / np.maximum(self.counts - 1, 1)
        return CovariateShifts(_welch(self.counts, means, variances), _welch(self.counts, distances, spread), ratio)

    def consequences(self, level: float) -> np.ndarray:
        """The features that :func:`look_like_consequences` names."""
        effects, errors = self._slopes(backward=False)
        slopes, slope_errors, others_p = self._reverse_slopes()
        related = mean_effect_p(slopes, slope_errors, level)[0] < level
        same = related & (cochran(slopes, slope_errors)[1] >= level) & (others_p >= level)
        return same & (cochran(effects, errors)[1] < level) & (self.shifts().variance < level)

    def _slopes(self, *, backward: bool) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and their standard errors: of the response on each feature, or of each feature on the response."""
        each = zip(self.counts[:, 0], self.means, self.covariances, self.medians, strict=True)
        slopes = np.stack([EnvironmentFacts(*own).slopes[int(backward)] for own in each])
        variances = np.diagonal(self.covariances, axis1=1, axis2=2)
        energy = np.maximum((variances[:, -1:] if backward else variances[:, :-1]) * (self.counts - 1), TINY)
        sums = self.sums
        squares, scores = (sums.back_residuals, sums.back_scores) if backward else (sums.residuals, sums.scores)
        classical = np.sqrt(squares / np.maximum(self.counts - 2, 1) / energy)
        return slopes, np.maximum(np.sqrt(scores) / energy, classical)

    def _reverse_slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes of features on y given the other features, their errors, and p-values that the others say nothing."""
        K, d = len(self.counts), self.means.shape[1] - 1
        if self.counts.min() < d + 5:
            return *self._slopes(backward=True), np.ones(d)
        slopes, slope_errors, largest = np.zeros((K, d)), np.zeros((K, d)), np.zeros(d)
        for e, (count, covariance) in enumerate(zip(self.counts[:, 0], self.covariances, strict=True)):
            # In the regression of one column on all others, coefficients and errors follow from the inverse covariance P.
            P = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
            own = np.maximum(np.diagonal(P)[:d], 1e-200)[:, None]
            coefficients = -P[:d] / own
            left = np.maximum(np.diagonal(P)[None] - P[:d] ** 2 / own, 0.0)
            deviations = np.sqrt(np.where(own > 1e-200, left / np.maximum(own, 1e-200), 0.0) / (count - d - 1))
            slopes[e], slope_errors[e] = coefficients[:, d], deviations[:, d]
            ratios = np.divide(np.abs(coefficients), deviations, out=np.zeros_like(deviations), where=deviations > 0)
            np.fill_diagonal(ratios, 0.0)
            largest = np.maximum(largest, ratios[:, :d].max(axis=1))
        return slopes, slope_errors, np.minimum(2 * stats.norm.sf(largest) * max(K * (d - 1), 1), 1.0)


def feature_facts(X: np.ndarray, y: np.ndarray, rows: list[np.ndarray]) -> FeatureFacts:
    """The facts of rows in memory, read one environment at a time."""
    environments, sums = [], []
    for mine in rows:
        Z = np.column_stack([X[mine], y[mine]])
        covariance = np.atleast_2d(np.cov(Z, rowvar=False))
        environments.append(EnvironmentFacts(len(mine), Z.mean(axis=0), covariance, np.median(Z[:, :-1], axis=0)))
        sums.append(environments[-1].sums(Z[:, :-1], Z[:, -1]))
    return FeatureFacts.of(environments, sums)


def _welch(n: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """p-values of Welch's analysis of variance, column by column; one where a column is constant everywhere."""
    K = len(means)
    if K == 1:
        return np.ones(means.shape[1])
    floor = np.maximum(1e-12 * (means**2).max(axis=0), 1e-200)
    w = n / np.maximum(variances, floor)
    share = w / w.sum(axis=0)
    F = (w * (means - (share * means).sum(axis=0)) ** 2).sum(axis=0) / (K - 1)
    lack = ((1 - share) ** 2 / np.maximum(n - 1, 1)).sum(axis=0)
    F /= 1 + 2 * (K - 2) / (K**2 - 1) * lack
    p = stats.f.sf(F, K - 1, (K**2 - 1) / np.maximum(3 * lack, 1e-300))
    return np.where((variances <= floor).all(axis=0) & (np.ptp(means, axis=0) ** 2 <= floor), 1.0, p)
