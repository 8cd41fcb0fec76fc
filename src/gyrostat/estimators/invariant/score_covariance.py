"""The covariance of the scores of one environment, from which standard errors follow, and its most influential row.

A score is ``x_i r_i`` with the residual r_i. Residuals are taken as if their row (or cluster) had been left out, which makes
up for the share of the noise that a fit follows: HC3 for rows, the jackknife CV3 for clusters (MacKinnon, Nielsen and Webb
2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from gyrostat.estimators.invariant.effects import EnvironmentPart

LEVERAGE = 0.01
"""If no row of an environment has a leverage above this, the correction for leverages is one common factor."""
MOST_ENTRIES = 2e7
"""Clusters are left out one at a time as long as their second moments have at most this many entries together."""
LEAST_CLUSTERS = 4
"""The fewest clusters of an environment."""
BLOCK = 1024
"""The number of rows that are squared at a time."""
ALONE = 1 - 1e-6
"""A row with at least this leverage decides on a coefficient alone: its residual is zero, whatever its noise."""
FEW_ROWS, MANY_ROWS = 10.0, 30.0
"""Where fewer rows than the first number decide on a coefficient, all environments together say how noise changes from row to
row; in this each environment counts as at most the second number of rows."""


class RowInfluence(NamedTuple):
    """The row that moves the coefficients of its environment most: by ``change``.

    ``covariance`` is that of the coefficients, with the noise that is left without the row.
    """

    row: int
    change: np.ndarray
    covariance: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """The changes in standard errors."""
        errors = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.divide(np.abs(self.change), errors, out=np.zeros_like(errors), where=errors > 0)


class Candidate(NamedTuple):
    """A row that may have the largest influence (by the ``size`` of it): its number, centred features and residual."""

    size: float
    row: int
    x: np.ndarray
    residual: float

    def shifted(self, rows: int) -> Candidate:
        """The same with a number that counts from ``rows``."""
        return self._replace(row=self.row + rows)


class ScoreCovariance(NamedTuple):
    """The covariance of the mean score (d, d).

    ``factor`` (d,) is what errors of coefficients are multiplied by to be compared with a normal distribution. ``lone`` marks
    features whose coefficient a single cluster decides, so that nothing is known of its error. ``rows`` (d,) is the number of
    rows that decide on each coefficient (see :func:`deciding_rows`), or infinite if there are many or if they are in clusters.
    """

    meat: np.ndarray
    factor: np.ndarray
    lone: np.ndarray
    influence: RowInfluence
    rows: np.ndarray


def score_covariance(part: EnvironmentPart, beta: np.ndarray, bread: np.ndarray, *, adjust: bool) -> ScoreCovariance:
    """The scores at the coefficients ``beta``; ``bread`` is the inverse of ``X^T X / n``. May overwrite ``part.X``."""
    X, n, d = part.X, len(part.y), len(beta)
    if not adjust:
        return _of_features_alone(part, beta, bread)
    residuals, scales, distances = part.y - X @ beta, np.maximum(np.diagonal(bread), 0.0), np.empty(n)
    for k in range(0, n, BLOCK):  # a copy of a few rows at a time is faster than one of all
        distances[k : k + BLOCK] = X[k : k + BLOCK] ** 2 @ scales
    leverage, rows = leverages(part, bread, distances)
    # the largest distance of Cook; where leverages are small, these multiples of bounds on them will do
    left_out = residuals / (1 - leverage)
    cook = (leverage if leverage.ndim else distances) * left_out**2
    i = int(np.argmax(cook))
    row = Candidate(float(cook[i]), int(part.where[i]), X[i].copy(), float(residuals[i]))
    squares = float(residuals @ residuals)
    influence = row_influence(row, squares, n, bread)
    if part.clusters is not None:
        meat, factor, lone = _clustered(part, residuals, bread)
        return ScoreCovariance(meat, factor, lone, influence, np.full(d, np.inf))
    correction = n / max(n - 1 - d, 1) if leverage.ndim == 0 else 1.0
    left_out = np.where(leverage < ALONE, left_out, np.sqrt(noise_variance(squares, n, d)))
    X *= left_out[:, None]  # in place, to save memory: X is a copy already
    return ScoreCovariance(correction * (X.T @ X) / n**2, row_factor(n - 1 - d, d), np.zeros(d, bool), influence, rows)


def noise_variance(squares: float, n: int, d: int) -> float:
    """The variance of the noise from the sum of squared residuals of n rows and d coefficients.

    It stands in for the square of a residual that is unknown, because a row decides on a coefficient alone.
    """
    return squares / max(n - 1 - d, 1)


def leverages(part: EnvironmentPart, bread: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leverage of each row, or a single zero if all are below ``LEVERAGE``; the numbers of deciding rows.

    ``distances`` are squares of rows, in units in which the diagonal of ``bread`` is one.
    """
    n = len(part.X)
    if all_leverages_small(float(distances.max()), bread, n):
        return np.zeros(()), np.full(len(bread), np.inf)
    Z = part.X @ bread
    leverage = exact_leverages(part.X, Z, n, 1.0 if part.weights is None else part.weights)
    return leverage, deciding_rows(np.sum(Z**2, axis=0), np.sum(Z**4, axis=0))


