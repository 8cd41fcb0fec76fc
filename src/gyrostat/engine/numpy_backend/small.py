"""Small symmetric matrices and their isometric coordinates, many at once: the NumPy side of ``SymmetricMatrices``."""

from __future__ import annotations

import functools

import numpy as np


@functools.lru_cache(maxsize=64)
def rank_of(size: int) -> int:
    """The size of symmetric matrices with so many coordinates.

    >>> rank_of(6)
    3
    """
    return int((np.sqrt(8 * size + 1) - 1) / 2 + 0.5)


def diagonal(rank: int) -> np.ndarray:
    """Which coordinates are those of the diagonal.

    >>> diagonal(3).tolist()
    [0, 3, 5]
    """
    return np.cumsum([0, *range(rank, 1, -1)])


@functools.lru_cache(maxsize=64)
def triangle(rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the upper triangle, and the scale of each entry."""
    rows, columns = np.triu_indices(rank)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def coordinates(C: np.ndarray) -> np.ndarray:
    """Isometric coordinates (..., s) of small symmetric matrices.

    >>> coordinates(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    if C.shape[-1] == 1:  # the usual case, many times a second
        return C[..., 0].astype(float)
    rows, columns, scale = triangle(C.shape[-1])
    return C[..., rows, columns].astype(float) * scale


def matrix(x: np.ndarray) -> np.ndarray:
    """The matrices with these coordinates.

    >>> matrix(np.array([1.0, 2 * 2**0.5, 3.0])).round(3).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    if x.shape[-1] == 1:
        return x[..., None]
    rows, columns, scale = triangle(rank_of(x.shape[-1]))
    C = np.zeros((*x.shape[:-1], rank_of(x.shape[-1]), rank_of(x.shape[-1])))
    C[..., rows, columns] = C[..., columns, rows] = x / scale
    return C
