"""Rows that do not fit into memory: a reading of their parts for second moments, and one more for the sizes of residuals.

The first reading gives sufficient statistics, sums of products within each environment, from which all coefficients follow.
Standard errors that allow for uneven noise, and the row with the largest influence, depend on residuals, which are known only
then: they take a second reading (and a third one if features were removed). Memory is needed for one part at a time and for
``features^2`` numbers per environment.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.effects import CONSTANT, Moments, without_rounding
from gyrostat.estimators.invariant.hypothesis_tests import EnvironmentFacts, FeatureFacts, FeatureSums
from gyrostat.estimators.invariant.score_covariance import (
    ALONE,
    Candidate,
    ScoreCovariance,
    all_leverages_small,
    deciding_rows,
    exact_leverages,
    lone_scores,
    noise_variance,
    row_factor,
    row_influence,
)
from gyrostat.estimators.representable_squares import squarable
from gyrostat.sources.row_labels import grouped

T = TypeVar("T")
Part = tuple[Any, Any, Any]
"""Features (n, d), responses (n,) and labels (n,) of some rows."""
SAMPLE = 5000
"""Rows of each environment that are kept, at random, for medians and for a look at the response."""
BATCH = 8
"""Partitions of a Dask dataframe whose statistics are computed at a time."""


class PartSource(Protocol):
    """Rows in parts. Each call of :meth:`map` reads them once, in order."""

    def map(self, function: Callable[[np.ndarray, np.ndarray, Any], T]) -> Iterator[T]:
        """The function of each part."""


class CalledParts(NamedTuple):
    """Parts that a function returns, each time it is called, as (features, responses, labels)."""

    read: Callable[[], Iterable[Part]]

    def map(self, function: Callable[[np.ndarray, np.ndarray, Any], T]) -> Iterator[T]:
        """The function of each part that is not empty."""
        for number, part in enumerate(self.read(), start=1):
            X, y, labels = checked_part(part, number)
            if len(y):
                yield function(X, y, labels)


def checked_part(part: Part, number: int) -> Part:
    """A part as arrays of finite numbers, with one response and one label for each row."""
    X, y = (np.asarray(x, dtype=np.float64) for x in part[:2])
    if X.ndim != 2 or y.shape != X.shape[:1] or len(part[2]) != len(y):
        raise GyrostatError(
            f"part {number} must hold X of shape (rows, features), y and labels of as many rows; got shapes {X.shape}, "
            f"{y.shape} and {len(part[2])} labels."
        )
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise GyrostatError(f"part {number} holds missing or infinite numbers: leave such rows out.")
    for name, values in (("X", X), ("y", y)):
        if float(np.abs(values).max(initial=0.0)) > errors.LARGEST:
            squarable(f"{name} of part {number}", values)
    return X, y, part[2]


class DaskParts(NamedTuple):
    """The partitions of Dask dataframes: features, responses and labels. Statistics are computed where the partitions are."""

    X: Any
    y: Any
    labels: Any

    def map(self, function: Callable[[np.ndarray, np.ndarray, Any], T]) -> Iterator[T]:
        """The function of each partition that is not empty, a few partitions at a time."""
        import dask

        columns = [x.to_delayed() for x in (self.X, self.y, self.labels)]
        if len({len(parts) for parts in columns}) > 1:
            raise GyrostatError(
                "X, y and environments must have the same partitions: take them from one Dask dataframe."
            )
        tasks = [
            dask.delayed(_of_partition)(function, *parts, number)
            for number, parts in enumerate(zip(*columns, strict=True), start=1)
        ]
        for start in range(0, len(tasks), BATCH):
            yield from (found for found in dask.compute(*tasks[start : start + BATCH]) if found is not None)


def _of_partition(function: Callable[..., T], X: Any, y: Any, labels: Any, number: int) -> T | None:
    return function(*checked_part((X, y, labels), number)) if len(y) else None


def is_dask(X: Any) -> bool:
    """Whether something is a Dask dataframe or series."""
    return hasattr(X, "to_delayed") and hasattr(X, "npartitions")


class ChosenFeatures(NamedTuple):
    """Some features of other parts."""

    source: PartSource
    chosen: np.ndarray

    def map(self, function: Callable[[np.ndarray, np.ndarray, Any], T]) -> Iterator[T]:
        """The function of each part."""
        return self.source.map(partial(_of_chosen, function=function, chosen=self.chosen))


def _of_chosen(X: np.ndarray, y: np.ndarray, labels: Any, function: Callable[..., T], chosen: np.ndarray) -> T:
    return function(X[:, chosen], y, labels)


def part_source(parts: Any) -> PartSource:
    """Something that can be read in parts: an object with ``map``, or a function that returns parts."""
    if hasattr(parts, "map"):
        return parts
    if not callable(parts):
        raise GyrostatError(
            "parts must be a function that returns the parts each time it is called, as tuples (X, y, environments), or "
            f"TableParts; got {errors.shown(parts)}."
        )
    return CalledParts(parts)


# --- the first reading: second moments ------------------------------------------------------------


class EnvironmentSums(NamedTuple):
    """Features and response of some rows of an environment: their number, means, and sums of squares about the means.

    ``sample`` holds the rows whose random ``ranks`` are lowest.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed
    means: np.ndarray
    squares: np.ndarray
    sample: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, ranks: np.ndarray) -> EnvironmentSums:
        """The sums of rows Z (n, d + 1), the response last."""
        means = Z.mean(axis=0)
        away = Z - means
        kept = np.argsort(ranks)[:SAMPLE]
        return cls(len(Z), means, away.T @ away, Z[kept], ranks[kept])

    def plus(self, other: EnvironmentSums) -> EnvironmentSums:
        """The sums of both sets of rows (Chan, Golub and LeVeque 1979): no difference of large numbers is taken."""
        count, apart = self.count + other.count, other.means - self.means
        squares = self.squares + other.squares
        squares += np.multiply.outer(apart, apart) * (self.count * other.count / count)
        ranks = np.concatenate([self.ranks, other.ranks])
        kept = np.argsort(ranks)[:SAMPLE]
        sample = np.concatenate([self.sample, other.sample])[kept]
        return EnvironmentSums(count, self.means + apart * (other.count / count), squares, sample, ranks[kept])


