"""Coefficients of all environments together, with an intercept for each environment, and their standard errors.

The estimate is generalised least squares in the random-effects model: environment e has information H_e about its
coefficients b_e, and b_e varies over environments with the variances T, so that it has the weight
``(H_e^{-1} + T)^{-1} = (I + H_e T)^{-1} H_e``.
If no effect is seen to vary and the noise is the same everywhere, this is least squares with equal weights for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.effects import (
    Effects,
    MeasuredEffects,
    Moments,
    Rows,
    effects_from_moments,
    noise_variances,
    with_robust_errors,
)
from gyrostat.estimators.invariant.families import Information, LinkRows
from gyrostat.estimators.invariant.random_effects import averaged_error, random_effects

LEAST_FREE_ROWS = 3
"""An environment with fewer rows beyond the coefficients has no noise variance of its own."""


class PooledFit(NamedTuple):
    """Coefficients (k,), their covariance, their degrees of freedom, and the noise variance of each environment.

    ``effects`` are those of the kept directions in each environment, without the removed ones, and ``shares`` (K, k) the
    weights of the environments in each coefficient. ``matrices`` and ``products`` are the normal equations of each environment.
    """

    coef: np.ndarray
    covariance: np.ndarray
    free: np.ndarray
    noise: np.ndarray
    effects: Effects
    shares: np.ndarray
    matrices: np.ndarray
    products: np.ndarray

    def coef_of(self, chosen: np.ndarray) -> np.ndarray:
        """The coefficients of the chosen environments, with variances (and the information of a link) as for all of them."""
        inverse = np.linalg.pinv(self.matrices[chosen].sum(axis=0), rcond=1e-10)
        return inverse @ self.products[chosen].sum(axis=0)

    def seen(self, level: float) -> np.ndarray:
        """Whether each coefficient differs from zero at ``level``, also in other environments like these."""
        return np.abs(self.coef) > stats.t.isf(level / 2, self.free) * np.sqrt(np.diagonal(self.covariance))


def unequal_noise(variances: np.ndarray, free: np.ndarray, level: float) -> bool:
    """Bartlett's test of equal variances.

    >>> unequal_noise(np.array([1.0, 1.1, 0.9]), np.array([50, 50, 50]), 0.01)
    False
    >>> unequal_noise(np.array([1.0, 100.0]), np.array([50, 50]), 0.01)
    True
    """
    if len(variances) == 1:
        return False
    total = free.sum()
    statistic = total * np.log(free @ variances / total) - free @ np.log(variances)
    statistic /= 1 + (np.sum(1 / free) - 1 / total) / (3 * (len(free) - 1))
    return bool(stats.chi2.sf(statistic, len(free) - 1) < level)


def pooled_gaussian(rows: Rows, measured: MeasuredEffects, kept: np.ndarray, level: float, *, own: bool) -> PooledFit:
    """Least squares on the kept directions.

    With ``own``, environments have their own noise variance if a test sees them differ at ``level``, and effects that differ
    have their variance over environments; the rows are read once more if some direction was removed. Otherwise (effects of
    features alone, for few rows) all rows have the same weight.
    """
    data = measured.data.on(kept)
    plain = effects_from_moments(data, adjust=True)
    counts, free = data.counts, data.counts - 1 - data.grams.shape[1]
    sizes = data.sizes * (counts.sum() / data.sizes.sum())
    if own and free.min() >= LEAST_FREE_ROWS:
        noise = noise_variances(data, plain.effects, adjust=True)
        if not unequal_noise(noise, free, level):
            noise = np.full(len(free), free @ noise / free.sum())
    else:
        plain = plain._replace(effects=np.broadcast_to(_common(data, sizes), plain.effects.shape))
        noise = np.full(len(free), max(float(data.energies @ counts / counts.sum()), 1e-280))
    effects, meats = _robust(rows, measured, kept, plain)
    variances = random_variances(effects, level) if own else (np.zeros(int(kept.sum())),) * 2
    weights = sizes / noise
    information = Information(weights[:, None, None] * data.grams, weights[:, None] * data.crosses)
    clusters = rows.clusters
    free_within = counts.sum() if clusters is None else clusters
    fit = pooled_fit(
        effects,
        lambda beta: (information, noise),
        variances,
        lambda beta: weights[:, None, None] ** 2 * meats,
        max(float(free_within - len(counts) - kept.sum() * (clusters is None)), 1.0),
    )
    return allowing_for_unseen_spread(fit) if own else fit


def _common(data: Moments, sizes: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(np.tensordot(sizes, data.grams, axes=1), sizes @ data.crosses, rcond=1e-10)[0]


def _robust(rows: Rows, measured: MeasuredEffects, kept: np.ndarray, plain: Effects) -> tuple[Effects, np.ndarray]:
    """Effects on the kept directions with robust errors, and the covariances of scores, from the first reading if it can."""
    if kept.all() and np.array_equal(plain.effects, measured.effects.effects):
        return measured.effects, measured.meats
    data, basis = measured.data.on(kept), measured.basis[:, kept]
    effects, meats, _ = with_robust_errors(plain, data, rows, measured.scales, basis, adjust=True)
    return effects, meats


def pooled_link(rows: LinkRows, measured: MeasuredEffects, kept: np.ndarray, level: float) -> PooledFit:
    """Regression on the scale of the link on the kept directions."""
    chosen = rows.along(np.eye(len(kept))[:, kept])
    effects = measured.effects if kept.all() else chosen.measured().effects
    free_within = float(max(rows.data.counts.sum() - len(rows.parts) - kept.sum(), 1))
    fit = pooled_fit(
        effects, chosen.information, random_variances(effects, level), chosen.score_covariances, free_within
    )
    return allowing_for_unseen_spread(fit)


def random_variances(effects: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The variances of effects over environments that the weights use (zero if no difference is seen), and all of them."""
    if len(effects.effects) == 1:
        return (np.zeros(effects.effects.shape[1]),) * 2
    tau2 = random_effects(effects.effects, effects.errors).tau ** 2
    return np.where(effects.differ(level), tau2, 0.0), tau2


