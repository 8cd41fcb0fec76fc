"""Exact completion: the matrix of lowest rank that agrees with every observed entry, if there are entries enough to tell.

For each rank r = 1, 2, ... reweighted least squares look for a matrix of that rank: the penalty of depth L, smoothed at
``eps = sigma_(r+1)`` of the matrix so far, is majorised by ``tr(C_u^-1 X C_v^-1 X^T)`` with
``C_u = U max(s, eps)^(1 - 1/L) U^T`` and C_v alike, on the orthogonal complement of U and V too (as in MatrixIRLS, Kuemmerle,
Mayrink Verdun 2021, which is L = infinity). Gauss-Newton steps finish. A matrix of rank r that fits more entries than it
has degrees of freedom is its own certificate, but of the whole only: a few rows and columns that share their few entries may
still be free. :func:`gyrostat.estimators.low_rank.solver.determined.undetermined` names them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, balanced
from gyrostat.estimators.low_rank.solver.spectrum import strongest
from gyrostat.estimators.low_rank.solver.tangent import Point, Weights, leading, retracted, solve

EXACT = 1e-7
"""The root mean square residual, as a share of the data's, below which a fit counts as exact."""


class Found(NamedTuple):
    """A matrix that fits exactly, or the last one tried."""

    factors: Factors
    exact: bool
    steps: int


def hypothesis(
    seen: Observed, rank: int, depth: float, *, limit: int = 80, every: int = 8, stalled: float = 0.9
) -> Found:
    """Look for a matrix of this rank that fits exactly.

    Every so many steps Gauss-Newton is tried, and it is given up if the smoothing has not fallen to ``stalled`` of itself.
    """
    size, p = float(np.sqrt(np.mean(seen.values**2))), 1 - 1 / depth
    start = Point(*strongest(seen, seen.values, rank + 1))
    eps, history = start.s[rank], []
    point = Point(start.U[:, :rank], start.s[:rank], start.V[:, :rank])
    for t in range(1, limit + 1):
        d = np.maximum(point.s / eps, 1 + 1e-6) ** p
        weights = Weights(1 / (d - 1), 1 / (np.multiply.outer(d, d) - 1))
        step = solve(seen, point, weights, accuracy=1e-3, limit=200)
        found = leading(seen, point, step, rank + 1)
        point = Point(found.U[:, :rank], found.s[:rank], found.V[:, :rank])
        eps = min(eps, found.s[rank])
        history.append(eps / found.s[0])
        if t % every == 0 or history[-1] < EXACT:
            polished, left = polish(seen, point)
            if left < EXACT * size:
                return Found(polished.factors, True, t)
            if t > 2 * every and history[-1] > stalled * history[-every]:
                break
    return Found(polished.factors, False, t)


def polish(seen: Observed, point: Point, limit: int = 12) -> tuple[Point, float]:
    """Gauss-Newton steps at a fixed rank as long as they help, and the root mean square residual."""
    best, damping = np.inf, 1e-4 * seen.share  # the curvature of a unit direction is about the share
    for _ in range(limit):
        step = solve(seen, point, Weights.flat(len(point.s), damping), accuracy=1e-4, limit=200)
        trial = retracted(point, step)
        left = float(np.sqrt(np.mean((seen.values - trial.factors.at(seen.rows, seen.columns)) ** 2)))
        if left > 0.7 * best:
            break
        point, best, damping = trial, left, damping * 0.1
    return point, best


def certified(seen: Observed, factors: Factors) -> Found:
    """Whether Gauss-Newton steps from these factors lead to an exact fit that the number of entries makes a certificate.

    The lowest rank that still fits is taken: a superfluous component would be free in columns with few entries.
    """
    if factors.rank == 0 or len(seen) <= seen.freedom(factors.rank):
        return Found(factors, False, 0)
    (left, right), s = balanced(factors)
    root, enough = np.sqrt(s), EXACT * float(np.sqrt(np.mean(seen.values**2)))
    point = Point(left / root, s, right / root)
    off = float(np.sqrt(np.mean((seen.values - factors.at(seen.rows, seen.columns)) ** 2)))
    if off >= enough:  # the damping of a first step would move an ill-conditioned fit that is exact already
        point, off = polish(seen, point)
    exact = off < enough
    while exact and len(point.s) > 1:
        lower, off = polish(seen, Point(point.U[:, :-1], point.s[:-1], point.V[:, :-1]))
        if off >= enough:
            break
        point = lower
    return Found(point.factors, exact, 0)
