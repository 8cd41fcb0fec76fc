"""The effect of each feature in each environment: second moments, least squares, standard errors, directions of variation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError, shown
from gyrostat.estimators.invariant.hypothesis_tests import effects_differ_p, mean_effect_test, unexplained_share

CONSTANT = 1e-10
"""A feature (or a combination of features) with less than this share of the usual variance counts as constant."""
SIMULATIONS = 400
"""The number of simulated sets of effects without variation that observed variation is compared with."""


class Moments(NamedTuple):
    """``X_e^T X_e / n_e``, ``X_e^T y_e / n_e``, ``y_e^T y_e / n_e`` and the number of rows n_e of each environment e.

    A step of descent on a squared loss needs no more: it costs d^2 for any number of rows, and the data are read once.
    """

    grams: np.ndarray
    crosses: np.ndarray
    energies: np.ndarray
    counts: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """The mean over environments with equal weights, as descent visits them equally often."""
        return self.grams.mean(axis=0)

    @property
    def scales(self) -> tuple[np.ndarray, float]:
        """The root mean square of each feature and of the response; one where it is zero."""
        squares = np.append(np.diagonal(self.gram), self.energies.mean())
        roots = np.where(squares > 0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
        return roots[:-1], float(roots[-1])

    def scaled(self, features: np.ndarray, response: float) -> Moments:
        """The moments of ``X / features`` and ``y / response``."""
        grams = self.grams / np.multiply.outer(features, features)
        return Moments(grams, self.crosses / (features * response), self.energies / response**2, self.counts)

    def rotated(self, W: np.ndarray) -> Moments:
        """The moments along the columns of an orthogonal W instead of the features."""
        return self._replace(grams=W.T @ self.grams @ W, crosses=self.crosses @ W)

    def least_squares(self, chosen: np.ndarray) -> np.ndarray:
        """Least-squares coefficients on the chosen features (the shortest solution, if there are several); others are zero.

        Each row has the same weight: an effect that holds everywhere is known best where there are most rows.
        """
        weights = self.counts / self.counts.sum()
        gram, cross = np.tensordot(weights, self.grams, axes=1), weights @ self.crosses
        beta, where = np.zeros(len(cross)), np.flatnonzero(chosen)
        if where.size:
            beta[where] = np.linalg.lstsq(gram[np.ix_(where, where)], cross[where], rcond=1e-10)[0]
        return beta


def environment_parts(
    X: np.ndarray, y: np.ndarray, rows: list[np.ndarray], *, centred: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Copies of the rows and responses of one environment after another, minus its own means if ``centred``."""
    for mine in rows:
        Xe, ye = X[mine], y[mine].astype(np.float64)
        if centred:
            Xe -= Xe.mean(axis=0)
            ye -= ye.mean()
        yield Xe, ye


def moments(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Moments:
    """The moments of each environment.

    >>> moments([(np.array([[1.0], [3.0]]), np.array([2.0, 6.0]))]).crosses.tolist()
    [[10.0]]
    """
    each = [(X.T @ X / len(y), X.T @ y / len(y), y @ y / len(y), len(y)) for X, y in parts]
    return Moments(*(np.array(x) for x in zip(*each, strict=True)))


class Effects(NamedTuple):
    """Effects by environment and feature.

    ``maps_e beta - effects_e`` is the residual of environment e in units of effects; ``covariances_e`` is the covariance of
    the estimation errors of its effects.
    """

    maps: np.ndarray
    effects: np.ndarray
    covariances: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """Standard errors, by environment and feature."""
        return np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))

    @property
    def mean(self) -> np.ndarray:
        """The mean over environments with equal weights."""
        return self.effects.mean(axis=0)

    @property
    def maps_are_identity(self) -> bool:
        """Whether each map is the identity. Features do not interact then, and a step need not multiply by maps."""
        return bool(np.abs(self.maps - np.eye(len(self.mean))).max() < 1e-9)

    def differ(self, level: float) -> np.ndarray:
        """Whether effects differ by more than errors explain, for each feature (Cochran's test).

        Of the features for which they do, a share of at most ``level`` is expected to be wrong (Benjamini and Hochberg).
        """
        return effects_differ_p(self.effects, self.errors) < level

    def present(self, level: float) -> np.ndarray:
        """Whether the mean effect is further from zero than errors explain."""
        return mean_effect_test(self.effects, self.errors, level)[0] < level

    def denoised(self, varies: np.ndarray) -> Effects:
        """Effects whose deviations from the mean are only what estimation errors do not explain.

        Deviations are shrunken by the share of the spread that errors are expected to add, and to zero where effects are not
        known to vary.
        """
        share = np.where(varies, unexplained_share(self.effects, self.errors), 0.0)
        return self._replace(effects=self.mean + share * (self.effects - self.mean))

    def rotated(self, W: np.ndarray) -> Effects:
        """Effects along the columns of an orthogonal W instead of the features."""
        return Effects(W.T @ self.maps @ W, self.effects @ W, W.T @ self.covariances @ W)

    def amplified(self, kappa: np.ndarray) -> Effects:
        """Effects whose residuals are ``G_e + kappa * (G_e - mean of G)``, with one kappa per feature."""
        maps = self.maps + kappa[:, None] * (self.maps - self.maps.mean(axis=0))
        return self._replace(maps=maps, effects=self.effects + kappa * (self.effects - self.mean))


