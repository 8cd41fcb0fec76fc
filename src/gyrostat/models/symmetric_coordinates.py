"""Isometric coordinates of symmetric matrices, in NumPy and without JAX.

The coordinates of a symmetric d x d matrix are its upper triangle, row by row, with the entries off the diagonal times
sqrt(2), so that ``<A, B> = svec(A) . svec(B)``.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np


class UpperTriangle(NamedTuple):
    """The rows and columns of the D = d (d + 1) / 2 coordinates, their scale, and the coordinate of each entry (d, d)."""

    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray
    position: np.ndarray


@functools.lru_cache(maxsize=64)
def upper_triangle(dimension: int) -> UpperTriangle:
    """The index tables of symmetric matrices of this dimension.

    >>> upper_triangle(2).position.tolist()
    [[0, 1], [1, 2]]
    """
    rows, columns = np.triu_indices(dimension)
    position = np.zeros((dimension, dimension), dtype=int)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    return UpperTriangle(rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0)), position)


@functools.lru_cache(maxsize=64)
def dimension_of(size: int) -> int:
    """The dimension d of symmetric matrices with ``size`` coordinates.

    >>> dimension_of(6)
    3
    """
    return int((np.sqrt(8 * size + 1) - 1) / 2 + 0.5)


def svec(matrices: np.ndarray) -> np.ndarray:
    """The coordinates (..., D) of symmetric matrices (..., d, d).

    >>> svec(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    table = upper_triangle(matrices.shape[-1])
    return matrices[..., table.rows, table.columns] * table.scale


def smat(coordinates: np.ndarray) -> np.ndarray:
    """The symmetric matrices (..., d, d) with these coordinates (..., D); the inverse of :func:`svec`.

    >>> smat(np.array([1.0, 2 * 2**0.5, 3.0])).round(3).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    table = upper_triangle(dimension_of(coordinates.shape[-1]))
    # Indexing instead of `take` may return another order in memory, with which later products round differently.
    return np.take(coordinates / table.scale, table.position, axis=-1)
