"""What has the least error in the worst environment, for new environments that may be unlike those at hand.

Two answers are known, and neither is best everywhere. The first is minimax: the least error in the worst of the environments
at hand (GroupDRO, Sagawa and others 2020). It lies in the middle of the effects that were seen, which is right if they show
the whole range. The second is maximin: what the effects of all environments have in common, which is nothing for an effect of
both signs (Meinshausen and Buehlmann 2015). It is right if a new environment may be further away than those at hand. Both are
computed here from effects without the part that is only error of estimation, and a mixture is chosen by the error in the worst
environment when environments are left out one at a time. The removal of errors and the mixture are ours, the ends are not.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from gyrostat.estimators.invariant.common_effects import effects_without_errors, nearest_to_none
from gyrostat.estimators.invariant.effects import effects_from_moments, free_rows, noise_variances
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
    losses = np.empty((K, len(SHARES)))
    part = np.arange(K) % MOST_LEFT_OUT
    for out in range(part.max() + 1):
        minimax, maximin = both_ends(risks.of_some(part != out))
        mine = risks.of_some(part == out)
        losses[part == out] = np.stack([mine.values((1 - s) * minimax + s * maximin) for s in SHARES], axis=1)
    return float(SHARES[losses.max(axis=0).argmin()])


def both_ends(risks: Risks) -> tuple[np.ndarray, np.ndarray]:
    """The minimax and the maximin weights."""
    data = within_moments(risks)
    measured = effects_from_moments(data, adjust=True)
    if free_rows(data, adjust=True).min() < LEAST_FREE_ROWS or not measured.known.all():
        minimax = risks.least_worst()  # errors of estimation are unknown
        return minimax, minimax
    white, back = effects_without_errors(measured, np.tensordot(risks.shares, data.grams, axes=1), LEVEL)
    coefs = white @ back.T
    noise, free = noise_variances(data, measured.effects, adjust=True), free_rows(data, adjust=True)
    if noise.min() > 0 and not unequal_noise(noise, free, LEVEL):
        noise = np.full(len(free), free @ noise / free.sum())
    smooth = _with_minima(risks, np.column_stack([data.levels - np.sum(data.means * coefs, axis=1), coefs]), noise)
    return smooth.least_worst(), _with_middle_level(nearest_to_none(white) @ coefs, smooth)


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
