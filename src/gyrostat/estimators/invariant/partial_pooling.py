"""What predicts best in new environments of the same kind: effects that are pooled in part, instead of removed.

In the model ``y = intercept_e + x . slopes_e + noise`` intercepts and slopes of environments are draws from one law. The best
linear prediction in a new environment uses the mean of that law: generalised least squares, in which an environment e with
the information ``H_e = X_e^T X_e / noise_e`` has the weight ``(H_e^{-1} + T)^{-1}``, where T holds the variances over
environments (Swamy 1970). Two things speak for other weights. If slopes depend on how much features vary, which they do
wherever a line stands for a curve, fixed effects are better: they weigh environments by this variation. And if levels follow
the means of features, pooled least squares is. How likely this is follows from the levels: see :func:`levels_follow`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.invariant.effects import Moments, effects_from_moments, free_rows, noise_variances
from gyrostat.estimators.invariant.pooled_coefficients import LEAST_FREE_ROWS
from gyrostat.estimators.invariant.random_effects import random_effects
from gyrostat.estimators.squared_losses import Risks

FOLLOWS = 0.25
"""The probability, before a look at the data, that levels follow the means of features."""
SIZES = np.array([0.0, 0.1, 0.3, 1.0, 3.0])
"""Variances of levels that are compared, as multiples of the one that was seen."""
SMALL, LARGE = (0.0, 0.25), (0.75, 1.0)
"""Shares of this variance that follow the means of features: too small to count, and large."""
ROUNDING = 1e-10
"""The least variance of a level, as a share of the one that was seen."""
LEAST_NOISE = 1e-9
"""The least noise variance, as a share of the variance of the response: with less, rounding would decide."""


class RandomSlopes(NamedTuple):
    """The mixed model: mean weights (p,), the intercept first; variances over environments (p,).

    ``noise`` is the variance within environments.
    """

    weights: np.ndarray
    variances: np.ndarray
    noise: float


def random_slopes(risks: Risks) -> RandomSlopes:
    """Fit the mixed model by the method of moments (Paule and Mandel for each variance).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((6, 50, 1))
    >>> environments = [(x, slope * x[:, 0]) for x, slope in zip(X, [1, 2, 3, 4, 5, 6], strict=True)]
    >>> found = random_slopes(Risks.of(environments))
    >>> np.abs(found.weights).round(2).tolist(), np.sqrt(found.variances).round(2).tolist()
    ([0.0, 3.5], [0.0, 1.87])
    """
    data = within_moments(risks)
    means, noise = data.means, _noise(data)
    own = effects_from_moments(data, adjust=True)
    enough = free_rows(data, adjust=True) >= LEAST_FREE_ROWS
    slope_variances = random_effects(own.effects, np.where(enough[:, None], own.errors, 0.0)).tau ** 2
    scale = risks.counts / noise
    within = _gls(scale[:, None, None] * data.grams, scale[:, None] * data.crosses, slope_variances)
    away = means - risks.shares @ means
    levels = risks.crosses[:, 0] - away @ within
    level_errors = np.sqrt(noise / risks.counts + away**2 @ slope_variances)
    variances = np.append(random_effects(levels[:, None], level_errors[:, None]).tau ** 2, slope_variances)
    weights = _gls(scale[:, None, None] * risks.grams, scale[:, None] * risks.crosses, variances)
    return RandomSlopes(weights, variances, noise)


def fixed_effects(risks: Risks) -> np.ndarray:
    """All rows after the means of each environment are taken out; the intercept fits all rows.

    >>> environments = [(x, level + 2 * x[:, 0]) for x, level in zip(np.eye(4).reshape(2, 4, 2), (0, 5), strict=True)]
    >>> fixed_effects(Risks.of(environments))[:2].round(9).tolist()
    [2.5, 2.0]
    """
    data, shares = within_moments(risks), risks.shares
    coef = _solved(np.tensordot(shares, data.grams, axes=1), shares @ data.crosses)
    return np.append(shares @ (data.levels - data.means @ coef), coef)


def levels_follow(risks: Risks, mixed: RandomSlopes) -> float:
    """The probability that levels of environments follow the means of their features, given the slopes.

    What slopes leave of the levels has the covariance ``D + size ((1 - share) I + share M M^T)`` over environments: M holds
    the means of features, D the errors of estimation. Likelihoods (restricted: the common level is free) are averaged over
    sizes and shares, all with the same weight; those for large shares are compared with those for small ones.

    >>> rng = np.random.default_rng(0)
    >>> means = rng.standard_normal((12, 1))
    >>> environments = [(m + rng.standard_normal((50, 1)), m + rng.standard_normal(50)) for m in means]
    >>> risks = Risks.of(environments)
    >>> round(levels_follow(risks, random_slopes(risks)), 3)
    1.0
    """
    means, K = risks.grams[:, 0, 1:], len(risks.counts)
    away = means - means.mean(axis=0)
    left = risks.crosses[:, 0] - means @ mixed.weights[1:]
    seen = float(np.sum((left - left.mean()) ** 2) / max(K - 1, 1))
    if K < 3 or not away.any() or seen == 0:
        return FOLLOWS
    along = away @ away.T * (K / np.sum(away**2))
    errors = mixed.noise / risks.counts + away**2 @ mixed.variances[1:] + ROUNDING * seen
    mixtures = np.eye(K) + np.array([*SMALL, *LARGE])[:, None, None] * (along - np.eye(K))
    likelihoods = _restricted(np.diag(errors) + seen * SIZES[:, None, None, None] * mixtures, left)
    relative = np.exp(likelihoods - likelihoods.max()).sum(axis=0)
    small, large = (1 - FOLLOWS) * relative[: len(SMALL)].mean(), FOLLOWS * relative[len(SMALL) :].mean()
    return float(large / (small + large))


def _restricted(V: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The logarithms of restricted likelihoods of values (K,) with covariances V (..., K, K) and a common mean."""
    inverse = np.linalg.inv(V)
    of_one = inverse.sum(axis=-1)
    information = of_one.sum(axis=-1)
    left = values - (of_one @ values / information)[..., None]
    squares = np.einsum("...i,...ij,...j->...", left, inverse, left)
    return -0.5 * (np.linalg.slogdet(V)[1] + np.log(information) + squares)


