"""The effect of every feature in every environment, its uncertainty, and how a residual acts on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from gyrostat.estimators.moments import Moments

FLAT = 1e-10
"""A feature (or a combination of features) with less than this share of the usual variance is constant."""


class Effects(NamedTuple):
    """``maps_e beta - effects_e`` is the residual of environment e in units of effects; ``errors`` are standard errors."""

    maps: np.ndarray
    effects: np.ndarray
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Over environments, each counted alike."""
        return self.effects.mean(axis=0)

    @property
    def spread(self) -> np.ndarray:
        """The standard deviation over environments."""
        return self.effects.std(axis=0)

    def differ(self, level: float) -> np.ndarray:
        """Cochran's test, feature by feature: do effects differ by more than errors explain?"""
        precision = np.divide(1, self.errors**2, out=np.zeros_like(self.errors), where=self.errors > 0)
        mean = (precision * self.effects).sum(axis=0) / np.maximum(precision.sum(axis=0), np.finfo(float).tiny)
        Q = (precision * (self.effects - mean) ** 2).sum(axis=0)
        return stats.chi2.sf(Q, max(len(self.effects) - 1, 1)) < level

    def present(self, level: float) -> np.ndarray:
        """Is the mean effect further from zero than errors explain?"""
        error = np.sqrt(np.mean(self.errors**2, axis=0) / len(self.errors))
        return np.abs(self.mean) > stats.norm.isf(level / 2) * error

    def amplified(self, kappa: np.ndarray) -> Effects:
        """Those whose residuals are ``G_e + kappa * (G_e - mean of G)``, feature by feature."""
        maps = self.maps + kappa[:, None] * (self.maps - self.maps.mean(axis=0))
        return self._replace(maps=maps, effects=self.effects + kappa * (self.effects - self.mean))


def effects_of(data: Moments, *, adjust: bool) -> Effects:
    """Effects beside all other features (``adjust``: least squares, environment by environment), or of each alone.

    Either is free of the variances of the features: those may differ between environments without an effect doing so.
    Where a feature is constant it has no effect to compare, and takes the mean of the other environments.

    >>> data = Moments(np.array([[[1.0, 0.5], [0.5, 1.0]]]), np.array([[1.0, 0.5]]), np.array([2.0]), np.array([100]))
    >>> effects_of(data, adjust=True).effects.round(9).tolist(), effects_of(data, adjust=False).effects.tolist()
    ([[1.0, 0.0]], [[1.0, 0.5]])
    """
    diagonals = np.diagonal(data.grams, axis1=1, axis2=2)
    flat = diagonals <= FLAT * diagonals.mean(axis=0)
    if adjust:
        inverses = np.linalg.pinv(data.grams, rcond=FLAT, hermitian=True)
    else:
        inverses = np.divide(1, diagonals, out=np.zeros_like(diagonals), where=~flat)[:, :, None] * np.eye(
            flat.shape[1]
        )
    maps, effects = inverses @ data.grams, (inverses @ data.crosses[:, :, None])[..., 0]
    left = data.energies - (np.sum(effects * data.crosses, axis=1) if adjust else 0.0)
    free = np.maximum(data.counts - 1 - (flat.shape[1] if adjust else 1), 1)  # rows beyond the coefficients and a mean
    variances = np.diagonal(inverses, axis1=1, axis2=2) * (np.maximum(left, 0.0) / free)[:, None]
    for e, j in np.argwhere(flat & ~flat.all(axis=0)):
        others = ~flat[:, j]
        maps[e, j], effects[e, j] = maps[others, j].mean(axis=0), effects[others, j].mean()
    return Effects(maps, effects, np.sqrt(variances))