def deciding_rows(squares: np.ndarray, fourths: np.ndarray) -> np.ndarray:
    """The number of rows that decide on each coefficient, from sums of powers of their parts in it.

    It is ``(sum z^2)^2 / sum z^4``: k if a feature is zero in all rows but k, and a third of the rows for a normal feature.

    >>> z = np.array([1.0, 1.0, 0.0, 0.0])
    >>> float(deciding_rows(np.sum(z**2), np.sum(z**4)))
    2.0
    """
    return np.divide(squares**2, fourths, out=np.full(np.shape(squares), np.inf), where=fourths > 0)


def all_leverages_small(farthest: float, bread: np.ndarray, n: int) -> bool:
    """Whether all leverages of n rows are below ``LEVERAGE``, by a bound from the largest distance."""
    roots = np.sqrt(np.maximum(np.diagonal(bread), 0.0))
    if not roots.any():
        return True
    # x^T bread x <= |x|^2 times the largest eigenvalue
    unit = np.where(roots > 0, roots, 1.0)
    largest = float(np.linalg.eigvalsh(bread / np.multiply.outer(unit, unit))[-1])
    return farthest * largest / n < LEVERAGE


def exact_leverages(X: np.ndarray, Z: np.ndarray, n: int, weights: np.ndarray | float = 1.0) -> np.ndarray:
    """The leverage of rows of an environment of n rows; Z are the rows times ``bread``, and weights have mean one."""
    return np.minimum(weights / n + np.einsum("ij,ij->i", Z, X) / n, ALONE)


