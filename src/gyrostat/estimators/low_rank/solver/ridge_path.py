"""Completion with a low-rank penalty of decreasing strength: ridge regressions, and the path of models that they give.

The representation cost of a deep linear network of depth L for a matrix with singular values s is ``sum_i s_i^(2/L)``
(times L/2), a Schatten penalty. In the balanced basis ``F = U sqrt(s)``, ``G = V sqrt(s)`` it is majorised by
``sum_i w_i (|f_i|^2 + |g_i|^2) / 2`` with ``w_i = lambda (2/L) s_i^(2/L - 1)``. The rows of F and the rows of G are
therefore ridge regressions, solved alternately. As the strength falls, components enter when they lower the penalised loss,
and may leave again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed_entries import (
    Factors,
    ObservedEntries,
    balanced,
    entries_svd,
    root_mean_square,
)

LARGE = 1_000_000
"""With more entries than this, time matters more than the last digit: see where it is used."""
ROUGH, LOOKED_AT = 0.01, 10_000
"""Single precision is enough while factors leave more than this share of the data; seen at so many entries."""
DECREASE = 0.7
"""The ratio of successive strengths along a path."""
MOST_STAGES = 60
PATIENCE, PATIENCE_AFTER_SUCCESS, PATIENCE_CONVEX = 5, 3, 2
"""A path ends after this many stages without a lower validation error. The second number applies once the error is below
``SUCCESS`` times the data, the third at depth 2, where the problem is convex, and for large tables, whose held-out entries
are so many that chance hardly matters: errors fall and then rise."""
SUCCESS = 0.9
FIXED_RANK_SHARES = (1.0, 0.5, 0.25, 0.1, 0.01)
"""The strengths tried by :func:`fixed_rank_stages`, as shares of the first."""


class Ridge(NamedTuple):
    """The penalty of ``(1/2) sum over entries (A_ij - y_ij)^2 + strength * sum_i s_i^(2 / depth)``."""

    strength: float
    depth: float = 3.0

    @property
    def power(self) -> float:
        """q = 2 / depth."""
        return 2 / self.depth

    def weights(self, singular_values: np.ndarray) -> np.ndarray:
        """The ridge weight of each component."""
        q = self.power
        return self.strength * q * np.maximum(singular_values, np.finfo(float).tiny) ** (q - 1)

    def fold(self, curvature: float) -> tuple[float, float]:
        """The point where ``curvature (s - t)^2 / 2 + strength s^q`` loses its minimum at s > 0, as the pair (s, t).

        >>> Ridge(1.0, depth=2.0).fold(1.0)
        (0.0, 1.0)
        """
        q, lam = self.power, self.strength / curvature
        s = (lam * q * (1 - q)) ** (1 / (2 - q))
        return s, s + lam * q * (s ** (q - 1) if s > 0 else 1.0)


class RidgeStage(NamedTuple):
    """One model of a path: its penalty, its factors, and their root mean square error at held-out entries."""

    ridge: float
    depth: float
    validation_error: float
    factors: Factors

    @property
    def rank(self) -> int:
        """The number of components."""
        return self.factors.rank


# --- ridge regressions ----------------------------------------------------------------------------


def ridge_regressions(
    entries: ObservedEntries, factor: np.ndarray, weights: np.ndarray, *, transposed: bool, precision: type = np.float64
) -> np.ndarray:
    """One factor from the other: a ridge regression for each row of the matrix (for each column, if ``transposed``)."""
    solution = np.zeros((entries.shape[int(transposed)], len(weights)))
    if not len(weights):
        return solution
    padded: np.ndarray = np.vstack([factor, np.zeros(len(weights))]).astype(precision)
    ridge: np.ndarray = np.diag(weights).astype(precision)
    for batch in entries.row_batches(len(weights), transposed=transposed):
        gathered = padded[batch.columns]
        crosses = gathered.mT @ batch.values.astype(precision)[..., None]
        solution[batch.rows] = _solutions(batch.grams(gathered) + ridge, crosses)[..., 0]
    return solution


def _solutions(matrices: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Solutions of symmetric equations; the shortest ones if a matrix is singular.

    A row with fewer cells than components has a singular matrix if the ridge is lost in rounding, as it is in tables without
    noise.

    >>> _solutions(np.array([[[4.0, 0.0], [0.0, 0.0]]]), np.array([[[2.0], [0.0]]])).ravel().tolist()
    [0.5, 0.0]
    """
    try:
        return np.linalg.solve(matrices, products)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices, hermitian=True) @ products


