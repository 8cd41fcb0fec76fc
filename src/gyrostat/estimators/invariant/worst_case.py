"""What has the least error in the worst environment, for new environments that may be unlike those at hand.

Two answers are known, and neither is best everywhere. The first is minimax: the least error in the worst of the environments
at hand (GroupDRO, Sagawa and others 2020). It lies in the middle of the effects that were seen, which is right if they show
the whole range. The second is maximin: what the effects of all environments have in common, which is nothing for an effect of
both signs (Meinshausen and Buehlmann 2015). It is right if a new environment may be further away than those at hand. Both are
computed here from losses without the part that is only error of estimation: in the effects, in the noise, and in the second
moments of features. A mixture is chosen by the error in the worst environment when environments are left out one at a time. The
removal of errors and the mixture are ours, the ends are not.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from gyrostat.estimators.invariant.common_effects import effects_without_errors, nearest_to_none
from gyrostat.estimators.invariant.effects import (
    CONSTANT,
    Effects,
    Moments,
    effects_from_moments,
    free_rows,
    noise_variances,
)
from gyrostat.estimators.invariant.partial_pooling import within_moments
from gyrostat.estimators.invariant.pooled_coefficients import LEAST_FREE_ROWS, unequal_noise
from gyrostat.estimators.squared_losses import Risks

LEVEL = 0.01
"""The level at which effects are seen to vary."""
SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Shares of the maximin weights in the mixture."""
MOST_LEFT_OUT = 12
"""If there are more environments, this many parts of them are left out in turn."""


def worst_case_weights(risks: Risks) -> np.ndarray:
    """The weights (the intercept first) for the purpose "worst-case".

    >>> rng = np.random.default_rng(0)
    >>> X, flips = rng.standard_normal((6, 200, 2)), [1.0, -1.0, 1.0, 1.0, -1.0, 1.0]
    >>> environments = [(x, x[:, 0] + s * x[:, 1] + rng.standard_normal(200)) for x, s in zip(X, flips, strict=True)]
    >>> bool(np.abs(worst_case_weights(Risks.of(environments)) - [0, 1, 0]).max() < 0.2)
    True
    """
    share = _chosen_share(risks)
    minimax, maximin = both_ends(risks)
    return (1 - share) * minimax + share * maximin


def _chosen_share(risks: Risks) -> float:
    """The share with the least error in the worst environment left out; with two environments there is nothing to learn."""
    K = len(risks.counts)
    if K < 3:
        return 0.0
    losses, judge = np.empty((K, len(SHARES))), without_errors(risks) or risks
    part = np.arange(K) % MOST_LEFT_OUT
    for out in range(part.max() + 1):
        minimax, maximin = both_ends(risks.of_some(part != out))
        mine = judge.of_some(part == out)
        losses[part == out] = np.stack([mine.values((1 - s) * minimax + s * maximin) for s in SHARES], axis=1)
    return float(SHARES[losses.max(axis=0).argmin()])


def both_ends(risks: Risks) -> tuple[np.ndarray, np.ndarray]:
    """The minimax and the maximin weights."""
    smooth = without_errors(risks)
    if smooth is None:
        minimax = risks.least_worst()  # errors of estimation are unknown
        return minimax, minimax
    return smooth.least_worst(), _with_middle_level(_maximin(risks), smooth)


def _measured(risks: Risks) -> tuple[Moments, Effects, np.ndarray]:
    data = within_moments(risks)
    return data, effects_from_moments(data, adjust=True), np.tensordot(risks.shares, data.grams, axes=1)


def _maximin(risks: Risks) -> np.ndarray:
    _, measured, gram = _measured(risks)
    white, back = effects_without_errors(measured, gram, LEVEL)
    return nearest_to_none(white) @ white @ back.T


def without_errors(risks: Risks) -> Risks | None:
    """Losses whose effects, noise and second moments differ only as far as they are seen to; None with too few rows."""
    data, measured, gram = _measured(risks)
    free = free_rows(data, adjust=True)
    if free.min() < LEAST_FREE_ROWS or not measured.known.all():
        return None
    white, back = effects_without_errors(measured, gram, LEVEL)
    coefs = white @ back.T
    noise = noise_variances(data, measured.effects, adjust=True)
    if noise.min() > 0 and not unequal_noise(noise, free, LEVEL):
        noise = np.full(len(free), free @ noise / free.sum())
    shares = own_shares(data, gram)[:, None, None]
    grams = risks.grams.copy()
    grams[:, 1:, 1:] += (1 - shares) * (gram - data.grams)
    levels = data.levels - np.sum(data.means * coefs, axis=1)
    return _with_minima(risks._replace(grams=grams), np.column_stack([levels, coefs]), noise)


def own_shares(data: Moments, gram: np.ndarray) -> np.ndarray:
    """How much of the difference of each environment's second moments from the common ones, ``gram``, is not sampling error.

    In units in which ``gram`` is the identity, n rows of d normal features have second moments whose squared distance from it
    is ``d (d + 1) / n`` on average. What is seen beyond this is variance over environments, by the method of moments.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8, 100, 3))
    >>> of = lambda X: within_moments(Risks.of([(x, x[:, 0]) for x in X]))
    >>> bool(own_shares(of(X), np.eye(3)).max() < 0.5)
    True
    >>> bool(own_shares(of(X * np.array([0.5, 1.5] * 4)[:, None, None]), 1.25 * np.eye(3)).min() > 0.9)
    True
    """
    values, vectors = np.linalg.eigh(gram)
    seen = values > CONSTANT * values[-1]
    root, d = vectors[:, seen] / np.sqrt(values[seen]), int(seen.sum())
    squares = np.sum((root.T @ data.grams @ root - np.eye(d)) ** 2, axis=(1, 2))
    errors = d * (d + 1) / data.counts
    common = data.counts / data.counts.sum()
    variance = max(float(np.mean(squares - (1 - common) * errors)), 0.0)
    return variance / (variance + errors)


def _with_minima(risks: Risks, weights: np.ndarray, noise: np.ndarray) -> Risks:
    """Losses with the same curvature whose minima are these weights (K, p), with these values."""
    crosses = np.einsum("eij,ej->ei", risks.grams, weights)
    return risks._replace(crosses=crosses, energies=noise + np.sum(crosses * weights, axis=1))


def _with_middle_level(coef: np.ndarray, risks: Risks) -> np.ndarray:
    """These coefficients, with the intercept that has the least error in the worst environment."""
    best = risks.crosses[:, 0] - risks.grams[:, 0, 1:] @ coef
    if np.ptp(best) == 0:
        return np.append(best[0], coef)
    worst = optimize.minimize_scalar(
        lambda level: risks.values(np.append(level, coef)).max(), bounds=(best.min(), best.max()), method="bounded"
    )
    return np.append(worst.x, coef)