def same_kind_weights(risks: Risks) -> np.ndarray:
    """The weights (the intercept first) that predict best in new environments of the same kind.

    Half the mixed model and half fixed effects, and least squares with the probability that levels follow features.

    >>> rng = np.random.default_rng(0)
    >>> environments = [(x, 3 + 2 * x[:, 0]) for x in rng.standard_normal((4, 30, 1))]
    >>> same_kind_weights(Risks.of(environments)).round(9).tolist()
    [3.0, 2.0]
    """
    mixed = random_slopes(risks)
    p = levels_follow(risks, mixed)
    within = _with_properties_of_environments(fixed_effects(risks), risks)
    return (1 - p) * (mixed.weights + within) / 2 + p * risks.least(risks.shares)


def _with_properties_of_environments(weights: np.ndarray, risks: Risks) -> np.ndarray:
    """Fixed effects, which say nothing of features that are constant within environments: those explain what is left of levels.

    If there are too few environments to estimate their effects, these stay zero.
    """
    data, coef = within_moments(risks), weights[1:].copy()
    flat = data.constant
    if not 0 < flat.sum() < len(data.counts) - 1:
        return weights
    coef[flat] = 0.0
    design = np.column_stack([np.ones(len(data.counts)), data.means[:, flat]])
    root = np.sqrt(risks.shares)
    coef[flat] = _solved(design * root[:, None], root * (data.levels - data.means @ coef))[1:]
    return np.append(risks.shares @ (data.levels - data.means @ coef), coef)


def within_moments(risks: Risks) -> Moments:
    """The moments within environments: minus the means of each, and without what is only rounding."""
    means, levels = risks.grams[:, 0, 1:], risks.crosses[:, 0]
    found = Moments(
        grams=risks.grams[:, 1:, 1:] - means[:, :, None] * means[:, None, :],
        crosses=risks.crosses[:, 1:] - means * levels[:, None],
        energies=np.maximum(risks.energies - levels**2, 0.0),
        counts=risks.counts,
        means=means,
        levels=levels,
        sizes=risks.counts,
    )
    return found.without_jitter()


def _noise(data: Moments) -> float:
    """One noise variance for all environments: weights by their own would say that quiet environments matter more."""
    own = noise_variances(data, effects_from_moments(data, adjust=True).effects, adjust=True)
    free = free_rows(data, adjust=True)
    return max(float(free @ own / free.sum()), LEAST_NOISE * float(data.energies.mean()) or 1.0)


def _gls(information: np.ndarray, products: np.ndarray, T: np.ndarray) -> np.ndarray:
    shares = np.linalg.inv(np.eye(len(T)) + information * T)
    return _solved((shares @ information).sum(axis=0), np.einsum("eij,ej->i", shares, products))


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(matrix, vector, rcond=1e-12)[0]