class FirstReading(NamedTuple):
    """The sums of each environment, in order of first rows, and the extremes and first fraction of the responses."""

    sums: dict[Any, EnvironmentSums]
    responses: np.ndarray

    def plus(self, other: FirstReading) -> FirstReading:
        """Both readings together."""
        if (a := _width(self)) != (b := _width(other)):
            raise GyrostatError(f"every part must have the same features; got {a} and {b} of them.")
        sums = dict(self.sums)
        for label, more in other.sums.items():
            sums[label] = sums[label].plus(more) if label in sums else more
        return FirstReading(sums, _witnesses(np.concatenate([self.responses, other.responses])))


def _width(reading: FirstReading) -> int:
    return len(next(iter(reading.sums.values())).means) - 1


def first_reading(X: np.ndarray, y: np.ndarray, labels: Any) -> FirstReading:
    """The statistics of one part."""
    names, rows = grouped(labels)
    Z = np.column_stack([X, y])
    ranks = np.random.default_rng(zlib.crc32(Z[:8].tobytes())).random(len(y))  # other parts have other ranks
    sums = {name: EnvironmentSums.of(Z[mine], ranks[mine]) for name, mine in zip(names, rows, strict=True)}
    return FirstReading(sums, _witnesses(y))


def _witnesses(y: np.ndarray) -> np.ndarray:
    """The extremes of the responses and one that is not an integer: they show whether responses are 0/1 or counts."""
    return np.concatenate([[y.min(), y.max()], y[y != np.round(y)][:1]])


# --- further readings: residuals ------------------------------------------------------------------


