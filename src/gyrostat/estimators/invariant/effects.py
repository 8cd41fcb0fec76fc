"""The effect of each feature in each environment: second moments, least squares, standard errors, directions of variation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError, shown
from gyrostat.estimators.invariant.random_effects import (
    effects_differ_p,
    known_effects,
    mean_effect_p,
    random_effects,
    shrunken,
)
from gyrostat.estimators.invariant.score_covariance import (
    RowInfluence,
    ScoreCovariance,
    robust_factors,
    score_covariance,
)
from gyrostat.estimators.representable_squares import squarable

JITTER = 1e-4
"""A feature whose standard deviation within every environment is less than this share of that of its means between them
counts as constant within environments: what varies there is rounding, and no table is long enough to learn from it."""
CONSTANT = 1e-10
"""A feature (or a combination of features) with less than this share of the usual variance counts as constant, and so does a
feature whose standard deviation within an environment is less than this share of its size."""
SIMULATIONS = 400
"""The number of simulated sets of effects without variation that observed variation is compared with."""


class EnvironmentPart(NamedTuple):
    """The rows ``where`` of one environment: features and responses minus their means, times the roots of the weights.

    ``weights`` have mean one within the environment, and ``size`` is the sum of the weights as they were given. ``clusters``
    numbers the cluster of each row, or is None if rows are independent.
    """

    X: np.ndarray
    y: np.ndarray
    means: np.ndarray
    level: float
    size: float
    where: np.ndarray
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None


class RowDesign(NamedTuple):
    """What is known besides features and responses: environments, weights, clusters and names of features (None: none)."""

    rows: list[np.ndarray]
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None
    centred: bool = True
    names: Sequence[str] | None = None


def environment_parts(
    X: np.ndarray, y: np.ndarray, design: RowDesign, *, reuse: bool = False
) -> Iterator[EnvironmentPart]:
    """Copies of the rows of one environment after another, minus its own (weighted) means if ``centred``.

    With ``reuse``, the rows of an environment are overwritten by those of the next: new memory takes as long as the copies.
    """
    memory = np.empty((max(map(len, design.rows)), X.shape[1])) if reuse else None
    for mine in design.rows:
        # mode: other ones copy twice
        Xe = X[mine] if memory is None else np.take(X, mine, axis=0, out=memory[: len(mine)], mode="clip")
        ye, size, w = y[mine].astype(np.float64), float(len(mine)), None
        if design.weights is not None:
            size = float(design.weights[mine].sum())
            w = design.weights[mine] * (len(mine) / size)
        means, level = np.zeros(X.shape[1]), 0.0
        if design.centred:
            means, level = np.average(Xe, axis=0, weights=w), float(np.average(ye, weights=w))
            Xe -= means
            ye -= level
        if w is not None:
            Xe *= np.sqrt(w)[:, None]
            ye *= np.sqrt(w)
        clusters = None if design.clusters is None else design.clusters[mine]
        yield EnvironmentPart(Xe, ye, means, level, size, mine, w, clusters)


class Moments(NamedTuple):
    """``X_e^T X_e / n_e``, ``X_e^T y_e / n_e``, ``y_e^T y_e / n_e`` and the number of rows n_e of each environment e.

    A step of descent on a squared loss needs no more: it costs d^2 for any number of rows, and the data are read once.
    ``means`` and ``levels`` are the means of features and responses that were subtracted, ``sizes`` the sums of weights.
    """

    grams: np.ndarray
    crosses: np.ndarray
    energies: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    levels: np.ndarray
    sizes: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """The mean over environments with equal weights, as descent visits them equally often."""
        return self.grams.mean(axis=0)

    @property
    def scales(self) -> tuple[np.ndarray, float]:
        """The usual root mean square of each feature and of the response: the median environment, of those where it varies.

        A single environment with a corrupted row then does not change the scale. One where nothing varies.
        """
        squares = np.column_stack([np.diagonal(self.grams, axis1=1, axis2=2), self.energies])
        roots = np.sqrt([np.median(x[x > 0]) if (x > 0).any() else 1.0 for x in squares.T])
        return roots[:-1], float(roots[-1])

    @property
    def constant(self) -> np.ndarray:
        """Which features are constant in every environment."""
        return np.diagonal(self.grams, axis1=1, axis2=2).max(axis=0) == 0

    def without_jitter(self) -> Moments:
        """The same, with zeros for features that vary within environments only by rounding; see ``JITTER``."""
        within = np.diagonal(self.grams, axis1=1, axis2=2).max(axis=0)
        flat = within <= JITTER**2 * np.var(self.means, axis=0)
        both = np.logical_or.outer(flat, flat)
        return self._replace(grams=np.where(both, 0.0, self.grams), crosses=np.where(flat, 0.0, self.crosses))

    def scaled(self, features: np.ndarray, response: float) -> Moments:
        """The moments of ``X / features`` and ``y / response``."""
        return self._replace(
            grams=self.grams / np.multiply.outer(features, features),
            crosses=self.crosses / (features * response),
            energies=self.energies / response**2,
            means=self.means / features,
            levels=self.levels / response,
        )

    def rotated(self, W: np.ndarray) -> Moments:
        """The moments along the columns of W instead of the features."""
        return self._replace(grams=W.T @ self.grams @ W, crosses=self.crosses @ W, means=self.means @ W)

    def on(self, chosen: np.ndarray) -> Moments:
        """The moments of the chosen features."""
        where = np.flatnonzero(chosen)
        grams = self.grams[:, where[:, None], where]
        return self._replace(grams=grams, crosses=self.crosses[:, where], means=self.means[:, where])


def moments(parts: Iterable[EnvironmentPart]) -> Moments:
    """The moments of each environment. What is left of a constant feature after rounding is set to zero.

    >>> X, y = np.array([[1.0], [3.0]]), np.array([2.0, 6.0])
    >>> moments(environment_parts(X, y, RowDesign([np.arange(2)], centred=False))).crosses.tolist()
    [[10.0]]
    """
    each = []
    for part in parts:
        n = len(part.y)
        sums = part.X.T @ part.X / n, part.X.T @ part.y / n, part.y @ part.y / n
        each.append(without_rounding(*sums, n, part.means, part.level, part.size))
    return Moments(*(np.array(x) for x in zip(*each, strict=True)))


def without_rounding(
    gram: np.ndarray, cross: np.ndarray, energy: float, count: int, means: np.ndarray, level: float, size: float
) -> tuple[Any, ...]:
    """The same moments of an environment, with zeros where a feature or the response is constant up to rounding."""
    flat = np.diagonal(gram) <= (CONSTANT * means) ** 2
    gram[flat], gram[:, flat], cross[flat] = 0.0, 0.0, 0.0
    energy = 0.0 if energy <= np.square(CONSTANT * level) else energy
    return gram, cross, energy, count, means, level, size


class Rows(Protocol):
    """Rows of several environments, as a fit reads them: for second moments, then for residuals at given coefficients.

    ``clusters`` is the number of clusters in all environments, or None if rows are independent.
    """

    @property
    def clusters(self) -> int | None: ...

    def moments(self) -> Moments: ...

    def score_covariances(self, betas: np.ndarray, breads: np.ndarray, *, adjust: bool) -> list[ScoreCovariance]: ...


class RowsInMemory(NamedTuple):
    """Rows that are arrays, read one environment at a time."""

    X: np.ndarray
    y: np.ndarray
    design: RowDesign

    @property
    def clusters(self) -> int | None:
        """The number of clusters, counted in each environment, or None if rows are independent."""
        codes = self.design.clusters
        return None if codes is None else sum(len(np.unique(codes[mine])) for mine in self.design.rows)

    def moments(self) -> Moments:
        """The moments of each environment, which must be numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = moments(environment_parts(*self, reuse=True))
        self._refuse_extremes(found)
        return found

    def _refuse_extremes(self, found: Moments) -> None:
        """Refuse features and responses whose squares are too large or too small, as far as moments show that some are."""
        squares = np.diagonal(found.grams, axis1=1, axis2=2).max(axis=0)
        odd = ~((squares > errors.LARGEST**-2) & (squares < errors.LARGEST**2))
        if odd.any():
            names = np.arange(len(odd)) if self.design.names is None else np.asarray(self.design.names)
            squarable("X", self.X[:, odd], names[odd])
        if not errors.LARGEST**-2 < found.energies.max() < errors.LARGEST**2:
            squarable("y", self.y)

    def score_covariances(self, betas: np.ndarray, breads: np.ndarray, *, adjust: bool) -> list[ScoreCovariance]:
        """The covariance of the scores of each environment at these coefficients."""
        parts = zip(environment_parts(*self, reuse=True), betas, breads, strict=True)
        return [score_covariance(part, beta, bread, adjust=adjust) for part, beta, bread in parts]


