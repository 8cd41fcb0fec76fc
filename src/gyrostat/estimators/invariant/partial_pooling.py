"""What predicts best in new environments of the same kind: effects that are pooled in part, instead of removed.

In the model ``y = intercept_e + x . slopes_e + noise`` intercepts and slopes of environments are draws from one law. The best
linear prediction in a new environment uses the mean of that law: generalised least squares, in which an environment e with
the information ``H_e = X_e^T X_e / noise_e`` has the weight ``(H_e^{-1} + T)^{-1}``, where T holds the variances over
environments (Swamy 1970). Pooled least squares is better in one case: if the levels of environments follow the means of their
features. Environments that are left out in turn show it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.invariant.effects import Moments, effects_from_moments, free_rows, noise_variances
from gyrostat.estimators.invariant.pooled_coefficients import LEAST_FREE_ROWS
from gyrostat.estimators.invariant.random_effects import random_effects
from gyrostat.estimators.linear_predictor import Risks

CAUTION, NO_CAUTION = 0.1, 0.5
"""Least squares has no share unless a t-test of its gain in environments left out would be significant at this level."""
SCALES = 4.0
"""If the variances of features differ by more than this factor between environments, there is no caution: least squares weigh
environments by these variances, as errors in new ones do; the mixed model is right only if effects do not depend on them."""
LEAST_NOISE = 1e-9
"""The least noise variance, as a share of the variance of the response: with less, rounding would decide."""


class RandomSlopes(NamedTuple):
    """The mixed model: mean weights (p,), the intercept first; variances over environments (p,); weights of environments.

    ``matrices`` (K, p, p) and ``products`` (K, p) are the terms of the normal equations, a summand for each environment.
    """

    weights: np.ndarray
    variances: np.ndarray
    matrices: np.ndarray
    products: np.ndarray

    def without(self, e: int) -> np.ndarray:
        """The mean weights without environment e, at the same variances."""
        return _solved(self.matrices.sum(axis=0) - self.matrices[e], self.products.sum(axis=0) - self.products[e])


def random_slopes(risks: Risks) -> RandomSlopes:
    """Fit the mixed model by the method of moments (Paule and Mandel for each variance).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((6, 50, 1))
    >>> environments = [(x, slope * x[:, 0]) for x, slope in zip(X, [1, 2, 3, 4, 5, 6], strict=True)]
    >>> found = random_slopes(Risks.of(environments))
    >>> np.abs(found.weights).round(2).tolist(), np.sqrt(found.variances).round(2).tolist()
    ([0.0, 3.5], [0.0, 1.87])
    """
    data = _within(risks)
    means, noise = data.means, _noise(data)
    own = effects_from_moments(data, adjust=True)
    enough = free_rows(data, adjust=True) >= LEAST_FREE_ROWS
    slope_variances = random_effects(own.effects, np.where(enough[:, None], own.errors, 0.0)).tau ** 2
    scale = risks.counts / noise
    within = _gls(scale[:, None, None] * data.grams, scale[:, None] * data.crosses, slope_variances)
    away = means - risks.shares @ means
    levels = risks.crosses[:, 0] - away @ within[0]
    level_errors = np.sqrt(noise / risks.counts + away**2 @ slope_variances)
    variances = np.append(random_effects(levels[:, None], level_errors[:, None]).tau ** 2, slope_variances)
    weights, matrices, products = _gls(scale[:, None, None] * risks.grams, scale[:, None] * risks.crosses, variances)
    return RandomSlopes(weights, variances, matrices, products)


def same_kind_weights(risks: Risks) -> np.ndarray:
    """The weights (the intercept first) that predict best in new environments of the same kind.

    The mixed model, moved towards pooled least squares as far as environments left out in turn clearly ask for it.

    >>> rng = np.random.default_rng(0)
    >>> environments = [(x, 3 + 2 * x[:, 0]) for x in rng.standard_normal((4, 30, 1))]
    >>> same_kind_weights(Risks.of(environments)).round(9).tolist()
    [3.0, 2.0]
    """
    mixed, K = random_slopes(risks), len(risks.counts)
    least = risks.least(risks.shares)
    if K < 3:
        return mixed.weights
    gains, sizes = np.empty(K), np.empty(K)
    for e in range(K):
        w = mixed.without(e)
        step = risks.least(np.where(np.arange(K) == e, 0.0, risks.shares)) - w
        gains[e] = step @ (risks.crosses[e] - risks.grams[e] @ w)  # minus half the slope of R_e at w along the step
        sizes[e] = step @ risks.grams[e] @ step
    caution = NO_CAUTION if _scale_ratio(_within(risks).grams) > SCALES else CAUTION
    gain, least_gain = float(gains.mean()), float(stats.t.isf(caution, K - 1) * gains.std(ddof=1) / np.sqrt(K))
    # the positive part of James and Stein: nothing below the least gain, nearly all of it far above
    reliable = 1 - (least_gain / gain) ** 2 if gain > least_gain else 0.0
    share = min(reliable * gain / float(sizes.mean()), 1.0) if gain > 0 else 0.0
    return mixed.weights + share * (least - mixed.weights)


def _within(risks: Risks) -> Moments:
    """The moments within environments: minus the means of each."""
    means, levels = risks.grams[:, 0, 1:], risks.crosses[:, 0]
    return Moments(
        grams=risks.grams[:, 1:, 1:] - means[:, :, None] * means[:, None, :],
        crosses=risks.crosses[:, 1:] - means * levels[:, None],
        energies=np.maximum(risks.energies - levels**2, 0.0),
        counts=risks.counts,
        means=means,
        levels=levels,
        sizes=risks.counts,
    )


def _noise(data: Moments) -> float:
    """One noise variance for all environments: weights by their own would say that quiet environments matter more."""
    own = noise_variances(data, effects_from_moments(data, adjust=True).effects, adjust=True)
    free = free_rows(data, adjust=True)
    return max(float(free @ own / free.sum()), LEAST_NOISE * float(data.energies.mean()) or 1.0)


def _scale_ratio(grams: np.ndarray) -> float:
    """The largest variance of features within an environment over the smallest, each relative to the mean and averaged."""
    inverse = np.linalg.pinv(grams.mean(axis=0), rcond=1e-10, hermitian=True)
    scales = np.einsum("ij,eji->e", inverse, grams)
    return float(scales.max() / max(scales.min(), np.finfo(float).tiny))


def _gls(information: np.ndarray, products: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shares = np.linalg.inv(np.eye(len(T)) + information * T)
    matrices, terms = shares @ information, np.einsum("eij,ej->ei", shares, products)
    return _solved(matrices.sum(axis=0), terms.sum(axis=0)), matrices, terms


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(matrix, vector, rcond=1e-12)[0]