def pooled_fit(
    effects: Effects,
    information: Callable[[np.ndarray], tuple[Information, np.ndarray]],
    variances: tuple[np.ndarray, np.ndarray],
    score_covariances: Callable[[np.ndarray], np.ndarray],
    free_within: float,
) -> PooledFit:
    """Iterate generalised least squares to the end: once for least squares, several times if the information depends on it.

    ``score_covariances`` gives the covariances of the sums of scores of each environment, in units of ``information``.
    """
    T, every = variances
    beta = np.zeros(len(T))
    for _ in range(100):
        found, noise = information(beta)
        before = beta
        shares = np.linalg.inv(np.eye(len(T)) + found.matrices * T)
        weights = shares @ found.matrices
        inverse = np.linalg.pinv(weights.sum(axis=0), rcond=1e-10)
        products = np.einsum("eij,ej->ei", shares, found.products)
        beta = inverse @ products.sum(axis=0)
        if np.abs(beta - before).max(initial=0.0) <= 1e-10 * max(1.0, np.abs(beta).max(initial=0.0)):
            break
    meats = shares @ score_covariances(beta) @ np.swapaxes(shares, 1, 2)
    within = inverse @ meats.sum(axis=0) @ inverse.T
    between = inverse @ ((weights * every) @ np.swapaxes(weights, 1, 2)).sum(axis=0) @ inverse.T
    v, u, K = np.diagonal(within), np.diagonal(between), len(weights)
    spread_free = max(K - 1, 1)
    free = np.maximum(v + u, 1e-300) ** 2 / np.maximum(v**2 / free_within + u**2 / spread_free, 1e-300)
    of_each = np.diagonal(inverse @ weights, axis1=1, axis2=2)
    return PooledFit(beta, within + between, free, noise, effects, of_each, weights, products)


def allowing_for_unseen_spread(fit: PooledFit) -> PooledFit:
    """The same fit, with intervals of coefficients that are not shorter than those of :func:`averaged_error`."""
    count = fit.effects.known.sum(axis=0)
    several = np.flatnonzero(count > 1)
    averaged = averaged_error(fit.effects.effects[:, several], fit.effects.errors[:, several], fit.coef[several])
    errors, free, factors = np.sqrt(np.diagonal(fit.covariance)), fit.free.copy(), np.ones_like(fit.free)
    few = count[several] - 1.0
    longer = stats.t.isf(0.025, few) * averaged > stats.t.isf(0.025, free[several]) * errors[several]
    where = several[longer]
    free[where], factors[where] = few[longer], averaged[longer] / np.maximum(errors[where], 1e-300)
    return fit._replace(covariance=fit.covariance * np.outer(factors, factors), free=free)
