"""An exact fit from one that is nearly right.

Near the limit, descent at the true rank ends where most of the matrix is nearly right and a few rows and columns with few
entries are wrong, and keep the rest from being exact. Without them the rest becomes exact; then they follow from it.
"""

from __future__ import annotations

import numpy as np

from gyrostat.estimators.low_rank.solver.determined import Known, core, extended, part
from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, balanced
from gyrostat.estimators.low_rank.solver.reweighted import EXACT, Found, hypothesis
from gyrostat.estimators.low_rank.solver.ridge import residual
from gyrostat.estimators.low_rank.solver.tangent import Point, Step, Weights, retracted, solve

NEARLY = 0.1
"""The residual, as a share of the data, from which on a fit is nearly right."""
PEELED = (0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Shares of rows and columns, those that fit worst, that are left out in turn."""
LEAST = 1.03
"""Entries over degrees of freedom that must be left then."""
CONCENTRATED = 0.35
"""The share of the squared residual in a tenth of the rows, or of the columns, that tells wrong ones from noise: after fits of
noise .2 to .3 was seen, where some rows were wrong .4 to .9 (n = 100, ranks 3 to 10)."""


def repaired(seen: Observed, tried: Found, depth: float) -> Found:
    """A more patient search than the one that was tried, repaired where it is nearly right.

    Nothing is done where the residual is spread over all rows and columns as that of noise is.
    """
    if not concentrated(seen, tried.factors):
        return tried
    found = hypothesis(seen, tried.factors.rank, depth, limit=300, stalled=0.98)
    size = float(np.sqrt(np.mean(seen.values**2)))
    point, left = _point(found.factors), 0.0
    if not found.exact:
        point, left = damped(seen, point, limit=300, span=25)
    for share in PEELED if EXACT * size < left < NEARLY * size else ():
        trial, without = _without(seen, point, share)
        if trial is None:
            break
        if without < left:
            point, left = trial, without
        if left < EXACT * size:
            break
    return Found(point.factors, left < EXACT * size, found.steps)


def damped(seen: Observed, point: Point, *, limit: int, span: int) -> tuple[Point, float]:
    """Levenberg-Marquardt steps at a fixed rank while the residual falls by a fifth in ``span`` of them; that residual."""
    enough, k = 0.1 * EXACT * float(np.sqrt(np.mean(seen.values**2))), len(point.s)
    damping, history = 1e-2 * seen.share, [_off(seen, point)]
    for t in range(limit):
        left = seen.with_values(residual(seen, point.factors))
        step = solve(left, point._replace(s=np.zeros(k)), Weights.flat(k, damping), accuracy=1e-4, limit=300)
        trial = retracted(point, Step(step.F + point.U * point.s, step.G, step.residual))
        off = _off(seen, trial)
        if off < history[-1]:
            point, damping = trial, max(0.3 * damping, 1e-12)
        else:
            off, damping = history[-1], 4 * damping
        history.append(off)
        if off < enough or (t >= span and off > 0.8 * history[-span]):
            break
    return point, history[-1]


def _without(seen: Observed, point: Point, share: float) -> tuple[Point | None, float]:
    """Refined without the worst rows and columns, which are then put back; None where too little would be left."""
    rank = len(point.s)
    known = core(seen, _fitting(seen, point, share), rank)
    rest = part(seen, known)
    if min(rest.shape) <= 2 * rank or len(rest) < LEAST * rest.freedom(rank):
        return None, np.inf
    start = Factors(*(factor[side] for factor, side in zip(point.factors, known, strict=True)))
    inner, _ = damped(rest, _point(start), limit=40, span=12)
    return damped(seen, _point(extended(seen, inner.factors, known)), limit=15, span=8)


def _fitting(seen: Observed, point: Point, share: float) -> Known:
    """The rows and columns that fit best."""
    counts = [np.maximum(np.bincount(at, minlength=n), 1) for at, n in _sides(seen)]
    means = [sums / count for sums, count in zip(_squares(seen, point.factors), counts, strict=True)]
    worst = np.quantile(np.concatenate(means), 1 - share)
    return [mean <= worst for mean in means]


def concentrated(seen: Observed, factors: Factors) -> bool:
    shares = (np.sort(sums)[-max(len(sums) // 10, 1) :].sum() / sums.sum() for sums in _squares(seen, factors))
    return bool(max(shares) > CONCENTRATED)


def _squares(seen: Observed, factors: Factors) -> list[np.ndarray]:
    """The sums of squared residuals in every row, and in every column."""
    squares = residual(seen, factors) ** 2
    return [np.bincount(at, squares, minlength=n) for at, n in _sides(seen)]


def _sides(seen: Observed) -> list[tuple[np.ndarray, int]]:
    return list(zip((seen.rows, seen.columns), seen.shape, strict=True))


def _off(seen: Observed, point: Point) -> float:
    return float(np.sqrt(np.mean(residual(seen, point.factors) ** 2)))


def _point(factors: Factors) -> Point:
    (left, right), s = balanced(factors)
    root = np.sqrt(np.maximum(s, np.finfo(float).tiny))
    return Point(left / root, s, right / root)