def effects_from_moments(data: Moments, *, adjust: bool) -> Effects:
    """Effects adjusted for all other features (``adjust``: least squares in each environment), or of each feature alone.

    Neither depends on the variances of the features, which may differ between environments while the effects are the
    same. Where a feature is constant it has no effect, and takes the mean of the other environments.

    >>> data = Moments(np.array([[[1.0, 0.5], [0.5, 1.0]]]), np.array([[1.0, 0.5]]), np.array([2.0]), np.array([100]))
    >>> adjusted, alone = (effects_from_moments(data, adjust=adjust).effects for adjust in (True, False))
    >>> adjusted.round(9).tolist(), alone.tolist()
    ([[1.0, 0.0]], [[1.0, 0.5]])
    """
    constant, inverses = _inverses(data, adjust)
    maps, effects = inverses @ data.grams, (inverses @ data.crosses[:, :, None])[..., 0]
    left = data.energies - (np.sum(effects * data.crosses, axis=1) if adjust else 0.0)
    # rows beyond the coefficients and a mean
    free = np.maximum(data.counts - 1 - (constant.shape[1] if adjust else 1), 1)
    covariances = maps @ inverses * (np.maximum(left, 0.0) / free)[:, None, None]
    for e, j in np.argwhere(constant & ~constant.all(axis=0)):
        others = ~constant[:, j]
        maps[e, j], effects[e, j] = maps[others, j].mean(axis=0), effects[others, j].mean()
    return Effects(maps, effects, covariances)


def with_robust_errors(
    measured: Effects,
    data: Moments,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    scales: tuple[Any, float],
    *,
    adjust: bool,
) -> Effects:
    """The same effects with standard errors that also hold if the size of the noise changes from row to row.

    White's sandwich estimator (with n over n - coefficients) is too small in small environments, and the classical formula
    is too small if noise is larger where features are: the larger of the two is taken for each feature. With f rows beyond
    the coefficients an effect over its error is Student's t, with variance f / (f - 2). Errors are multiplied by the root
    of this, because all tests compare with a normal distribution. ``parts`` are rows and responses; divided by ``scales``
    (features, response) they give ``data``.
    """
    (features, response), (_, inverses) = scales, _inverses(data, adjust)
    covariances, units = measured.covariances.copy(), response / features
    for e, (X, y) in enumerate(parts):
        n, d = X.shape
        free = max(n - 1 - (d if adjust else 1), 1)
        if adjust:
            X *= (y - X @ (measured.effects[e] * units))[:, None]  # in place, to save memory: X is a copy already
            bread = inverses[e] / (features * response)
            sandwich = np.einsum("ij,jk,ik->i", bread, X.T @ X / (n * free), bread, optimize=True)
        else:
            X *= y[:, None] - X * (measured.effects[e] * units)
            sandwich = (
                np.einsum("ij,ij->j", X, X) / (n * free) * (np.diagonal(inverses[e]) / (features * response)) ** 2
            )
        classical = np.diagonal(covariances[e])
        factor = np.sqrt(np.divide(sandwich, classical, out=np.ones(d), where=classical > 0).clip(1.0))
        factor *= np.sqrt(free / max(free - 2, 1 / 3))
        covariances[e] *= np.multiply.outer(factor, factor)
    return measured._replace(covariances=covariances)


