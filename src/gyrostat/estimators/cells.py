"""Tables with missing cells: what is observed, in which units, and what to do where nothing is."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gyrostat.completion import Observed
from gyrostat.errors import GyrostatError
from gyrostat.labels import grouped

SHRINK = 5.0
"""An offset of a row or column with m entries is its mean residual times ``m / (m + SHRINK)``."""


def observed(X: Any) -> Observed:
    """The entries of an array that are not NaN, or those that a sparse matrix stores (explicit zeros too).

    >>> len(observed(np.array([[1.0, np.nan], [0.0, 2.0]]))), len(observed(sparse.csr_matrix(np.eye(3))))
    (3, 3)
    """
    if sparse.issparse(X):
        coo = X.tocoo()
        coo.sum_duplicates()
        there = ~np.isnan(coo.data)
        return Observed(X.shape, coo.row[there], coo.col[there], coo.data[there])
    rows, columns = np.nonzero(~np.isnan(X))
    return Observed(X.shape, rows, columns, X[rows, columns])


def environments_of(labels: Any, rows: int) -> tuple[list, np.ndarray]:
    """The distinct labels and the number of every row's; without labels all rows are in one environment."""
    if labels is None:
        return [], np.zeros(rows, dtype=int)
    names, members = grouped(labels)
    codes = np.empty(sum(map(len, members)), dtype=int)
    for e, mine in enumerate(members):
        codes[mine] = e
    if len(codes) != rows:
        raise GyrostatError(f"environments must hold one label for each of the {rows} rows; got {len(codes)}.")
    return names, codes


class Baseline(NamedTuple):
    """``mean + row offset + column offset`` (one for each environment) and the scale of what is left."""

    mean: float
    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray

    def at(self, rows: np.ndarray, columns: np.ndarray, environments: np.ndarray) -> np.ndarray:
        """The offsets of single cells; ``environments`` holds the number of every row's environment."""
        return self.mean + self.rows[rows] + self.columns[environments[rows], columns]

    def of_rows(self, seen: Observed, environments: np.ndarray) -> np.ndarray:
        """The offsets of rows that may be new, by the columns' own."""
        if not self.rows.any():
            return np.zeros(seen.shape[0])
        left = seen.values - self.mean - self.columns[environments[seen.rows], seen.columns]
        return _means(seen.rows, left, seen.shape[0])


def baseline(seen: Observed, environments: np.ndarray, *, offsets: bool, scales: bool) -> Baseline:
    """Offsets by alternating shrunken means, and the scales of columns (one number for all, if not ``scales``)."""
    count, (n, m) = int(environments.max(initial=0)) + 1, seen.shape
    a, b, mean = np.zeros(n), np.zeros((count, m)), 0.0
    e = environments[seen.rows]
    if offsets:
        mean = float(seen.values.mean())
        cells = e * m + seen.columns
        for _ in range(10):
            b = _means(cells, seen.values - mean - a[seen.rows], count * m).reshape(count, m)
            a = _means(seen.rows, seen.values - mean - b[e, seen.columns], n)
    left = seen.values - mean - a[seen.rows] - b[e, seen.columns]
    overall = float(np.sqrt(np.mean(left**2))) or 1.0
    scale = np.full(m, overall)
    if scales:
        squares, counts = (np.bincount(seen.columns, w, minlength=m) for w in (left**2, None))
        scale = np.sqrt((squares + SHRINK * overall**2) / (counts + SHRINK))
    return Baseline(mean, a, b, scale)


def _means(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(groups, values, minlength=count) / (np.bincount(groups, minlength=count) + SHRINK)


def warn_of_empty(seen: Observed, names: Any) -> None:
    """Name the rows and columns without any observed cell."""
    empty = [np.flatnonzero(np.bincount(at, minlength=n) == 0) for at, n in zip(
        (seen.rows, seen.columns), seen.shape, strict=True)]  # fmt: skip
    said = []
    if empty[0].size:
        said.append(f"rows {_listed(empty[0])}")
    if empty[1].size:
        said.append(f"columns {_listed(empty[1] if names is None else np.asarray(names)[empty[1]])}")
    if said:
        warnings.warn(
            f"Nothing is observed in {' and in '.join(said)}: they are filled with offsets only (the mean of the rest of "
            "their row or column with offsets, else zero).",
            stacklevel=3,
        )


def warn_of_free(rows: np.ndarray, columns: np.ndarray, names: Any) -> None:
    """Name the rows and columns that an exact fit does not determine."""
    said = [f"rows {_listed(rows)}"] if rows.size else []
    if columns.size:
        said.append(f"columns {_listed(columns if names is None else np.asarray(names)[columns])}")
    if said:
        warnings.warn(
            f"The fit is exact, but {' and '.join(said)} have too few cells to be determined by it: do not rely on those.",
            stacklevel=3,
        )


def _listed(names: np.ndarray, most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