class Effects(NamedTuple):
    """Effects by environment and feature.

    ``maps_e beta - effects_e`` is the residual of environment e in units of effects; ``covariances_e`` is the covariance of
    the estimation errors of its effects. An effect with variance zero is unknown: the feature does not vary in that
    environment, or only together with others.
    """

    maps: np.ndarray
    effects: np.ndarray
    covariances: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """Standard errors, by environment and feature."""
        return np.sqrt(np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2), 0.0))

    @property
    def known(self) -> np.ndarray:
        """Which effects are known, by environment and feature."""
        return known_effects(self.errors)

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
        return mean_effect_p(self.effects, self.errors, level)[0] < level

    def denoised(self, varies: np.ndarray) -> Effects:
        """Effects of which only the mean and the variation of the random-effects model are left.

        Where effects are not known to vary, all are the mean.
        """
        alike = random_effects(self.effects, self.errors).mean
        return self._replace(effects=np.where(varies, shrunken(self.effects, self.errors), alike))

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
    same. Where a feature is constant its effect is unknown, and takes the mean of the other environments.

    >>> one = {"means": np.zeros((1, 2)), "levels": np.zeros(1), "sizes": np.array([100.0])}
    >>> data = Moments(np.array([[[1.0, 0.5], [0.5, 1.0]]]), np.array([[1.0, 0.5]]), np.array([2.0]), np.array([100]), **one)
    >>> adjusted, alone = (effects_from_moments(data, adjust=adjust).effects for adjust in (True, False))
    >>> abs(adjusted).round(9).tolist(), alone.tolist()
    ([[1.0, 0.0]], [[1.0, 0.5]])
    """
    unknown, inverses = inverse_moments(data, adjust)
    maps, effects = inverses @ data.grams, (inverses @ data.crosses[:, :, None])[..., 0]
    covariances = maps @ inverses * noise_variances(data, effects, adjust=adjust)[:, None, None]
    covariances /= data.counts[:, None, None]
    for e, j in np.argwhere(unknown):
        others = ~unknown[:, j]
        maps[e, j] = maps[others, j].mean(axis=0) if others.any() else np.eye(len(maps[e]))[j]
        effects[e, j] = effects[others, j].mean() if others.any() else 0.0
        covariances[e, j], covariances[e, :, j] = 0.0, 0.0
    return Effects(maps, effects, covariances)


def noise_variances(data: Moments, effects: np.ndarray, *, adjust: bool) -> np.ndarray:
    """The variance of the residuals in each environment. Some noise remains even where a fit is perfect."""
    left = data.energies - (np.sum(effects * data.crosses, axis=1) if adjust else 0.0)
    return np.maximum(left, 1e-20 * np.maximum(data.energies, 1e-280)) * data.counts / free_rows(data, adjust)


def free_rows(data: Moments, adjust: bool) -> np.ndarray:
    """The rows of each environment beyond the coefficients and a mean."""
    return np.maximum(data.counts - 1 - (data.grams.shape[1] if adjust else 1), 1)


def inverse_moments(data: Moments, adjust: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which effects cannot be known in which environments, and the inverses of the second moments or of their diagonals."""
    diagonals = np.diagonal(data.grams, axis1=1, axis2=2)
    if not adjust:
        constant = diagonals <= CONSTANT * diagonals.mean(axis=0)
        alone = np.divide(1, diagonals, out=np.zeros_like(diagonals), where=~constant)
        return constant, alone[:, :, None] * np.eye(constant.shape[1])
    values, vectors = np.linalg.eigh(data.grams)
    null = values <= CONSTANT * np.maximum(values[:, -1:], np.finfo(float).tiny)
    unknown = np.einsum("ejk,ek->ej", vectors**2, null) > 1e-6
    roots = vectors * np.where(null, 0.0, np.where(null, 1.0, values) ** -0.5)[:, None, :]
    return unknown, roots @ np.swapaxes(roots, 1, 2)


