"""Observed entries of a matrix, and all that a solver asks of them: nothing of size rows x columns is ever made."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

BLOCK, GRAMS = 4_000_000, 16_000_000
"""Numbers that a gather may hold at a time (32 MB), and the Gram matrices of a block of rows (128 MB)."""
ALL = slice(None)


class Factors(NamedTuple):
    """``A = left @ right.T``."""

    left: np.ndarray
    right: np.ndarray

    @property
    def rank(self) -> int:
        """The number of components."""
        return self.left.shape[1]

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Single entries, block by block.

        >>> Factors(np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])).at(np.array([1, 0]), np.array([0, 1])).tolist()
        [6.0, 5.0]
        """
        out = np.empty(len(rows))
        length = max(BLOCK // max(self.rank, 1), 1)
        for start in range(0, len(rows), length):
            part = slice(start, start + length)
            out[part] = np.einsum("ek,ek->e", self.left[rows[part]], self.right[columns[part]])
        return out


class Observed:
    """Entries ``values`` at (``rows``, ``columns``) of a matrix of the given ``shape``, each pair once.

    >>> seen = Observed((2, 2), np.array([1, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 1.0, 2.0]))
    >>> seen.rows.tolist(), seen.values.tolist(), len(seen)
    ([0, 1, 1], [1.0, 3.0, 2.0], 3)
    """

    def __init__(self, shape: tuple[int, int], rows: np.ndarray, columns: np.ndarray, values: np.ndarray):
        self.shape = shape
        order = np.lexsort((columns, rows))
        small = np.int32 if max(shape) < 2**31 else np.int64
        self.rows, self.columns = rows[order].astype(small), columns[order].astype(small)
        self.values = values[order].astype(np.float64)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self.rows, minlength=shape[0]))])

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def share(self) -> float:
        """The share of the matrix that is observed."""
        return len(self) / (self.shape[0] * self.shape[1])

    @cached_property
    def pattern(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """Ones at the observed entries, by rows and by columns."""
        ones = self.matrix(np.ones(len(self)))
        return ones, ones.T.tocsr()

    @cached_property
    def turned(self) -> np.ndarray:
        """The numbers of the entries in the order of columns."""
        return np.lexsort((self.rows, self.columns))

    def matrix(self, values: np.ndarray) -> sparse.csr_matrix:
        """A sparse matrix with these values at the observed entries."""
        return sparse.csr_matrix((values, self.columns, self._starts), shape=self.shape)

    def transposed(self, values: np.ndarray) -> sparse.csr_matrix:
        """The same, transposed, in the order of its rows: products with it are as fast as with the first."""
        _, ones = self.pattern
        return sparse.csr_matrix((values[self.turned], ones.indices, ones.indptr), shape=self.shape[::-1])

    def grams(self, factor: np.ndarray, *, transposed: bool = False, rows: slice = ALL) -> np.ndarray:
        """``sum_j g_j g_j^T`` over the observed entries of every row (of every column, if ``transposed``), or of some."""
        k, pattern = factor.shape[1], self.pattern[int(transposed)]
        pattern = pattern if rows == ALL else pattern[rows]  # slicing copies
        a, b = np.triu_indices(k)
        out = np.empty((pattern.shape[0], k, k))
        length = max(
            GRAMS // max(len(factor), pattern.shape[0]), 1
        )  # pairs at a time: products of columns take memory too
        for start in range(0, len(a), length):
            i, j = a[start : start + length], b[start : start + length]
            out[:, i, j] = out[:, j, i] = pattern @ (factor[:, i] * factor[:, j])
        return out

    def blocks(self, rank: int, *, transposed: bool = False) -> Iterator[slice]:
        """Rows (columns, if ``transposed``) whose Gram matrices of this rank are made at a time.

        >>> [x.stop - x.start for x in Observed((100_000, 3), *np.zeros((2, 1), dtype=int), np.ones(1)).blocks(20)]
        [40000, 40000, 20000]
        """
        count, length = self.shape[int(transposed)], max(GRAMS // max(rank, 1) ** 2, 1)
        if count <= length:
            return iter([ALL])
        return (slice(start, min(start + length, count)) for start in range(0, count, length))

    def take(self, chosen: np.ndarray) -> Observed:
        """Only some of the entries."""
        return Observed(self.shape, self.rows[chosen], self.columns[chosen], self.values[chosen])

    def with_values(self, values: np.ndarray) -> Observed:
        """Other values at the same entries, in their order."""
        other = copy(self)  # what is known of the places (pattern, turned) still holds
        other.values = values.astype(np.float64)
        return other

    def freedom(self, rank: int) -> int:
        """The number of degrees of freedom of matrices of this rank."""
        return rank * (sum(self.shape) - rank)

    @cached_property
    def largest_rank(self) -> int:
        """The largest rank with fewer degrees of freedom than there are entries (at least 1)."""
        total = sum(self.shape)
        room = total**2 - 4 * len(self)
        rank = min(self.shape) if room < 0 else int((total - np.sqrt(room)) / 2 - 1e-9)
        return int(np.clip(rank, 1, min(self.shape)))


def balanced(factors: Factors) -> tuple[Factors, np.ndarray]:
    """The same matrix as ``U sqrt(s), V sqrt(s)`` with orthonormal U and V, and its singular values s.

    >>> _, s = balanced(Factors(np.eye(3)[:, :2] * [8.0, 1.0], np.eye(2)))
    >>> s.tolist()
    [8.0, 1.0]
    """
    (Q, R), (P, T) = np.linalg.qr(factors.left), np.linalg.qr(factors.right)
    u, s, vt = np.linalg.svd(R @ T.T, full_matrices=False)
    root = np.sqrt(s)
    return Factors(Q @ (u * root), P @ (vt.T * root)), s


def held_out(seen: Observed, share: float, random: np.random.RandomState) -> np.ndarray:
    """Which entries to hold out; every row and column keeps at least one to fit, if it has one."""
    order = random.permutation(len(seen))
    held = np.zeros(len(seen), dtype=bool)
    held[order[: round(share * len(seen))]] = True
    for at in (seen.rows, seen.columns):
        first = np.full(int(at.max()) + 1, -1)
        first[at[order[::-1]]] = order[::-1]  # of every row or column the entry that comes first in the order
        left = np.bincount(at[~held], minlength=len(first))
        held[first[(left == 0) & (first >= 0)]] = False
    return held


def split(seen: Observed, share: float, random: np.random.RandomState) -> tuple[Observed, Observed]:
    """Entries to fit and entries held out."""
    held = held_out(seen, share, random)
    return seen.take(~held), seen.take(held)
