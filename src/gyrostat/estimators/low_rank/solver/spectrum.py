"""The strongest singular values and vectors of a matrix that is known by its products only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

from gyrostat.estimators.low_rank.solver.observed import Observed

SHORT = 50
"""A matrix with so short a side is written out, in slices of the long one: that is faster."""

Product = Callable[[np.ndarray], np.ndarray]


def top(
    times: Product, transposed: Product, shape: tuple[int, int], count: int, *, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V of the ``count`` strongest components.

    >>> A = np.diag([3.0, 1.0, 2.0])
    >>> top(lambda x: A @ x, lambda x: A.T @ x, A.shape, 2, tolerance=0)[1].round(12).tolist()
    [3.0, 2.0]
    """
    n, m = shape
    count = min(count, n, m)
    if min(n, m) <= max(SHORT, count + 1):
        A = transposed(np.eye(n)).T if n <= m else times(np.eye(m))
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return U[:, :count], s[:count], Vt[:count].T
    operator = LinearOperator(shape, matvec=times, rmatvec=transposed, matmat=times, rmatmat=transposed, dtype=float)
    start = np.random.RandomState(0).standard_normal(min(shape))  # svds draws it from NumPy's global state otherwise
    U, s, Vt = svds(operator, k=count, v0=start, tol=tolerance)
    return U[:, ::-1], s[::-1], Vt[::-1].T


def strongest(seen: Observed, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V of a matrix with these values at the observed entries and zero elsewhere."""
    S, St = seen.matrix(values), seen.transposed(values)
    return top(lambda x: S @ x, lambda x: St @ x, seen.shape, count, tolerance=1e-3)
