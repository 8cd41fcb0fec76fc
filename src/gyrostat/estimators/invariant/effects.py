"""The effect of every feature in every environment, its uncertainty, and how a residual acts on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError, shown
from gyrostat.estimators.invariant.moments import Moments, moments, parts_of
from gyrostat.estimators.invariant.variation import differ_p, mean_differs_from_zero, shown_share

FLAT = 1e-10
"""A feature (or a combination of features) with less than this share of the usual variance is constant."""


class Effects(NamedTuple):
    """``maps_e beta - effects_e`` is the residual of environment e in units of effects; ``covariances_e`` is that of its
    errors of estimation.
    """

    maps: np.ndarray
    effects: np.ndarray
    covariances: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """Standard errors, environment by environment and feature by feature."""
        return np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))

    @property
    def mean(self) -> np.ndarray:
        """Over environments, each counted alike."""
        return self.effects.mean(axis=0)

    @property
    def plain(self) -> bool:
        """Whether every map is the identity: features do not meet each other, and a step need not multiply by maps."""
        return bool(np.abs(self.maps - np.eye(len(self.mean))).max() < 1e-9)

    def differ(self, level: float) -> np.ndarray:
        """Cochran's test, feature by feature: do effects differ by more than errors explain?

        Of the features for which it says so, a share of ``level`` is expected not to (Benjamini and Hochberg).
        """
        return differ_p(self.effects, self.errors) < level

    def present(self, level: float) -> np.ndarray:
        """Is the mean effect further from zero than errors explain?"""
        return mean_differs_from_zero(self.effects, self.errors, level)[0] < level

    def shown(self, varies: np.ndarray) -> Effects:
        """Those whose deviations from the mean are only what errors of estimation do not explain.

        A deviation is drawn in by the share of the spread that errors are expected to add; all of it is theirs where nothing
        is known to vary.
        """
        share = np.where(varies, shown_share(self.effects, self.errors), 0.0)
        return self._replace(effects=self.mean + share * (self.effects - self.mean))

    def turned(self, W: np.ndarray) -> Effects:
        """Those along the columns of an orthogonal W instead of the features."""
        return Effects(W.T @ self.maps @ W, self.effects @ W, W.T @ self.covariances @ W)

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
    flat, inverses = _inverses(data, adjust)
    maps, effects = inverses @ data.grams, (inverses @ data.crosses[:, :, None])[..., 0]
    left = data.energies - (np.sum(effects * data.crosses, axis=1) if adjust else 0.0)
    free = np.maximum(data.counts - 1 - (flat.shape[1] if adjust else 1), 1)  # rows beyond the coefficients and a mean
    covariances = maps @ inverses * (np.maximum(left, 0.0) / free)[:, None, None]
    for e, j in np.argwhere(flat & ~flat.all(axis=0)):
        others = ~flat[:, j]
        maps[e, j], effects[e, j] = maps[others, j].mean(axis=0), effects[others, j].mean()
    return Effects(maps, effects, covariances)


def robust(
    seen: Effects,
    data: Moments,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    scales: tuple[Any, float],
    *,
    adjust: bool,
) -> Effects:
    """Those whose standard errors are at least those that hold when the size of the noise changes from row to row.

    The sandwich of White (with n over n - coefficients) alone is too small in small environments, and the classical
    formula is too small if noise is larger where features are: the larger of the two is taken, feature by feature. With
    f rows beyond the coefficients an effect over its error is Student's t, with variance f / (f - 2): errors are made
    larger by its root, as all tests compare with a normal law. ``parts`` are rows and responses, which ``scales``
    divide (features, response) to give ``data``.
    """
    (features, response), (_, inverses) = scales, _inverses(data, adjust)
    covariances, units = seen.covariances.copy(), response / features
    for e, (X, y) in enumerate(parts):
        n, d = X.shape
        free = max(n - 1 - (d if adjust else 1), 1)
        if adjust:
            X *= (y - X @ (seen.effects[e] * units))[:, None]  # in place: a copy, and no more room than that
            bread = inverses[e] / (features * response)
            sandwich = np.einsum("ij,jk,ik->i", bread, X.T @ X / (n * free), bread, optimize=True)
        else:
            X *= y[:, None] - X * (seen.effects[e] * units)
            sandwich = (
                np.einsum("ij,ij->j", X, X) / (n * free) * (np.diagonal(inverses[e]) / (features * response)) ** 2
            )
        classical = np.diagonal(covariances[e])
        grown = np.sqrt(np.divide(sandwich, classical, out=np.ones(d), where=classical > 0).clip(1.0))
        grown *= np.sqrt(free / max(free - 2, 1 / 3))
        covariances[e] *= np.multiply.outer(grown, grown)
    return seen._replace(covariances=covariances)


def measured(
    X: np.ndarray,
    y: np.ndarray,
    rows: list[np.ndarray],
    *,
    adjust: bool,
    standardize: bool = True,
    centred: bool = True,
) -> tuple[Moments, Effects, np.ndarray]:
    """Moments and effects in standard deviations, and what takes a coefficient back to the units of the data.

    Two passes over the data, an environment at a time: second moments, then the sizes of residuals.
    """
    raw = moments(parts_of(X, y, rows, centred=centred))
    features, response = raw.scales
    if not standardize:
        features = np.ones_like(features)
    data = raw.scaled(features, response)
    parts = parts_of(X, y, rows, centred=centred)
    seen = robust(effects_of(data, adjust=adjust), data, parts, (features, response), adjust=adjust)
    return data, seen, response / features


def refuse_small(environments: list, rows: list[np.ndarray], features: int) -> None:
    """Say which environment has too few rows for effects beside each other."""
    e = int(np.argmin([len(mine) for mine in rows]))
    if len(rows) > 1 and len(rows[e]) < features + 4:
        raise GyrostatError(
            f"adjust=True estimates {features} effects beside each other in every environment, which takes at least "
            f"{features + 4} rows; {shown(environments[e])} has {len(rows[e])}: use adjust=False, fewer features, or larger "
            "environments."
        )


def _inverses(data: Moments, adjust: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which features are constant where, and the inverses of the second moments, whole or of their diagonals."""
    diagonals = np.diagonal(data.grams, axis1=1, axis2=2)
    flat = diagonals <= FLAT * diagonals.mean(axis=0)
    if adjust:
        return flat, np.linalg.pinv(data.grams, rcond=FLAT, hermitian=True)
    alone = np.divide(1, diagonals, out=np.zeros_like(diagonals), where=~flat)
    return flat, alone[:, :, None] * np.eye(flat.shape[1])
