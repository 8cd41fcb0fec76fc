"""How few cells are enough: the share of matrices found over (entries over degrees of freedom, rank), not told the rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from gyrostat.benchmarks.completion.study import is_found, ours
from gyrostat.benchmarks.completion.tables import Hidden, Synthetic, synthetic
from gyrostat.estimators.low_rank.solver.exact_fit import fit_of_rank

FIRST = 5000
"""The seed of the first matrix: others than those of the rows, and than those that the solver was worked out on."""


def found(rank: int, oversampling: float, count: int, n: int) -> dict[str, Any]:
    """How many of ``count`` n x n matrices are found: by the whole imputer, and by MatrixIRLS told the rank."""
    setting = Synthetic(n, rank, oversampling)
    problems = [synthetic(setting, FIRST + k) for k in range(count)]
    mine, theirs = ([is_found(p, predict(p)) for p in problems] for predict in (ours, told))
    return {"rank": rank, "oversampling": oversampling, "count": count, "n": n, "ours": sum(mine), "told": sum(theirs)}


def told(problem: Hidden) -> np.ndarray:
    """MatrixIRLS (Kuemmerle, Mayrink Verdun 2021) told the rank: our reweighted least squares of infinite depth, alone."""
    assert problem.rank is not None
    factors = fit_of_rank(problem.seen, problem.rank, np.inf, limit=300, stalled=0.98).factors
    return factors.at(problem.test.rows, problem.test.columns)