class MeasuredEffects(NamedTuple):
    """Effects in standard deviations along the columns of a basis of features.

    ``data`` are moments along the basis (of residuals on the scale of a link: of the features only), ``gram`` and ``means``
    those of the features: the mean second moment within environments, in standard deviations, and the means in units of the
    data. ``scales`` are the units of features and response. ``levels`` holds the response of each
    environment at the means of its features, and ``level_errors`` its standard error. ``meats`` holds the covariances of
    the scores, from which those of pooled coefficients follow, and ``influences`` the row of each environment that moves
    effects most.
    """

    data: Moments
    effects: Effects
    scales: tuple[np.ndarray, float]
    basis: np.ndarray
    gram: np.ndarray
    means: np.ndarray
    levels: np.ndarray
    level_errors: np.ndarray
    meats: np.ndarray
    influences: list[RowInfluence]

    @property
    def units(self) -> np.ndarray:
        """The factors that take coefficients of features back to the units of the data."""
        return self.scales[1] / self.scales[0]

    @property
    def feature_effects(self) -> tuple[np.ndarray, np.ndarray]:
        """The effect of each feature in each environment and its standard error, in units of the data; NaN if unknown."""
        to = self.basis * self.units[:, None]
        unknown = (~self.effects.known).astype(float) @ (np.abs(self.basis) > 0).T > 0
        variances = np.einsum("ij,ejk,ik->ei", to, self.effects.covariances, to)
        effects, errors = self.effects.effects @ to.T, np.sqrt(np.maximum(variances, 0.0))
        return np.where(unknown, np.nan, effects), np.where(unknown, np.nan, errors)

    def along(self, W: np.ndarray) -> MeasuredEffects:
        """The same effects along the columns of an orthogonal W."""
        meats = W.T @ self.meats @ W
        return self._replace(
            data=self.data.rotated(W), effects=self.effects.rotated(W), basis=self.basis @ W, meats=meats
        )


