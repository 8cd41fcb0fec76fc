"""Tables with missing cells: what is observed, and in which environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from gyrostat import errors
from gyrostat.environments.labels import grouped
from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.solver import Observed


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


def unusable(X: Any) -> str:
    """The sentence for a table with a cell that is no number, or an infinite one; nothing for any other.

    >>> unusable([[1.0, "n/a"]])
    "X holds the text 'n/a' in row 0, column 1: leave columns of text out, and mark what is missing by NaN."
    >>> unusable(np.array([[1.0], [-np.inf]]))
    'X holds -inf in row 1, column 0: mark what is missing by NaN, and cells that are too large likewise.'
    """
    stored = X.tocoo() if sparse.issparse(X) else None
    table = np.asarray(X) if stored is None else stored.data
    if len(np.shape(X)) != 2 or table.size == 0:
        return ""
    bad = np.isinf(table) if table.dtype.kind in "biufc" else np.vectorize(_no_use, otypes=[bool])(table)
    if not bad.any():
        return ""
    first = np.unravel_index(int(np.argmax(bad)), bad.shape)
    i, j = first if stored is None else (stored.row[first], stored.col[first])
    value, where = table[first], f"in row {i}, column {list(getattr(X, 'columns', range(np.shape(X)[1])))[j]}"
    if isinstance(value, str):
        return f"X holds the text {str(value)!r} {where}: leave columns of text out, and mark what is missing by NaN."
    return f"X holds {value} {where}: mark what is missing by NaN, and cells that are too large likewise."


def _no_use(value: Any) -> bool:
    return not _number(value) if isinstance(value, str) else isinstance(value, float) and bool(np.isinf(value))


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def known_environments(labels: Any, rows: int, known: list) -> np.ndarray:
    """The number of every row's label among those that ``fit`` was given."""
    if not known:
        return np.zeros(rows, dtype=int)
    if labels is None:
        raise GyrostatError(
            "environments is missing: fit was given one label for each row, so transform needs them too."
        )
    names, codes = environments_of(labels, rows)
    if unknown := [name for name in names if name not in known]:
        raise GyrostatError(f"environments holds {errors.shown(unknown[0])}, which fit has not seen.")
    return np.array([known.index(name) for name in names])[codes]


def empty(seen: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns without any observed cell."""
    rows, columns = (
        np.flatnonzero(np.bincount(at, minlength=n) == 0)
        for at, n in zip((seen.rows, seen.columns), seen.shape, strict=True)
    )
    return rows, columns