class FittedEnvironment(NamedTuple):
    """What is known of an environment after the first reading; ``bread`` is the inverse of ``X^T X / n``."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed
    means: np.ndarray
    level: float
    beta: np.ndarray
    bread: np.ndarray


class ResidualSums(NamedTuple):
    """Sums over rows of an environment.

    ``plain`` and ``corrected`` are covariances of scores without and with leverages: which one is needed is known only when
    the largest distance is (``farthest``), and so is which row has the largest influence. Rows that decide on a coefficient
    alone are not in ``corrected``: ``alone`` is their second moment. ``powers`` are the sums for :func:`deciding_rows`.
    """

    plain: np.ndarray
    corrected: np.ndarray
    alone: np.ndarray
    powers: np.ndarray
    farthest: float
    squares: float
    by_distance: Candidate
    by_leverage: Candidate

    def plus(self, other: ResidualSums) -> ResidualSums:
        """The sums of both sets of rows; of equal candidates, the first one stays."""
        return ResidualSums(
            self.plain + other.plain,
            self.corrected + other.corrected,
            self.alone + other.alone,
            self.powers + other.powers,
            max(self.farthest, other.farthest),
            self.squares + other.squares,
            max(self.by_distance, other.by_distance, key=lambda one: one.size),
            max(self.by_leverage, other.by_leverage, key=lambda one: one.size),
        )


class PartResiduals(NamedTuple):
    """The sums of each environment in one part, and the number of its rows."""

    sums: dict[Any, ResidualSums]
    rows: int

    def shifted(self, rows: int) -> PartResiduals:
        """The same with candidates whose rows are counted from ``rows``."""
        return self._replace(
            sums={
                label: found._replace(
                    by_distance=found.by_distance.shifted(rows), by_leverage=found.by_leverage.shifted(rows)
                )
                for label, found in self.sums.items()
            }
        )


def part_residuals(
    X: np.ndarray, y: np.ndarray, labels: Any, fitted: dict[Any, FittedEnvironment], adjust: bool
) -> PartResiduals:
    """The sums of one part over the environments that are in ``fitted``."""
    names, rows = grouped(labels)
    used = {name: mine for name, mine in zip(names, rows, strict=True) if name in fitted}
    sums = {name: _residual_sums(X[mine], y[mine], mine, fitted[name], adjust) for name, mine in used.items()}
    return PartResiduals(sums, len(y))


def _residual_sums(
    X: np.ndarray, y: np.ndarray, place: np.ndarray, known: FittedEnvironment, adjust: bool
) -> ResidualSums:
    n, beta, bread = known.count, known.beta, known.bread
    X, y = X - known.means, y - known.level
    if not adjust:
        scores = lone_scores(X, y, beta, bread, n)
        nothing = Candidate(0.0, int(place[0]), X[0], 0.0)
        alone = np.diag(np.einsum("ij,ij->j", scores, scores))
        return ResidualSums(alone, alone, alone, np.zeros((2, len(beta))), 0.0, 0.0, nothing, nothing)
    residuals = y - X @ beta
    distances = np.einsum("ij,ij->i", X * np.maximum(np.diagonal(bread), 0.0), X)
    Z = X @ bread
    leverage = exact_leverages(X, Z, n)
    left_out, alone = residuals / (1 - leverage), X[leverage >= ALONE]
    plain, corrected = X * residuals[:, None], X * np.where(leverage < ALONE, left_out, 0.0)[:, None]
    return ResidualSums(
        plain.T @ plain,
        corrected.T @ corrected,
        alone.T @ alone,
        np.stack([np.sum(Z**2, axis=0), np.sum(Z**4, axis=0)]),
        float(distances.max()),
        float(residuals @ residuals),
        _largest(distances * residuals**2, place, X, residuals),
        _largest(leverage * left_out**2, place, X, residuals),
    )


def _largest(sizes: np.ndarray, place: np.ndarray, X: np.ndarray, residuals: np.ndarray) -> Candidate:
    i = int(np.argmax(sizes))
    return Candidate(float(sizes[i]), int(place[i]), X[i], float(residuals[i]))


def part_facts(X: np.ndarray, y: np.ndarray, labels: Any, known: dict[Any, EnvironmentFacts]) -> dict[Any, FeatureSums]:
    """The sums of one part over the environments that are in ``known``."""
    names, rows = grouped(labels)
    return {name: known[name].sums(X[mine], y[mine]) for name, mine in zip(names, rows, strict=True) if name in known}


class RowsInParts:
    """Rows of several environments that are read in parts; see the module.

    >>> rng = np.random.default_rng(0)
    >>> X, y, site = rng.standard_normal((90, 2)), rng.standard_normal(90), np.repeat(["a", "b", "c"], 30)
    >>> rows = RowsInParts(CalledParts(lambda: ((X[i : i + 25], y[i : i + 25], site[i : i + 25]) for i in range(0, 90, 25))))
    >>> rows.environments, rows.moments().counts.tolist()
    (['a', 'b', 'c'], [30, 30, 30])
    """

    clusters = None

    def __init__(self, source: PartSource):
        self.source, self.centred = source, True
        self._given = source
        self._covariances: dict[bytes, list[ScoreCovariance]] = {}

    @cached_property
    def _first(self) -> FirstReading:
        found: FirstReading | None = None
        for part in self.source.map(first_reading):
            found = part if found is None else found.plus(part)
        if found is None:
            raise GyrostatError("there are no rows: every part is empty.")
        return found

    @cached_property
    def sums(self) -> dict[Any, EnvironmentSums]:
        """The sums of each environment."""
        return self._first.sums

    @property
    def environments(self) -> list:
        """The labels, in the order of their first rows."""
        return list(self.sums)

    @property
    def num_features(self) -> int:
        """The number of features."""
        return len(next(iter(self.sums.values())).means) - 1

    def leave_out(self, labels: Iterable[Any]) -> None:
        """Leave these environments out from now on."""
        self.sums = {label: found for label, found in self.sums.items() if label not in set(labels)}

    def use(self, chosen: np.ndarray) -> None:
        """Use only the chosen features from now on."""
        at = np.append(np.flatnonzero(chosen), len(chosen))
        self.source, self._covariances = ChosenFeatures(self.source, np.flatnonzero(chosen)), {}
        self.sums = {
            label: found._replace(
                means=found.means[at], squares=found.squares[np.ix_(at, at)], sample=found.sample[:, at]
            )
            for label, found in self.sums.items()
        }

    def row_number(self, row: int) -> int:
        """The number of a row in the table that the parts come from, counted from 0, by its number in the parts."""
        of_source = getattr(self._given, "row_number", None)
        return row if of_source is None else of_source(row)

    def refuse_fewer_than(self, least: int) -> None:
        """Refuse an environment of fewer rows."""
        for label, found in self.sums.items():
            if found.count < least:
                raise GyrostatError(
                    f"environments must have at least {least} rows each; {errors.shown(label)} has fewer: merge it with "
                    "another, or leave it out."
                )

    @property
    def responses(self) -> np.ndarray:
        """A sample of the responses with their extremes, enough to see whether they are 0/1 or counts."""
        return np.concatenate([self._first.responses, *(found.sample[:, -1] for found in self.sums.values())])

    def response_means(self) -> np.ndarray:
        """The mean response of each environment."""
        return np.array([found.means[-1] for found in self.sums.values()])

    def moments(self) -> Moments:
        """The second moments of each environment, as those of rows in memory."""
        each = [without_rounding(*_moments(found, self.centred)) for found in self.sums.values()]
        return Moments(*(np.array(x) for x in zip(*each, strict=True)))

    def constant_features(self) -> np.ndarray:
        """A mask of the features with one value in all rows."""
        found = self.moments()
        means = np.stack([own.means[:-1] for own in self.sums.values()])
        return found.constant & (np.ptp(means, axis=0) <= CONSTANT * np.abs(means).max(axis=0))

    def correlations(self) -> np.ndarray:
        """The correlation of each feature with the response, within environments; zero where one of them is constant."""
        found = self.moments()
        features = np.einsum("e,ejj->j", found.counts, found.grams)
        sizes = np.sqrt(features * (found.counts @ found.energies))
        return np.divide(found.counts @ found.crosses, sizes, out=np.zeros(len(sizes)), where=sizes > 0)

    def score_covariances(self, betas: np.ndarray, breads: np.ndarray, *, adjust: bool) -> list[ScoreCovariance]:
        """The covariance of the scores of each environment at these coefficients; the same question is answered once."""
        key = betas.tobytes() + breads.tobytes() + bytes([adjust, self.centred])
        if key not in self._covariances:
            fitted = {
                label: FittedEnvironment(
                    found.count,
                    found.means[:-1] if self.centred else np.zeros(self.num_features),
                    float(found.means[-1]) if self.centred else 0.0,
                    *own,
                )
                for (label, found), own in zip(self.sums.items(), zip(betas, breads, strict=True), strict=True)
            }
            sums = self._residual_sums(partial(part_residuals, fitted=fitted, adjust=adjust))
            self._covariances[key] = [_score_covariance(sums[label], fitted[label], adjust) for label in fitted]
        return self._covariances[key]

    def feature_facts(self) -> FeatureFacts:
        """What tests of the features need to know; one more reading. Medians are those of the samples."""
        known = {
            label: EnvironmentFacts(
                found.count, found.means, found.squares / (found.count - 1), np.median(found.sample[:, :-1], axis=0)
            )
            for label, found in self.sums.items()
        }
        sums: dict[Any, FeatureSums] = {}
        for part in self.source.map(partial(part_facts, known=known)):
            for label, found in part.items():
                sums[label] = sums[label].plus(found) if label in sums else found
        return FeatureFacts.of(list(known.values()), [sums[label] for label in known])

    def _residual_sums(
        self, reading: Callable[[np.ndarray, np.ndarray, Any], PartResiduals]
    ) -> dict[Any, ResidualSums]:
        sums: dict[Any, ResidualSums] = {}
        rows = 0
        for part in self.source.map(reading):
            for label, found in part.shifted(rows).sums.items():
                sums[label] = sums[label].plus(found) if label in sums else found
            rows += part.rows
        return sums


def _moments(
    found: EnvironmentSums, centred: bool
) -> tuple[np.ndarray, np.ndarray, float, int, np.ndarray, float, float]:
    """Gram matrix, cross moments, energy, number, means, level and size of an environment."""
    n, second = found.count, found.squares / found.count
    means, level = found.means[:-1], float(found.means[-1])
    if not centred:
        second = second + np.multiply.outer(found.means, found.means)
        means, level = np.zeros_like(means), 0.0
    return second[:-1, :-1], second[:-1, -1], float(second[-1, -1]), n, means, level, float(n)


def _score_covariance(found: ResidualSums, known: FittedEnvironment, adjust: bool) -> ScoreCovariance:
    n, d, bread = known.count, len(known.beta), known.bread
    none = np.zeros(d, bool)
    if not adjust:
        influence = row_influence(found.by_distance, 0.0, n, np.zeros((d, d)))
        return ScoreCovariance(found.plain / n**2, row_factor(n - 2, d), none, influence, np.full(d, np.inf))
    small = all_leverages_small(found.farthest, bread, n)
    corrected = found.corrected + noise_variance(found.squares, n, d) * found.alone
    meat = found.plain * (n / max(n - 1 - d, 1)) if small else corrected
    row = found.by_distance if small else found.by_leverage
    influence = row_influence(row, found.squares, n, bread)
    rows = np.full(d, np.inf) if small else deciding_rows(*found.powers)
    return ScoreCovariance(meat / n**2, row_factor(n - 1 - d, d), none, influence, rows)