def robust_factors(
    ratios: np.ndarray, rows: np.ndarray, factors: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What classical errors are multiplied by, and which effects are known; all arrays (environments, directions).

    ``ratios`` are those of variances that allow for uneven noise to classical ones, which are not taken below one. A ratio
    from few rows says little: it is then not taken below the mean ratio of all environments, and the error is multiplied by
    the ratio of the 99.5 percent points of Student's t and of the normal distribution. If a single row decides in each of
    the environments, nothing is known of its noise, nor of the error.
    """
    free = np.where(known, np.clip(rows - 1, 0.0, MANY_ROWS), 0.0)
    total, few = free.sum(axis=0), rows < FEW_ROWS
    usual = np.sum(free * ratios, axis=0) / np.maximum(total, 1e-300)
    shared = np.maximum(ratios, usual).clip(1.0) * _cluster_factor(total) ** 2
    return factors * np.sqrt(np.where(few, shared, ratios.clip(1.0))), known & ~(few & (total < 0.5))


def row_influence(row: Candidate, squares: float, n: int, bread: np.ndarray) -> RowInfluence:
    """How a row moves the coefficients of its environment of n rows; ``squares`` is the sum of all squared residuals."""
    h = min(float(row.x @ bread @ row.x) / n + 1 / n, ALONE)
    change = bread @ row.x * (row.residual / (1 - h) / n)
    noise = max(squares - row.residual**2 / (1 - h), 1e-300) / max(n - 2 - len(bread), 1)
    return RowInfluence(row.row, change, noise * bread / n)


def _of_features_alone(part: EnvironmentPart, beta: np.ndarray, bread: np.ndarray) -> ScoreCovariance:
    """The scores of a regression on each feature by itself; only the diagonal of the covariance has a meaning."""
    X, n, d = part.X, len(part.y), len(beta)
    none = RowInfluence(int(part.where[0]), np.zeros(d), np.zeros((d, d)))
    X = lone_scores(X, part.y, beta, bread, n)
    factor = row_factor(n - 2, d)
    if part.clusters is not None:
        X = _cluster_sums(X, part.clusters)
        X *= np.sqrt(len(X) / (len(X) - 1))
        factor = _cluster_factor(np.full(d, len(X) / 3))  # as for one feature with normal values
    meat = np.diag(np.einsum("ij,ij->j", X, X)) / n**2
    return ScoreCovariance(meat, factor, np.zeros(d, bool), none, np.full(d, np.inf))


def lone_scores(X: np.ndarray, y: np.ndarray, beta: np.ndarray, bread: np.ndarray, n: int) -> np.ndarray:
    """Scores of regressions on each feature by itself, in an environment of n rows."""
    leverage = np.minimum(1 / n + X**2 * np.diagonal(bread) / n, ALONE)
    return X * ((y[:, None] - X * beta) / (1 - leverage))


def row_factor(free: int, d: int) -> np.ndarray:
    """The standard deviation of Student's t. HC3 leaves room, so that its longer tails need no more."""
    free = max(free, 1)
    return np.full(d, np.sqrt(free / max(free - 2, 1 / 3)))


# --- clusters -------------------------------------------------------------------------------------


def _cluster_sums(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    return np.add.reduceat(values[order], starts, axis=0)


def _clustered(
    part: EnvironmentPart, residuals: np.ndarray, bread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The covariance of scores that are summed over clusters, each left out in turn, and its degrees of freedom."""
    assert part.clusters is not None
    (n, d), X = part.X.shape, part.X
    sums = _cluster_sums(X * residuals[:, None], part.clusters)
    count, none = len(sums), np.zeros(d, bool)
    factor = _cluster_factor(_cluster_freedom(X @ bread, residuals, part.clusters))
    if count * d * d > MOST_ENTRIES:  # then a cluster is a small part of the environment
        return sums.T @ sums * (count / (count - 1) / n**2), factor, none
    values, vectors = np.linalg.eigh(bread / n)
    root = np.zeros((d, d + 1))  # the last coordinate is the intercept, which is estimated too
    root[:, :d] = vectors * np.sqrt(np.maximum(values, 0.0))
    one = np.sqrt((np.ones(n) if part.weights is None else part.weights) / n)
    order = np.argsort(part.clusters, kind="stable")
    cuts = np.flatnonzero(np.diff(part.clusters[order])) + 1
    shares = np.stack([(Z := _with_intercept(X[mine] @ root, one[mine])).T @ Z for mine in np.split(order, cuts)])
    share, axes = np.linalg.eigh(shares)
    decided = share > ALONE
    scores = _with_intercept(sums @ root, _cluster_sums(one * residuals, part.clusters))
    along = np.einsum("gij,gi->gj", axes, scores) / np.where(decided, 1.0, 1 - share)
    changes = np.einsum("gij,gj->gi", axes, np.where(decided, 0.0, along)) @ root.T
    lone = (((root @ axes) ** 2 * decided[:, None, :]).sum(axis=2) > 1e-3 * np.diagonal(bread) / n).any(axis=0)
    gram = X.T @ X / n
    return gram @ (changes.T @ changes * ((count - 1) / count)) @ gram, factor, lone


def _with_intercept(Z: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Coordinates of which the last, empty one becomes that of the intercept."""
    Z[:, -1] = intercept
    return Z


def _cluster_factor(free: np.ndarray) -> np.ndarray:
    """The ratio of the 99.5 percent points of Student's t and of the normal distribution: clusters are often few."""
    return stats.t.ppf(0.995, np.maximum(free, 1.0)) / stats.norm.ppf(0.995)


def _cluster_freedom(Z: np.ndarray, residuals: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Degrees of freedom of variances that are sums over clusters (Satterthwaite; Bell and McCaffrey 2002).

    ``Z r`` are the contributions of rows to coefficients. Rows of a cluster share a part of their noise, which is estimated
    from the residuals; the terms of the sum then have different expected sizes, and few large ones leave little freedom.
    """
    sizes = _cluster_sums(np.ones(len(Z)), clusters)
    own, together = float(residuals @ residuals), float(np.sum(_cluster_sums(residuals, clusters) ** 2))
    pairs = float(sizes @ sizes) - len(Z)
    share = np.clip((together - own) / pairs / (own / len(Z)), 0.0, 1.0) if pairs > 0 and own > 0 else 0.0
    v = share * _cluster_sums(Z, clusters) ** 2 + (1 - share) * _cluster_sums(Z**2, clusters)
    squares = np.maximum(np.sum(v**2, axis=0), np.finfo(float).tiny)
    return np.clip(np.sum(v, axis=0) ** 2 / squares, 1.0, len(sizes) - 1.0)