def with_robust_errors(
    measured: Effects,
    data: Moments,
    rows: Rows,
    scales: tuple[Any, float],
    basis: np.ndarray,
    *,
    adjust: bool,
) -> tuple[Effects, np.ndarray, list[RowInfluence]]:
    """The same effects with standard errors that also hold if noise changes from row to row, or is shared within clusters.

    :func:`score_covariance` may be too small in small environments, and the classical formula is too small if noise is larger
    where features are: the larger of the two is taken for each effect, times a factor for tests that compare with a normal
    distribution (see :func:`robust_factors`). ``rows``, divided by ``scales`` (features, response) and along ``basis``, give
    ``data``.
    """
    (features, response), (_, inverses) = scales, inverse_moments(data, adjust)
    breads = basis @ inverses @ basis.T / np.multiply.outer(features, features)
    betas = measured.effects @ basis.T * response / features
    found = rows.score_covariances(betas, breads, adjust=adjust)
    units = np.multiply.outer(features, features) * response**2
    meats = np.stack([basis.T @ (one.meat / units) @ basis for one in found])
    sandwiches = np.einsum("eij,ejk,eik->ei", inverses, meats, inverses, optimize=True)
    used, classical = np.abs(basis) > 0, np.diagonal(measured.covariances, axis1=1, axis2=2)
    ratios = np.divide(sandwiches, classical, out=np.ones_like(classical), where=classical > 0)
    deciding = np.stack([np.where(used, one.rows[:, None], np.inf).min(axis=0) for one in found])
    factors = np.stack([np.where(used, one.factor[:, None], 0.0).max(axis=0) for one in found])
    lone = np.stack([used[one.lone].any(axis=0) for one in found])
    factors, known = robust_factors(ratios, deciding, factors, (classical > 0) & ~lone)
    factors = np.where(known, factors, 0.0)
    covariances = measured.covariances * factors[:, :, None] * factors[:, None, :]
    return measured._replace(covariances=covariances), meats, [one.influence for one in found]