def measured_effects(
    X: np.ndarray,
    y: np.ndarray,
    rows: list[np.ndarray],
    *,
    adjust: bool,
    standardize: bool = True,
    centred: bool = True,
) -> tuple[Moments, Effects, np.ndarray]:
    """Moments and effects in standard deviations, and the factors that take coefficients back to the units of the data.

    The data are read twice, one environment at a time: for second moments, then for the sizes of residuals.
    """
    raw = moments(environment_parts(X, y, rows, centred=centred))
    features, response = raw.scales
    if not standardize:
        features = np.ones_like(features)
    data = raw.scaled(features, response)
    parts = environment_parts(X, y, rows, centred=centred)
    plain = effects_from_moments(data, adjust=adjust)
    return data, with_robust_errors(plain, data, parts, (features, response), adjust=adjust), response / features


def refuse_small_environments(environments: list, rows: list[np.ndarray], features: int) -> None:
    """Raise an error if an environment has too few rows for effects that are adjusted for each other."""
    e = int(np.argmin([len(mine) for mine in rows]))
    if len(rows) > 1 and len(rows[e]) < features + 4:
        raise GyrostatError(
            f"adjust=True estimates {features} effects jointly in every environment, which takes at least "
            f"{features + 4} rows; {shown(environments[e])} has {len(rows[e])}: use adjust=False, fewer features, or larger "
            "environments."
        )


def _inverses(data: Moments, adjust: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which features are constant in which environments, and the inverses of the second moments or of their diagonals."""
    diagonals = np.diagonal(data.grams, axis1=1, axis2=2)
    constant = diagonals <= CONSTANT * diagonals.mean(axis=0)
    if adjust:
        return constant, np.linalg.pinv(data.grams, rcond=CONSTANT, hermitian=True)
    alone = np.divide(1, diagonals, out=np.zeros_like(diagonals), where=~constant)
    return constant, alone[:, :, None] * np.eye(constant.shape[1])


def principal_directions(measured: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal basis (d, d) that starts with the directions in which effects vary, and a mask of these directions.

    They are eigenvectors of the covariance of effects over environments. From the largest one down, an eigenvector counts as
    varying while its variance exceeds the largest variance of all but a share ``level`` of simulated sets of effects, which
    vary by estimation errors only. The next column points along the rest of the mean effect. The other columns have no
    effect.

    >>> effects = np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 1.5]])
    >>> covariances = np.broadcast_to(1e-4 * np.eye(2), (3, 2, 2))
    >>> W, varies = principal_directions(Effects(covariances, effects, covariances), 0.01)
    >>> np.abs(W).round(2).tolist(), varies.tolist()
    ([[0.71, 0.71], [0.71, 0.71]], [True, False])
    """
    K, d = measured.effects.shape
    values, vectors = _principal_components(measured.effects)
    most = min(K - 1, d)
    limit = _largest_variance_by_chance(measured, level) if most else np.inf
    count = int(np.cumprod(values[:most] > limit).sum())
    varying, mean = vectors[:, :count], measured.mean
    basis, _ = np.linalg.qr(np.column_stack([varying, mean - varying @ (varying.T @ mean), np.eye(d)]))
    signs = np.where(mean @ basis < 0, -1.0, 1.0)
    return basis[:, :d] * signs, np.arange(d) < count


def _principal_components(effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, from the largest down, and eigenvectors of the covariance over environments."""
    _, s, vectors = np.linalg.svd(effects - effects.mean(axis=0), full_matrices=False)
    return s**2 / len(effects), vectors.T


def _largest_variance_by_chance(measured: Effects, level: float) -> float:
    """The ``1 - level`` quantile of the largest eigenvalue if effects vary by estimation errors only."""
    K, d = measured.effects.shape
    rng = np.random.default_rng(0)  # fixed, so that the same data give the same limit
    values, vectors = np.linalg.eigh(measured.covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    simulated = ((roots @ rng.standard_normal((K, d, 1)))[..., 0] for _ in range(SIMULATIONS))
    largest = [_principal_components(effects)[0][0] for effects in simulated]
    return float(np.quantile(largest, 1 - level, method="higher"))
