"""How fast the second singular value of a deep linear network dies once the network has fallen to rank 1 (ours)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gyrostat import errors


def turning_rate(
    matrix: Any, truth: Any, observed: Sequence[tuple[int, int]], *, step_size: float, depth: int
) -> np.ndarray:
    """By how much faster than ``-L log(1 - eta lambda)`` per step s2 falls because noise turns the first pair.

    At rank 1 a step on entry (i, j) with error d adds to the last layer a column along e_i and to the first a row along
    e_j, of relative size ``c = 2 eta d s1^(1 - 2/L)``. That turns the first singular vectors, and what was orthogonal to
    them loses by the cosine: ``(c u2_i v1_j)^2 / 2`` in the last layer and ``(c u1_i v2_j)^2 / 2`` in the first. The mean
    over the observed entries is returned, for each of the matrices (2 x 2, to any number of leading dimensions).

    With two layers the second pair meets itself in the gradient, which this leaves out: depth is 3 or more. Steps are those
    of the convention ``weight_decay``, ``eta grad (A_ij - y_ij)^2``.

    >>> A = np.array([[1.0, 2.0], [0.5, 1.0]])
    >>> turning_rate(A, A, [(0, 0)], step_size=0.2, depth=3).item()
    0.0
    """
    A, eta = np.asarray(matrix, dtype=float), float(errors.number("step_size", step_size, above=0))
    L = errors.integer("depth", depth, least=3)
    u, s, vt = np.linalg.svd(A)
    total = np.zeros(A.shape[:-2])
    for i, j in observed:
        c = 2 * eta * (A[..., i, j] - np.asarray(truth)[i][j]) * s[..., 0] ** (1 - 2 / L)
        total += c**2 * ((u[..., i, 1] * vt[..., 0, j]) ** 2 + (u[..., i, 0] * vt[..., 1, j]) ** 2) / 2
    return total / len(observed)