def sufficient_precision(entries: ObservedEntries, factors: Factors) -> type:
    """Single precision, which is twice as fast, for large tables with noise (or a long way to go) that hides its rounding."""
    if len(entries) <= LARGE:
        return np.float64
    some = slice(None, None, max(len(entries) // LOOKED_AT, 1))
    left = entries.values[some] - factors.at(entries.rows[some], entries.columns[some])
    return np.float32 if root_mean_square(left) > ROUGH * root_mean_square(entries.values[some]) else np.float64


def sweep(entries: ObservedEntries, factors: Factors, ridge: Ridge) -> tuple[Factors, np.ndarray]:
    """Both factors updated once, and the singular values. Components below the fold are dropped."""
    factors, s = balanced(factors)
    w = ridge.weights(s)
    precision = sufficient_precision(entries, factors)
    F = ridge_regressions(entries, factors.right, w, transposed=False, precision=precision)
    G = ridge_regressions(entries, F, w, transposed=True, precision=precision)
    factors, s = balanced(Factors(F, G))
    kept = s > max(0.3 * ridge.fold(entries.share)[0], 1e-9 * s[0]) if s.size else slice(None)
    return Factors(factors.left[:, kept], factors.right[:, kept]), s[kept]


def with_new_components(
    entries: ObservedEntries, factors: Factors, ridge: Ridge, max_rank: int, at_once: int = 4
) -> Factors:
    """The factors with the largest components of the residual added, if these are above the fold; at most ``at_once``."""
    room = min(at_once, max_rank - factors.rank)
    residual = entries.residual(factors)
    if room <= 0 or not residual.any():
        return factors
    U, s, V = entries_svd(entries, residual, room)
    s = s / entries.share
    new = s > ridge.fold(entries.share)[1]
    root = np.sqrt(s[new])
    return Factors(np.hstack([factors.left, U[:, new] * root]), np.hstack([factors.right, V[:, new] * root]))


def grow_and_sweep(entries: ObservedEntries, factors: Factors, ridge: Ridge, max_rank: int, sweeps: int) -> Factors:
    """Add new components, then sweep ``sweeps`` times over both factors."""
    factors = with_new_components(entries, factors, ridge, max_rank)
    for _ in range(sweeps if factors.rank else 0):
        factors, _ = sweep(entries, factors, ridge)
    return factors


# --- paths ----------------------------------------------------------------------------------------


def largest_ridge(entries: ObservedEntries, depth: float) -> float:
    """The strength at which the largest component of the entries is at its fold. No component enters above it."""
    if not entries.values.any():
        return 1.0
    top = entries_svd(entries, entries.values, 1)[1][0]
    # The t of the fold grows as strength^(1 / (2 - q)), so that its value at strength 1 gives all others.
    _, at_one = Ridge(1.0, depth).fold(entries.share)
    return float((top / entries.share / at_one) ** (2 - 2 / depth))


def ridges_towards(entries: ObservedEntries, depth: float, last: float) -> np.ndarray:
    """Strengths that fall from the largest ridge to ``last``."""
    top = max(largest_ridge(entries, depth), last)
    count = int(np.ceil(np.log(top / last) / np.log(1 / DECREASE))) + 1
    return np.geomspace(top, last, count) if count > 1 else np.array([last])


def stage_of(held: ObservedEntries, factors: Factors, ridge: Ridge) -> RidgeStage:
    """A model judged on held-out entries."""
    return RidgeStage(ridge.strength, ridge.depth, root_mean_square(held.residual(factors)), factors)


def path_stages(
    entries: ObservedEntries, held: ObservedEntries, depth: float, ridges: np.ndarray | None, max_rank: int, sweeps: int
) -> Iterator[RidgeStage]:
    """The models of a path with warm starts. Without given ``ridges``, it ends when the validation error stops falling."""
    factors = Factors.zero(entries.shape)
    strengths = largest_ridge(entries, depth) * DECREASE ** np.arange(MOST_STAGES) if ridges is None else ridges
    best, best_number, size = np.inf, 0, root_mean_square(entries.values)
    for number, strength in enumerate(strengths):
        ridge = Ridge(float(strength), depth)
        factors = grow_and_sweep(entries, factors, ridge, max_rank, sweeps)
        stage = stage_of(held, factors, ridge)
        yield stage
        if stage.validation_error < 0.999 * best:
            best, best_number = stage.validation_error, number
        patience = PATIENCE_AFTER_SUCCESS if best < SUCCESS * size else PATIENCE
        if depth == 2 or len(entries) > LARGE:
            patience = PATIENCE_CONVEX
        stalled = number - best_number >= patience and factors.rank > 0
        if ridges is None and (stalled or best < 1e-9 * size):
            return


def neighbouring_stages(
    entries: ObservedEntries, held: ObservedEntries, start: RidgeStage, max_rank: int, sweeps: int
) -> Iterator[RidgeStage]:
    """Models half a step of the path above and below ``start``, each computed from its factors."""
    for share in (DECREASE**-0.5, DECREASE**0.5):
        ridge = Ridge(start.ridge * share, start.depth)
        yield stage_of(held, grow_and_sweep(entries, start.factors, ridge, max_rank, 2 * sweeps), ridge)


def fixed_rank_stages(
    entries: ObservedEntries, held: ObservedEntries, start: Factors, ridge: Ridge, sweeps: int
) -> Iterator[RidgeStage]:
    """Models of at most the rank of ``start``, at this ridge and weaker ones.

    With noise, a few components that are hardly shrunk are often better than more components that are shrunk.
    """
    factors = start
    for share in FIXED_RANK_SHARES:
        weaker = ridge._replace(strength=share * ridge.strength)
        for _ in range(sweeps if factors.rank else 0):
            factors, _ = sweep(entries, factors, weaker)
        yield stage_of(held, factors, weaker)
