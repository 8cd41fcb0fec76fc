"""Exact completion: a matrix of given rank that agrees with every observed entry.

For a rank r, reweighted least squares look for a matrix of that rank: the penalty of depth L, smoothed at
``eps = sigma_(r+1)`` of the present matrix, is majorised by ``tr(C_u^-1 X C_v^-1 X^T)`` with
``C_u = U max(s, eps)^(1 - 1/L) U^T`` and C_v alike, also on the orthogonal complement of U and V (as in MatrixIRLS, Kuemmerle
and Mayrink Verdun 2021, which is L = infinity). Gauss-Newton steps finish.

A matrix of rank r that fits more entries than it has degrees of freedom is its own certificate, but only as a whole: a few
rows and columns that share their few entries may still be free.
:func:`gyrostat.estimators.low_rank.solver.determined_rows.undetermined` names these.

Near the limit of recovery, the search ends with most of the matrix nearly right, while a few rows and columns with few
entries are wrong and keep the rest from being exact. :func:`repaired_fit` leaves these out, makes the rest exact, and then
computes the rows and columns that it left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.determined_rows import Masks, core, extended, submatrix
from gyrostat.estimators.low_rank.solver.observed_entries import (
    Factors,
    ObservedEntries,
    balanced,
    entries_svd,
    root_mean_square,
)
from gyrostat.estimators.low_rank.solver.tangent_steps import (
    TangentRidge,
    TangentStep,
    ThinSVD,
    largest_components,
    retracted,
    tangent_step,
)

EXACT = 1e-7
"""The root mean square residual, as a share of the data's, below which a fit counts as exact."""
NEARLY_RIGHT = 0.1
"""The residual, as a share of the data, below which a fit is worth repairing."""
LEFT_OUT = (0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3)
"""The shares of rows and columns, those that fit worst, that a repair leaves out in successive trials."""
ENTRIES_PER_FREEDOM = 1.03
"""Entries over degrees of freedom that must remain in a repair."""
CONCENTRATED = 0.35
"""The share of the squared residual in a tenth of the rows, or of the columns, above which a few rows are wrong rather than
all of them noisy. Fits of noise gave 0.2 to 0.3; fits with some wrong rows gave 0.4 to 0.9 (n = 100, ranks 3 to 10)."""


class FitAttempt(NamedTuple):
    """The factors at the end of an attempt, whether they fit exactly, and the number of reweighted steps."""

    factors: Factors
    exact: bool
    steps: int


def fit_of_rank(
    entries: ObservedEntries, rank: int, depth: float, *, limit: int = 80, every: int = 8, stalled: float = 0.9
) -> FitAttempt:
    """Look for a matrix of this rank that fits exactly, by reweighted least squares.

    Gauss-Newton is tried after each ``every`` steps. The search ends when the smoothing has fallen by less than the factor
    ``stalled`` over that many steps.
    """
    size, p = root_mean_square(entries.values), 1 - 1 / depth
    start = ThinSVD(*entries_svd(entries, entries.values, rank + 1))
    eps, history = start.s[rank], []
    point = start.first(rank)
    for t in range(1, limit + 1):
        d = np.maximum(point.s / eps, 1 + 1e-6) ** p
        ridge = TangentRidge(1 / (d - 1), 1 / (np.multiply.outer(d, d) - 1))
        step = tangent_step(entries, point, ridge, accuracy=1e-3, limit=200)
        larger = largest_components(entries, point, step, rank + 1)
        point = larger.first(rank)
        eps = min(eps, larger.s[rank])
        history.append(eps / larger.s[0])
        if t % every == 0 or history[-1] < EXACT:
            polished, left = gauss_newton(entries, point)
            if left < EXACT * size:
                return FitAttempt(polished.factors, True, t)
            if t > 2 * every and history[-1] > stalled * history[-every]:
                break
    return FitAttempt(polished.factors, False, t)


def gauss_newton(entries: ObservedEntries, point: ThinSVD, limit: int = 12) -> tuple[ThinSVD, float]:
    """Gauss-Newton steps at fixed rank while they help, and the root mean square residual at the end."""
    best, damping = np.inf, 1e-4 * entries.share  # the curvature of a unit direction is about the share
    for _ in range(limit):
        ridge = TangentRidge.constant(len(point.s), damping)
        trial = retracted(point, tangent_step(entries, point, ridge, accuracy=1e-4, limit=200))
        left = _size_of_residual(entries, trial)
        if left > 0.7 * best:
            break
        point, best, damping = trial, left, damping * 0.1
    return point, best


def certified_fit(entries: ObservedEntries, factors: Factors) -> FitAttempt:
    """Gauss-Newton from these factors; ``exact`` if it ends in an exact fit with fewer degrees of freedom than entries.

    The lowest rank that still fits is taken, because a superfluous component would be free in columns with few entries.
    """
    if factors.rank == 0 or len(entries) <= entries.degrees_of_freedom(factors.rank):
        return FitAttempt(factors, False, 0)
    (left, right), s = balanced(factors)
    root, enough = np.sqrt(s), EXACT * root_mean_square(entries.values)
    point = ThinSVD(left / root, s, right / root)
    off = root_mean_square(entries.residual(factors))
    if off >= enough:  # the damping of a first step would move an ill-conditioned fit that is already exact
        point, off = gauss_newton(entries, point)
    exact = off < enough
    while exact and len(point.s) > 1:
        lower, off = gauss_newton(entries, point.first(len(point.s) - 1))
        if off >= enough:
            break
        point = lower
    return FitAttempt(point.factors, exact, 0)