def measured_effects(
    X: np.ndarray, y: np.ndarray, design: RowDesign, *, adjust: bool, standardize: bool = True
) -> MeasuredEffects:
    """The effects of rows in memory; see :func:`effects_of_rows`."""
    return effects_of_rows(RowsInMemory(X, y, design), adjust=adjust, standardize=standardize)


def effects_of_rows(rows: Rows, *, adjust: bool, standardize: bool = True) -> MeasuredEffects:
    """Effects in standard deviations, along features or (where features repeat each other) along combinations of them.

    The data are read twice: for second moments, then for the sizes of residuals.
    """
    from gyrostat.estimators.invariant.collinear_features import identifiable_basis

    raw = rows.moments().without_jitter()
    features, response = raw.scales
    if not standardize:
        features = np.ones_like(features)
    data = raw.scaled(features, response)
    basis = identifiable_basis(data.gram) if adjust else np.eye(len(features))
    along = data.rotated(basis)
    plain = effects_from_moments(along, adjust=adjust)
    effects, meats, influences = with_robust_errors(plain, along, rows, (features, response), basis, adjust=adjust)
    noise = noise_variances(along, plain.effects, adjust=adjust)
    return MeasuredEffects(
        along,
        effects,
        scales=(features, response),
        basis=basis,
        gram=data.gram,
        means=raw.means,
        levels=raw.levels,
        level_errors=response * np.sqrt(noise / raw.counts),
        meats=meats,
        influences=influences,
    )


def refuse_small_environments(environments: list, counts: list[int], features: int) -> None:
    """Raise an error if an environment has too few rows for effects that are adjusted for each other."""
    e = int(np.argmin(counts))
    if len(counts) > 1 and counts[e] < features + 4:
        raise GyrostatError(
            f"adjust=True estimates {features} effects jointly in every environment, which takes at least "
            f"{features + 4} rows; {shown(environments[e])} has {counts[e]}: use adjust=False, fewer features, or larger "
            "environments."
        )


def principal_directions(measured: Effects, level: float) -> tuple[np.ndarray, np.ndarray]:
    """An orthogonal basis (d, d) that starts with the directions in which effects vary, and a mask of these directions.

    They are eigenvectors of the covariance of effects over environments. From the largest one down, an eigenvector counts as
    varying while its variance exceeds the largest variance of all but a share ``level`` of simulated sets of effects, which
    vary by estimation errors only. With one feature there is nothing to search, and the test of its effects decides. The next
    column points along the rest of the mean effect. The other columns have no effect.

    >>> effects = np.array([[1.0, 1.0], [2.0, 0.0], [0.5, 1.5]])
    >>> covariances = np.broadcast_to(1e-4 * np.eye(2), (3, 2, 2))
    >>> W, varies = principal_directions(Effects(covariances, effects, covariances), 0.01)
    >>> np.abs(W).round(2).tolist(), varies.tolist()
    ([[0.71, 0.71], [0.71, 0.71]], [True, False])
    """
    K, d = measured.effects.shape
    if d == 1:
        return np.where(measured.mean[:, None] < 0, -1.0, 1.0), measured.differ(level)
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
