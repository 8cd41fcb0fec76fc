"""Observed entries of a matrix, low-rank factors, and the linear algebra that the solver needs of both.

No array of size rows x columns is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

GATHER_SIZE = 4_000_000
"""The most numbers in memory at a time, of gathered rows of a factor and of Gram matrices (32 MB each)."""
SIMILAR = 1.15
"""Rows are handled together if their numbers of entries differ by less than this factor: the shorter ones are filled up."""
SHORT_SIDE = 50
"""A matrix whose shorter side is at most this long is written out, which is faster than an iterative SVD."""

Product = Callable[[np.ndarray], np.ndarray]


class Factors(NamedTuple):
    """The matrix ``left @ right.T``."""

    left: np.ndarray
    right: np.ndarray

    @property
    def rank(self) -> int:
        """The number of components."""
        return self.left.shape[1]

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Factors:
        """The zero matrix, which has no components."""
        return cls(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Single entries, computed block by block.

        >>> Factors(np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])).at(np.array([1, 0]), np.array([0, 1])).tolist()
        [6.0, 5.0]
        """
        values = np.empty(len(rows))
        length = max(GATHER_SIZE // max(self.rank, 1), 1)
        for start in range(0, len(rows), length):
            block = slice(start, start + length)
            values[block] = np.einsum("ek,ek->e", self.left[rows[block]], self.right[columns[block]])
        return values


class ObservedEntries:
    """``values`` at the positions (``rows``, ``columns``) of a matrix of the given ``shape``; each position occurs once.

    >>> entries = ObservedEntries((2, 2), np.array([1, 0, 1]), np.array([0, 1, 1]), np.array([3.0, 1.0, 2.0]))
    >>> entries.rows.tolist(), entries.values.tolist(), len(entries)
    ([0, 1, 1], [1.0, 3.0, 2.0], 3)
    """

    def __init__(self, shape: tuple[int, int], rows: np.ndarray, columns: np.ndarray, values: np.ndarray):
        self.shape = shape
        index_type = np.int32 if max(shape) < 2**31 else np.int64
        place = rows.astype(np.int64) * shape[1] + columns
        order = slice(None) if (np.diff(place) > 0).all() else np.argsort(place)
        self._keep(rows[order].astype(index_type), columns[order].astype(index_type), values[order].astype(np.float64))

    def _keep(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Sorted entries, and where each row starts."""
        self.rows, self.columns, self.values = rows, columns, values
        self._row_starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.shape[0]))])

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def share(self) -> float:
        """The share of the matrix that is observed."""
        return len(self) / (self.shape[0] * self.shape[1])

    @cached_property
    def pattern(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """Two sparse matrices with ones at the observed entries: the matrix and its transpose."""
        ones = self.matrix(np.ones(len(self)))
        return ones, ones.T.tocsr()

    @cached_property
    def column_order(self) -> np.ndarray:
        """The permutation that sorts the entries by column, then by row."""
        return self.matrix(np.arange(len(self))).tocsc().data

    def matrix(self, values: np.ndarray) -> sparse.csr_matrix:
        """A sparse matrix with these values at the observed entries."""
        return sparse.csr_matrix((values, self.columns, self._row_starts), shape=self.shape)

    def transposed(self, values: np.ndarray) -> sparse.csr_matrix:
        """The transpose of :meth:`matrix`, also stored by rows, so that products with either are equally fast."""
        _, ones = self.pattern
        return sparse.csr_matrix((values[self.column_order], ones.indices, ones.indptr), shape=self.shape[::-1])

    def residual(self, factors: Factors) -> np.ndarray:
        """The observed values minus those of the factors."""
        return self.values - factors.at(self.rows, self.columns)

    def row_batches(self, rank: int, *, transposed: bool = False) -> Iterator[RowBatch]:
        """All rows (columns, if ``transposed``) in batches of similar lengths, of which ``rank`` columns fit into memory.

        >>> entries = ObservedEntries((3, 9), np.array([0, 2, 2]), np.array([4, 5, 6]), np.array([1.0, 2.0, 3.0]))
        >>> [(batch.rows.tolist(), batch.columns.tolist(), batch.values.tolist()) for batch in entries.row_batches(2)]
        [([1, 0], [[9], [4]], [[0.0], [1.0]]), ([2], [[5, 6]], [[2.0, 3.0]])]
        """
        ones = self.pattern[int(transposed)]
        starts, lengths = ones.indptr[:-1], np.diff(ones.indptr)
        others = np.append(ones.indices, ones.shape[1]).astype(ones.indices.dtype)
        values = np.append(self.values[self.column_order] if transposed else self.values, 0.0)
        by_length = np.argsort(lengths, kind="stable")
        for start, stop in _similar_runs(lengths[by_length], rank):
            rows = by_length[start:stop]
            place = np.arange(max(lengths[rows[-1]], 1))
            at = np.where(place < lengths[rows, None], starts[rows, None] + place, len(self))
            yield RowBatch(rows, others[at], values[at])

    def grams(self, factor: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """``sum_j g_j g_j^T`` over the observed entries of each row (of each column, if ``transposed``)."""
        k = factor.shape[1]
        grams = np.empty((self.shape[int(transposed)], k, k))
        padded = np.vstack([factor, np.zeros(k)])
        for batch in self.row_batches(k, transposed=transposed):
            grams[batch.rows] = batch.grams(padded[batch.columns])
        return grams

    def take(self, chosen: np.ndarray) -> ObservedEntries:
        """The entries that a mask chooses."""
        other = ObservedEntries.__new__(ObservedEntries)  # they are sorted already
        other.shape = self.shape
        other._keep(self.rows[chosen], self.columns[chosen], self.values[chosen])
        return other

    def with_values(self, values: np.ndarray) -> ObservedEntries:
        """Other values at the same positions, in the same order."""
        other = copy(self)  # the cached pattern and column order still hold
        other.values = values.astype(np.float64)
        return other

    def degrees_of_freedom(self, rank: int) -> int:
        """The number of degrees of freedom of a matrix of this shape and rank."""
        return rank * (sum(self.shape) - rank)

    @cached_property
    def largest_rank(self) -> int:
        """The largest rank with fewer degrees of freedom than there are entries (at least 1)."""
        total = sum(self.shape)
        discriminant = total**2 - 4 * len(self)
        rank = min(self.shape) if discriminant < 0 else int((total - np.sqrt(discriminant)) / 2 - 1e-9)
        return int(np.clip(rank, 1, min(self.shape)))


class RowBatch(NamedTuple):
    """Rows of similar lengths: their numbers, and the columns and values of their entries, (rows, longest row).

    Shorter rows are filled up with zeros in a column that is one beyond the last.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def grams(self, gathered: np.ndarray) -> np.ndarray:
        """``sum_j g_j g_j^T`` for each row; ``gathered`` are the rows g_j of the other factor, (rows, longest row, rank)."""
        return gathered.mT @ gathered


def _similar_runs(lengths: np.ndarray, rank: int) -> Iterator[tuple[int, int]]:
    """Runs of sorted lengths that differ by less than ``SIMILAR``, or by one, and whose Gram matrices fit into memory."""
    start = 0
    while start < len(lengths):
        stop = int(np.searchsorted(lengths, max(SIMILAR * lengths[start], lengths[start] + 1), side="right"))
        most = GATHER_SIZE // (max(int(lengths[stop - 1]), rank, 1) * max(rank, 1))
        stop = min(stop, start + max(most, 1))
        yield start, stop
        start = stop


def root_mean_square(values: np.ndarray) -> float:
    """The root mean square; NaN for no values.

    >>> root_mean_square(np.array([3.0, -3.0]))
    3.0
    """
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def balanced(factors: Factors) -> tuple[Factors, np.ndarray]:
    """The same matrix as ``U sqrt(s)`` and ``V sqrt(s)`` with orthonormal U and V, and its singular values s.

    >>> _, s = balanced(Factors(np.eye(3)[:, :2] * [8.0, 1.0], np.eye(2)))
    >>> s.tolist()
    [8.0, 1.0]
    """
    (Q, R), (P, T) = np.linalg.qr(factors.left), np.linalg.qr(factors.right)
    u, s, vt = np.linalg.svd(R @ T.T, full_matrices=False)
    root = np.sqrt(s)
    return Factors(Q @ (u * root), P @ (vt.T * root)), s


def truncated_svd(
    times: Product, times_transpose: Product, shape: tuple[int, int], count: int, *, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s and V of the ``count`` largest singular values of a matrix that is given by its products.

    >>> A = np.diag([3.0, 1.0, 2.0])
    >>> truncated_svd(lambda x: A @ x, lambda x: A.T @ x, A.shape, 2, tolerance=0)[1].round(12).tolist()
    [3.0, 2.0]
    """
    n, m = shape
    count = min(count, n, m)
    if min(n, m) <= max(SHORT_SIDE, count + 1):
        A = times_transpose(np.eye(n)).T if n <= m else times(np.eye(m))
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return U[:, :count], s[:count], Vt[:count].T
    products = {"matvec": times, "rmatvec": times_transpose, "matmat": times, "rmatmat": times_transpose}
    # Without a start, svds would draw one from NumPy's global random state.
    start = np.random.RandomState(0).standard_normal(min(shape))
    U, s, Vt = svds(LinearOperator(shape, dtype=float, **products), k=count, v0=start, tol=tolerance)
    return U[:, ::-1], s[::-1], Vt[::-1].T


def entries_svd(entries: ObservedEntries, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The truncated SVD of a matrix with these values at the observed entries and zero elsewhere."""
    S, St = entries.matrix(values), entries.transposed(values)
    return truncated_svd(lambda x: S @ x, lambda x: St @ x, entries.shape, count, tolerance=1e-3)


def held_out_mask(entries: ObservedEntries, share: float, random: np.random.RandomState) -> np.ndarray:
    """A random choice of entries to hold out. Each row and column with an entry keeps at least one."""
    order = random.permutation(len(entries))
    held = np.zeros(len(entries), dtype=bool)
    held[order[: round(share * len(entries))]] = True
    for index in (entries.rows, entries.columns):
        first = np.full(int(index.max()) + 1, -1)
        first[index[order[::-1]]] = order[::-1]  # for each row or column, its entry that comes first in the order
        kept = np.bincount(index[~held], minlength=len(first))
        held[first[(kept == 0) & (first >= 0)]] = False
    return held


def split(
    entries: ObservedEntries, share: float, random: np.random.RandomState
) -> tuple[ObservedEntries, ObservedEntries]:
    """Entries to fit and entries held out."""
    held = held_out_mask(entries, share, random)
    return entries.take(~held), entries.take(held)