# --- repair ---------------------------------------------------------------------------------------


def repaired_fit(entries: ObservedEntries, tried: FitAttempt, depth: float) -> FitAttempt:
    """A longer search than the one that was tried, repaired where it is nearly right.

    Nothing is done where the residual is spread over all rows and columns, as that of noise is.
    """
    if not residual_is_concentrated(entries, tried.factors):
        return tried
    found = fit_of_rank(entries, tried.factors.rank, depth, limit=300, stalled=0.98)
    size = root_mean_square(entries.values)
    point, left = _thin_svd(found.factors), 0.0
    if not found.exact:
        point, left = levenberg_marquardt(entries, point, limit=300, span=25)
    for share in LEFT_OUT if EXACT * size < left < NEARLY_RIGHT * size else ():
        trial, left_by_trial = _without_the_worst(entries, point, share)
        if trial is None:
            break
        if left_by_trial < left:
            point, left = trial, left_by_trial
        if left < EXACT * size:
            break
    return FitAttempt(point.factors, left < EXACT * size, found.steps)


def levenberg_marquardt(entries: ObservedEntries, point: ThinSVD, *, limit: int, span: int) -> tuple[ThinSVD, float]:
    """Damped steps at fixed rank while the residual falls by a fifth within ``span`` of them, and the last residual."""
    enough, k = 0.1 * EXACT * root_mean_square(entries.values), len(point.s)
    damping, history = 1e-2 * entries.share, [_size_of_residual(entries, point)]
    for t in range(limit):
        left = entries.with_values(entries.residual(point.factors))
        ridge = TangentRidge.constant(k, damping)
        step = tangent_step(left, point._replace(s=np.zeros(k)), ridge, accuracy=1e-4, limit=300)
        trial = retracted(point, TangentStep(step.F + point.U * point.s, step.G, step.residual))
        off = _size_of_residual(entries, trial)
        if off < history[-1]:
            point, damping = trial, max(0.3 * damping, 1e-12)
        else:
            off, damping = history[-1], 4 * damping
        history.append(off)
        if off < enough or (t >= span and off > 0.8 * history[-span]):
            break
    return point, history[-1]


def residual_is_concentrated(entries: ObservedEntries, factors: Factors) -> bool:
    """Whether a tenth of the rows, or of the columns, holds much of the squared residual."""
    sums = _squared_residuals(entries, factors)
    shares = (np.sort(side)[-max(len(side) // 10, 1) :].sum() / side.sum() for side in sums)
    return bool(max(shares) > CONCENTRATED)


def _without_the_worst(entries: ObservedEntries, point: ThinSVD, share: float) -> tuple[ThinSVD | None, float]:
    """The fit refined without the worst rows and columns, which are then put back; None if too little would remain."""
    rank = len(point.s)
    known = core(entries, _fitting_best(entries, point, share), rank)
    rest = submatrix(entries, known)
    if min(rest.shape) <= 2 * rank or len(rest) < ENTRIES_PER_FREEDOM * rest.degrees_of_freedom(rank):
        return None, np.inf
    start = Factors(*(factor[side] for factor, side in zip(point.factors, known, strict=True)))
    inner, _ = levenberg_marquardt(rest, _thin_svd(start), limit=40, span=12)
    return levenberg_marquardt(entries, _thin_svd(extended(entries, inner.factors, known)), limit=15, span=8)


def _fitting_best(entries: ObservedEntries, point: ThinSVD, share: float) -> Masks:
    """All rows and columns except the ``share`` of them with the largest mean squared residual."""
    counts = [np.maximum(np.bincount(index, minlength=n), 1) for index, n in _sides(entries)]
    means = [sums / count for sums, count in zip(_squared_residuals(entries, point.factors), counts, strict=True)]
    worst = np.quantile(np.concatenate(means), 1 - share)
    return [mean <= worst for mean in means]


def _squared_residuals(entries: ObservedEntries, factors: Factors) -> list[np.ndarray]:
    """The sum of squared residuals in each row, and in each column."""
    squares = entries.residual(factors) ** 2
    return [np.bincount(index, squares, minlength=n) for index, n in _sides(entries)]


def _sides(entries: ObservedEntries) -> list[tuple[np.ndarray, int]]:
    return list(zip((entries.rows, entries.columns), entries.shape, strict=True))


def _size_of_residual(entries: ObservedEntries, point: ThinSVD) -> float:
    return root_mean_square(entries.residual(point.factors))


def _thin_svd(factors: Factors) -> ThinSVD:
    (left, right), s = balanced(factors)
    root = np.sqrt(np.maximum(s, np.finfo(float).tiny))
    return ThinSVD(left / root, s, right / root)
